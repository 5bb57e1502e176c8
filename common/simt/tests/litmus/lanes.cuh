// Which lanes of a warp are where, and which threads come to a barrier.
#pragma once

#include <cooperative_groups.h>

#include "litmus.hpp"

namespace litmus {

namespace cg = cooperative_groups;

// Row r has r % 71 nonzeros of the values 1, 2, 3 ... A team of kLanes adds them.
struct Rows {
  std::vector<int> offsets{0}, values, sums;
  Rows() {
    for (int row = 0; row < 142; ++row) {
      const int length = row % 71;
      for (int k = 1; k <= length; ++k) values.push_back(k);
      offsets.push_back(static_cast<int>(values.size()));
      sums.push_back(length * (length + 1) / 2);
    }
  }
};
template <typename Kernel>
int wrong_rows(Kernel* kernel, int lanes) {
  const Rows rows;
  const Buffer<int> offsets("offsets", rows.offsets), values("values", rows.values);
  Buffer<int> sums("sums", std::vector<int>(rows.sums.size()));
  const int count = static_cast<int>(rows.sums.size());
  launch(kernel, {dim3((count * lanes + 127) / 128), 128}, count, offsets.data(), values.data(),
         sums.data());
  return differences(sums.download(), rows.sums);
}

// The last iteration of each lane adds what the team has; but lanes come to it in different ones.
template <int kLanes, bool kGroup = false>
__global__ void last_iteration_kernel(int rows, const int* offsets, const int* values, int* sums) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / kLanes, lane = thread % kLanes;
  if (row >= rows) return;
  const int end = offsets[row + 1];
  int sum = 0;
  for (int k = offsets[row] + lane; k < end; k += kLanes) {
    sum += values[k];
    if (k + kLanes < end) continue;
    if constexpr (kGroup) {
      const auto here = cg::coalesced_threads();
      for (int d = kLanes / 2; d > 0; d /= 2) sum += here.shfl_down(sum, d);
    } else {
      for (int d = kLanes / 2; d > 0; d /= 2) {
        sum += __shfl_down_sync(__activemask(), sum, d, kLanes);
      }
    }
  }
  if (lane == 0) sums[row] = sum;
}
LITMUS_IS(mask, activemask_last_iteration_2, wrong_rows(last_iteration_kernel<2>, 2))
LITMUS_IS(mask, activemask_last_iteration_8, wrong_rows(last_iteration_kernel<8>, 8))
LITMUS_IS(mask, activemask_last_iteration_32, wrong_rows(last_iteration_kernel<32>, 32))
LITMUS_IS(shows, coalesced_last_iteration_2, wrong_rows(last_iteration_kernel<2, true>, 2))
LITMUS_IS(shows, coalesced_last_iteration_8, wrong_rows(last_iteration_kernel<8, true>, 8))
LITMUS_IS(shows, coalesced_last_iteration_32, wrong_rows(last_iteration_kernel<32, true>, 32))

// The same with a break in place of a condition, and the mask taken once.
template <int kLanes>
__global__ void break_kernel(int rows, const int* offsets, const int* values, int* sums) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / kLanes, lane = thread % kLanes;
  if (row >= rows) return;
  int sum = 0;
  for (int k = offsets[row] + lane;; k += kLanes) {
    if (k >= offsets[row + 1]) {
      const unsigned mask = __activemask();
      for (int d = kLanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(mask, sum, d, kLanes);
      break;
    }
    sum += values[k];
  }
  if (lane == 0) sums[row] = sum;
}
LITMUS_IS(mask, activemask_break_2, wrong_rows(break_kernel<2>, 2))
LITMUS_IS(mask, activemask_break_8, wrong_rows(break_kernel<8>, 8))
LITMUS_IS(mask, activemask_break_32, wrong_rows(break_kernel<32>, 32))

