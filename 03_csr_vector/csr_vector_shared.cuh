// Step 03, as it was written before warps could shuffle: one warp per row, sums in shared memory.
//
// Bylina, Bylina and Karwacki 2011 print this kernel (figure 9; it is Bell and Garland's). Printed,
// it has no synchronization at all: it counts on the 32 lanes of a warp moving in step, so that
// what a lane wrote in one line is there for the others in the next. Since Volta each lane has its
// own program counter and nothing promises that; and a compiler was always free to keep
// partial_sums[threadIdx.x] in a register. Each __syncwarp() here says what the print took for
// granted: all lanes have come this far, and see what the others wrote.
//
//   thread   owns every 32nd nonzero of one row, and one element of partial_sums
//   warp     owns one row
//   block    nothing of its own but the shared memory of its warps
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

inline constexpr int kSharedVectorThreads = 256;

template <typename T>
__global__ void csr_vector_shared_kernel(int rows, const int* row_offsets,
                                         const int* column_indices, const T* values, T alpha,
                                         const T* x, T beta, T* y) {
  __shared__ T partial_sums[kSharedVectorThreads];
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / 32;
  const int lane = thread % 32;
  if (row >= rows) return;

  // exercise: begin
  const int row_begin = row_offsets[row];
  const int row_end = row_offsets[row + 1];
  partial_sums[threadIdx.x] = 0;
  for (int k = row_begin + lane; k < row_end; k += 32) {
    partial_sums[threadIdx.x] += values[k] * x[column_indices[k]];
  }
  __syncwarp();

  // Lanes below `distance` read what lanes from `distance` on wrote before the last __syncwarp().
  for (int distance = 16; distance > 0; distance /= 2) {
    if (lane < distance) partial_sums[threadIdx.x] += partial_sums[threadIdx.x + distance];
    __syncwarp();
  }
  if (lane == 0) y[row] = scale(alpha, partial_sums[threadIdx.x], beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
