// Step 07, for a GPU of today: sixteen counters instead of one, several rows per ticket.
//
// An H200 holds 8,448 warps, and one address of its memory executes about one atomic per
// nanosecond. In that time its memory delivers 4,000 bytes, thirty rows of ten nonzeros; an atomic
// of lightspmv.cuh hands out four rows, or one. So all warps wait for the counter. Here
//   - a ticket stands for a chunk of rows: one or several iterations of a warp;
//   - chunks after the warps' first ones go to the counters in turn: queues a sixteenth as long;
//   - each warp's first chunk is known without a fetch, and the next ticket is prefetched: fetched
//     before the work on the current chunk, which hides the latency of the atomic;
//   - the last fetch wraps the counter to 0, so that no product has to begin with a memset;
//   - x is read by plain loads: today they share one cache with textures.
// A row of more than longest_for_vector nonzeros is added up by the whole warp. The order within a
// row does not depend on which warp takes it: the bits are the same in every run.
//
//   thread   owns every lanes_per_row-th nonzero of a row, or every 32nd of a long one
//   warp     owns a chunk of rows_per_ticket rows at a time
//   grid     as many blocks as are resident at once, or fewer where these have no work
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

inline constexpr int kCountersThreads = 256;
inline constexpr unsigned kCounters = 16;
inline constexpr unsigned kCounterStride = 32;  // unsigneds: no two counters share a cache line

// The sum of one row over `lanes` neighbouring lanes, returned to all of them. All lanes of the
// warp must call it, each group of `lanes` with a row of its own.
template <unsigned lanes, typename T>
__device__ __forceinline__ T sum_of_row(unsigned row_begin, unsigned row_end,
                                        const int* __restrict__ column_indices,
                                        const T* __restrict__ values, const T* __restrict__ x) {
  T sum = 0;
  // exercise: begin
  unsigned k = row_begin + threadIdx.x % lanes;
  if (lanes == 32) {
    k -= row_begin % 32;
    if (k >= row_begin && k < row_end) sum += values[k] * x[column_indices[k]];
    k += 32;
  }
  for (; k < row_end; k += lanes) sum += values[k] * x[column_indices[k]];
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  // exercise: end
  return sum;
}

// Invariant: `counters` holds kCounters * kCounterStride zeros before and after the kernel.
template <unsigned lanes_per_row, typename T>
__global__ void __launch_bounds__(kCountersThreads)
    lightspmv_counters_kernel(unsigned rows, const int* __restrict__ row_offsets,
                              const int* __restrict__ column_indices, const T* __restrict__ values,
                              T alpha, const T* __restrict__ x, T beta, T* __restrict__ y,
                              unsigned rows_per_ticket, unsigned longest_for_vector,
                              unsigned* counters) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const unsigned warps = gridDim.x * (blockDim.x / 32);
  const unsigned chunks = rows / rows_per_ticket + (rows % rows_per_ticket != 0);

  // Chunks 0 to warps - 1 belong to the warps, the others to the counters round-robin. Every warp's
  // last fetch fails, so the number of tickets per counter is known, and atomicInc can wrap to 0
  // with the last of them: the counter is ready for the next product.
  const unsigned id = blockIdx.x % kCounters;
  const unsigned by_counters = chunks > warps ? chunks - warps : 0;
  const unsigned succeeding = (by_counters + kCounters - 1 - id) / kCounters;
  const unsigned failing = (gridDim.x + kCounters - 1 - id) / kCounters * (blockDim.x / 32);
  const unsigned last_ticket = succeeding + failing - 1;

  // exercise: begin
  unsigned chunk = warp;
  do {
    unsigned ticket = 0;
    if (lane == 0) ticket = atomicInc(&counters[id * kCounterStride], last_ticket);
    const unsigned end = min((chunk + 1) * rows_per_ticket, rows);
    for (unsigned first = chunk * rows_per_ticket; first < end; first += 32 / lanes_per_row) {
      const unsigned row = first + lane / lanes_per_row;
      const unsigned row_begin = row < end ? row_offsets[row] : 0;
      const unsigned row_end = row < end ? row_offsets[row + 1] : 0;
      const bool is_long = lanes_per_row < 32 && row_end - row_begin > longest_for_vector;
      T sum = sum_of_row<lanes_per_row>(row_begin, is_long ? row_begin : row_end, column_indices,
                                        values, x);
      // The long rows of this iteration, one after the other.
      unsigned waiting = __ballot_sync(0xffffffffu, is_long && lane % lanes_per_row == 0);
      for (; waiting != 0; waiting &= waiting - 1) {
        const unsigned owner = __ffs(waiting) - 1;
        const T whole =
            sum_of_row<32>(__shfl_sync(0xffffffffu, row_begin, owner),
                           __shfl_sync(0xffffffffu, row_end, owner), column_indices, values, x);
        if (lane == owner) sum = whole;
      }
      if (lane % lanes_per_row == 0 && row < end) y[row] = scale(alpha, sum, beta, &y[row]);
    }
    chunk = warps + __shfl_sync(0xffffffffu, ticket, 0) * kCounters + id;
  } while (chunk < chunks);
  // exercise: end
}

}  // namespace spmv
