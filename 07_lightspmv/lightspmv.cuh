// Step 07: rows are handed out while the product runs.
//
// In step 03 row r belongs to a vector (lanes_per_row neighbouring lanes) before anything has run,
// and all wait for the one with the longest row. Here a vector that has finished a row fetches the
// next one at run time: it adds to a counter in global memory, and the counter's old value is its
// row. (LightSpMV: the poster of Liu, Gonzalez-Dominguez and Schmidt, its vector-level and its
// warp-level kernel.)
//
//   thread   owns every lanes_per_row-th nonzero of its vector's row
//   team     lanes_per_fetch lanes that take rows with one atomic: a vector of lanes_per_row lanes
//            (vector-level), or a warp, which takes 32 / lanes_per_row rows (warp-level)
//   grid     as many blocks as are resident at once: they loop until no row is left
//
// What to look at: one atomic per row, or per 32 / lanes_per_row rows, all on one address. Where
// the lanes of a warp add the same constant to the same address, nvcc makes one atomic of them (it
// counts the lanes and lets one add for all), so that a vector-level fetch costs what a warp-level
// one does. atomicInc wraps around, and is left as it is: with fetch_by_inc each vector's fetch is
// an atomic of its own, as on the GPUs of the poster.
#pragma once

#include <cuda_runtime.h>

#include "device/fetch.cuh"
#include "device/scale.cuh"

namespace spmv {

inline constexpr int kLightThreads = 1024;

// Precondition: row_counter is 0. Rows and offsets are unsigned: every team's last fetch fails, so
// the counter ends beyond the last row, and k runs past the end of its row.
// fetch_by_inc: for lanes_per_fetch == lanes_per_row.
template <int lanes_per_fetch, int lanes_per_row, bool fetch_by_inc, typename T>
__global__ void __launch_bounds__(kLightThreads)
    lightspmv_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                     const T* values, T alpha, cudaTextureObject_t x, T beta, T* y,
                     unsigned* row_counter) {
  const unsigned lane = threadIdx.x % lanes_per_row;
  const unsigned lane_of_team = threadIdx.x % lanes_per_fetch;
  // The lanes of the team, as a mask. Other teams of the warp may be anywhere in the loop.
  const unsigned team = 0xffffffffu >> (32 - lanes_per_fetch)
                                           << threadIdx.x % 32 / lanes_per_fetch * lanes_per_fetch;
  // exercise: begin
  while (true) {
    unsigned row = 0;
    if (lane_of_team == 0) {
      row = fetch_by_inc ? atomicInc(row_counter, 0xfffffffeu)
                         : atomicAdd(row_counter, lanes_per_fetch / lanes_per_row);
    }
    row = __shfl_sync(team, row, 0, lanes_per_fetch);
    if (row >= rows) return;  // the team as a whole: the last rows may be fewer than its vectors
    row += lane_of_team / lanes_per_row;

    // Two lanes of the vector load the two row offsets; shuffles broadcast them to the others.
    unsigned offset = 0;
    if (lane < 2 && row < rows) offset = row_offsets[row + lane];
    const unsigned row_begin = __shfl_sync(team, offset, 0, lanes_per_row);
    const unsigned row_end = __shfl_sync(team, offset, 1, lanes_per_row);

    T sum = 0;
    unsigned k = row_begin + lane;
    if (lanes_per_row == 32) {
      // The first iteration begins at the multiple of 32 before the row, so the others are aligned.
      k -= row_begin % 32;
      if (k >= row_begin && k < row_end) sum += values[k] * device::fetch<T>(x, column_indices[k]);
      k += 32;
    }
    for (; k < row_end; k += lanes_per_row)
      sum += values[k] * device::fetch<T>(x, column_indices[k]);

    for (int distance = lanes_per_row / 2; distance > 0; distance /= 2) {
      sum += __shfl_down_sync(team, sum, distance, lanes_per_row);
    }
    if (lane == 0 && row < rows) y[row] = scale(alpha, sum, beta, &y[row]);
  }
  // exercise: end
}

}  // namespace spmv
