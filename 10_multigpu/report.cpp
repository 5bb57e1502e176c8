#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace spmv::multigpu {
namespace {

const char* plural(int count) {
  return count == 1 ? "" : "s";
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

}  // namespace

std::vector<const Kernel*> find_part_kernels(const std::string& patterns) {
  std::vector<const Kernel*> kernels = find_kernels(patterns);
  for (const Kernel* kernel : kernels) {
    if (kernel->info.format == "CSR" && kernel->info.runs_on == RunsOn::kDevice) continue;
    throw InputError(
        fmt::format("--kernel {}: a part is a CSR matrix on a GPU; use pcsr or pcsr_one_pass",
                    kernel->info.name));
  }
  return kernels;
}

void require_square(const std::string& what, Index rows, Index cols) {
  if (rows == cols) return;
  throw InputError(
      fmt::format("{} has {} rows and {} columns; only of a square matrix y can be the next x",
                  what, rows, cols));
}

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

void print_heading(const Way& way) {
  fmt::print("{} {}{}, equal {} (PCSR-{}), {}, {}\n", way.gpus, way.has_part, plural(way.gpus),
             way.partition, way.partition == "rows" ? "I" : "II",
             way.exchange == "none" ? "no exchange: products of one x"
                                    : fmt::format("exchange {}, {} steps", way.exchange, way.steps),
             way.kernel->info.name);
}

void print_outcome(const Way& way, const Outcome& outcome) {
  for (const std::string& note : outcome.notes) fmt::print("  {}\n", note);
  if (outcome.status != Outcome::Status::kRight) return;
  print_parts(outcome.parts, way.has_part, outcome.busy_ms);
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

// --- Records ------------------------------------------------------------------------------------

void record_outcome(const MatrixFacts& matrix, const Way& way, const std::string& norm,
                    const Outcome& outcome, const Environment& environment,
                    const std::string& path) {
  const bool of_gpus = way.has_part == "GPU";
  Records records(environment);
  KernelInfo info = way.kernel->info;
  info.step = 10;
  nlohmann::ordered_json& line =
      records.add(of_gpus ? "multigpu" : "multigpu_mpi", info, "", matrix.source, matrix.rows,
                  matrix.cols, matrix.nnz, matrix.precision);
  line[of_gpus ? "gpus" : "ranks"] = way.gpus;
  line["partition"] = way.partition;
  line["exchange"] = way.exchange;
  line["steps"] = way.steps;
  for (std::size_t p = 0; p < outcome.parts.size(); ++p) {
    const PartShape& part = outcome.parts[p];
    line["parts"].push_back({{"rows", part.rows},
                             {"nnz", part.nnz},
                             {"boundary_rows", part.boundary_rows},
                             {"remote_cols", part.remote_cols},
                             {"fetched", part.fetched}});
    if (!outcome.busy_ms.empty()) line["parts"].back()["busy_ms"] = outcome.busy_ms[p];
  }
  if (way.exchange != "none") line["norm"] = norm;
  line["peer_access"] = outcome.peer_access;
  if (outcome.measured) {
    line["step_ms"] = nlohmann::ordered_json::object();
    for (const DriveTime& drive : outcome.drives) line["step_ms"][drive.name] = to_json(drive.step);
  }
  if (outcome.one_gpu_step_ms) line["one_gpu_step_ms"] = *outcome.one_gpu_step_ms;
  if (outcome.difference) {
    line["difference_from_one"] = {{"rows", outcome.difference->rows},
                                   {"max_ulps", outcome.difference->max_ulps}};
  }
  records.append_to(path);
}

}  // namespace spmv::multigpu
