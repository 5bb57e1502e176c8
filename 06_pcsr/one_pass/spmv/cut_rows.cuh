// Step 06, one pass: rows that lie in several tiles.
//
// Each tile of a cut row counts down a counter of that row when it starts, and publishes its
// partial sum when it has it. The warp that starts last (it finds the counter at 1) adds up the
// partial sums in an order that depends on the tiles alone, so that the result has the same bits in
// every run. It waits for the others; that cannot deadlock, since all of them have started, so they
// are resident and need nothing from it. The counter costs no time: its value is used at the end of
// the tile.
//
// A partial sum and a separate flag would need a fence between the two stores, which waits for all
// earlier stores of the warp, and an acquire on the reader's side. Both invalidate the L1 cache of
// the multiprocessor, and with it the elements of x there. Instead data and valid flag share one
// 64-bit word, which is written atomically, so no fence is needed. The reader polls until the flag
// is set and stores 0 for the next product.
//
//   lane 0   counts the tile for the row in which it begins (its *head*)
//   lane 1   counts the tile for the row in which it ends (its *tail*)
//   warp     adds up the partial sums of a row if it was the last to start
//
// Used by OnePassAgent (agent.cuh); tested in test.cu, "one pass: ... cut".
#pragma once

#include <cuda_runtime.h>

#include "tiles.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

// The sum over the lanes of a warp, in lane 0.
template <typename T>
__device__ __forceinline__ T sum_of_warp(T value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, distance);
  }
  return value;
}

// --- Partial sums as words with a valid flag ----------------------------------------------------

__device__ __forceinline__ void split_words(float value, unsigned (&bits)[1]) {
  bits[0] = __float_as_uint(value);
}
__device__ __forceinline__ void split_words(double value, unsigned (&bits)[2]) {
  bits[0] = static_cast<unsigned>(__double2loint(value));
  bits[1] = static_cast<unsigned>(__double2hiint(value));
}
__device__ __forceinline__ float join_words(const unsigned (&bits)[1]) {
  return __uint_as_float(bits[0]);
}
__device__ __forceinline__ double join_words(const unsigned (&bits)[2]) {
  return __hiloint2double(static_cast<int>(bits[1]), static_cast<int>(bits[0]));
}

template <typename T>
__device__ __forceinline__ void publish(PartialSum<T>& to, T value) {
  unsigned bits[sizeof(T) / 4];
  split_words(value, bits);
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    *const_cast<volatile unsigned long long*>(&to.word[i]) = 1ull << 32 | bits[i];
  }
}

// Reads it from memory, whatever has been read before.
template <typename T>
__device__ __forceinline__ void poll(PartialSum<T>& read, const PartialSum<T>& from) {
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    read.word[i] = *const_cast<const volatile unsigned long long*>(&from.word[i]);
  }
}

template <typename T>
__device__ __forceinline__ bool is_valid(const PartialSum<T>& read) {
  bool all = true;
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) all &= read.word[i] >> 32 == 1;
  return all;
}

template <typename T>
__device__ __forceinline__ T value_of(const PartialSum<T>& read) {
  unsigned bits[sizeof(T) / 4];
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    bits[i] = static_cast<unsigned>(read.word[i]);
  }
  return join_words(bits);
}

// --- Cut rows -----------------------------------------------------------------------------------

// The rows of a tile, from its Tile and the next one's.
struct TileRows {
  int first;      // the row in which it begins
  int end;        // rows before it end in this tile
  bool head_cut;  // `first` began in an earlier tile
  bool tail_cut;  // `end` has nonzeros in this tile, and in the next

  // Row `first` began earlier and goes on: the tile has nothing but a piece of it.
  __device__ __forceinline__ bool is_piece() const { return head_cut && first == end; }
};

// Where a tile begins and ends.
struct TileBorders {
  TileRows rows;
  int nnz_begin, nnz_end;
};

