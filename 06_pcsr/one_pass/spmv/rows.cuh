// Step 06, one pass: the path for matrices whose rows are alike.
//
// Tiles pay for any row lengths with instructions (the scan), and for long rows with a wait
// (partial sums of several warps). Where a matrix is small, instructions and waits, not bytes, are
// what a product takes; and where its rows have about the same length, a fixed number of lanes per
// row does without either: all loads of a row are issued at once (8 per lane), then its
// products are added up by shuffles (step 03), and through shared memory if a row has several
// warps.
//
//   lane     multiplies every `lanes`-th nonzero of a row, 8 at a time (an iteration)
//   group    of `lanes` lanes, 1 to 1024: owns one row
//
// read_once: values and columns are marked as read once (__ldcs), so that the L2 cache evicts them
// before x. Where the L2 holds everything, that would cost the next product its hits.
//
// Launched by OnePassPlan::multiply (one_pass.cuh), which chooses this path and the number of
// lanes; tested in test.cu, "one pass: both paths ...".
#pragma once

#include <cuda_runtime.h>

#include "overlap.cuh"
#include "vectors.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

inline constexpr int kRowsItemsPerThread = 8;  // nonzeros per lane and iteration
inline constexpr int kRowsWidths = 11;         // numbers of lanes per row: 2^0, ..., 2^10

// Threads per block: a block holds whole rows.
__host__ __device__ constexpr int rows_threads(int lanes) {
  return lanes > 256 ? lanes : 256;
}

// A lane's columns and values of one iteration: nonzeros k + lanes j, j = 0, ..., kItems - 1, as
// far as they are before `end`.
template <int lanes, int kItems, typename Value>
__device__ __forceinline__ void load_items(bool read_once, const int* __restrict__ column_indices,
                                           const Value* __restrict__ values, int k, int end,
                                           int (&column)[kItems], Value (&value)[kItems]) {
  const auto load_by = [&](const auto& read) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (k + lanes * j < end) {
        column[j] = read(&column_indices[k + lanes * j]);
        value[j] = read(&values[k + lanes * j]);
      }
    }
  };
  if (read_once) {
    load_by([](const auto* from) { return __ldcs(from); });
  } else {
    load_by([](const auto* from) { return *from; });
  }
}

template <int lanes, typename T, typename Value = T, typename Epilogue = Scaled<T>>
__global__ void __launch_bounds__(rows_threads(lanes))
    pcsr_rows_kernel(int rows, bool read_once, const int* __restrict__ row_offsets,
                     const int* __restrict__ column_indices, const Value* __restrict__ values,
                     const __grid_constant__ PlainVectors<T, Epilogue> vectors) {
  constexpr unsigned kThreads = rows_threads(lanes);
  static_assert(lanes > 0 && kThreads % lanes == 0, "a row is added up within a block");
  const int row = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / lanes);
  const int lane = threadIdx.x % lanes;
  int k = 0;
  int end = 0;
  if (row < rows) {
    k = row_offsets[row] + lane;
    end = row_offsets[row + 1];
  }
  int column[kRowsItemsPerThread];
  Value value[kRowsItemsPerThread];
  load_items<lanes>(read_once, column_indices, values, k, end, column, value);
  wait_for_previous_kernel();  // x, y and z from here on

  T sum = 0;
  while (true) {
    T product[kRowsItemsPerThread];
#pragma unroll
    for (int j = 0; j < kRowsItemsPerThread; ++j) {
      product[j] =
          k + lanes * j < end ? static_cast<T>(value[j]) * vectors.element(column[j]) : T{0};
    }
#pragma unroll
    for (int j = 0; j < kRowsItemsPerThread; ++j) sum += product[j];
    k += lanes * kRowsItemsPerThread;
    if (k >= end) break;
    load_items<lanes>(read_once, column_indices, values, k, end, column, value);
  }
  // Not earlier: the next kernel's loads would evict x from the L1.
  let_next_kernel_start();
#pragma unroll
  for (int distance = 1; distance < (lanes < 32 ? lanes : 32); distance *= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if constexpr (lanes > 32) {
    __shared__ T sum_of_warp_in_block[kThreads / 32];
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) sum_of_warp_in_block[warp] = sum;
    __syncthreads();
    if (lane == 0) {
#pragma unroll
      for (int w = 1; w < lanes / 32; ++w) sum += sum_of_warp_in_block[warp + w];
    }
  }
  if (lane == 0 && row < rows) vectors.store(row, sum);
}

