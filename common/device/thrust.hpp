// Where Thrust's algorithms run: on the GPU, or on the CPU backend through OpenMP. There Thrust's
// device is the host, so that what it works on is the host's memory, x and y included, and simt
// neither checks nor counts it.
#pragma once

#include <cuda_runtime.h>
#include <thrust/execution_policy.h>

#ifdef SPMV_CUDA
#include <thrust/system/cuda/execution_policy.h>
#endif

namespace spmv::device {

#ifdef SPMV_CUDA
inline constexpr bool kThrustRunsOnDevice = true;
// On `stream`; waits for it only where an algorithm has something to return.
inline auto thrust_policy(cudaStream_t stream) {
  return thrust::cuda::par_nosync.on(stream);
}
#else
inline constexpr bool kThrustRunsOnDevice = false;
inline auto thrust_policy(cudaStream_t) {
  return thrust::device;
}
#endif

}  // namespace spmv::device
