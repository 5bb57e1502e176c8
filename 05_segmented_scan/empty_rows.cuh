// Step 05: the rows that have no nonzeros, so that no thread of a segmented scan meets them.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

// One thread per row.
template <typename T>
__global__ void empty_rows_kernel(int count, const int* empty_rows, T alpha, T beta, T* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int row = empty_rows[i];
  y[row] = scale(alpha, T{0}, beta, &y[row]);
}

}  // namespace spmv