// The mask of the lanes that are here after the loop, which need not be all. Right: of the team's
// lanes, which are known, and meet there.
template <int kLanes, bool kKnown = false>
__global__ void after_loop_kernel(int rows, const int* offsets, const int* values, int* sums) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / kLanes, lane = thread % kLanes;
  if (row >= rows) return;
  int sum = 0;
  for (int k = offsets[row] + lane; k < offsets[row + 1]; k += kLanes) sum += values[k];
  const unsigned team =
      kLanes == 32 ? ~0u : ((1u << kLanes % 32) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
  const unsigned mask = kKnown ? team : __activemask();
  for (int d = kLanes / 2; d > 0; d /= 2) sum += __shfl_down_sync(mask, sum, d, kLanes);
  if (lane == 0) sums[row] = sum;
}
LITMUS_IS(mask, activemask_after_loop_2, wrong_rows(after_loop_kernel<2>, 2))
LITMUS_IS(mask, activemask_after_loop_8, wrong_rows(after_loop_kernel<8>, 8))
LITMUS_IS(mask, activemask_after_loop_32, wrong_rows(after_loop_kernel<32>, 32))
LITMUS_IS(right, team_mask_8, wrong_rows(after_loop_kernel<8, true>, 8))
LITMUS_IS(right, team_mask_32, wrong_rows(after_loop_kernel<32, true>, 32))

// A warp takes the rows of its teams in a loop, and teams leave the inner one at different times.
template <int kLanes>
__global__ void row_loop_kernel(int rows, const int* offsets, const int* values, int* sums) {
  const int team = (blockIdx.x * blockDim.x + threadIdx.x) / kLanes, lane = threadIdx.x % kLanes;
  const unsigned team_mask = ((1u << kLanes) - 1) << (threadIdx.x % 32 - lane);
  for (int row = team; row < rows / 4 * 4; row += rows / 4) {
    if (team >= rows / 4) break;
    int sum = 0;
    for (int k = offsets[row] + lane; k < offsets[row + 1]; k += kLanes) sum += values[k];
    sum =
        static_cast<int>(__reduce_add_sync(__activemask() & team_mask, static_cast<unsigned>(sum)));
    if (lane == 0) sums[row] = sum;
  }
  if (lane == 0 && team < rows % 4) {
    const int row = rows / 4 * 4 + team;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) sums[row] += values[k];
  }
}
LITMUS_IS(shows, activemask_reduce_in_row_loop_8, wrong_rows(row_loop_kernel<8>, 8))

// Right: whoever is here shares one atomic; who that is does not matter.
__global__ void aggregate_kernel(int* counter, int* places) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread % 3 == 0) {
    const unsigned mask = __activemask();
    const int lane = threadIdx.x % 32, leader = __ffs(mask) - 1;
    int base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    places[base + __popc(mask & ((1u << lane) - 1))] = 1;
  }
}
__global__ void aggregate_coalesced_kernel(int* counter, int* places) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < thread % 5; ++i) {
    const auto here = cg::coalesced_threads();
    int base = 0;
    if (here.thread_rank() == 0) base = atomicAdd(counter, static_cast<int>(here.size()));
    places[here.shfl(base, 0) + static_cast<int>(here.thread_rank())] = 1;
  }
}
LITMUS(right, activemask_aggregates_atomics) {
  Buffer<int> counter("counter", zeros(1)), places("places", zeros(86));
  launch(aggregate_kernel, {2, 128}, counter.data(), places.data());
  return differences(places.download(), 1) + differences(counter.download(), 86);
}
LITMUS(right, coalesced_aggregates_atomics) {
  Buffer<int> counter("counter", zeros(1)), places("places", zeros(510));
  launch(aggregate_coalesced_kernel, {2, 128}, counter.data(), places.data());
  return differences(places.download(), 1) + differences(counter.download(), 510);
}

// After a branch, the lanes need not have met again.
__global__ void after_branch_kernel(const int* in, int* out) {
  const int lane = threadIdx.x;
  int value = in[lane];
  if (value & 1) {
    for (int i = 0; i < value; ++i) value = value * 5 % 1009;
  } else {
    value = atomicAdd(&out[64 + lane], value) + 1;
  }
  out[lane] = static_cast<int>(__activemask());
  out[32 + lane] = value;
}
LITMUS(shows, activemask_full_after_branch) {
  std::vector<int> host;
  for (int lane = 0; lane < 32; ++lane) host.push_back(lane * 7);
  const Buffer<int> in("in", host);
  Buffer<int> out("out", zeros(96));
  launch(after_branch_kernel, {1, 32}, in.data(), out.data());
  std::vector<int> masks = out.download();
  masks.resize(32);
  return differences(masks, -1);
}

// --- Warp operations in branches ----------------------------------------------------------------

