// Every call of the CUDA runtime is checked: check(cudaMalloc(...), "what was asked for").
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace spmv::device {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws DeviceError unless `status` is cudaSuccess. The text names the call's place, what was
// asked for and CUDA's error; on the CPU backend, before that, which thread of which kernel did
// what. (The built-ins: clang 14 has no std::source_location.)
void check(cudaError_t status, const std::string& what, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());

}  // namespace spmv::device
