// Runs the puzzle that it is linked with, and says what is wrong:
//
//   PUZZLE [--trace FILE | NUMBER]
//
// Exit status: 0 solved, 1 not solved, 2 it could not be told. FILE gets the trace of the run, for
// common/watch.
#include "primer/puzzle.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

#include "device/error.hpp"
#include "harness/trace.hpp"
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "simt/random.hpp"

namespace primer {
namespace {

struct Goal {
  double limit;
  std::string counter, access, array, reason;
};
std::vector<Goal> goals;
std::string wrong;  // what expect() has found
int given = 0;      // the number on the command line

// --- Goals ---------------------------------------------------------------------------------------

struct Row {
  std::string array, access, space;
  simt::AccessCounts counts;
};

// What was asked of each array, in the order of their names.
std::vector<Row> rows_of(const simt::Profile& profile) {
  std::map<std::tuple<std::string, std::string, std::string>, simt::AccessCounts> sums;
  for (const auto& [key, counts] : profile.accesses) {
    if (key.space == simt::Space::kNone) continue;
    const std::string name = key.array.substr(key.array.rfind(':') + 1);
    sums[{name, to_string(key.access), to_string(key.space)}] += counts;
  }
  std::vector<Row> rows;
  for (const auto& [key, counts] : sums) {
    rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), counts});
  }
  return rows;
}

// Sectors, or passes over the banks of shared memory.
double touched(const Row& row) {
  return static_cast<double>(row.space == "shared" ? row.counts.passes : row.counts.sectors);
}

double value_of(const Goal& goal, const Row& row) {
  const auto requests = static_cast<double>(row.counts.requests);
  if (goal.counter == "requests") return requests;
  if (goal.counter == (row.space == "shared" ? "passes per request" : "sectors per request")) {
    return touched(row) / requests;
  }
  throw std::logic_error("at_most: no counter '" + goal.counter + "' of " + row.space + " memory");
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("\n  {:<14} {:<7} {:>8}  {:>17}  {}\n", "array", "access", "requests",
             "lanes per request", "per request");
  for (const Row& row : rows) {
    const auto requests = static_cast<double>(row.counts.requests);
    fmt::print("  {:<14} {:<7} {:>8}  {:>17.1f}  {:.2f} {}\n", row.array, row.access,
               row.counts.requests, static_cast<double>(row.counts.lanes) / requests,
               touched(row) / requests,
               row.space == "shared" ? "passes over the banks of shared memory" : "sectors");
  }
}

bool goals_are_met(const std::vector<Row>& rows) {
  bool met = true;
  for (const Goal& goal : goals) {
    const Row* row = nullptr;
    for (const Row& r : rows) {
      if (r.array == goal.array && r.access == goal.access) row = &r;
    }
    const std::string name = goal.access +
                             (goal.access == "atomic" ? " operations on "
                              : goal.access == "load" ? "s of "
                                                      : "s to ") +
                             goal.array;
    if (!row) {
      fmt::print("  MISSED  there are no {} yet.\n", name);
      met = false;
      continue;
    }
    const double value = value_of(goal, *row);
    const bool good = value <= goal.limit;
    fmt::print("  {}  {}: {:.6g} {}; the goal is at most {:g}{}\n", good ? "goal  " : "MISSED",
               name, value, goal.counter, goal.limit, good ? "" : ".\n          " + goal.reason);
    met = met && good;
  }
  return met;
}

// --- Runs ----------------------------------------------------------------------------------------

// One run; what was wrong with its result.
std::string run(simt::Schedule schedule, std::uint64_t seed) {
  simt::settings().schedule = schedule;
  simt::settings().seed = seed;
  wrong.clear();
  goals.clear();
  puzzle();
  return wrong;
}

