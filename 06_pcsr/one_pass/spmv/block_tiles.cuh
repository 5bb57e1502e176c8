// Step 06, one pass: tiles that the warps of a block share, for graphs.
//
// A warp with a tile of its own (tiles.cuh) leaves rows of up to kOnePassOverhang nonzeros beyond
// its end whole, since a cut row costs two trips to the L2 cache. Where a tile is one or two
// iterations, such a row makes three or four of it, and the product takes as long as that warp.
// Here a *block* owns the tile, which takes the rows that begin in it whole, and its warps have
// equal parts of it: a row that lies in several of them is added up in shared memory, behind a
// barrier, at a fraction of that cost. Rows longer than some tiles would make blocks unequal.
//
//   warp     owns a part of the block's tile; multiplies it as in agent.cuh
//   block    owns a tile; adds up the rows that lie in several warps
//
// What to look at: the longest row decides between the two kernels (block_tiles_suit()).
//
// Launched by OnePassPlan::multiply (one_pass.cuh), which chooses; tested in test.cu, "one pass:
// tiles of blocks ...".
#pragma once

#include <cuda_runtime.h>

#include "agent.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

// Where part s of blocks * warps begins, which belongs to warp s % warps of block s / warps, or
// where the last one ends; called by all lanes of a warp, s = 0, ..., blocks * warps. parts has as
// many elements.
//
// A block's tile has the rows that begin at positions [b block_items, (b + 1) block_items), as
// tiles.cuh counts them. Where its rows are long, the warps get whole iterations of nonzeros; else
// as many positions each, or the warps with short rows would have most of the work.
template <typename T>
__device__ __forceinline__ void find_part(int s, int blocks, int warps, unsigned block_items,
                                          int rows, const int* row_offsets, Tile* parts) {
  constexpr int kIterationItems = OnePassPolicy<T>::kIterationItems;
  constexpr int kLongRow = 8;  // nonzeros
  const auto position = [&](long long row) { return row_offsets[row] + row; };
  const auto first_row_of = [&](long long block) {
    return first_row(rows, [&](long long row) { return position(row) >= block * block_items; });
  };
  const int block = s / warps;
  const int warp = s % warps;
  const int tile_row = block < blocks ? first_row_of(block) : rows;
  int row = tile_row;                // the first row that does not begin earlier
  int nnz_begin = row_offsets[row];  // of the part, if the row before that one goes on in it
  if (warp > 0) {
    const int end_row = first_row_of(block + 1LL);
    const int nnz = row_offsets[end_row] - nnz_begin;
    if (nnz >= 1LL * kLongRow * (end_row - tile_row)) {
      const int aligned = nnz_begin & ~7;
      const int iterations = (nnz_begin + nnz - aligned + kIterationItems - 1) / kIterationItems;
      const int border = aligned + iterations * warp / warps * kIterationItems;
      nnz_begin = min(max(border, nnz_begin), nnz_begin + nnz);
      row = first_row(rows, [&](long long r) { return row_offsets[r] >= nnz_begin; });
      row = max(row, tile_row);
    } else {
      const long long items = position(end_row) - position(tile_row);
      const long long border = position(tile_row) + items * warp / warps;
      row = first_row(rows, [&](long long r) { return position(r) >= border; });
      nnz_begin = static_cast<int>(border - (row - 1));
    }
  }
  if (threadIdx.x % 32 != 0) return;
  const bool goes_on = row > tile_row && row_offsets[row] > nnz_begin;
  parts[s] = goes_on ? Tile{(row - 1) | kCutRow, nnz_begin} : Tile{row, row_offsets[row]};
}

template <typename T>
__global__ void find_parts_kernel(int blocks, int warps, unsigned block_items, int rows,
                                  const int* row_offsets, Tile* parts) {
  const int s = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (s <= blocks * warps) find_part<T>(s, blocks, warps, block_items, rows, row_offsets, parts);
}

// One tile per block, and one BlockTileShared per warp of dynamic shared memory. a.tiles: the parts
// of the warps.
template <typename T, typename Value = T, typename Epilogue = Scaled<T>>
__global__ void __launch_bounds__(OnePassPolicy<T>::kThreads, OnePassPolicy<T>::kBlocks)
    pcsr_block_tiles_kernel(const __grid_constant__ OnePassArguments<T, Value> a,
                            const __grid_constant__ PlainVectors<T, Epilogue> vectors) {
  using Shared = BlockTileShared<T>;
  extern __shared__ __align__(16) unsigned char one_pass_shared[];
  Shared* of_block = reinterpret_cast<Shared*>(one_pass_shared);
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const int part = blockIdx.x * (blockDim.x / 32) + warp;
  OnePassAgent<T, const PlainVectors<T, Epilogue>, Value, Shared> agent(a, of_block[warp], part,
                                                                        vectors);
  if (!agent.is_empty()) {
    agent.load_first_items();
    agent.load_row_ends();
  }
  wait_for_previous_kernel();
  multiply_tile(agent);
  __syncthreads();
  agent.add_up_cut_row(of_block);
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
