// What the tests of simt share, and all that they use from outside of it: launches and buffers as
// the steps have them, random numbers, and Catch2.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "device/buffer.hpp"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "sparse/rng.hpp"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"
#include "tests/scratch.hpp"

namespace simt_test {

using spmv::Rng;
using spmv::device::Buffer;
using spmv::device::launch;
using spmv::device::Shape;
using spmv::test::under_every_schedule;
using ScopedSettings = spmv::test::SavedSettings;

// The line that is `below` lines below this one.
#define LINE(name, below) constexpr int name = __LINE__ + (below)

// `call` returns the error, which is remembered until it is asked for.
#define CHECK_ERROR(expected, call)             \
  do {                                          \
    CHECK((call) == (expected));                \
    CHECK(cudaPeekAtLastError() == (expected)); \
    CHECK(cudaGetLastError() == (expected));    \
    CHECK(cudaGetLastError() == cudaSuccess);   \
  } while (false)

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void check_contains(const std::string& text, const std::vector<std::string>& parts) {
  CAPTURE(text);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(contains(text, part));
  }
}

// The report of what goes wrong in `work`; empty if nothing does.
template <typename Work>
std::string report_of(const Work& work) {
  simt::set_quiet_reports(true);
  std::string report;
  try {
    work();
  } catch (const spmv::device::DeviceError& error) {
    report = error.what();
  }
  simt::set_quiet_reports(false);
  return report;
}

// Likewise of a launch.
template <typename... Parameters, typename... Arguments>
std::string failure_of(void (*kernel)(Parameters...), const Shape& shape,
                       Arguments&&... arguments) {
  return report_of([&] { launch(kernel, shape, std::forward<Arguments>(arguments)...); });
}

// Litmus tests: the programs of threads, of `threads` in each of `blocks`, as kernels of tests run
// them, a letter per operation; in `text` as "block.thread program  block.first-last program".
inline constexpr int kProgram = 12;  // letters, with the zero at its end
inline std::vector<char> litmus_programs(const std::string& text, int blocks, int threads) {
  std::vector<char> programs(static_cast<std::size_t>(blocks * threads * kProgram));
  std::istringstream in(text);
  int block = 0, thread = 0;
  char dot = 0;
  for (std::string program; in >> block >> dot >> thread;) {
    int last = thread;
    if (in.peek() == '-') in >> dot >> last;
    for (in >> program; thread <= last; ++thread) {
      program.copy(&programs[static_cast<std::size_t>(kProgram * (threads * block + thread))],
                   kProgram - 1);
    }
  }
  return programs;
}

// The rows of litmus/`name`.tsv.
inline std::vector<std::vector<std::string>> litmus_table(const std::string& name) {
  return spmv::test::read_table("../simt/tests/litmus/" + name + ".tsv");
}

// What a hidden test prints, in a process of its own, with the status with which that ends.
inline std::string output_of_test(const std::string& tag) {
  const std::string command =
      "/proc/" + std::to_string(getpid()) + "/exe '" + tag + "' 2>&1; echo status $?";
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  char buffer[1024];
  while (std::fgets(buffer, sizeof buffer, pipe)) output += buffer;
  pclose(pipe);
  return output;
}

}  // namespace simt_test
