// Step 08, CSR: what the other formats are compared with. Step 02's kernel, launched with this
// step's block size.
//
//   thread   owns one row: reads its nonzeros one by one, keeps the sum, writes y[row]
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {
// A namespace of its own, since step 02 has the kernel, too.
namespace formats {

template <typename T>
__global__ void csr_scalar_kernel(int rows, const int* row_offsets, const int* column_indices,
                                  const T* values, T alpha, const T* x, T beta, T* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;

  const int row_begin = row_offsets[row];
  const int row_end = row_offsets[row + 1];
  T sum = 0;
  for (int k = row_begin; k < row_end; ++k) {
    sum += values[k] * x[column_indices[k]];
  }
  y[row] = scale(alpha, sum, beta, &y[row]);
}

}  // namespace formats
}  // namespace spmv