constexpr int kThreads = 128;
inline std::vector<int> ones() {
  return std::vector<int>(kThreads, 1);
}
template <typename Kernel>
int wrong_sum(Kernel* kernel) {  // of ones, by warp
  const Buffer<int> in("in", ones());
  return wrong_results(kThreads / 32, 32, kernel, {1, kThreads}, in.data());
}

__global__ void syncwarp_in_branch_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  const int lane = threadIdx.x % 32;
  int* const warp = sums + threadIdx.x - lane;
  warp[lane] = in[threadIdx.x];
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    if (lane < d) {
      warp[lane] += warp[lane + d];
      __syncwarp();
    }
  }
  if (lane == 0) out[threadIdx.x / 32] = warp[0];
}
LITMUS_IS(not_found, syncwarp_in_branch, wrong_sum(syncwarp_in_branch_kernel))

// The mask of a tree's level names lanes that are not in the branch.
__global__ void shuffle_in_branch_kernel(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  int sum = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) {
    if (lane < d) sum += __shfl_down_sync(~0u, sum, d);
  }
  if (lane == 0) out[threadIdx.x / 32] = sum;
}
LITMUS_IS(undefined, shuffle_in_branch, wrong_sum(shuffle_in_branch_kernel))

__global__ void ballot_in_branch_kernel(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  if (lane < 16) {
    const unsigned ballot = __ballot_sync(~0u, in[threadIdx.x] == 1);
    if (lane == 0) out[threadIdx.x / 32] = __popc(ballot);
  }
}
LITMUS_IS(shows, ballot_in_branch_others_return, wrong_sum(ballot_in_branch_kernel))

// The same mask at two calls, in the two branches: each lane counts all, if the calls meet.
__global__ void ballots_in_both_branches_kernel(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  if (lane < 16) {
    const int count = __popc(__ballot_sync(~0u, in[threadIdx.x] == 1));
    if (lane == 0) out[threadIdx.x / 32] = count;
  } else {
    const int count = __popc(__ballot_sync(~0u, in[threadIdx.x] < 2));
    if (lane == 31 && count != 32) out[threadIdx.x / 32] = -count;
  }
}
LITMUS_IS(not_found, ballots_in_both_branches, wrong_sum(ballots_in_both_branches_kernel))
__global__ void shuffles_in_both_branches_kernel(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  int value = in[threadIdx.x] + lane;
  if (lane < 16) {
    value = __shfl_sync(~0u, value, 31);
    if (lane == 0) out[threadIdx.x / 32] = value;
  } else {
    value = __shfl_sync(~0u, value * 1, lane - 16) + value;
    if (lane == 31 && value != 16 + 32) out[threadIdx.x / 32] = -value;
  }
}
LITMUS_IS(not_found, shuffles_in_both_branches, wrong_sum(shuffles_in_both_branches_kernel))
__global__ void syncwarps_in_both_branches_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  const int lane = threadIdx.x % 32;
  int* const warp = sums + threadIdx.x - lane;
  if (lane < 16) {
    warp[lane] = in[threadIdx.x];
    __syncwarp();
    if (lane == 0) {
      int sum = 0;
      for (int i = 0; i < 32; ++i) sum += warp[i];
      out[threadIdx.x / 32] = sum;
    }
  } else {
    for (int i = 0; i < 50; ++i) warp[lane] = in[threadIdx.x];
    __syncwarp();
  }
}
LITMUS_IS(right, syncwarps_in_both_branches, wrong_sum(syncwarps_in_both_branches_kernel))

// The mask of all, in a lane's last iteration, to which lanes come in different ones.
template <int kLanes>
__global__ void full_mask_last_iteration_kernel(int rows, const int* offsets, const int* values,
                                                int* sums) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread / kLanes, lane = thread % kLanes;
  if (row >= rows) return;
  const int end = offsets[row + 1], begin = offsets[row];
  if (end - begin < kLanes) {
    if (lane == 0) {
      for (int k = begin; k < end; ++k) sums[row] += values[k];
    }
    return;
  }
  int sum = 0;
  for (int k = begin + lane; k < end; k += kLanes) {
    sum += values[k];
    if (k + kLanes >= end) {
      for (int d = kLanes / 2; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d, kLanes);
    }
  }
  if (lane == 0) sums[row] = sum;
}
LITMUS_IS(not_found, full_mask_in_last_iteration_32,
          wrong_rows(full_mask_last_iteration_kernel<32>, 32))

