#include "harness/trace.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "harness/profile.hpp"
#include "harness/report.hpp"

#ifndef SPMV_CUDA
#include "simt/cache_model.hpp"
#include "simt/shared_memory.hpp"
#include "simt/trace.hpp"
#endif

namespace spmv {

using Json = nlohmann::ordered_json;

namespace {

// The text of an object without its braces, to be joined with others.
std::string members(const Json& object) {
  const std::string text = object.dump();
  return text.substr(1, text.size() - 2);
}

}  // namespace

#ifndef SPMV_CUDA
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What ran, in which lines of which sources, and the events: members of a JSON object.
std::string trace_members(const simt::Trace& trace, const simt::Gpu* gpu) {
  const std::string root = std::string(SPMV_SOURCE_DIR) + "/";
  Json sources = Json::array(), places = Json::array();
  std::map<std::string, std::size_t> files;
  for (const simt::SourceLine& source : simt::find_sources(trace.places)) {
    const auto [it, is_new] = files.try_emplace(source.file, files.size());
    if (is_new) {
      const bool here = source.file.starts_with(root);
      sources.push_back({{"file", here ? source.file.substr(root.size()) : source.file},
                         {"text", read_file(source.file)}});
    }
    places.push_back({it->second, source.line});
  }
  std::string text = members({{"truncated", trace.truncated},
                              {"caches_of", gpu ? Json(gpu->full_name) : Json()},
                              {"sources", sources},
                              {"places", places},
                              {"streams", trace.streams}});
  for (const auto& [name, elements] : {std::pair("arrays", &trace.arrays),
                                       {"instructions", &trace.instructions},
                                       {"launches", &trace.launches},
                                       {"values", &trace.values}}) {
    text += fmt::format(",\"{}\":[{}]", name, fmt::join(*elements, ","));
  }
  return text + ",\"requests\":[" + trace.requests + "],\"events\":[" + trace.events + "]";
}

}  // namespace

void record_trace(Record& record, std::size_t limit, const std::string& gpu,
                  const std::function<void()>& work) {
  struct Tracing {
    Record& record;
    const simt::Gpu* const gpu;
    Tracing(Record& r, std::size_t bytes, const simt::Gpu* of) : record(r), gpu(of) {
      simt::start_profile(gpu);
      simt::start_trace(bytes);
    }
    ~Tracing() {
      const simt::Profile profile = simt::stop_profile();  // which completes the caches' counts
      const simt::Trace trace = simt::stop_trace();
      record.traffic = traffic_by_array(profile);
      record.trace = trace_members(trace, gpu);
      record.trace_is_cut = trace.truncated;
    }
  } const tracing(record, limit, simt::find_gpu(gpu));
  work();
}
#endif

template <typename T>
void note_wrong_rows(Record& record, const std::vector<T>& y, const Reference& reference) {
  constexpr std::size_t kWrongRows = 100;
  for (std::size_t row = 0; row < y.size() && record.wrong_rows.size() < kWrongRows; ++row) {
    const auto got = static_cast<double>(y[row]);
    if (!(std::abs(got - reference.y[row]) <= reference.bound[row])) {
      record.wrong_rows.push_back({row, reference.y[row], got});
    }
  }
}

template <typename T>
std::string trace_line(const Record& record, const Matrix<T>& matrix, const RunOptions& options,
                       const std::string& precision) {
  const KernelInfo& k = record.kernel;
  const Csr<T>& a = matrix.csr;
  Json wrong = Json::array();
  for (const Record::WrongRow& row : record.wrong_rows) {
    wrong.push_back({{"row", row.row}, {"expected", row.expected}, {"got", row.got}});
  }
  Json estimates = Json::array();
  if (record.estimate) estimates.push_back(to_json(*record.estimate));
  const Json header{{"trace", kTraceVersion},
                    {"kernel",
                     {{"name", k.name},
                      {"step", k.step},
                      {"format", k.format},
                      {"idea", k.idea},
                      {"source", k.source},
                      {"choice", record.choice}}},
                    {"matrix",
                     {{"name", matrix.source.name},
                      {"rows", a.rows},
                      {"columns", a.cols},
                      {"nonzeros", a.nnz()},
                      {"row_offsets", a.row_offsets},
                      {"column_indices", a.column_indices}}},
                    {"precision", precision},
                    {"alpha", options.alpha},
                    {"beta", options.beta},
                    {"seed", options.seed},
                    {"schedule", options.schedule},
                    {"compulsory_bytes", record.compulsory_bytes},
                    {"estimates", estimates},
                    {"verified", record.verified},
                    {"failure", record.failure},
                    {"wrong_rows", wrong}};
  return "{" + members(header) + "," + record.trace + "}\n";
}

template void note_wrong_rows(Record&, const std::vector<float>&, const Reference&);
template void note_wrong_rows(Record&, const std::vector<double>&, const Reference&);
template std::string trace_line(const Record&, const Matrix<float>&, const RunOptions&,
                                const std::string&);
template std::string trace_line(const Record&, const Matrix<double>&, const RunOptions&,
                                const std::string&);

}  // namespace spmv
