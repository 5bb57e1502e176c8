// What a puzzle calls, and a run of it, for the runner that it is linked with.
#include "primer/puzzle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "harness/trace.hpp"
#include "primer/run.hpp"
#include "simt/random.hpp"

[[gnu::weak]] void puzzle();  // (null in a runner without one)

namespace primer {
namespace {

std::string wrong;                        // what expect() has found in this run
int given = 0;                            // the number on the command line
constexpr std::size_t kMostIndices = 12;  // of wrong elements that are listed

}  // namespace

std::string run(int argument) {
  given = argument;
  wrong.clear();
  puzzle();
  return wrong;
}

void write_trace(const std::string& program, const std::string& path) {
  spmv::Record record;
  spmv::record_trace(record, std::size_t{64} << 20, "h200", [&] {
    try {
      record.failure = run(0);
    } catch (const spmv::device::DeviceError& error) {
      record.failure = error.what();
    }
  });
  record.verified = record.failure.empty();
  spmv::Matrix<float> none;
  record.kernel.name = program.substr(program.rfind('/') + 1);
  none.source.name = "puzzle";
  none.csr.row_offsets = {0};
  std::ofstream out(path);
  out << spmv::trace_line(record, none, {}, "f32");
  if (!out.flush()) throw std::runtime_error(path + " cannot be written");
}

Array<float> input(const std::string& name, int count) {
  std::vector<float> host(static_cast<std::size_t>(count));
  std::uint64_t state = count + name.size();
  for (float& value : host) {
    const auto drawn = static_cast<float>(simt::mix64(state += simt::kGoldenGamma) % 16);
    value = drawn < 8 ? drawn - 8 : drawn - 7;
  }
  return {name, host};
}

Array<float> output(const std::string& name, int count) {
  return {name, std::vector<float>(static_cast<std::size_t>(count),
                                   std::numeric_limits<float>::quiet_NaN())};
}

template <typename T>
void expect(const Array<T>& array, const std::vector<T>& expected) {
  const std::vector<T> got = array.download();
  if (got.size() != expected.size()) throw std::logic_error("expect: sizes differ");
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(got[i] == expected[i])) others.push_back(i);
  }
  if (others.empty() || !wrong.empty()) return;
  const std::size_t first = others.front();
  const auto listed = others.begin() + std::min(others.size(), kMostIndices);
  const double held = got[first], wanted = expected[first];
  wrong = fmt::format(
      "{}[{}] {}; {} is expected. {} of {} elements are wrong: {}{}.", array.name(), first,
      std::isnan(held) ? "was never written, or was computed from NaN" : fmt::format("is {}", held),
      wanted, others.size(), got.size(), fmt::join(others.begin(), listed, ", "),
      listed == others.end() ? "" : " and others");
}
template void expect(const Array<float>&, const std::vector<float>&);
template void expect(const Array<int>&, const std::vector<int>&);

int argument(int otherwise) {
  return given ? given : otherwise;
}

}  // namespace primer
