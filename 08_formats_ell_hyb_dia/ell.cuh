// Step 08, ELL: all rows padded to the longest, stored column by column, one thread per row.
//
// In step 02 each thread walks its own row, and the lanes of a warp read a row's length apart. Here
// the first nonzeros of all rows are stored side by side, then all second ones, and so on: in every
// iteration 32 lanes read 32 neighbouring columns and values, and no row needs an offset. The cost
// is the padding, which is stored, and whose columns are read. (Bylina, Bylina
// and Karwacki, section 3.3; Bell and Garland 2009.)
//
//   thread   owns one row
//   warp     owns 32 neighbouring rows; all requests but those for x are for neighbouring elements
//   block    nothing of its own
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

inline constexpr int kNoColumn = -1;  // of padding: there is nothing to multiply

// Column j of the padded matrix begins at element j pitch; pitch >= rows. (64-bit: a matrix of 2^31
// rows has rows of more than one nonzero. The last threads are past 2^31, too: unsigned.)
template <typename T>
__global__ void ell_kernel(unsigned rows, int width, std::size_t pitch, const int* columns,
                           const T* values, T alpha, const T* x, T beta, T* y) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;

  // exercise: begin
  T sum = 0;
  std::size_t place = row;
#pragma unroll 4
  for (int j = 0; j < width; ++j, place += pitch) {
    const int column = columns[place];
    if (column != kNoColumn) sum += values[place] * x[column];
  }
  y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