// Lanes that returned before named by a mask, and read from.
__global__ void shuffle_after_return_kernel(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  if (lane >= 24) return;
  int sum = in[threadIdx.x] + (lane < 8 ? in[threadIdx.x] : 0);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (lane == 0) out[threadIdx.x / 32] = sum;
}
LITMUS_IS(undefined, shuffle_from_returned, wrong_sum(shuffle_after_return_kernel))

// A mask that was right in the first iteration names lanes that have left the loop since: they have
// returned, or wait elsewhere.
template <bool kReturn>
__global__ void old_mask_kernel(int* out) {
  const int lane = threadIdx.x % 32;
  const unsigned mask = __ballot_sync(~0u, lane < 24);
  unsigned sum = 8;
  if (lane < 24) {
    for (int k = lane; k < 40; k += 24) sum = 8 + __reduce_add_sync(mask, 1u);
  }
  if (!kReturn) __syncwarp();
  if (lane == 0) out[threadIdx.x / 32] = static_cast<int>(sum);
}
LITMUS_IS(deadlock, mask_names_lanes_that_left_the_loop,
          wrong_results(kThreads / 32, 8 + 16, old_mask_kernel<false>, {1, kThreads}))
LITMUS_IS(not_found, mask_names_lanes_that_left_and_returned,
          wrong_results(kThreads / 32, 8 + 16, old_mask_kernel<true>, {1, kThreads}))

// A group of those that were together is used where only some of them come.
__global__ void group_in_branch_kernel(const int* in, int* out) {
  const auto here = cg::coalesced_threads();
  int sum = in[threadIdx.x];
  for (unsigned d = 16; d > 0; d /= 2) {
    if (here.thread_rank() < d) sum += here.shfl_down(sum, d);
  }
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
}
LITMUS_IS(undefined, coalesced_group_in_branch, wrong_sum(group_in_branch_kernel))
__global__ void tile_sync_in_branch_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int lane = static_cast<int>(tile.thread_rank());
  int* const warp = sums + threadIdx.x - lane;
  warp[lane] = in[threadIdx.x];
  tile.sync();
  for (int d = 16; d > 0; d /= 2) {
    if (lane < d) {
      warp[lane] += warp[lane + d];
      tile.sync();
    }
  }
  if (lane == 0) out[threadIdx.x / 32] = warp[0];
}
LITMUS_IS(not_found, tile_sync_in_branch, wrong_sum(tile_sync_in_branch_kernel))

// Right since Volta: a lane waits for another of its warp.
__global__ void lane_waits_kernel(int* flags, int* out) {
  const int lane = threadIdx.x % 32;
  int* const flag = flags + threadIdx.x / 32;
  if (lane == 0) {
    while (atomicAdd(flag, 0) != 31) {
    }
    out[threadIdx.x / 32] = 32;
  } else {
    atomicAdd(flag, 1);
  }
}
LITMUS(right, lane_waits_for_lanes_of_its_warp) {
  Buffer<int> flags("flags", zeros(kThreads / 32));
  return wrong_results(kThreads / 32, 32, lane_waits_kernel, {1, kThreads}, flags.data());
}

// Right: the mask of the lanes that take part is known, by a ballot of all.
__global__ void ballot_mask_kernel(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  int sum = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) {
    const unsigned mask = __ballot_sync(~0u, lane < 2 * d);
    if (lane < 2 * d) sum += __shfl_down_sync(mask, sum, d, 2 * d);
  }
  if (lane == 0) out[threadIdx.x / 32] = sum;
}
LITMUS_IS(right, ballot_gives_the_mask, wrong_sum(ballot_mask_kernel))

// --- Lanes in an assumed order ------------------------------------------------------------------

template <bool kSync>
__global__ void volatile_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  const int lane = threadIdx.x % 32;
  volatile int* const warp = sums + threadIdx.x - lane;
  warp[lane] = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) {
    if (kSync) __syncwarp();
    const int other = lane < d ? warp[lane + d] : 0;
    if (kSync) __syncwarp();
    if (lane < d) warp[lane] = warp[lane] + other;
  }
  if (lane == 0) out[threadIdx.x / 32] = warp[0];
}
LITMUS_IS(reported("that was not written"), volatile_without_syncwarp,
          wrong_sum(volatile_kernel<false>))
LITMUS_IS(right, volatile_with_syncwarp, wrong_sum(volatile_kernel<true>))

