// Step 06, one pass: the rows that lie in several shares.
//
// Each of these shares counts itself when it begins, and publishes its part of such a row's sum
// when it has it. Who counts last knows that all others have begun, so that none of them waits for
// a place on the device; it does its own part, waits for theirs, and adds them up in the order of
// the shares: whoever it is, the bits are the same. The count costs no time, since its answer is
// asked for at the end.
//
// Nothing says in which order two stores become visible to others. The usual answer is a fence
// between a part and a sign that it is there; on a GPU it waits for all earlier stores of the warp,
// and what the reader needs as its counterpart empties the L1 cache of a whole multiprocessor, x
// and all. Here a part carries its own sign of arrival: 32 of its bits and a 1 are one word of 64
// bits, which memory moves whole. The reader waits for the 1, and puts it back to 0 for the next
// product.
//
//   lane 0   counts the share, as one of those with a part of the row in which it begins
//   lane 1   as one of those with a part of the row in which it ends
//   warp     adds up the parts of a row, if it began last
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

// Reads of a part what was not there before.
template <typename T>
__device__ __forceinline__ void read_again(Part<T>& read, const Part<T>& part) {
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    read.word[i] = *const_cast<const volatile unsigned long long*>(&part.word[i]);
  }
}

template <typename T>
__device__ __forceinline__ bool has_arrived(const Part<T>& read) {
  bool all = true;
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) all &= read.word[i] >> 32 == 1;
  return all;
}

template <typename T>
__device__ __forceinline__ T value_of(const Part<T>& read) {
  unsigned bits[sizeof(T) / 4];
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
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

// For lanes 0 and 1, if they count the share: how many shares of their row had not begun yet, this
// one included; else 0. border_rows: Share::row of the share and of the next.
__device__ __forceinline__ unsigned count_share(unsigned window, const int border_rows[2],
                                                const int* row_offsets, unsigned* arrivals) {
  const int lane = threadIdx.x % 32;
  const bool head = border_rows[0] < 0;
  const bool tail = border_rows[1] < 0;
  const int first_row = border_rows[0] & ~kCutRow;
  const int row_end = border_rows[1] & ~kCutRow;
  int row = -1;
  if (lane == 0 && head) {
    row = first_row;
  } else if (lane == 1 && tail && !(head && first_row == row_end)) {
    row = row_end;
  }
  if (row < 0) return 0;
  return atomicSub(&arrivals[share_of(row_offsets[row], row, window)], 1u);
}

// Called by the warp of a share when its parts are published: parts[2 s] of the row that began in
// an earlier share, parts[2 s + 1] of a row that begins here and goes on in the next. began_last:
// has this lane counted the share as the last one of its row?
template <typename T>
__device__ void finish_cut_rows(bool began_last, unsigned window, const int border_rows[2],
                                const int* row_offsets, T alpha, T beta, T* y, Part<T>* parts,
                                unsigned* arrivals) {
  const int lane = threadIdx.x % 32;
  const unsigned sides = __ballot_sync(0xffffffffu, began_last);
  for (int side = 0; side < 2; ++side) {
    if (!(sides >> side & 1)) continue;
    const int row = border_rows[side] & ~kCutRow;
    const int first = share_of(row_offsets[row], row, window);
    const int last = share_of(row_offsets[row + 1] - 1, row, window);
    T total = 0;
    constexpr int kTogether = 8;  // waited for together
    for (int p = first + lane; p <= last; p += 32 * kTogether) {
      const auto part = [&](int j) -> Part<T>& {
        const int its_share = p + 32 * j;
        return parts[2LL * its_share + (its_share == first)];
      };
      Part<T> read[kTogether] = {};
      while (true) {
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          if (p + 32 * j <= last && !has_arrived(read[j])) read_again(read[j], part(j));
        }
        bool all = true;
#pragma unroll
        for (int j = 0; j < kTogether; ++j) all &= p + 32 * j > last || has_arrived(read[j]);
        if (all) break;
        __nanosleep(20);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        if (p + 32 * j > last) continue;
        total += value_of(read[j]);
        part(j) = Part<T>{};  // for the next product
      }
    }
    total = sum_of_warp(total);
    if (lane == 0) {
      y[row] = scale(alpha, total, beta, &y[row]);
      arrivals[first] = last - first + 1;
    }
  }
}

}  // namespace spmv
