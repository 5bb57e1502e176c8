// Step 06, one pass: which part of the matrix each warp multiplies.
//
// The unit of work of a warp is a *tile*: consecutive nonzeros and the rows that they belong to.
// Nonzeros and rows both cost bytes (a nonzero its value and column index, a row its offset and its
// element of y), so tiles are cut in the count of both, as in merge-path (Merrill and Garland
// 2016): row r begins at position row_offsets[r] + r, and tile s takes the rows that begin in
// [s tile_items, (s + 1) tile_items).
//
// The last of these rows may reach past that border. If it does so by less than `overhang`, the
// tile takes it whole: slightly unequal tiles cost less than two warps that must exchange a
// partial sum. A longer row is *cut* at the borders of the tiles, and each tile in which it lies
// computes a partial sum of it (cut_rows.cuh).
//
//   warp     owns one tile: finds its first row by a 32-ary search
//
// A plan finds its tiles in prepare_one_pass_kernel (prepare.cuh); find_tiles_kernel alone is for
// step 10 and for test.cu, "one pass: tiles ...".
#pragma once

#include <cuda_runtime.h>

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

// Where a tile begins. It ends where the next one begins.
struct alignas(8) Tile {
  int row;        // the first row of which it has nonzeros, or that begins in it
  int nnz_begin;  // its first nonzero
};
// Set in Tile::row if that row began in an earlier tile.
inline constexpr int kCutRow = static_cast<int>(0x80000000u);

// The sum of a cut row over one tile: 32 bits of it and a valid flag in each 64-bit word
// (cut_rows.cuh). All words 0: not published yet.
template <typename T>
struct alignas(2 * sizeof(T)) PartialSum {
  unsigned long long word[sizeof(T) / 4];
};

// The tile in which nonzero k of `row` lies, provided that the row is cut.
__device__ __forceinline__ int tile_of(int k, int row, unsigned tile_items) {
  return static_cast<int>((static_cast<unsigned>(k) + row) / tile_items);
}

// The first of the rows 0, ..., rows - 1 for which is_behind(row) is true, as for all rows after
// it; `rows` if there is none. Called by all lanes of a warp, which try 32 rows at a time and keep
// the interval between two of them.
template <typename IsBehind>
__device__ __forceinline__ int first_row(int rows, const IsBehind& is_behind) {
  const int lane = threadIdx.x % 32;
  int low = 0;
  int high = rows;
  while (low < high) {
    const int stride = (high - low + 31) / 32;
    const long long row = low + static_cast<long long>(lane + 1) * stride - 1;
    const bool before = row < high && !is_behind(row);
    const int count = __popc(__ballot_sync(0xffffffffu, before));
    const long long first_not_before = low + static_cast<long long>(count + 1) * stride - 1;
    low += count * stride;
    if (first_not_before < high) high = static_cast<int>(first_not_before);
  }
  return low;
}

// What one tile needs; called by all lanes of a warp, s = 0, ..., tile_count.
//
// tiles: tile_count + 1 elements. partial_sums: two per tile, set to 0. unstarted: one per
// tile; set, where a cut row begins in the tile, to the number of tiles in which that row lies.
// A product leaves partial_sums and unstarted as it found them.
template <typename T>
__device__ __forceinline__ void find_tile(int s, int tile_count, unsigned tile_items, int overhang,
                                          int rows, int nnz, const int* row_offsets, Tile* tiles,
                                          PartialSum<T>* partial_sums, unsigned* unstarted) {
  const long long start = 1LL * s * tile_items;
  const int low = first_row(rows, [&](long long row) { return row_offsets[row] + row >= start; });
  if (threadIdx.x % 32 != 0) return;
  if (s == tile_count) {
    tiles[s] = Tile{rows, nnz};
    return;
  }
  partial_sums[2LL * s] = partial_sums[2LL * s + 1] = PartialSum<T>{};
  tiles[s] = Tile{low, row_offsets[low]};
  if (low == 0) return;

  // Is the row before it cut, and does it have nonzeros from `start` on?
  const int cut = low - 1;
  const long long end = static_cast<long long>(row_offsets[low]) + cut;
  const int first = tile_of(row_offsets[cut], cut, tile_items);
  if (end >= (first + 1LL) * tile_items + overhang && end > start) {
    tiles[s] = Tile{cut | kCutRow, static_cast<int>(start - cut)};
    const int last = tile_of(row_offsets[low] - 1, cut, tile_items);
    if (s == last) unstarted[first] = last - first + 1;
  }
}

template <typename T>
__global__ void find_tiles_kernel(int tile_count, unsigned tile_items, int overhang, int rows,
                                  int nnz, const int* row_offsets, Tile* tiles,
                                  PartialSum<T>* partial_sums, unsigned* unstarted) {
  const int s = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (s > tile_count) return;
  find_tile(s, tile_count, tile_items, overhang, rows, nnz, row_offsets, tiles, partial_sums,
            unstarted);
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
