// A vector in another order: what a product on a reordered matrix costs besides, where x arrives,
// or y is wanted, in the original one.
#pragma once

#include <cuda_runtime.h>

namespace spmv {

template <typename T>
__global__ void gather_kernel(int n, const int* numbers, const T* old, T* renumbered) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) renumbered[k] = old[numbers[k]];
}

}  // namespace spmv
