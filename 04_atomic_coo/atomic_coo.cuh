// Step 04: every thread takes as many nonzeros as every other, and adds each product to y by
// itself.
//
// In steps 02 and 03 work is distributed by rows, so that a long row keeps its threads busy long
// after all others are done. Triplets need no rows: each says where its product belongs. Whoever
// has a product adds it to that element of y, with an atomic addition, since others may be adding
// to the same element. (Emmanuel and Vorobyev, section 3.)
//
//   thread   owns kItemsPerThread nonzeros, 32 apart
//   warp     owns 32 kItemsPerThread neighbouring ones, and reads 32 neighbours at a time
//   block    nothing of its own
//
// What to look at: all of the matrix is read coalesced, whatever its rows look like; but there are
// as many atomics as nonzeros, and the lanes of one request that add to one address wait for each
// other.
#pragma once

#include <cuda_runtime.h>

namespace spmv {

inline constexpr unsigned kItemsPerThread = 8;  // nonzeros of a thread

// y += alpha A x. (Unsigned, since the last threads count past 2^31 when nnz is just below.)
template <typename T>
__global__ void atomic_coo_kernel(unsigned nnz, const int* row_indices, const int* column_indices,
                                  const T* values, T alpha, const T* x, T* y) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  // exercise: begin
  unsigned k = thread / 32 * 32 * kItemsPerThread + thread % 32;
  for (unsigned i = 0; i < kItemsPerThread && k < nnz; ++i, k += 32) {
    atomicAdd(&y[row_indices[k]], alpha * (values[k] * x[column_indices[k]]));
  }
  // exercise: end
}

}  // namespace spmv
