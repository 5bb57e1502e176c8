// Launching a kernel, from a .cu file.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "device/error.hpp"

namespace spmv::device {

// Where, and with how much shared memory: the four things between <<< and >>>; and one that is an
// attribute of the launch.
struct Shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  // Programmatic dependent launch: the kernel may start before the one in front of it in the stream
  // has completed, and calls cudaGridDependencySynchronize() before it touches what that one
  // writes. Needs compute capability 9.0.
  bool overlap = false;
};

// launch(kernel, {grid, block, shared_bytes, stream}, arguments...) stands for
//
//     kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
//
// which is not C++, and checks for errors. A grid of no blocks does nothing, where CUDA would call
// it an error: an empty matrix is none.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Shape& shape, Arguments&&... arguments) {
  if (shape.grid.x == 0) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = shape.overlap ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
        "launching a kernel");
}

// The same for a grid whose blocks wait for each other: all of them are resident at once. A grid
// that is too large for that is refused.
template <typename... Parameters, typename... Arguments>
void launch_cooperative(void (*kernel)(Parameters...), const Shape& shape,
                        Arguments&&... arguments) {
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
        "launching " + std::to_string(shape.grid.x) + " blocks that wait for each other");
}

// Of the current device.
inline int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&value, which, device), "device attribute");
  return value;
}

// How many blocks of `kernel` the current device holds at once; 0 if it cannot hold one.
template <typename... Parameters>
int resident_blocks(void (*kernel)(Parameters...), int threads, std::size_t shared_bytes = 0) {
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes),
        "occupancy");
  return blocks * attribute(cudaDevAttrMultiProcessorCount);
}

// Shared memory and L1 cache are one memory. Asks the driver to set no more of it apart for the
// shared memory of `kernel` than `blocks` blocks of `bytes` each need, so that the cache has the
// rest.
template <typename... Parameters>
void limit_shared_memory(void (*kernel)(Parameters...), int blocks, std::size_t bytes) {
  const int all = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  const int reserved = attribute(cudaDevAttrReservedSharedMemoryPerBlock);  // by the driver
  const long long wanted = blocks * (static_cast<long long>(bytes) + reserved);
  const auto percent = static_cast<int>((100 * wanted + all - 1) / all);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             percent < 100 ? percent : 100),
        "shared memory");
}

// How many groups of `size` are needed for `count`.
template <typename Integer>
constexpr Integer divide_up(Integer count, Integer size) {
  return count / size + (count % size != 0);
}

}  // namespace spmv::device
