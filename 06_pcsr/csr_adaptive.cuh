// Step 06, the rival: CSR-Adaptive. One kernel that treats short, long and very long rows in three
// different ways.
//
// PCSR reads everything coalesced at the price of an array that it writes and reads again. Here the
// products never leave shared memory: a block takes only as many rows as fit in there
// (csr_adaptive_blocks.cuh). (Greathouse and Daga, SC '14: CSR-Stream and CSR-Vector; their second
// paper, HiPC '15: several blocks share a row, CSR-VectorL. Written from the idea.)
//
//   block    owns the rows from block_rows[b] on:
//              stream   rows of up to row_block nonzeros: all products into shared memory,
//                       coalesced, then 1 to 32 lanes per row add up
//              vector   a longer row, the last of the block: all threads add it up together
//              shared   a block without rows: a part of the very long row that spans it
//   thread   every `threads`-th product; then a lane of one row
//
// A second kernel adds up the partial sums of shared rows in a fixed order. Atomics would save that
// kernel, but the last bits of y would differ from run to run.
#pragma once

#include <cuda_runtime.h>

#include "csr_adaptive_blocks.cuh"
#include "device/scale.cuh"

namespace spmv {

// The sum of all threads' sums, for thread 0. warp_sums: shared memory, one element per warp.
template <int threads, typename T>
__device__ __forceinline__ T sum_of_block(T sum, T* warp_sums) {
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  T total = 0;
  if (threadIdx.x == 0) {
    for (int warp = 0; warp < threads / 32; ++warp) total += warp_sums[warp];
  }
  return total;
}

// The thread's part of `count` products from the k-th on.
template <int threads, typename T>
__device__ __forceinline__ T sum_of_products(int k, int count, const int* column_indices,
                                             const T* values, const T* x) {
  T sum = 0;
  for (int j = threadIdx.x; j < count; j += threads)
    sum += values[k + j] * x[column_indices[k + j]];
  return sum;
}

// The blocks that share a long row; none of them has a row of its own.
struct SharingBlocks {
  int first, count;
};
template <int row_block>
__device__ __forceinline__ SharingBlocks sharing_blocks(const int* row_offsets, int row) {
  const int first = static_cast<int>(place_of_row(row_offsets, row) / row_block) + 1;
  return {first, static_cast<int>(place_of_row(row_offsets, row + 1) / row_block) - first};
}

template <int row_block, int threads, typename T>
__global__ void csr_adaptive_kernel(const int* block_rows, const int* row_offsets,
                                    const int* column_indices, const T* values, T alpha, const T* x,
                                    T beta, T* y, T* partial_sums) {
  __shared__ T products[2 * row_block];
  const int tid = threadIdx.x;
  const int first_row = block_rows[blockIdx.x];
  const int end_row = block_rows[blockIdx.x + 1];
  const int last_begin = row_offsets[end_row - 1];
  const int last_length = row_offsets[end_row] - last_begin;

  if (first_row == end_row) {
    // Shared: this block's part of a row that began in an earlier block. (The last block of all may
    // come after those that share the row: then no part is left for it.)
    if (last_length <= shared_row(row_block)) return;
    const SharingBlocks sharing = sharing_blocks<row_block>(row_offsets, end_row - 1);
    const int part = static_cast<int>(blockIdx.x) - sharing.first;
    if (part >= sharing.count) return;
    const auto part_begin = static_cast<int>(1LL * last_length * part / sharing.count);
    const auto part_end = static_cast<int>(1LL * last_length * (part + 1) / sharing.count);
    const T sum = sum_of_products<threads>(last_begin + part_begin, part_end - part_begin,
                                           column_indices, values, x);
    const T total = sum_of_block<threads>(sum, products);
    if (tid == 0) partial_sums[blockIdx.x] = total;
    return;
  }

  // Stream: all rows but a long one.
  const bool last_is_long = last_length > long_row(row_block);
  const int stream_rows = end_row - first_row - (last_is_long ? 1 : 0);
  const int begin = row_offsets[first_row];
  const int count = row_offsets[first_row + stream_rows] - begin;
  // exercise: begin
  for (int j = tid; j < count; j += threads) {
    products[j] = values[begin + j] * x[column_indices[begin + j]];
  }
  __syncthreads();
  // As many lanes per row as there are threads for.
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * stream_rows <= threads) lanes *= 2;
  const int lane = tid % lanes;
  for (int done = 0; done < stream_rows; done += threads / lanes) {
    const int i = done + tid / lanes;
    T sum = 0;
    if (i < stream_rows) {
      const int row_end = row_offsets[first_row + i + 1] - begin;
      for (int j = row_offsets[first_row + i] - begin + lane; j < row_end; j += lanes) {
        sum += products[j];
      }
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      sum += __shfl_down_sync(0xffffffffu, sum, distance, lanes);
    }
    if (lane == 0 && i < stream_rows) {
      y[first_row + i] = scale(alpha, sum, beta, &y[first_row + i]);
    }
  }

  // Vector: one long row for all threads.
  if (last_is_long && last_length <= shared_row(row_block)) {
    const T sum = sum_of_products<threads>(last_begin, last_length, column_indices, values, x);
    __syncthreads();  // the stream rows no longer read `products`
    const T total = sum_of_block<threads>(sum, products);
    if (tid == 0) y[end_row - 1] = scale(alpha, total, beta, &y[end_row - 1]);
  }
  // exercise: end
}

// Adds up the blocks' partial sums of each shared row: one warp per row.
template <int row_block, typename T>
__global__ void csr_adaptive_shared_rows_kernel(const int* shared_rows, const int* row_offsets,
                                                const T* partial_sums, T alpha, T beta, T* y) {
  const int row = shared_rows[blockIdx.x];
  const SharingBlocks sharing = sharing_blocks<row_block>(row_offsets, row);
  T sum = 0;
  for (int i = threadIdx.x; i < sharing.count; i += 32) sum += partial_sums[sharing.first + i];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x == 0) y[row] = scale(alpha, sum, beta, &y[row]);
}

}  // namespace spmv
