// Step 06, one pass: what launches a kernel, and owns memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

// Launches a kernel; overlap: it may start while the kernel before it in the stream ends.
template <typename... Parameters, typename... Arguments>
inline cudaError_t launch_kernel(void (*kernel)(Parameters...), int blocks, int threads,
                                 std::size_t shared_bytes, cudaStream_t stream, bool overlap,
                                 const Arguments&... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// Device memory that is freed with its owner.
struct FreeDeviceMemory {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, FreeDeviceMemory>;

// Whether the code of a kernel that the current device runs has wait_for_previous_kernel(): what
// counts is for which architecture it was compiled, not on which it runs. Code that the driver made
// of PTX is what the PTX was compiled for.
template <typename... Parameters>
inline cudaError_t can_overlap(void (*kernel)(Parameters...), bool* can) {
  cudaFuncAttributes attributes = {};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  *can = error == cudaSuccess && attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
  return error;
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