int solve() {
  // Blocks, warps and lanes may run in any order.
  const std::tuple<simt::Schedule, std::uint64_t> orders[] = {
      {simt::Schedule::kReverse, 1}, {simt::Schedule::kRandom, 1}, {simt::Schedule::kLockstep, 1}};
  const std::string in_order = run(simt::Schedule::kForward, 1);
  if (!in_order.empty()) {
    fmt::print("  WRONG   {}\n", in_order);
    return 1;
  }
  for (const auto& [schedule, seed] : orders) {
    const std::string otherwise = run(schedule, seed);
    if (!otherwise.empty()) {
      fmt::print(
          "  WRONG   right when threads run one after the other, wrong in another order: {}\n",
          otherwise);
      return 1;
    }
  }
  simt::start_profile();
  run(simt::Schedule::kForward, 1);
  const std::vector<Row> rows = rows_of(simt::stop_profile());
  fmt::print(
      "  right   in four orders of blocks, warps and lanes; no race, no access out of bounds\n");
  const bool met = goals_are_met(rows);
  print_table(rows);
  return met ? 0 : 1;
}

void write_trace(const std::string& name, const std::string& path) {
  spmv::Record record;
  spmv::record_trace(record, std::size_t{64} << 20, [&] {
    try {
      record.failure = run(simt::Schedule::kForward, 1);
    } catch (const spmv::device::DeviceError& error) {
      record.failure = error.what();
    }
  });
  record.verified = record.failure.empty();
  spmv::Matrix<float> none;
  record.kernel.name = name;
  none.source.name = "puzzle";
  none.csr.row_offsets = {0};
  std::ofstream out(path);
  out << spmv::trace_line(record, none, {}, "f32");
  if (!out.flush()) throw std::runtime_error(path + " cannot be written");
}

}  // namespace

template <typename T>
Array<T>::Array(const std::string& name, const std::vector<T>& host) : name_(name), host_(host) {
  using spmv::device::check;
  const std::size_t bytes = host.size() * sizeof(T);
  check(cudaMalloc(&device_, bytes), "allocating '" + name + "'");
  simt::name_allocation(device_, name.c_str());
  check(cudaMemcpy(device_, host.data(), bytes, cudaMemcpyHostToDevice), "copying to the device");
}

template <typename T>
std::vector<T> Array<T>::download() const {
  std::vector<T> host(host_.size());
  spmv::device::check(
      cudaMemcpy(host.data(), device_, host.size() * sizeof(T), cudaMemcpyDeviceToHost),
      "copying from the device");
  return host;
}

template class Array<float>;
template class Array<int>;

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
  std::size_t first = got.size(), count = 0;
  for (std::size_t i = got.size(); i-- > 0;) {
    if (got[i] == expected[i]) continue;
    ++count;
    first = i;
  }
  if (count == 0 || !wrong.empty()) return;
  const bool is_nan = got[first] != got[first];
  wrong =
      fmt::format("{}[{}] {}; {:g} is expected. {} of {} elements are wrong, this is the first.",
                  array.name(), first,
                  is_nan ? "was never written, or was computed from NaN"
                         : fmt::format("is {:g}", static_cast<double>(got[first])),
                  static_cast<double>(expected[first]), count, got.size());
}
template void expect(const Array<float>&, const std::vector<float>&);
template void expect(const Array<int>&, const std::vector<int>&);

int argument(int otherwise) {
  return given ? given : otherwise;
}

void at_most(double limit, const std::string& counter, const std::string& access,
             const std::string& array, const std::string& reason) {
  goals.push_back({limit, counter, access, array, reason});
}

}  // namespace primer

int main(int count, char** words) {
  using namespace primer;
  simt::set_quiet_reports(true);
  try {
    if (count == 3 && std::string(words[1]) == "--trace") {
      const std::string program = words[0];
      write_trace(program.substr(program.rfind('/') + 1), words[2]);
      return 0;
    }
    if (count == 2) {
      given = std::atoi(words[1]);
      if (given < 1 || given > 1024) throw std::runtime_error("give a number from 1 to 1024");
    }
    return solve();
  } catch (const spmv::device::DeviceError& error) {
    fmt::print("  UNSAFE  {}\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
