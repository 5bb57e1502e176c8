// What a program of one file, with a main() of its own, is compiled with by `make program`. In its
// text, kernel<<<grid, block, shared, stream>>>(arguments) has become
//
//     simt::configured(kernel, grid, block, shared, stream)(arguments)
//
// and cudaMalloc(&a, bytes) has become simt::Named{"a"}.allocate(&a, bytes): primer/launches.py.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "simt/runtime.hpp"

namespace simt {

// Errors are told where they occur, and a kernel's failure, or an error that was never asked for,
// makes the program's status 1.
bool begin_program();
#ifdef SIMT_PROGRAM
[[maybe_unused]] static const bool program_has_begun = begin_program();
#endif

// Makes it known that the function is a kernel, whose shared variables no other kernel has.
bool add_kernel(const void* kernel);

// launches.py declares a function of the kernel's parameters with this as its result, by which a
// template's arguments are deduced, and one of several kernels of a name is chosen.
template <auto kernel>
struct KernelOf {
  static inline const bool known = add_kernel(reinterpret_cast<const void*>(kernel));
  static constexpr auto value = kernel;
  static constexpr const bool* odr_used = &known;
};

// What stands between <<< and >>>, until the kernel's arguments have been computed.
struct PendingLaunch {
  const void* kernel = nullptr;
  cudaLaunchConfig_t config;
};
PendingLaunch& pending_launch();

template <typename... Parameters>
void launch_pending(Parameters... arguments) {
  const PendingLaunch launch = pending_launch();
  using Kernel = void (*)(Parameters...);
  cudaLaunchKernelEx(&launch.config, reinterpret_cast<Kernel>(const_cast<void*>(launch.kernel)),
                     arguments...);
}

// The function to call with the kernel's arguments.
template <typename... Parameters>
auto configured(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                cudaStream_t stream = nullptr) {
  PendingLaunch& launch = pending_launch();
  launch.kernel = reinterpret_cast<const void*>(kernel);
  add_kernel(launch.kernel);
  launch.config = {grid, block, shared_bytes, stream};
  return &launch_pending<Parameters...>;
}

// The same for the kernel of which find(arguments...) tells.
template <typename Find>
auto configured_by(Find find, dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                   cudaStream_t stream = nullptr) {
  return [=]<typename... Arguments>(Arguments&&... arguments) {
    using Kernel = decltype(find(static_cast<Arguments&&>(arguments)...));
    configured(Kernel::value, grid, block, shared_bytes,
               stream)(static_cast<Arguments&&>(arguments)...);
  };
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
