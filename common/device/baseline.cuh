// The row-free baseline: what every CSR kernel must do with memory, without row logic.
//
// It streams values and column indices once, gathers x and writes y once. Thread t of all `threads`
// adds up the products of the groups of four nonzeros t, t + threads, ... and writes its sum to
// y[t], y[t + threads], ... The distance of a kernel to it is the cost of the kernel's row logic.
// It is one simple kernel, not a bound: a kernel that orders its loads better can be faster.
#pragma once

#include <cuda_runtime.h>

namespace spmv {

template <typename T>
struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) FourValues {
  T value[4];
};

template <typename T>
__global__ void baseline_kernel(int rows, int nnz, const int* column_indices, const T* values,
                                const T* x, T* y) {
  const int threads = gridDim.x * blockDim.x;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int groups = nnz / 4;
  T sum = 0;
  for (int group = thread; group < groups; group += threads) {
    const int4 column = reinterpret_cast<const int4*>(column_indices)[group];
    const FourValues<T> four = reinterpret_cast<const FourValues<T>*>(values)[group];
    sum += four.value[0] * x[column.x] + four.value[1] * x[column.y];
    sum += four.value[2] * x[column.z] + four.value[3] * x[column.w];
  }
  // The nonzeros that fill no group of four.
  if (thread < nnz % 4) sum += values[4 * groups + thread] * x[column_indices[4 * groups + thread]];
  for (int row = thread; row < rows; row += threads) y[row] = sum;
}

}  // namespace spmv
