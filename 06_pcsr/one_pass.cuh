// Step 06, one pass: PCSR when the products never leave shared memory.
//
// PCSR reads values and columns fully coalesced, whatever the rows look like, and pays for it with
// an array of products that it writes and reads again. Here the products go to shared memory, 256
// at a time, and the sums are made from them at once: a nonzero costs 12 bytes in double precision
// instead of 28. A segmented scan makes the sums (step 05), so that long rows and short ones cost
// the same; what is open at the end of 256 products is carried into the next.
//
//   thread   owns every 32nd of 256 nonzeros while it multiplies, 8 neighbouring ones while it adds
//   warp     owns a share of the nonzeros and of the rows (one_pass_shares.cuh)
//   block    nothing but the shared memory of its warps: there is no barrier
//
// What to look at: while the sums of one step are made, the loads of the next are under way.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"
#include "one_pass_shares.cuh"

namespace spmv {

inline constexpr int kOnePassThreads = 128;
inline constexpr int kOnePassStep = 256;  // nonzeros a warp takes at a time

// 16 bytes, which a lane reads from shared memory at once.
template <typename T>
struct alignas(16) Pack {
  T value[16 / sizeof(T)];
};

// At most 64 registers a thread: 8 blocks a multiprocessor.
template <typename T>
__global__ void __launch_bounds__(kOnePassThreads, 8)
    pcsr_one_pass_kernel(int share_count, long long window, const Share* __restrict__ shares,
                         const int* __restrict__ row_offsets,
                         const int* __restrict__ column_indices, const T* __restrict__ values,
                         T alpha, const T* __restrict__ x, T beta, T* y, T* parts,
                         unsigned* arrivals) {
  constexpr unsigned kAll = 0xffffffffu;
  constexpr int kItems = kOnePassStep / 32;  // of a lane
  constexpr int kPack = 16 / sizeof(T);
  // Behind the 8 products of a lane lie 16 bytes of nothing: without them all lanes' products would
  // begin in the same few banks.
  constexpr int kStride = kItems + kPack;
  __shared__ __align__(16) T products_of_warps[kOnePassThreads / 32][32 * kStride];
  __shared__ unsigned row_ends_of_warps[kOnePassThreads / 32][kOnePassStep / 32];
  const int warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  T* products = products_of_warps[warp];
  unsigned* row_ends = row_ends_of_warps[warp];  // a bit for each product: the last of its row?

  const int s = blockIdx.x * (kOnePassThreads / 32) + warp;
  if (s >= share_count) return;
  const int first_row = shares[s].row & ~kCutRow;
  const int row_end = shares[s + 1].row & ~kCutRow;  // rows before it end in this share
  const int nnz_begin = shares[s].nnz_begin;
  const int nnz_end = shares[s + 1].nnz_begin;
  const int nnz = nnz_end - nnz_begin;

  // Steps are counted from nnz_begin. The first begins before it, with a whole sector.
  int step = (nnz_begin & ~7) - nnz_begin;
  int column[kItems];
  T value[kItems];
  const auto load = [&](int from) {
    const int* columns_here = column_indices + nnz_begin + from + lane;
    const T* values_here = values + nnz_begin + from + lane;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (static_cast<unsigned>(from + 32 * j + lane) >= static_cast<unsigned>(nnz)) continue;
      // Read once: the caches may forget them first, and keep x.
      column[j] = __ldcs(&columns_here[32 * j]);
      value[j] = __ldcs(&values_here[32 * j]);
    }
  };
  load(step);
  int row = first_row;
  int begin = 0, end = 0;  // of row + lane
  if (row + static_cast<int>(lane) < row_end) {
    begin = row_offsets[row + lane], end = row_offsets[row + lane + 1];
  }
  if (lane < kOnePassStep / 32) row_ends[lane] = 0;
  __syncwarp();

