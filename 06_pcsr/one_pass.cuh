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
#include "one_pass_cut_rows.cuh"
#include "one_pass_shares.cuh"

namespace spmv {

inline constexpr int kOnePassThreads = 384;      // of a block, at most
inline constexpr int kOnePassBlocks = 2;         // of a multiprocessor
inline constexpr int kOnePassStep = 256;         // nonzeros a warp takes at a time
inline constexpr int kOnePassOverhang = 512;     // two steps
inline constexpr int kOnePassWindow = 32768;     // of a share, at most,
inline constexpr int kOnePassWindowFarX = 8192;  // and where x does not fit in the L2 cache

// 16 bytes, which a lane reads from shared memory at once.
template <typename T>
struct alignas(16) Pack {
  T value[16 / sizeof(T)];
};

// What a warp has in shared memory.
template <typename T>
struct OnePassShared {
  static constexpr int kItems = kOnePassStep / 32;  // of a lane
  static constexpr int kPack = 16 / sizeof(T);
  // Behind the products of a lane lie 16 bytes of nothing: without them all lanes' products would
  // begin in the same few banks.
  static constexpr int kStride = kItems + kPack;
  alignas(16) T products[32 * kStride];
  unsigned row_ends[kItems];  // a bit for each product: the last of its row?
};

// Blocks of any number of warps up to kOnePassThreads / 32, with an OnePassShared for each in
// dynamic shared memory.
template <typename T>
__global__ void __launch_bounds__(kOnePassThreads, kOnePassBlocks)
    pcsr_one_pass_kernel(int share_count, unsigned window, const Share* __restrict__ shares,
                         const int* __restrict__ row_offsets,
                         const int* __restrict__ column_indices, const T* __restrict__ values,
                         T alpha, const T* __restrict__ x, T beta, T* y, Part<T>* parts,
                         unsigned* arrivals) {
  constexpr unsigned kAll = 0xffffffffu;
  constexpr int kItems = OnePassShared<T>::kItems;
  constexpr int kPack = OnePassShared<T>::kPack;
  constexpr int kStride = OnePassShared<T>::kStride;
  extern __shared__ __align__(16) unsigned char one_pass_shared[];
  const int lane = threadIdx.x % 32;
  // All lanes have the same number, and by the shuffle the compiler knows: where a condition
  // depends on what all lanes have from one lane, they branch together, and nothing need be done to
  // meet again.
  const int warp = __shfl_sync(kAll, threadIdx.x / 32, 0);
  OnePassShared<T>& own_shared = reinterpret_cast<OnePassShared<T>*>(one_pass_shared)[warp];
  T* products = own_shared.products;
  unsigned* row_ends = own_shared.row_ends;

  const int s = blockIdx.x * (blockDim.x / 32) + warp;
  if (s >= share_count) return;
  const Share border = shares[s + lane % 2];  // its begin, and its end
  const int border_rows[2] = {__shfl_sync(kAll, border.row, 0), __shfl_sync(kAll, border.row, 1)};
  const int nnz_begin = __shfl_sync(kAll, border.nnz_begin, 0);
  const int nnz_end = __shfl_sync(kAll, border.nnz_begin, 1);
  const int first_row = border_rows[0] & ~kCutRow;
  const int row_end = border_rows[1] & ~kCutRow;  // rows before it end in this share
  if (nnz_begin == nnz_end) {                     // none of them has nonzeros
    for (int r = first_row + lane; r < row_end; r += 32) y[r] = scale(alpha, T{0}, beta, &y[r]);
    return;
  }

  int step = nnz_begin & ~7;  // with a whole sector
  int column[kItems];
  T value[kItems];
  const auto load = [&](int from) {
    // Read once (__ldcs): the caches may forget them first, and keep x.
    if (nnz_end - from >= kOnePassStep) {
      const int* own_columns = column_indices + from + lane;
      const T* own_values = values + from + lane;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        column[j] = __ldcs(&own_columns[32 * j]);
        value[j] = __ldcs(&own_values[32 * j]);
      }
    } else {  // past the share's last nonzero: that one again
      const int last = nnz_end - 1 - from;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int k = from + min(lane + 32 * j, last);
        column[j] = __ldcs(&column_indices[k]);
        value[j] = __ldcs(&values[k]);
      }
    }
  };
  // Where row r ends; a place never reached for rows that do not end in this share.
  const auto end_of = [&](int r) { return r < row_end ? row_offsets[r + 1] : 0x7fffffff; };
  load(step);
  int row = first_row;
  int begin = row_offsets[row];
  int end[2] = {end_of(row + lane), end_of(row + 32 + lane)};  // two of the next 64 rows
  if (lane < kItems) row_ends[lane] = 0;
  const unsigned shares_to_begin = count_share(window, border_rows, row_offsets, arrivals);
  __syncwarp();

  // exercise: begin
  T open = 0;           // all lanes together: the sum so far of the row that ends next
  bool spread = false;  // over more lanes than the first
  while (true) {
    T product[kItems];
#pragma unroll
    for (int j = 0; j < kItems; ++j) product[j] = value[j] * x[column[j]];
    if (step + lane < nnz_begin) product[0] = 0;
    const int left = nnz_end - step;
    if (left < kOnePassStep) {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        if (lane + 32 * j >= left) product[j] = 0;
      }
    }
    const bool last_step = left <= kOnePassStep;
    const int step_end = last_step ? nnz_end : step + kOnePassStep;
    const bool row_ends_here = __shfl_sync(kAll, end[0], 0) <= step_end;
    if (row_ends_here) {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        products[lane + lane / kItems * kPack + j * (32 + 32 / kItems * kPack)] = product[j];
      }
    } else {
#pragma unroll
      for (int j = 0; j < kItems; ++j) open += product[j];
    }
    if (!last_step) load(step_end);
    if (!row_ends_here) {
      if (last_step) break;
      spread = true;
      step = step_end;
      continue;
    }

    // Mark the last product of each row that ends in this step.
    const auto mark = [&](int its_end) {
      const bool ends = its_end <= step_end;
      if (ends && its_end > step) {
        const unsigned i = its_end - 1 - step;
        atomicOr(&row_ends[i / 32], 1u << i % 32);
      }
      return __popc(__ballot_sync(kAll, ends));
    };
    int rows_done = mark(end[0]);
    if (rows_done == 32) rows_done += mark(end[1]);
    for (int in_turn = rows_done; in_turn == 64; rows_done += in_turn) {
      const int r = row + rows_done + lane;
      const int its_end[2] = {end_of(r), end_of(r + 32)};
      in_turn = mark(its_end[0]) + mark(its_end[1]);
    }
    const int next_row = row + rows_done;
    const int next_begin = row_offsets[next_row];
    const int next_end[2] = {end_of(next_row + lane), end_of(next_row + 32 + lane)};
    if (spread) open = sum_of_warp(open);
    __syncwarp();

    // Each lane adds up its products; where a row ends, the sum takes the product's place.
    T* own = &products[lane * kStride];
    const unsigned own_ends =
        row_ends[lane * kItems / 32] >> (lane * kItems % 32) & ((1u << kItems) - 1);
    T sum = lane == 0 ? open : T{0};
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
      if (lane - distance >= segment_begin) sum += before;
    }
    const T before = __shfl_up_sync(kAll, sum, 1);
    if (own_ends && lane > 0) own[__ffs(own_ends) - 1] += before;
    open = __shfl_sync(kAll, sum, 31);
    if (lane > 0) open = 0;
    spread = false;
    __syncwarp();

    if (lane < kItems) row_ends[lane] = 0;
    const auto write = [&](int q, int its_begin, int its_end) {
      if (q >= rows_done) return;
      const unsigned i = its_end - 1 - step;
      const T total = its_begin < its_end ? products[i + i / kItems * kPack] : T{0};
      if (its_begin >= nnz_begin) {
        y[row + q] = scale(alpha, total, beta, &y[row + q]);
      } else {
        publish(parts[2LL * s], total);
      }
    };
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      if (32 * b >= rows_done) break;
      const int end_before = __shfl_up_sync(kAll, end[b], 1);
      write(32 * b + lane, lane > 0 ? end_before : begin, end[b]);
      begin = __shfl_sync(kAll, end[b], 31);
    }
#pragma unroll 1
    for (int q = 64 + lane; q < rows_done; q += 32) {
      write(q, row_offsets[row + q], row_offsets[row + q + 1]);
    }
    if (last_step) break;
    row = next_row, begin = next_begin, end[0] = next_end[0], end[1] = next_end[1];
    step = step_end;
    __syncwarp();
  }

  // The rows that other shares have a part of.
  const bool same_row = border_rows[0] < 0 && first_row == row_end;
  if (border_rows[1] < 0) {
    open = sum_of_warp(open);
    if (lane == 0) publish(parts[2LL * s + !same_row], open);
  }
  const bool began_last = shares_to_begin == 1;
  if (__any_sync(kAll, began_last)) {
    finish_cut_rows(began_last, window, border_rows, row_offsets, alpha, beta, y, parts, arrivals);
  }
  // exercise: end
}

}  // namespace spmv
