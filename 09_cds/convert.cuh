// CSR to CDS, in two steps: mark the block diagonals that have a nonzero, then store every value.
// In both, one warp per row.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "cds.cuh"

namespace spmv {

// Sets bit c + block_rows - 1 - r of `marks` for each block (r, c) that has a nonzero.
static __global__ void mark_diagonals_kernel(unsigned rows, unsigned block, unsigned block_rows,
                                             const int* row_offsets, const int* column_indices,
                                             unsigned* marks) {
  const unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const unsigned row_end = row_offsets[row + 1];
  const unsigned last_of_row = block_rows - 1 - row / block;
  for (unsigned k = row_offsets[row] + threadIdx.x % 32; k < row_end; k += 32) {
    const unsigned diagonal = last_of_row + static_cast<unsigned>(column_indices[k]) / block;
    const unsigned bit = 1u << diagonal % 32;
    // The bit is nearly always set already, so test it before the atomic. (The load goes to the L2,
    // where atomics are executed: a stale word in the L1 would make every warp set the bit again.)
    if (!(__ldcg(&marks[diagonal / 32]) & bit)) atomicOr(&marks[diagonal / 32], bit);
  }
}

// Puts each nonzero where cds_kernel looks for it. offsets: `diagonals` of them, ascending.
template <typename T>
__global__ void scatter_values_kernel(unsigned rows, int block, int diagonals, const int* offsets,
                                      const int* row_offsets, const int* column_indices,
                                      const T* csr_values, std::size_t stride, std::size_t pitch,
                                      T* values) {
  const unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const int block_row = static_cast<int>(row) / block;
  T* const first = values + row / kCdsThreads * pitch + row % kCdsThreads;
  const unsigned row_end = row_offsets[row + 1];
  for (unsigned k = row_offsets[row] + threadIdx.x % 32; k < row_end; k += 32) {
    const int column = column_indices[k];
    const int offset = column / block - block_row;
    int found = 0;  // the first that is not below `offset`
    for (int left = diagonals; left > 0;) {
      const int half = left / 2;
      if (offsets[found + half] < offset) {
        found += half + 1;
        left -= half + 1;
      } else {
        left = half;
      }
    }
    first[(static_cast<std::size_t>(found) * block + column % block) * stride] = csr_values[k];
  }
}

}  // namespace spmv