  T carry = 0;
  while (true) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const bool in_share =
          static_cast<unsigned>(step + 32 * j + lane) < static_cast<unsigned>(nnz);
      const unsigned i = 32 * j + lane;
      products[i + i / kItems * kPack] = in_share ? value[j] * x[column[j]] : T{0};
    }
    const int step_end = min(step + kOnePassStep, nnz);
    const bool last_step = step_end == nnz;
    if (!last_step) load(step_end);

    // Mark the last product of each row that ends in this step; row + lane is known already.
    const auto mark = [&](bool in_turn, int its_end) {
      const int last = its_end - nnz_begin - 1;
      const bool ends = in_turn && last < step_end;
      if (ends && last >= step) {
        const unsigned i = last - step;
        atomicOr(&row_ends[i / 32], 1u << i % 32);
      }
      return __popc(__ballot_sync(kAll, ends));
    };
    int rows_done = mark(row + static_cast<int>(lane) < row_end, end);
    for (int in_turn = rows_done; in_turn == 32; rows_done += in_turn) {
      const int r = row + rows_done + lane;
      in_turn = mark(r < row_end, r < row_end ? row_offsets[r + 1] : 0);
    }
    const int next_row = row + rows_done;
    int next_begin = 0, next_end = 0;
    if (next_row + static_cast<int>(lane) < row_end) {
      next_begin = row_offsets[next_row + lane], next_end = row_offsets[next_row + lane + 1];
    }
    __syncwarp();

    // Each lane adds up its 8 products; where a row ends, the sum takes the product's place.
    T* own = &products[lane * kStride];
    const unsigned own_ends = row_ends[lane * kItems / 32] >> (lane * kItems % 32) & 0xffu;
    T sum = lane == 0 ? carry : T{0};
#pragma unroll
    for (int j = 0; j < kItems / kPack; ++j) {
      const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(&own[j * kPack]);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        sum += pack.value[i];
        if (own_ends >> (j * kPack + i) & 1) {
          own[j * kPack + i] = sum;
          sum = 0;
        }
      }
    }
    // What is open at a lane's end belongs to the first row that ends in a lane after it.
    const unsigned lanes_with_end = __ballot_sync(kAll, own_ends != 0);
    const unsigned up_to_here = lanes_with_end & kAll >> (31 - lane);
    const int segment_begin = up_to_here ? 31 - __clz(up_to_here) : 0;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const T before = __shfl_up_sync(kAll, sum, distance);
      if (static_cast<int>(lane) - distance >= segment_begin) sum += before;
    }
    const T before = __shfl_up_sync(kAll, sum, 1);
    if (own_ends && lane > 0) own[__ffs(own_ends) - 1] += before;
    carry = __shfl_sync(kAll, sum, 31);
    __syncwarp();

    if (lane < kOnePassStep / 32) row_ends[lane] = 0;
    for (int q = lane; q < rows_done; q += 32) {
      if (q >= 32) begin = row_offsets[row + q], end = row_offsets[row + q + 1];
      const unsigned last = end - 1 - nnz_begin - step;
      const T total = begin < end ? products[last + last / kItems * kPack] : T{0};
      if (begin >= nnz_begin) {
        y[row + q] = scale(alpha, total, beta, &y[row + q]);
      } else {
        parts[2 * s] = total;
      }
    }
    if (last_step) break;
    row = next_row, begin = next_begin, end = next_end;
    step = step_end;
    __syncwarp();
  }

  // Rows that are cut: who comes last adds up the parts, in the order of the shares, so that the
  // bits are the same whoever it is.
  const bool head = shares[s].row < 0;      // first_row began in an earlier share
  const bool tail = shares[s + 1].row < 0;  // row_end goes on in the next
  const bool same_row = head && first_row == row_end;
  if (tail && lane == 0) parts[2 * s + !same_row] = carry;
  __syncwarp();
  for (int side = 0; side < 2; ++side) {
    if (side == 0 ? !head : !tail || same_row) continue;
    const int r = side == 0 ? first_row : row_end;
    const int first = share_of(row_offsets[r], r, window);
    const int last = share_of(row_offsets[r + 1] - 1, r, window);
    unsigned arrived = 0;
    if (lane == 0) {
      __threadfence();  // the part is there before its arrival is
      arrived = atomicAdd(&arrivals[first], 1u);
    }
    if (__shfl_sync(kAll, arrived, 0) != static_cast<unsigned>(last - first)) continue;
    __threadfence();
    T total = 0;
    for (int p = first + lane; p <= last; p += 32) total += __ldcg(&parts[2 * p + (p == first)]);
    for (int distance = 16; distance > 0; distance /= 2) {
      total += __shfl_down_sync(kAll, total, distance);
    }
    if (lane == 0) {
      y[r] = scale(alpha, total, beta, &y[r]);
      arrivals[first] = 0;  // for the next product
    }
  }
}

}  // namespace spmv
