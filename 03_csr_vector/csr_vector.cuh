// Step 03: several neighbouring threads per row.
//
// In step 02 the lanes of a warp read nonzeros that lie a row apart. Here `lanes_per_row`
// neighbouring lanes share a row and read neighbouring nonzeros of it, so that one sector serves
// several lanes; then they add up their sums. (CSR-vector of He and Gao 2016 and, with 32 lanes, of
// Bell and Garland 2009.)
//
//   thread   owns every lanes_per_row-th nonzero of one row
//   warp     owns 32 / lanes_per_row neighbouring rows
//   block    nothing of its own
//
// What to look at: sectors per request fall, since the lanes of a row read next to each other; rows
// start where they start, not at a sector's border, so that they do not fall all the way. Rows
// shorter than lanes_per_row leave lanes without work.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

template <int lanes_per_row, typename T>
__global__ void csr_vector_kernel(int rows, const int* row_offsets, const int* column_indices,
                                  const T* values, T alpha, const T* x, T beta, T* y) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / lanes_per_row;
  const int lane = thread % lanes_per_row;
  if (row >= rows) return;

  // exercise: begin
  const int row_begin = row_offsets[row];
  const int row_end = row_offsets[row + 1];
  T sum = 0;
  for (int k = row_begin + lane; k < row_end; k += lanes_per_row) {
    sum += values[k] * x[column_indices[k]];
  }

  // A tree: after each round half as many lanes hold sums that count, at the end lane 0 all.
  // The mask names all 32 lanes. Groups past the last row have returned; no lane reads from them.
  for (int distance = lanes_per_row / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance, lanes_per_row);
  }
  if (lane == 0) y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
