// Step 02: one thread per row.
//
// Step 01 adds up the rows one after the other, though none needs another's sum. Here each row has
// a thread of its own, which runs the same loop. (CSR-scalar of He and Gao 2016 and of Bell and
// Garland 2009; Bylina, Bylina and Karwacki 2011, figure 8.)
//
//   thread   owns one row: reads its nonzeros one by one, keeps the sum, writes y[row]
//   warp     owns 32 neighbouring rows, and takes as long as the longest of them
//   block    nothing of its own
//
// What to look at: in each iteration of the loop the 32 lanes of a warp read 32 nonzeros that lie a
// row apart in memory. Each lane pulls in a sector of 32 bytes for the sake of 4 or 8.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

template <typename T>
__global__ void csr_scalar_kernel(int rows, const int* row_offsets, const int* column_indices,
                                  const T* values, T alpha, const T* x, T beta, T* y) {
  // exercise: begin
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;

  const int row_begin = row_offsets[row];
  const int row_end = row_offsets[row + 1];
  T sum = 0;
  for (int k = row_begin; k < row_end; ++k) {
    sum += values[k] * x[column_indices[k]];
  }
  y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
