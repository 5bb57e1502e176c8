// Step 08, COO: what ELL leaves over in HYB, and the format alone. Step 05's scan by shuffles: no
// atomics, so the bits of y are the same in every run.
//
//   thread   owns every 32nd nonzero of its warp's tile
//   warp     owns kWarpTile neighbouring nonzeros; writes y for rows that begin and end there
//   block    owns kTile neighbouring nonzeros; writes y for rows that end there
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {
// A namespace of its own, since step 05 has the kernels, too.
namespace formats {

inline constexpr int kWarps = 8;
inline constexpr int kIterations = 8;
inline constexpr int kWarpTile = 32 * kIterations;
inline constexpr int kTile = kWarps * kWarpTile;

// Writes y for every row that has nonzeros: what the block has of it in which the row ends.
// carries[block]: what the block has of the row that is still open where its tile ends.
template <typename T>
__global__ void segscan_shuffle_kernel(unsigned nnz, const int* row_indices,
                                       const int* column_indices, const T* values, T alpha,
                                       const T* x, T beta, T* y, T* carries) {
  constexpr unsigned kAll = 0xffffffffu;
  __shared__ int open_rows[kWarps];  // the row that was open where the warp's tile begins, or -1
  __shared__ int some_row_ends[kWarps];  // whether any row ends in the warp's tile
  __shared__ T heads[kWarps];            // if one does: what the tile has of the open row
  __shared__ T tails[kWarps];            // what it has of the row that is open where it ends
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const unsigned begin = blockIdx.x * kTile + warp * kWarpTile;
  const unsigned end = begin + kWarpTile;

  // All loads come first, so that they are in flight together.
  int rows[kIterations];
  T products[kIterations];
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const unsigned k = begin + 32 * iteration + lane;
    rows[iteration] = k < nnz ? row_indices[k] : -1;
    products[iteration] = k < nnz ? values[k] * x[column_indices[k]] : T{0};
  }
  const int row_before = 0 < begin && begin < nnz ? row_indices[begin - 1] : -1;
  const int row_after = end < nnz ? row_indices[end] : -1;
  const int first_row = __shfl_sync(kAll, rows[0], 0);
  const int open_row = first_row == row_before ? first_row : -1;

  T carry = 0;  // of the row that goes on from the iteration before; 0 if none does
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const int row = rows[iteration];
    T sum = lane == 0 ? products[iteration] + carry : products[iteration];

    // The lanes of a row are neighbours; `first_lane` is where those of this lane's row begin.
    const int lower_row = __shfl_up_sync(kAll, row, 1);
    const unsigned first_lanes = __ballot_sync(kAll, lane == 0 || row != lower_row);
    const int first_lane = 31 - __clz(first_lanes & (kAll >> (31 - lane)));
    for (int distance = 1; distance < 32; distance *= 2) {
      const T before = __shfl_up_sync(kAll, sum, distance);
      if (lane - distance >= first_lane) sum += before;
    }

    int next_row = __shfl_down_sync(kAll, row, 1);
    const int first_row_after =
        iteration + 1 < kIterations ? __shfl_sync(kAll, rows[iteration + 1], 0) : row_after;
    if (lane == 31) next_row = first_row_after;
    const bool row_ends = row >= 0 && next_row != row;
    if (row_ends && row == open_row) {
      heads[warp] = sum;
    } else if (row_ends) {
      y[row] = scale(alpha, sum, beta, &y[row]);
    }
    carry = __shfl_sync(kAll, row_ends ? T{0} : sum, 31);
  }

  if (lane == 0) {
    open_rows[warp] = open_row;
    some_row_ends[warp] = first_row != row_after;
    tails[warp] = carry;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    T open_sum = 0;  // of the row that is open where the next warp's tile begins
    for (int w = 0; w < kWarps; ++w) {
      if (!some_row_ends[w]) {
        open_sum += tails[w];
        continue;
      }
      const int row = open_rows[w];
      if (row >= 0) y[row] = scale(alpha, open_sum + heads[w], beta, &y[row]);
      open_sum = tails[w];
    }
    carries[blockIdx.x] = open_sum;
  }
}

// Adds to y what the tiles before the one in which a row ends have of it. One warp per tile; the
// warp of the first tile that ends within a row adds up the carries of all tiles that do.
template <typename T>
__global__ void add_carries_kernel(int nnz, int tiles, const int* row_indices, const T* carries,
                                   T alpha, T* y) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int first = thread / 32;
  const int lane = thread % 32;
  if (first >= tiles) return;

  const auto last_row = [=](int tile) {
    return row_indices[tile + 1 < tiles ? kTile * (tile + 1) - 1 : nnz - 1];
  };
  const int row = last_row(first);
  if (first > 0 && last_row(first - 1) == row) return;

  T sum = 0;
  for (int tile = first + lane; tile < tiles && last_row(tile) == row; tile += 32) {
    sum += carries[tile];
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (lane == 0) y[row] += alpha * sum;
}

}  // namespace formats
}  // namespace spmv
