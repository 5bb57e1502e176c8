// Step 06, one pass: the path for matrices whose rows are alike.
//
// A scan costs instructions, and where a matrix is small these, not bytes, are what a product
// takes. If rows have about the same length, a fixed number of lanes per row does without: all
// loads of a row are issued at once (`items` per lane), then its products are added up by shuffles
// (step 03).
//
//   lane     multiplies every `lanes`-th nonzero of a row, `items` at a time
//   group    of `lanes` lanes: owns one row
//
// Launched by OnePassPlan::multiply (one_pass.cuh), which chooses this path and the number of
// lanes; tested in test.cu, "one pass: rows ...".
#pragma once

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>
#endif

#include "one_pass_cut_rows.cuh"
#include "overlap.cuh"

namespace spmv {

inline constexpr int kRowsThreads = 256;  // per block

template <int lanes, int items, typename T>
__global__ void __launch_bounds__(kRowsThreads)
    pcsr_rows_kernel(int rows, const int* __restrict__ row_offsets,
                     const int* __restrict__ column_indices, const T* __restrict__ values, T alpha,
                     const T* x, T beta, T* y) {
  static_assert(lanes > 0 && 32 % lanes == 0, "a row is added up within a warp");
  const int row =
      static_cast<int>((blockIdx.x * static_cast<unsigned>(kRowsThreads) + threadIdx.x) / lanes);
  const int lane = threadIdx.x % lanes;
  int k = 0;
  int end = 0;
  if (row < rows) {
    k = row_offsets[row] + lane;
    end = row_offsets[row + 1];
  }
  int column[items];
  T value[items];
  const auto load = [&] {
#pragma unroll
    for (int j = 0; j < items; ++j) {
      if (k + lanes * j < end) {
        column[j] = column_indices[k + lanes * j];
        value[j] = values[k + lanes * j];
      }
    }
  };
  load();
  wait_for_previous_kernel();  // x and y from here on
  let_next_kernel_start();

  T sum = 0;
  while (true) {
    T product[items];
#pragma unroll
    for (int j = 0; j < items; ++j) {
      product[j] = k + lanes * j < end ? value[j] * x[column[j]] : T{0};
    }
#pragma unroll
    for (int j = 0; j < items; ++j) sum += product[j];
    k += lanes * items;
    if (k >= end) break;
    load();
  }
#pragma unroll
  for (int distance = 1; distance < lanes; distance *= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if (lane == 0 && row < rows) y[row] = scaled_sum(alpha, sum, beta, &y[row]);
}

// How well a number of lanes fits the rows from `first_row` on, one row per lane of the calling
// warp: how often the slowest of its groups in pcsr_rows_kernel goes through the loop (at least
// once), added up over the warps that multiply these rows.
struct RowRounds {
  int sum;
  int most;
};
__device__ __forceinline__ RowRounds rounds_of_rows(int first_row, int rows, int lanes, int items,
                                                    const int* row_offsets) {
  const int lane = threadIdx.x % 32;
  const int row = first_row + lane;
  int rounds = 0;
  if (row < rows) {
    const int length = row_offsets[row + 1] - row_offsets[row];
    rounds = max((length + lanes * items - 1) / (lanes * items), 1);
  }
  const int rows_per_warp = 32 / lanes;
  for (int distance = 1; distance < rows_per_warp; distance *= 2) {
    rounds = max(rounds, __shfl_xor_sync(0xffffffffu, rounds, distance));
  }
  RowRounds result{lane % rows_per_warp == 0 ? rounds : 0, rounds};
  for (int distance = 16; distance > 0; distance /= 2) {
    result.sum += __shfl_xor_sync(0xffffffffu, result.sum, distance);
    result.most = max(result.most, __shfl_xor_sync(0xffffffffu, result.most, distance));
  }
  return result;
}

}  // namespace spmv
