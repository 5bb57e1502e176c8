// Step 10: kernel 1 of PCSR with x in parts, each in the memory of another GPU.
//
// Step 06's pcsr_products_kernel reads x from one array. With peer access a GPU may read any GPU's
// memory by its plain address, so x need not be brought together first: nothing is packed, copied
// or kept twice. But an entry travels each time that it is read, since a GPU's L2 cache holds its
// own memory only; a copy brings it once.
//
//   thread   owns the nonzeros k, k + threads of the grid, ...
#pragma once

#include <cuda_runtime.h>

#include "gpus.hpp"

namespace spmv::multigpu {

// Part p of x holds the entries from cuts[p] up to, but not including, cuts[p + 1].
template <typename T>
struct XInParts {
  int parts;
  int cuts[kMaxGpus];  // the first `parts`
  const T* x[kMaxGpus];
};

// Kernel 2, the sums, is step 06's as it stands.
template <typename T>
__global__ void peer_products_kernel(int nnz, const int* __restrict__ column_indices,
                                     const T* __restrict__ values, const XInParts<T> x,
                                     T* __restrict__ middle) {
  const unsigned threads = blockDim.x * gridDim.x;
  unsigned k = threadIdx.x + blockIdx.x * blockDim.x;
  for (; k < static_cast<unsigned>(nnz); k += threads) {
    const int column = column_indices[k];
    int p = 0;
    while (p + 1 < x.parts && column >= x.cuts[p + 1]) ++p;
    middle[k] = values[k] * x.x[p][column - x.cuts[p]];
  }
}

}  // namespace spmv::multigpu
