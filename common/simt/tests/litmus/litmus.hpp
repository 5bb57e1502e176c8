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

struct Program {
  const char* name;
  bool right;    // by CUDA's documentation
  int (*run)();  // how many results are wrong; throws what a launch or a call returns as an error
};

inline std::vector<Program>& programs() {
  static std::vector<Program> all;
  return all;
}
struct Add {
  Add(const char* name, bool right, int (*run)()) { programs().push_back({name, right, run}); }
};

// LITMUS(right or wrong, name) { ... return how many results are wrong; }
#define LITMUS(verdict, name)                                                       \
  static int name();                                                                \
  static const ::litmus::Add add_##name(#name, ::litmus::verdict, &::litmus::name); \
  static int name()

inline constexpr bool right = true, wrong = false;

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

}  // namespace litmus
