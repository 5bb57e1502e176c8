// Step 08, for the conversions: an exclusive scan, from counts to where each row begins.
//
// In tiles: each block adds up a tile, the sums of the tiles are scanned (exclusive_scan() in
// convert.hpp is recursive), and each block scans its tile from there.
//
//   thread   owns kScanItems neighbouring elements
//   block    owns a tile of kScanTile
#pragma once

#include <cuda_runtime.h>

namespace spmv {

inline constexpr int kScanThreads = 128;
inline constexpr int kScanItems = 8;
inline constexpr int kScanTile = kScanThreads * kScanItems;

// The sum of `value` over the threads of the block before this one; *total is that of all of them.
template <typename Sum>
__device__ __forceinline__ Sum sum_before(Sum value, Sum* warp_sums, Sum* total) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  Sum up_to_here = value;
  for (int distance = 1; distance < 32; distance *= 2) {
    const Sum below = __shfl_up_sync(0xffffffffu, up_to_here, distance);
    if (lane >= distance) up_to_here += below;
  }
  if (lane == 31) warp_sums[warp] = up_to_here;
  __syncthreads();
  Sum before = up_to_here - value;
  *total = 0;
  for (int w = 0; w < kScanThreads / 32; ++w) {
    if (w < warp) before += warp_sums[w];
    *total += warp_sums[w];
  }
  return before;
}

template <typename Count, typename Sum>
__global__ void tile_sums_kernel(long long count, const Count* counts, Sum* tile_sums) {
  __shared__ Sum warp_sums[kScanThreads / 32];
  const long long begin = 1LL * blockIdx.x * kScanTile + threadIdx.x;
  Sum sum = 0;
  for (int i = 0; i < kScanItems; ++i) {
    const long long k = begin + i * kScanThreads;
    if (k < count) sum += static_cast<Sum>(counts[k]);
  }
  Sum total;
  sum_before(sum, warp_sums, &total);
  if (threadIdx.x == 0) tile_sums[blockIdx.x] = total;
}

// begins[k] = the sum of the counts before k, for k from 0 to count. tile_begins is null if there
// is one tile; `begins` may be `counts`, if it has a place more.
template <typename Count, typename Sum>
__global__ void scan_tiles_kernel(long long count, const Count* counts, const Sum* tile_begins,
                                  Sum* begins) {
  __shared__ Sum warp_sums[kScanThreads / 32];
  const long long begin = 1LL * blockIdx.x * kScanTile + threadIdx.x * kScanItems;
  Sum own[kScanItems];
  Sum sum = 0;
  for (int i = 0; i < kScanItems; ++i) {
    own[i] = begin + i < count ? static_cast<Sum>(counts[begin + i]) : Sum{0};
    sum += own[i];
  }
  Sum total;
  Sum before = sum_before(sum, warp_sums, &total);
  if (tile_begins) before += tile_begins[blockIdx.x];
  for (int i = 0; i < kScanItems; ++i) {
    if (begin + i <= count) begins[begin + i] = before;
    before += own[i];
  }
}

}  // namespace spmv
