// Step 06, one pass: the rows that lie in several shares.
//
// Each of these shares publishes its part of such a row's sum, and counts itself. Who counts last
// adds the parts up, in the order of the shares: whoever it is, the bits are the same.
//
// Nothing says in which order a part and a count become visible to others. The usual answer is a
// fence between the two; on a GPU it waits for all earlier stores of the warp, and what the reader
// needs as its counterpart empties the L1 cache of a whole multiprocessor, x and all. Here a part
// carries its own sign of arrival instead: 32 of its bits and a 1 are one word of 64 bits, which
// memory moves whole. The reader waits for the 1, which is under way already, and puts it back to 0
// for the next product.
//
//   lane 0   counts the share, as one of those with a part of the row in which it begins
//   lane 1   as one of those with a part of the row in which it ends
//   warp     adds up the parts of a row, if it came last
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#include "device/scale.cuh"
#include "one_pass_shares.cuh"

namespace spmv {

template <typename T>
__device__ __forceinline__ void publish(Part<T>& part, T value) {
  unsigned bits[sizeof(T) / 4];
  memcpy(bits, &value, sizeof(T));
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    *const_cast<volatile unsigned long long*>(&part.word[i]) = 1ull << 32 | bits[i];
  }
}

// The value of a part that was read before, perhaps before all of it had arrived.
template <typename T>
__device__ __forceinline__ T collect(Part<T>& part, Part<T> read) {
  unsigned bits[sizeof(T) / 4];
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    auto* word = const_cast<volatile unsigned long long*>(&part.word[i]);
    while (read.word[i] >> 32 == 0) read.word[i] = *word;
    *word = 0;
    bits[i] = static_cast<unsigned>(read.word[i]);
  }
  T value;
  memcpy(&value, bits, sizeof(T));
  return value;
}

// The sum over the lanes of a warp, for lane 0.
template <typename T>
__device__ __forceinline__ T sum_of_warp(T value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, distance);
  }
  return value;
}

// Called by the warp of share s when its parts are published: parts[2 s] of the row that began in
// an earlier share, parts[2 s + 1] of a row that begins here and goes on in the next. border_rows:
// Share::row of s and s + 1.
template <typename T>
__device__ void finish_cut_rows(unsigned window, const int border_rows[2], const int* row_offsets,
                                T alpha, T beta, T* y, Part<T>* parts, unsigned* arrivals) {
  const int lane = threadIdx.x % 32;
  const bool head = border_rows[0] < 0;
  const bool tail = border_rows[1] < 0;
  if (!head && !tail) return;
  const int first_row = border_rows[0] & ~kCutRow;
  const int row_end = border_rows[1] & ~kCutRow;
  const int own_row = lane == 0 ? first_row : row_end;
  int own_first = 0, own_last = 0;  // shares of own_row
  bool last = false;
  if ((lane == 0 && head) || (lane == 1 && tail && !(head && first_row == row_end))) {
    own_first = share_of(row_offsets[own_row], own_row, window);
    own_last = share_of(row_offsets[own_row + 1] - 1, own_row, window);
    last = atomicAdd(&arrivals[own_first], 1u) == static_cast<unsigned>(own_last - own_first);
  }
  const unsigned sides = __ballot_sync(0xffffffffu, last);
  for (int side = 0; side < 2; ++side) {
    if (!(sides >> side & 1)) continue;
    const int row = __shfl_sync(0xffffffffu, own_row, side);
    const int p_first = __shfl_sync(0xffffffffu, own_first, side);
    const int p_last = __shfl_sync(0xffffffffu, own_last, side);
    T total = 0;
    constexpr int kTogether = 4;  // asked for before the first is waited for
    for (int p = p_first + lane; p <= p_last; p += 32 * kTogether) {
      Part<T> read[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int its = min(p + 32 * j, p_last);
        for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
          read[j].word[i] = __ldcg(&parts[2LL * its + (its == p_first)].word[i]);
        }
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int its = p + 32 * j;
        if (its <= p_last) total += collect(parts[2LL * its + (its == p_first)], read[j]);
      }
    }
    total = sum_of_warp(total);
    if (lane == 0) {
      y[row] = scale(alpha, total, beta, &y[row]);
      arrivals[p_first] = 0;  // for the next product
    }
  }
}

}  // namespace spmv
