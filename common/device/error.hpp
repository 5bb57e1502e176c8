// Every call of the CUDA runtime is checked: check(cudaMalloc(...), "what was asked for").
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace spmv::device {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws DeviceError unless `status` is cudaSuccess. The text names the call's place, what was
// asked for, CUDA's error, and on the CPU backend which thread of which kernel did what.
void check(cudaError_t status, const std::string& what,
           std::source_location where = std::source_location::current());

}  // namespace spmv::device
