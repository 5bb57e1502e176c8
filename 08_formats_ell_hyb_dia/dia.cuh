// Step 08, DIA: whole diagonals, whose columns need not be stored.
//
// ELL stores a column for each value. On a diagonal column - row is the same in every row, so that
// one number, its offset, serves them all: a value costs 8 bytes in double precision instead of 12,
// and neighbouring lanes read neighbouring elements of x as well. The cost is that a diagonal
// with a single nonzero is stored in full. (Bell and Garland 2009, of whose library the paper
// takes its formats.)
//
//   thread   owns one row
//   warp     owns 32 neighbouring rows; all requests are for neighbouring elements, those for x too
//   block    nothing of its own
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

// Diagonal d has at row r its value at values[d pitch + r], for column r + offsets[d]. A column
// outside of the matrix is 2^31 or more as an unsigned number.
template <typename T>
__global__ void dia_kernel(unsigned rows, unsigned cols, int diagonals, std::size_t pitch,
                           const int* offsets, const T* values, T alpha, const T* x, T beta, T* y) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;

  // exercise: begin
  T sum = 0;
  std::size_t place = row;
#pragma unroll 4
  for (int d = 0; d < diagonals; ++d, place += pitch) {
    const unsigned column = row + offsets[d];
    if (column < cols) sum += values[place] * x[column];
  }
  y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
