#include "harness/records.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "harness/machine_code.hpp"
#include "harness/output.hpp"
#include "sparse/bsr.hpp"
#include "sparse/statistics.hpp"

namespace spmv {
namespace {

using nlohmann::ordered_json;

// Five digits: runs differ by more. Whole numbers stay whole.
void round_numbers(ordered_json& value) {
  if (value.is_structured()) {
    for (ordered_json& element : value) round_numbers(element);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && std::fabs(number) < 1e15) {
      value = static_cast<long long>(number);
    } else {
      value = std::strtod(fmt::format("{:.5g}", number).c_str(), nullptr);
    }
  }
}

// The lines of a file; of a pipe, which cannot be read again, none.
std::unordered_set<std::string> lines_of(const std::string& path) {
  std::unordered_set<std::string> lines;
  if (!std::filesystem::is_regular_file(path)) return lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.insert(std::move(line));
  return lines;
}

ordered_json software_of(const Environment& e) {
  ordered_json json{{"backend", e.backend}, {"device", e.device}};
  if (e.processor != e.device) {
    json["processor"] = e.processor;
    json["threads"] = e.threads;
  }
  if (!e.cuda.empty()) {
    json["driver"] = e.driver;
    json["cuda"] = e.cuda;
    json["cusparse"] = e.cusparse;
  }
  json["compiler"] = e.compiler;
  json["commit"] = e.commit;
  return json;
}

}  // namespace

Records::Records(const Environment& environment) : run_(environment.run), arch_(environment.arch) {
  ordered_json run{{"id", run_}};
  run.update(software_of(environment));
  run["command"] = environment.command;
  descriptions_.push_back({{"run", run}});
}

Records::~Records() = default;

ordered_json& Records::add(const std::string& program, const KernelInfo& kernel,
                           const std::string& choice, const MatrixFacts& matrix) {
  const MatrixSource& source = matrix.source;
  const bool is_file = source.origin == MatrixSource::Origin::kFile;
  descriptions_.push_back(
      {{"matrix",
        {{"run", run_},
         {"name", source.name},
         {"source", to_string(source.origin)},
         // Of a file its name: where it lay says nothing.
         {"detail",
          is_file ? source.detail.substr(source.detail.find_last_of('/') + 1) : source.detail},
         {"rows", matrix.rows},
         {"cols", matrix.cols},
         {"nnz", matrix.nnz}}}});
  ordered_json described{
      {"run", run_}, {"name", kernel.name}, {"step", kernel.step}, {"format", kernel.format}};
  if (kernel.runs_on == RunsOn::kHost) described["host"] = true;
  descriptions_.push_back({{"kernel", described}});

  ordered_json line{{"run", run_}};
  if (!program.empty()) line["program"] = program;
  line["matrix"] = source.name;
  line["precision"] = matrix.precision;
  line["kernel"] = kernel.name;
  if (!choice.empty()) line["choice"] = choice;
  line["verified"] = true;
  return measurements_.emplace_back(std::move(line));
}

void Records::add_number(const char* name, double value) {
  measurements_.back()[name] = value;
}

void Records::add_code(const std::set<std::string>& functions) {
  ordered_json& line = measurements_.back();
  if (functions.empty()) {
    line["code"] = "library";
    return;
  }
  ordered_json described = ordered_json::object();
  for (const std::string& function : functions) {
    const auto code = own_machine_code(arch_).find(function);
    if (code == own_machine_code(arch_).end()) return;
    described[function] = code->second;
  }
  const std::string name = hash_of(described.dump());
  descriptions_.push_back({{"code", {{"name", name}, {"arch", arch_}, {"functions", described}}}});
  line["code"] = name;
}

void Records::add_outcome(const KernelInfo& kernel, const MatrixFacts& matrix,
                          const std::string& outcome, const std::string& reason) {
  measurements_.push_back({{"run", run_},
                           {"matrix", matrix.source.name},
                           {"precision", matrix.precision},
                           {"kernel", kernel.name},
                           {outcome, reason}});
}

void Records::append_to(const std::string& path) {
  std::unordered_set<std::string> known = lines_of(path);
  std::string lines;
  if (!measurements_.empty()) {
    for (const ordered_json& description : descriptions_) {
      if (const auto [line, is_new] = known.insert(description.dump()); is_new) {
        lines += *line + '\n';
      }
    }
  }
  for (ordered_json& measurement : measurements_) {
    round_numbers(measurement);
    lines += measurement.dump() + '\n';
  }
  append_lines(path, lines);
}

ordered_json to_json(const Quartiles& q) {
  return {q.lower, q.median, q.upper, q.samples};
}

