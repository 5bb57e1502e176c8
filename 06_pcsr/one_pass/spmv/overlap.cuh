// Overlap of two kernels in a stream (programmatic dependent launch, compute capability 9.0 and
// later).
//
// A kernel that was launched with the attribute programmatic stream serialization may start before
// the kernel in front of it in the stream has completed. Two instructions order the two kernels:
//
//   wait_for_previous_kernel()  returns when the previous kernel has completed and its stores are
//                               visible. Before it, a thread may only read what that kernel does
//                               not write, and may not write anything that it reads or writes.
//   let_next_kernel_start()     once every block has called it or has exited, those of the next
//                               kernel may start. It makes no store visible: the next kernel waits.
//                               Calls after the first have no effect. One pass calls it when the
//                               tile's first elements of x are there: the next kernel loads, too.
//
// The second call stands behind the first one. So a kernel that starts early knows that all kernels
// but the previous one have completed, however many of them overlap in a row. Launched without the
// attribute both calls have no effect. Code that is compiled for an earlier architecture has
// neither of them, wherever it runs: such a kernel must not be launched with the attribute
// (can_overlap() in launch.cuh).
#pragma once

#include <cuda_runtime.h>

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

__device__ __forceinline__ void wait_for_previous_kernel() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

__device__ __forceinline__ void let_next_kernel_start() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
