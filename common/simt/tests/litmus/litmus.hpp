// Litmus tests: small programs that are right or wrong by CUDA's documentation. The same text runs
// on a GPU (gpu.cu, ./run.sh), which says what really happens, and on the CPU backend
// (litmus_test.cu), which must not be kinder. simt/README.md has the table of both.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "device/buffer.hpp"
#include "device/launch.hpp"

namespace litmus {

using spmv::device::Buffer;
using spmv::device::check;
using spmv::device::launch;

// Threads that execute the same small program at once. A GPU needs many to show what is rare; the
// CPU backend runs each order that it chooses on purpose.
#ifdef SPMV_CUDA
inline constexpr int kInstances = 2048;
#else
inline constexpr int kInstances = 128;
#endif

// What a program is by CUDA's documentation: right, or wrong, and then how simt finds that out.
struct Verdict {
  enum Found {
    kRight,
    kReported,  // under every schedule, in the words of `report`
    kShows,     // in its results, under the default schedule
    kReverse,   // likewise under Schedule::kReverse, which `make check` and `make grade` use
    kLate,      // likewise with late streams, in one order of their work at least
    kNot,       // it is in the table of README.md, with the reason
  } found;
  const char* report = "";
};
namespace verdicts {
constexpr Verdict reported(const char* report) {
  return {Verdict::kReported, report};
}
inline constexpr Verdict right{Verdict::kRight}, shows{Verdict::kShows},
    in_reverse{Verdict::kReverse}, shows_late{Verdict::kLate}, not_found{Verdict::kNot},
    undefined = reported("is used, and undefined"),
    mask = reported("CUDA promises only that it names the lane itself"), race = reported("race: "),
    no_fence = reported("which may find an older value in its L1 cache"),
    read_only = reported("for what no thread of the launch writes"),
    barrier = reported("a barrier in divergent code"), deadlock = reported("deadlock: ");
}  // namespace verdicts

struct Program {
  const char* name;
  Verdict verdict;
  int (*run)();  // how many results are wrong; throws what a launch or a call returns as an error
  bool is_right() const { return verdict.found == Verdict::kRight; }
};

inline std::vector<Program>& programs() {
  static std::vector<Program> all;
  return all;
}
struct Add {
  Add(const Program& program) { programs().push_back(program); }
};

// LITMUS(verdict, name) { ... return how many results are wrong; }
#define LITMUS(verdict, name)                                        \
  static int name();                                                 \
  static const ::litmus::Add add_##name({#name,                      \
                                         [] {                        \
                                           using namespace verdicts; \
                                           return verdict;           \
                                         }(),                        \
                                         &::litmus::name});          \
  static int name()
// LITMUS_IS(verdict, name, how many results are wrong)
#define LITMUS_IS(verdict, name, ...) \
  LITMUS(verdict, name) {             \
    return __VA_ARGS__;               \
  }

inline int differences(const std::vector<int>& results, const std::vector<int>& expected) {
  int count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) count += results[i] != expected[i];
  return count;
}
inline int differences(const std::vector<int>& results, int expected) {
  return differences(results, std::vector<int>(results.size(), expected));
}
inline std::vector<int> zeros(int count) {
  return std::vector<int>(static_cast<std::size_t>(count));
}
// Of `count` results, which `kernel` stores through its last parameter.
template <typename... Parameters, typename... Arguments>
int wrong_results(int count, int expected, void (*kernel)(Parameters...),
                  const spmv::device::Shape& shape, const Arguments&... arguments) {
  Buffer<int> out("out", zeros(count));
  launch(kernel, shape, arguments..., out.data());
  return differences(out.download(), expected);
}

}  // namespace litmus
