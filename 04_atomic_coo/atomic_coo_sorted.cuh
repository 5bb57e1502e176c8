// Step 04, with fewer atomics: the triplets are sorted by row, and a thread adds up what it can.
//
// atomic_coo_kernel sends every product to memory. Here a thread's nonzeros follow each other in
// the order of the rows, so that most of its products belong to the row of the one before: it keeps
// a sum in a register and adds it to y only when the row changes, and at the end.
//
//   thread   owns a run of kItemsPerThread nonzeros that follow each other in the sorted order
//   warp     owns 32 such runs
//   block    nothing of its own
//
// If the runs also followed each other in memory (`stride` 1), neighbouring lanes would read
// kItemsPerThread nonzeros apart, as in step 02. So setup deals them out like cards (`stride` 32):
// first the first nonzeros of the 32 runs of a warp, then their second ones, and so on.
#pragma once

#include <cuda_runtime.h>

#include "atomic_coo.cuh"

namespace spmv {

// y += alpha A x. A thread's nonzeros lie `stride` apart.
template <unsigned stride, typename T>
__global__ void atomic_coo_sorted_kernel(unsigned nnz, const int* row_indices,
                                         const int* column_indices, const T* values, T alpha,
                                         const T* x, T* y) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned k = thread / stride * stride * kItemsPerThread + thread % stride;
  // exercise: begin
  int row = -1;  // of `sum`; none yet
  T sum = 0;
  for (unsigned i = 0; i < kItemsPerThread && k < nnz; ++i, k += stride) {
    const int next_row = row_indices[k];
    if (next_row != row) {
      if (row >= 0) atomicAdd(&y[row], alpha * sum);
      row = next_row;
      sum = 0;
    }
    sum += values[k] * x[column_indices[k]];
  }
  if (row >= 0) atomicAdd(&y[row], alpha * sum);
  // exercise: end
}

}  // namespace spmv
