// Step 06, one pass: products with the transpose of a CSR matrix.
//
// y = alpha A^T x + beta y from the same CSR arrays: nonzero (row, column, value) adds
// alpha value x[row] to y[column], so the sums of many rows meet in an element of y, as in step 04.
// Nothing has to be prepared, but every nonzero costs an atomic, and the last bits differ from run
// to run. For many products build the transpose once (OnePassTranspose) and make a plan of it.
//
//   lane     finds the rows of 8 consecutive nonzeros; adds those of every 32nd to y
//   warp     owns a tile (tiles.cuh), 256 nonzeros per iteration
//
// Launched by OnePassPlan::multiply_transposed (one_pass.cuh) and OnePassTranspose. Tests: test.cu,
// "one pass: transposed ...".
#pragma once

#include <cuda_runtime.h>

#include "agent.cuh"
#include "cut_rows.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

inline constexpr int kTransposedThreads = 256;  // per block

// y = beta y, of cols elements; not read if beta is 0.
template <typename T>
__global__ void scale_transposed_kernel(int cols, T beta, T* y) {
  const long long i = 1LL * blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cols) y[i] = beta != T{0} ? beta * y[i] : T{0};
}

template <typename T, typename Value = T>
__global__ void __launch_bounds__(kTransposedThreads)
    pcsr_transposed_kernel(const __grid_constant__ OnePassArguments<T, Value> a, T alpha,
                           const T* __restrict__ x, T* y) {
  constexpr unsigned kAll = 0xffffffffu;
  constexpr int kItems = 8;  // consecutive ones of a lane
  constexpr int kIterationItems = 32 * kItems;
  constexpr int kStride = kItems + 1;  // or all lanes' would begin in the same few banks
  __shared__ int rows_of_block[kTransposedThreads / 32][32 * kStride];
  const int lane = threadIdx.x % 32;
  const int tile = blockIdx.x * (kTransposedThreads / 32) + threadIdx.x / 32;
  if (tile >= a.tile_count) return;
  const TileBorders border = read_borders(a.tiles, tile);
  int* rows = rows_of_block[threadIdx.x / 32];
  const auto place = [](int i) { return i / kItems * kStride + i % kItems; };

  int open_row = border.rows.first;  // of the nonzero before the iteration
  int next_row = border.rows.first;  // that is not looked at yet
  for (int begin = border.nnz_begin; begin < border.nnz_end; begin += kIterationItems) {
    const int end = min(begin + kIterationItems, border.nnz_end);
    for (int i = lane; i < kIterationItems; i += 32) rows[place(i)] = -1;
    __syncwarp();
    // Each row that is not empty, at its first nonzero of the iteration.
    int found;
    do {
      const int row = next_row + lane;
      const bool begins = row <= border.rows.end && a.row_offsets[row] < end;
      if (begins && a.row_offsets[row] < a.row_offsets[row + 1]) {
        rows[place(max(a.row_offsets[row] - begin, 0))] = row;
      }
      found = __popc(__ballot_sync(kAll, begins));
      next_row += found;
    } while (found == 32);
    __syncwarp();
    // Rows ascend, so a nonzero is of the largest row that begins at or before it.
    int* own = &rows[lane * kStride];
    int last = -1;
#pragma unroll
    for (int j = 0; j < kItems; ++j) own[j] = last = max(last, own[j]);
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(kAll, last, distance);
      if (lane >= distance) last = max(last, before);
    }
    const int before = __shfl_up_sync(kAll, last, 1);
    const int open = lane > 0 ? max(before, open_row) : open_row;
#pragma unroll
    for (int j = 0; j < kItems; ++j) own[j] = max(own[j], open);
    open_row = max(open_row, __shfl_sync(kAll, last, 31));
    __syncwarp();
    for (int i = lane; i < end - begin; i += 32) {
      const T product = static_cast<T>(__ldcs(&a.values[begin + i])) * x[rows[place(i)]];
      atomicAdd(&y[__ldcs(&a.column_indices[begin + i])], alpha * product);
    }
    __syncwarp();
  }
}

// --- The transpose ------------------------------------------------------------------------------

// Index: int. (Templates, since each source of a program may include this header.)

// counts[column]: its nonzeros. To be 0 before.
template <typename Index>
__global__ void count_columns_kernel(int nnz, const Index* column_indices, Index* counts) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < static_cast<unsigned>(nnz)) atomicAdd(&counts[column_indices[k]], Index{1});
}

// offsets[i] = the sum of the counts before i, for i = 0, ..., count, and counts[i] = offsets[i].
// One block of 1,024 threads.
template <typename Index>
__global__ void scan_counts_kernel(int count, Index* counts, Index* offsets) {
  __shared__ int of_warp[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  int carry = 0;
  for (long long first = 0; first <= count; first += blockDim.x) {
    const long long i = first + threadIdx.x;
    const int own = i < count ? counts[i] : 0;
    int sum = own;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(0xffffffffu, sum, distance);
      if (lane >= distance) sum += before;
    }
    if (lane == 31) of_warp[warp] = sum;
    __syncthreads();
    int before = carry;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) {
      if (w == warp && i <= count) {
        offsets[i] = before + sum - own;
        if (i < count) counts[i] = before + sum - own;
      }
      before += of_warp[w];
    }
    carry = before;
    __syncthreads();
  }
}

// nonzeros[place]: those of column 0, of column 1, ..., each column's in any order. `next` holds
// the offsets, and afterwards where the columns end.
template <typename Index>
__global__ void scatter_columns_kernel(int nnz, const Index* column_indices, Index* next,
                                       Index* nonzeros) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < static_cast<unsigned>(nnz)) nonzeros[atomicAdd(&next[column_indices[k]], Index{1})] = k;
}

// Puts each column's nonzeros in order: a nonzero's place is the number of smaller ones in its
// column, so the time grows with the square of the longest column. from[place] is the nonzero of A
// that stands there, rows_of[place] its row.
template <typename Index>
__global__ void order_columns_kernel(int rows, int nnz, const Index* row_offsets,
                                     const Index* column_indices, const Index* offsets,
                                     const Index* nonzeros, Index* from, Index* rows_of) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= static_cast<unsigned>(nnz)) return;
  const int k = nonzeros[i];
  const int begin = offsets[column_indices[k]];
  const int end = offsets[column_indices[k] + 1];
  int place = begin;
  for (int j = begin; j < end; ++j) place += nonzeros[j] < k;
  int low = 0;  // the last row that begins at or before k
  int high = rows - 1;
  while (low < high) {
    const int between = high - (high - low) / 2;
    if (row_offsets[between] <= k) {
      low = between;
    } else {
      high = between - 1;
    }
  }
  from[place] = k;
  rows_of[place] = low;
}

template <typename Value>
__global__ void gather_values_kernel(int nnz, const int* from, const Value* values,
                                     Value* transposed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned>(nnz)) transposed[i] = values[from[i]];
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
