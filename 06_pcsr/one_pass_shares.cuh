// Step 06, one pass: who owns what.
//
// A warp of pcsr_one_pass_kernel owns a share of the matrix: neighbouring nonzeros, and the rows
// that they belong to. Nonzeros and rows both cost bytes (a nonzero its value and its column, a row
// its offset and its y), so shares are cut in the count of both, as merge-path does (Merrill and
// Garland 2016): row r begins at position row_offsets[r] + r, and share s takes the rows that begin
// in [s window, (s + 1) window).
//
// The last of these rows may reach past the window. If it does so by no more than `overhang`, the
// share takes it whole: a share more or less unequal is cheaper than two warps that must meet. A
// longer row is cut at the windows' borders, and the shares it lies in each make a part of its sum.
//
//   warp     owns one share: finds its first row, 32 candidates a step
#pragma once

#include <cuda_runtime.h>

namespace spmv {

// Where a share begins. It ends where the next one begins.
struct alignas(8) Share {
  int row;        // the first row of which it has nonzeros, or that begins in it
  int nnz_begin;  // the first nonzero
};
// Set in Share::row when that row began in an earlier share.
inline constexpr int kCutRow = static_cast<int>(0x80000000u);

// A share's part of the sum of a cut row, 32 bits and their sign of arrival a word
// (one_pass_cut_rows.cuh). Zeros: not there yet.
template <typename T>
struct alignas(2 * sizeof(T)) Part {
  unsigned long long word[sizeof(T) / 4];
};

// The share in which nonzero k of `row` lies, if the row is one that is cut.
__device__ __forceinline__ int share_of(int k, int row, unsigned window) {
  return static_cast<int>((static_cast<unsigned>(k) + row) / window);
}

// shares: share_count + 1; parts: two a share, set to 0; arrivals: one a share, set to the number
// of shares of the cut row that begins in it. A product leaves both as they were.
template <typename T>
__global__ void find_shares_kernel(int share_count, unsigned window, int overhang, int rows,
                                   int nnz, const int* row_offsets, Share* shares, Part<T>* parts,
                                   unsigned* arrivals) {
  const int s = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (s > share_count) return;

  // The first row that begins at or after the window's start, or `rows`: a search in which the
  // lanes ask for 32 rows at once and keep the stretch between two of them.
  const long long start = 1LL * s * window;
  int low = 0;
  int high = rows;
  while (low < high) {
    const int stretch = (high - low + 31) / 32;
    const long long row = low + static_cast<long long>(lane + 1) * stretch - 1;
    const bool before = row < high && row_offsets[row] + row < start;
    const int count = __popc(__ballot_sync(0xffffffffu, before));
    const long long first_not_before = low + static_cast<long long>(count + 1) * stretch - 1;
    low += count * stretch;
    if (first_not_before < high) high = static_cast<int>(first_not_before);
  }
  if (lane != 0) return;
  if (s == share_count) {
    shares[s] = Share{rows, nnz};
    return;
  }
  parts[2LL * s] = parts[2LL * s + 1] = Part<T>{};
  shares[s] = Share{low, row_offsets[low]};
  if (low == 0) return;

  // Is the row before cut, and are there nonzeros of it from `start` on?
  const int cut = low - 1;
  const long long end = static_cast<long long>(row_offsets[low]) + cut;
  const int first = share_of(row_offsets[cut], cut, window);
  if (end >= (first + 1LL) * window + overhang && end > start) {
    shares[s] = Share{cut | kCutRow, static_cast<int>(start - cut)};
    const int last = share_of(row_offsets[low] - 1, cut, window);
    if (s == last) arrivals[first] = last - first + 1;
  }
}

}  // namespace spmv
