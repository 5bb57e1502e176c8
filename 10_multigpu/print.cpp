#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report.hpp"

namespace spmv::multigpu {
namespace {

const char* plural(int count) {
  return count == 1 ? "" : "s";
}

}  // namespace

double Outcome::best_step_ms() const {
  double best = std::numeric_limits<double>::infinity();
  for (const DriveTime& drive : drives) best = std::min(best, drive.step.median);
  return best;
}

void print_matrix(const MatrixFacts& matrix) {
  fmt::print("\n{} ({}): {} rows, {} columns, {} nonzeros, {}\n", matrix.source.name,
             to_string(matrix.source.origin), matrix.rows, matrix.cols, matrix.nnz,
             matrix.precision);
  if (matrix.source.origin == MatrixSource::Origin::kStandIn) {
    fmt::print("  a stand-in, generated as {}, since the file is not here\n", matrix.source.detail);
  }
}

void print_heading(const Way& way, const std::string& who) {
  fmt::print("{} {}{}, equal {} (PCSR-{}), {}, {}\n", way.gpus, who, plural(way.gpus),
             way.partition, way.partition == "rows" ? "I" : "II",
             way.exchange == "none" ? "no exchange: products of one x"
                                    : fmt::format("exchange {}, {} steps", way.exchange, way.steps),
             way.kernel->info.name);
}

void print_parts(const std::vector<PartShape>& parts, const std::string& who,
                 const std::vector<double>& busy_ms) {
  fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", who, "rows", "nonzeros", "boundary rows",
             "remote columns", "fetched", busy_ms.empty() ? "" : "     busy us");
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const PartShape& part = parts[p];
    fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", p, part.rows, part.nnz,
               part.boundary_rows, part.remote_cols, part.fetched,
               busy_ms.empty() ? "" : fmt::format("{:>12.1f}", 1e3 * busy_ms[p]));
  }
}

void print_outcome(const Way& way, const Outcome& outcome) {
  for (const std::string& note : outcome.notes) fmt::print("  {}\n", note);
  if (outcome.status != Outcome::Status::kRight) return;
  print_parts(outcome.parts, "GPU", outcome.busy_ms);
  for (const DriveTime& drive : outcome.drives) {
    fmt::print("  {}: {:.2f} us per step ({:.2f}-{:.2f})\n", drive.name, 1e3 * drive.step.median,
               1e3 * drive.step.lower, 1e3 * drive.step.upper);
  }
  if (outcome.one_gpu_step_ms && outcome.devices == way.gpus) {
    fmt::print("  parallel efficiency {:.1f}%, of one GPU's {:.1f} us\n",
               100 * *outcome.one_gpu_step_ms / (way.gpus * outcome.best_step_ms()),
               1e3 * *outcome.one_gpu_step_ms);
  }
  fmt::print(
      "  verified: the first step, and the last of each drive; checksum of the result {:016x}\n",
      outcome.checksum);
  if (!outcome.difference) return;
  fmt::print("  bits of the first step: {}\n",
             outcome.difference->rows == 0
                 ? "those of one GPU"
                 : fmt::format("not those of one GPU in {} rows, by up to {} ulp",
                               outcome.difference->rows, outcome.difference->max_ulps));
}

}  // namespace spmv::multigpu