// Reads them, for a warp-uniform `tile`. Broadcasting makes values warp-uniform, so that the
// compiler emits no reconvergence code for branches that depend on them.
__device__ __forceinline__ TileBorders read_borders(const Tile* tiles, int tile) {
  const Tile border = tiles[tile + threadIdx.x % 2];  // its begin, and its end
  const int first = __shfl_sync(0xffffffffu, border.row, 0);
  const int end = __shfl_sync(0xffffffffu, border.row, 1);
  const int nnz_begin = __shfl_sync(0xffffffffu, border.nnz_begin, 0);
  const int nnz_end = __shfl_sync(0xffffffffu, border.nnz_begin, 1);
  return {TileRows{first & ~kCutRow, end & ~kCutRow, first < 0, end < 0}, nnz_begin, nnz_end};
}

// The tiles in which a cut row lies; `first` is also its element of `unstarted`.
struct TilesOfRow {
  int first = -1;  // there is none
  int last = -1;
};

// For lane 0 those of the tile's head, for lane 1 those of its tail, if they are cut. (A piece has
// a head only, so that it is counted once.)
__device__ __forceinline__ TilesOfRow tiles_of_cut_row(unsigned tile_items, const TileRows& rows,
                                                       const int* row_offsets) {
  const int lane = threadIdx.x % 32;
  int row = -1;
  if (lane == 0 && rows.head_cut) {
    row = rows.first;
  } else if (lane == 1 && rows.tail_cut && !rows.is_piece()) {
    row = rows.end;
  }
  if (row < 0) return {};
  return {tile_of(row_offsets[row], row, tile_items),
          tile_of(row_offsets[row + 1] - 1, row, tile_items)};
}

// Adds up the partial sums of one cut row, in tiles `first` to `last`, and hands the sum to
// store(sum); called by all lanes of the warp that started last, after it has published its own.
// Each lane polls up to 8 partial sums at a time, so that a row of 256 tiles costs one round trip
// to the L2 cache. With several vectors (1, 2, 4 or 8) a tile has a partial sum for each, side by
// side, every lane adds up those of vector lane % kVectors, and the first kVectors lanes store.
template <int kVectors, typename T, typename Store>
__device__ __forceinline__ void finish_cut_row(int first, int last, PartialSum<T>* partial_sums,
                                               unsigned* unstarted, const Store& store) {
  const int lane = threadIdx.x % 32;
  T total = 0;
  constexpr int kPolled = 8;             // per lane, at a time
  constexpr int kTiles = 32 / kVectors;  // that the lanes look at, at a time
  for (int s = first + lane / kVectors; s <= last; s += kTiles * kPolled) {
    // The row is the tail of its first tile and the head of the others.
    const auto partial_sum = [&](int j) -> PartialSum<T>& {
      const int tile = s + kTiles * j;
      return partial_sums[(2LL * tile + (tile == first)) * kVectors + lane % kVectors];
    };
    PartialSum<T> read[kPolled] = {};
    while (true) {
#pragma unroll
      for (int j = 0; j < kPolled; ++j) {
        if (s + kTiles * j <= last && !is_valid(read[j])) poll(read[j], partial_sum(j));
      }
      bool all = true;
#pragma unroll
      for (int j = 0; j < kPolled; ++j) all &= s + kTiles * j > last || is_valid(read[j]);
      if (all) break;
      __threadfence_block();  // polls again; cheaper than a sleep
    }
#pragma unroll
    for (int j = 0; j < kPolled; ++j) {
      if (s + kTiles * j > last) continue;
      total += value_of(read[j]);
      partial_sum(j) = PartialSum<T>{};  // for the next product
    }
  }
  for (int distance = 16; distance >= kVectors; distance /= 2) {
    total += __shfl_down_sync(0xffffffffu, total, distance);
  }
  if (lane < kVectors) store(total);
  if (lane == 0) unstarted[first] = last - first + 1;
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
