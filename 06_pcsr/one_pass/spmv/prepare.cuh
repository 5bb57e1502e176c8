// Step 06, one pass: what is found out about a matrix once, before the first product.
//
//   warp     finds where a tile begins (tiles.cuh), or looks at 32 rows at a time (rows.cuh)
//   block    adds up what its warps found out about row lengths
//
// Launched by OnePassPlan::prepare (one_pass.cuh); tested in test.cu, "one pass: statistics ...".
#pragma once

#include <cuda_runtime.h>

#include "choice.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

inline constexpr int kPrepareThreads = 512;    // per block
inline constexpr int kStatisticsBlocks = 256;  // at most

// The first tile_blocks blocks find tiles, one per warp; each of the others looks at a part of
// the rows and writes an element of `statistics`. A matrix of more than 131,072 rows has a sample
// of its columns looked at, evenly spread. column_indices: null if no one asks for that.
template <typename T>
__global__ void prepare_one_pass_kernel(int tile_blocks, int tile_count, unsigned tile_items,
                                        int rows, int nnz, const int* row_offsets, Tile* tiles,
                                        PartialSum<T>* partial_sums, unsigned* unstarted,
                                        RowsStatistics* statistics, const int* column_indices) {
  constexpr int kWarps = kPrepareThreads / 32;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int block = static_cast<int>(blockIdx.x);
  if (block < tile_blocks) {
    const int s = block * kWarps + warp;
    if (s > tile_count) return;
    find_tile(s, tile_count, tile_items, kOnePassOverhang, rows, nnz, row_offsets, tiles,
              partial_sums, unstarted);
    return;
  }
  RowsStatistics found = {};
  const int statistics_block = block - tile_blocks;
  const int statistics_blocks = static_cast<int>(gridDim.x) - tile_blocks;
  for (long long first = 32LL * (statistics_block * kWarps + warp); first < rows;
       first += 32LL * kWarps * statistics_blocks) {
    look_at_rows(static_cast<int>(first), rows, row_offsets, found);
  }
  const int warps = kWarps * statistics_blocks;
  if (column_indices && rows > 0) {
    const int part = static_cast<int>(rows / 32LL * (statistics_block * kWarps + warp) / warps);
    look_at_columns(32 * part, rows, row_offsets, column_indices, found);
  }
  if (statistics_block == 0 && (row_offsets[0] != 0 || row_offsets[rows] != nnz)) {
    found.longest = kWrongOffsets;
  }
  __shared__ RowsStatistics of_warp[kWarps];
  for (int distance = 16; distance > 0; distance /= 2) {
    const auto other = [&](int value) { return __shfl_down_sync(0xffffffffu, value, distance); };
    found.longest = max(found.longest, other(found.longest));
    found.pairs += other(found.pairs);
    found.near_pairs += other(found.near_pairs);
    found.crossing_pairs += other(found.crossing_pairs);
#pragma unroll
    for (int w = 0; w < kRowsWidths; ++w) {
      found.more_iterations[w] += other(found.more_iterations[w]);
    }
  }
  if (lane == 0) of_warp[warp] = found;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) found.add(of_warp[w]);
  statistics[statistics_block] = found;
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
