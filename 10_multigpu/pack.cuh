// Step 10: packs the entries of x that another GPU needs, so that one copy moves them.
//
// A part of x travels whole in the paper (GPUDirect, section 4). But most matrices need few of
// another part's entries: those of a grid's rows along the cut, for instance. Their owner knows
// which, and packs them. (Contiguous entries are copied from where they are.)
//
//   thread   owns one entry
#pragma once

#include <cuda_runtime.h>

namespace spmv::multigpu {

template <typename T>
__global__ void pack_kernel(int count, const int* __restrict__ places, const T* __restrict__ x,
                            T* __restrict__ packed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) packed[i] = x[places[i]];
}

}  // namespace spmv::multigpu
