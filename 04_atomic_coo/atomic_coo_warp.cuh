// Step 04, with no two lanes of a request on one address: the warp adds up first.
//
// Triplets sorted by row, read as in atomic_coo_kernel: 32 neighbours at a time, one per lane.
// Lanes of one row stand side by side then. They find each other (__match_any_sync), add up their
// products in a tree of shuffles, and the first of them adds the sum to y.
//
//   thread   owns kItemsPerThread nonzeros, 32 apart
//   warp     owns 32 kItemsPerThread neighbouring ones; one atomic per row in every 32
//   block    nothing of its own
#pragma once

#include <cuda_runtime.h>

#include "atomic_coo.cuh"

namespace spmv {

// y += alpha A x.
template <typename T>
__global__ void atomic_coo_warp_kernel(unsigned nnz, const int* row_indices,
                                       const int* column_indices, const T* values, T alpha,
                                       const T* x, T* y) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = thread % 32;
  const unsigned warp_begin = thread / 32 * 32 * kItemsPerThread;
  // exercise: begin
  // All lanes stay in the loop, since all must be there to shuffle.
  for (unsigned i = 0; i < kItemsPerThread && warp_begin + 32 * i < nnz; ++i) {
    const unsigned k = warp_begin + 32 * i + lane;
    const int row = k < nnz ? row_indices[k] : -1;
    T sum = k < nnz ? values[k] * x[column_indices[k]] : T{0};

    // After each round a lane has the products of twice as many lanes, itself the first, as far as
    // they are of its row.
    const unsigned lanes_of_row = __match_any_sync(0xffffffffu, row);
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const T above = __shfl_down_sync(0xffffffffu, sum, distance);
      if (lanes_of_row >> lane >> distance & 1) sum += above;
    }
    const bool first_of_row = (lanes_of_row & ((1u << lane) - 1)) == 0;
    if (first_of_row && row >= 0) atomicAdd(&y[row], alpha * sum);
  }
  // exercise: end
}

}  // namespace spmv
