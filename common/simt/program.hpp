// What a program of one file, with a main() of its own, is compiled with by `make program`. In its
// text, kernel<<<grid, block, shared, stream>>>(arguments) has become
//
//     kernel(arguments), simt::launch(grid, block, shared, stream)
//
// a kernel's `{ body }` has become `{ simt::kernel([=](simt::OnDevice) mutable { body }); }`, and
// cudaMalloc(&a, bytes) has become simt::Named{"a"}.allocate(&a, bytes): primer/launches.py.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "simt/runtime.hpp"

namespace simt {

// Errors are told where they occur, and a kernel's failure, or an error that was never asked for,
// makes the program's status 1.
bool begin_program();
#ifdef SIMT_PROGRAM
[[maybe_unused]] static const bool program_has_begun = begin_program();
#endif

struct OnDevice {};  // by which shared variables of kernels are known (shared_memory.cpp)

// What a kernel does that the host has called, until it is launched.
struct PendingLaunch {
  const void* kernel = nullptr;
  void (*body)(const void* arguments) = nullptr;
  std::shared_ptr<const void> arguments;
  std::size_t bytes = 0;
};
void set_pending(PendingLaunch launch);
bool is_on_device();

// Called by the kernel: by the host's call of it, whose arguments `body` holds, or on a lane.
template <typename Body>
__attribute__((noinline, no_sanitize("thread"))) void kernel(Body body) {
  if (is_on_device()) return body({});
  const auto run = [](const void* arguments) __attribute__((no_sanitize("thread"))) {
    Body own = *static_cast<const Body*>(arguments);
    own({});
  };
  set_pending({__builtin_return_address(0), run, std::make_shared<Body>(body), sizeof body});
}

// Launches the kernel that was called last; it is an error if there is none. `may_be`: it is not.
void launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr,
            bool may_be = false);
inline void launch_if_called(dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr) {
  launch(grid, block, shared_bytes, stream, true);
}

// An array is reported by the name of the variable that got its address.
struct Named {
  const char* name;
  template <typename T>
  cudaError_t allocate(T** pointer, std::size_t bytes) const {
    const cudaError_t error = cudaMalloc(pointer, bytes);
    if (error == cudaSuccess) name_allocation(*pointer, name);
    return error;
  }
};

}  // namespace simt