ordered_json to_json(const Traffic& t) {
  return {{"array", t.array},
          {"space", t.space},
          {"access", t.access},
          {"requests", t.requests},
          {"lanes", t.lanes},
          {"bytes_used", t.bytes_used},
          {"sectors", t.sectors},
          {"ideal_sectors", t.ideal_sectors},
          {"bank_passes", t.passes},
          {"max_same_address", t.max_same_address},
          {"addresses", t.addresses},
          {"lines", t.lines},
          {"ideal_lines", t.ideal_lines},
          {"ideal_bank_passes", t.ideal_passes},
          {"texture_requests", t.texture_requests},
          {"texture_sectors", t.texture_sectors}};
}

void add_profile(ordered_json& record, const Profile& profile) {
  if (profile.empty()) return;
  const auto with_model = [](const Traffic& traffic) {
    ordered_json json = to_json(traffic);
    json["model_l2_sectors"] = traffic.l2_sectors;
    json["model_dram_sectors"] = traffic.dram_sectors;
    return json;
  };
  record["model_gpu"] = profile.gpu;
  for (const KernelProfile& k : profile.kernels) {
    record["kernels"].push_back({{"kernel", k.kernel},
                                 {"launches", k.launches},
                                 {"blocks", k.blocks.parts},
                                 {"warps", k.warps.parts},
                                 {"threads", k.lanes.parts},
                                 {"barriers", k.barriers},
                                 {"uneven_lanes", k.lanes.unevenness()},
                                 {"uneven_warps", k.warps.unevenness()},
                                 {"uneven_blocks", k.blocks.unevenness()},
                                 {"model_dram_write_sectors", k.dram_write_sectors}});
  }
  for (const LineTraffic& line : profile.lines) {
    ordered_json json{{"kernel", line.kernel}, {"file", line.file}, {"line", line.line}};
    json.update(with_model(line.traffic));
    if (line.traffic.space == "global") json["sectors_a_request"] = sectors_a_request(line.traffic);
    record["lines"].push_back(std::move(json));
  }
}

std::string kernels_as_json() {
  ordered_json list = ordered_json::array();
  for (const Kernel& kernel : kernels()) {
    const KernelInfo& k = kernel.info;
    list.push_back({{"name", k.name},
                    {"step", k.step},
                    {"format", k.format},
                    {"host", k.runs_on == RunsOn::kHost},
                    {"bits", name_of(k.bits)},
                    {"idea", k.idea},
                    {"source", k.source}});
  }
  return list.dump(1);
}

std::string machine_code_as_json(int arch) {
  return ordered_json(own_machine_code(arch)).dump(1);
}

std::string environment_as_json(const Environment& environment) {
  ordered_json json = software_of(environment);
  json["reason"] = environment.reason;
  json["devices"] = environment.devices;
  if (environment.arch) json["arch"] = environment.arch;
  return json.dump(1);
}

std::string info_as_json(const Matrix<double>& matrix) {
  constexpr Index kCells = 200;
  const Statistics s = compute_statistics(matrix.csr);
  const Index lines = std::min(s.rows, kCells), columns = std::min(s.cols, kCells);
  const std::vector<Index> counts = count_on_grid(matrix.csr, columns, lines);
  ordered_json cells = ordered_json::array();
  for (Index line = 0; line < lines; ++line) {
    for (Index column = 0; column < columns; ++column) {
      const Index count = counts[line * columns + column];
      if (count > 0) cells.push_back({line, column, count});
    }
  }
  ordered_json row_lengths = ordered_json::array();
  for (const LengthBin& bin : row_length_bins(matrix.csr)) {
    if (bin.rows > 0) row_lengths.push_back({bin.low, bin.high, bin.rows, bin.nnz});
  }
  const ordered_json info{{"matrix",
                           {{"name", matrix.source.name},
                            {"source", to_string(matrix.source.origin)},
                            {"detail", matrix.source.detail},
                            {"rows", s.rows},
                            {"cols", s.cols},
                            {"nnz", s.nnz}}},
                          {"min_row", s.min_row},
                          {"max_row", s.max_row},
                          {"min_col", s.min_col},
                          {"max_col", s.max_col},
                          {"mean_row", s.mean_row},
                          {"stddev_row", s.stddev_row},
                          {"empty_rows", s.empty_rows},
                          {"bandwidth", s.bandwidth},
                          {"diagonals", s.diagonals},
                          {"block", best_block(matrix.csr)},
                          {"dispersion", s.dispersion},
                          {"row_lengths", row_lengths},
                          {"picture", {{"lines", lines}, {"columns", columns}, {"cells", cells}}}};
  return info.dump();
}

}  // namespace spmv
