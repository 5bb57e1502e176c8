// Step 06, kernel 1 of PCSR: one product per nonzero, into an array between two kernels.
//
// In step 03 the lanes of a row read together, but a row begins anywhere, and a short one leaves
// lanes idle. Here a thread does not look at row offsets: thread k multiplies nonzero k, coalesced
// with its neighbours, and stores the product in `middle` (the paper's v); kernel 2
// (pcsr_sums.cuh) adds up the rows. (He and Gao 2016, Algorithm 2, equations 3 and 4.)
//
//   thread   owns the nonzeros k, k + threads of the grid, ...
//   warp     owns 32 neighbouring nonzeros at a time: all requests but those for x are coalesced
//   block    nothing of its own
//
// What to look at: column_indices, values and middle move the fewest sectors possible, whatever the
// rows look like. The cost is middle, which is stored here and loaded again.
#pragma once

#include <cuda_runtime.h>

#include "device/fetch.cuh"

namespace spmv {

// __restrict__ promises that the arrays do not overlap: x may be read through the read-only path,
// and the next iteration's loads need not wait for this one's store. k is unsigned: its last value,
// past an nnz of up to 2^31 - 1, is more than an int holds.
template <typename T>
__global__ void pcsr_products_kernel(int nnz, const int* __restrict__ column_indices,
                                     const T* __restrict__ values, const T* __restrict__ x,
                                     T* __restrict__ middle) {
  // exercise: begin
  const unsigned threads = blockDim.x * gridDim.x;
  unsigned k = threadIdx.x + blockIdx.x * blockDim.x;
  for (; k < static_cast<unsigned>(nnz); k += threads) {
    middle[k] = values[k] * x[column_indices[k]];
  }
  // exercise: end
}

// As published: the same, but x is read through a texture.
template <typename T>
__global__ void pcsr_products_texture_kernel(int nnz, const int* __restrict__ column_indices,
                                             const T* __restrict__ values, cudaTextureObject_t x,
                                             T* __restrict__ middle) {
  // exercise: begin
  const unsigned threads = blockDim.x * gridDim.x;
  unsigned k = threadIdx.x + blockIdx.x * blockDim.x;
  for (; k < static_cast<unsigned>(nnz); k += threads) {
    middle[k] = values[k] * device::fetch<T>(x, column_indices[k]);
  }
  // exercise: end
}

}  // namespace spmv