// The textbook's tree: `if (lane < d)` around update and all.
__global__ void volatile_tree_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  const int lane = threadIdx.x % 32;
  volatile int* const warp = sums + threadIdx.x - lane;
  warp[lane] = in[threadIdx.x];
  if (lane < 16) {
    warp[lane] = warp[lane] + warp[lane + 16];
    warp[lane] = warp[lane] + warp[lane + 8];
    warp[lane] = warp[lane] + warp[lane + 4];
    warp[lane] = warp[lane] + warp[lane + 2];
    warp[lane] = warp[lane] + warp[lane + 1];
  }
  if (lane == 0) out[threadIdx.x / 32] = warp[0];
}
LITMUS_IS(reported("that was not written"), volatile_tree_of_kepler,
          wrong_sum(volatile_tree_kernel))

// Each lane reads what the previous has written, in program order of the lanes' numbers.
__global__ void lane_order_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  const int lane = threadIdx.x % 32;
  volatile int* const warp = sums + threadIdx.x - lane;
  warp[lane] = in[threadIdx.x];
  __syncwarp();
  for (int i = 1; i < 32; ++i) {
    if (lane == i) warp[i] = warp[i] + warp[i - 1];
  }
  if (lane == 31) out[threadIdx.x / 32] = warp[31];
}
LITMUS_IS(in_reverse, lanes_in_order, wrong_sum(lane_order_kernel))

// --- Barriers -----------------------------------------------------------------------------------

template <bool kReturn>
__global__ void barrier_in_if_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 64) {
    sums[threadIdx.x] += sums[threadIdx.x + 64];
    __syncthreads();  // the other half has returned, or is past it
    if (threadIdx.x < 4) {
      int sum = 0;
      for (int i = threadIdx.x; i < 64; i += 4) sum += sums[i];
      out[threadIdx.x] = sum;
    }
  }
  if (kReturn) return;
  __syncthreads();
  if (threadIdx.x == 127 && sums[64] != 1) out[0] = -1;
}
LITMUS_IS(not_found, barrier_in_if_others_return, wrong_sum(barrier_in_if_kernel<true>))
LITMUS_IS(barrier, barrier_in_if_others_at_next, wrong_sum(barrier_in_if_kernel<false>))

__global__ void barriers_in_both_branches_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 64) {
    __syncthreads();
    if (threadIdx.x < 4) {
      int sum = 0;
      for (int i = threadIdx.x; i < kThreads; i += 4) sum += sums[i];
      out[threadIdx.x] = sum;
    }
  } else {
    sums[threadIdx.x] = 1;
    __syncthreads();
  }
}
LITMUS_IS(barrier, barriers_in_both_branches, wrong_sum(barriers_in_both_branches_kernel))

// Within one warp.
__global__ void barrier_in_half_warp_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) __syncthreads();
  if (threadIdx.x < 4) {
    int sum = 0;
    for (int i = threadIdx.x; i < kThreads; i += 4) sum += sums[i];
    out[threadIdx.x] = sum;
  }
}
LITMUS_IS(not_found, barrier_in_half_of_each_warp, wrong_sum(barrier_in_half_warp_kernel))

// Warps come to a barrier in a loop a different number of times, and return.
__global__ void barrier_counts_kernel(const int* in, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const int warp = threadIdx.x / 32;
  for (int i = 0; i <= warp; ++i) {
    if (threadIdx.x % 32 < 8) atomicAdd(&sum, in[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x % 32 == 0 && i == warp) out[warp] = sum;
  }
}
LITMUS(race, barrier_in_loops_of_different_lengths) {
  const Buffer<int> in("in", ones());
  Buffer<int> out("out", zeros(4));
  launch(barrier_counts_kernel, {1, kThreads}, in.data(), out.data());
  std::vector<int> expected;
  for (int warp = 0, sum = 0; warp < 4; ++warp) {
    sum += 8 * (4 - warp);
    expected.push_back(sum);
  }
  return differences(out.download(), expected);
}

// Right: whole warps return before the barrier that the others use.
__global__ void return_before_barrier_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= 64) return;
  sums[threadIdx.x] += sums[threadIdx.x + 64];
  __syncthreads();
  if (threadIdx.x >= 4) return;
  int sum = 0;
  for (int i = threadIdx.x; i < 64; i += 4) sum += sums[i];
  out[threadIdx.x] = sum;
}
LITMUS_IS(right, return_before_barrier, wrong_sum(return_before_barrier_kernel))

}  // namespace litmus
