// Step 10: entries of x stored straight into the memory of the GPUs that need them.
//
// Packed entries are stored, copied, and stored again at the receiver; here one store does all of
// it. The stores of a warp to contiguous ghost entries are coalesced.
//
//   thread   owns one entry for one receiver
#pragma once

#include <cuda_runtime.h>

namespace spmv::multigpu {

// ghosts: where each entry goes, in the memory of the GPU that needs it.
template <typename T>
__global__ void push_kernel(int count, const int* __restrict__ places, const T* __restrict__ x,
                            T* const* __restrict__ ghosts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) *ghosts[i] = x[places[i]];
}

}  // namespace spmv::multigpu