// Rows that a warp has with 2^width lanes per row; 1 where a row has the whole warp, or several.
__host__ __device__ constexpr int rows_per_warp(int width) {
  return width < 5 ? 32 >> width : 1;
}

// RowsStatistics::longest where the offsets do not ascend from 0 to nnz. (No row is as long.)
inline constexpr int kWrongOffsets = 0x7fffffff;

// What prepare_one_pass_kernel finds out about the row lengths.
struct RowsStatistics {
  int longest;  // or kWrongOffsets
  // more_iterations[w]: how often the warps of pcsr_rows_kernel with 2^w lanes per row go through
  // their loop beyond the first time; groups of several warps are counted once. At most nnz / 8.
  int more_iterations[kRowsWidths];
  // Of a sample of neighbouring rows: how many pairs; in how many the columns in the middle of both
  // rows are near each other; and in how many of these the row's own next column is far away, so
  // that a row shares sectors of x with its neighbours and not within itself.
  int pairs;
  int near_pairs;
  int crossing_pairs;

  // Whether neighbouring rows find x in the same L1 cache, if it has them at the same time.
  __host__ __device__ constexpr bool columns_are_near() const {
    return pairs > 0 && 2LL * near_pairs >= pairs;
  }

  // Whether that holds for two fifths of the pairs: rows side by side then save sectors of x.
  __host__ __device__ constexpr bool columns_cross() const {
    return pairs > 0 && 5LL * crossing_pairs >= 2LL * pairs;
  }

  // Those of these rows and of `others`.
  __host__ __device__ void add(const RowsStatistics& others) {
    if (others.longest > longest) longest = others.longest;
    for (int w = 0; w < kRowsWidths; ++w) more_iterations[w] += others.more_iterations[w];
    pairs += others.pairs;
    near_pairs += others.near_pairs;
    crossing_pairs += others.crossing_pairs;
  }
  // more_iterations and the first ones: of a warp, or of the group of warps that owns a row.
  __host__ __device__ constexpr long long iterations(int w, int rows) const {
    return (1LL * rows + rows_per_warp(w) - 1) / rows_per_warp(w) + more_iterations[w];
  }
};

// Adds the 32 rows from `first_row` on, one per lane of the calling warp, to the lanes' statistics.
__device__ __forceinline__ void look_at_rows(int first_row, int rows, const int* row_offsets,
                                             RowsStatistics& statistics) {
  const int lane = threadIdx.x % 32;
  const int row = first_row + lane;
  const int length = row < rows ? row_offsets[row + 1] - row_offsets[row] : 0;
  statistics.longest = max(statistics.longest, length >= 0 ? length : kWrongOffsets);
  int longest[6];  // of rows_per_warp(w) rows
  longest[5] = length;
#pragma unroll
  for (int w = 4; w >= 0; --w) {
    longest[w] = max(longest[w + 1], __shfl_xor_sync(0xffffffffu, longest[w + 1], 16 >> w));
  }
#pragma unroll
  for (int w = 0; w < kRowsWidths; ++w) {
    if (longest[0] <= kRowsItemsPerThread << w)
      break;  // one iteration is enough, with more lanes, too
    if (lane % rows_per_warp(w) == 0) {
      statistics.more_iterations[w] += (longest[w < 5 ? w : 5] - 1) / (kRowsItemsPerThread << w);
    }
  }
}

// Adds what the columns of the 32 rows from `first_row` on say, one row per lane.
__device__ __forceinline__ void look_at_columns(int first_row, int rows, const int* row_offsets,
                                                const int* column_indices,
                                                RowsStatistics& statistics) {
  constexpr int kNear = 64;    // columns: 16 sectors of x in double precision
  constexpr int kBeside = 16;  // 4 sectors
  const int row = first_row + static_cast<int>(threadIdx.x % 32);
  if (row >= rows - 1) return;
  const int begin = row_offsets[row];
  const int end = row_offsets[row + 1];
  const int next_end = row_offsets[row + 2];
  if (begin >= end || end >= next_end) return;
  const int middle = begin + (end - begin) / 2;
  const int column = column_indices[middle];
  const long long to_next_row = 1LL * column_indices[end + (next_end - end) / 2] - column;
  const long long within_row = 1LL * column_indices[max(middle - 1, begin)] - column;
  const auto is_within = [](long long distance, int most) {
    return -most <= distance && distance <= most;
  };
  ++statistics.pairs;
  statistics.near_pairs += is_within(to_next_row, kNear);
  statistics.crossing_pairs += is_within(to_next_row, kBeside) && !is_within(within_row, kNear);
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
