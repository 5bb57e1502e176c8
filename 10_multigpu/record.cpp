#include <nlohmann/json.hpp>

#include "report.hpp"

namespace spmv::multigpu {

nlohmann::ordered_json& add_record(Records& records, const std::string& program,
                                   const MatrixFacts& matrix, const Way& way,
                                   const std::vector<PartShape>& parts,
                                   const std::vector<double>& busy_ms) {
  KernelInfo info = way.kernel->info;
  info.step = 10;
  nlohmann::ordered_json& line = records.add(program, info, "", matrix.source, matrix.rows,
                                             matrix.cols, matrix.nnz, matrix.precision);
  line[program == "multigpu" ? "gpus" : "ranks"] = way.gpus;
  line["partition"] = way.partition;
  line["exchange"] = way.exchange;
  line["steps"] = way.steps;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    line["parts"].push_back({{"rows", parts[p].rows},
                             {"nnz", parts[p].nnz},
                             {"boundary_rows", parts[p].boundary_rows},
                             {"remote_cols", parts[p].remote_cols},
                             {"fetched", parts[p].fetched}});
    if (!busy_ms.empty()) line["parts"].back()["busy_ms"] = busy_ms[p];
  }
  return line;
}

void record_outcome(const MatrixFacts& matrix, const Way& way, const std::string& norm,
                    const Outcome& outcome, const Environment& environment,
                    const std::string& path) {
  Records records(environment);
  nlohmann::ordered_json& line =
      add_record(records, "multigpu", matrix, way, outcome.parts, outcome.busy_ms);
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
