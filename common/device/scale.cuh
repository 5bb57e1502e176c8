// The last line of every kernel here: y = alpha (A x) + beta y for one row; and a kernel that does
// it for rows whose y no other kernel has written.
#pragma once

#include <cuda_runtime.h>

namespace spmv {

// alpha sum + beta y. y is not read when beta is 0: it may hold NaN, and 0 NaN is NaN.
template <typename T>
__device__ __forceinline__ T scale(T alpha, T sum, T beta, const T* y) {
  return beta == T{0} ? alpha * sum : alpha * sum + beta * *y;
}

// One thread per row: the i-th of `count` rows is rows[i], or i if `rows` is null; its sum is
// sums[i], or 0 if `sums` is null.
template <typename T>
__global__ void scale_rows_kernel(int count, const int* rows, const T* sums, T alpha, T beta,
                                  T* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int row = rows ? rows[i] : i;
  y[row] = scale(alpha, sums ? sums[i] : T{0}, beta, &y[row]);
}

}  // namespace spmv
