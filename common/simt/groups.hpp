// cooperative_groups: the threads of a grid that was launched as a cooperative one, those of a
// block, tiles of a warp, threads that happen to be together; reductions and scans over them.
#pragma once

#include <functional>
#include <type_traits>

#include "simt/cuda_atomic.hpp"

namespace cooperative_groups {

class thread_block {
 public:
  __forceinline__ static void sync() { __syncthreads(); }
  __forceinline__ static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  __forceinline__ static unsigned size() { return num_threads(); }
  __forceinline__ static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  __forceinline__ static dim3 group_index() { return blockIdx; }
  __forceinline__ static dim3 thread_index() { return threadIdx; }
  __forceinline__ static dim3 dim_threads() { return blockDim; }
  __forceinline__ static dim3 group_dim() { return blockDim; }
};
__forceinline__ thread_block this_thread_block() {
  return {};
}

class grid_group {
 public:
  __forceinline__ void sync() const {
    simt::grid_sync();
    simt::no_tail_call();
  }
  __forceinline__ unsigned long long size() const { return num_threads(); }
  __forceinline__ unsigned long long num_threads() const {
    return num_blocks() * thread_block::num_threads();
  }
  __forceinline__ unsigned long long num_blocks() const {
    return 1ull * gridDim.x * gridDim.y * gridDim.z;
  }
  __forceinline__ unsigned long long block_rank() const {
    return blockIdx.x + gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  __forceinline__ unsigned long long thread_rank() const {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
};
__forceinline__ grid_group this_grid() {
  return {};
}

namespace detail {

__forceinline__ unsigned lane() {
  return thread_block::thread_rank() % simt::kWarpSize;
}

// Lanes of one warp. Those of a group are numbered from 0, in their order in the warp.
class Lanes {
 public:
  __forceinline__ explicit Lanes(unsigned mask) : mask_(mask) {}
  __forceinline__ void sync() const { __syncwarp(mask_); }
  __forceinline__ unsigned num_threads() const { return static_cast<unsigned>(__popc(mask_)); }
  __forceinline__ unsigned size() const { return num_threads(); }
  __forceinline__ unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & ((1u << lane()) - 1)));
  }
  __forceinline__ int any(int predicate) const { return __any_sync(mask_, predicate); }
  __forceinline__ int all(int predicate) const { return __all_sync(mask_, predicate); }
  __forceinline__ unsigned ballot(int predicate) const {
    return packed(__ballot_sync(mask_, predicate));
  }
  template <typename T>
  __forceinline__ unsigned match_any(T value) const {
    return packed(__match_any_sync(mask_, value));
  }
  template <typename T>
  __forceinline__ unsigned match_all(T value, int& predicate) const {
    return packed(__match_all_sync(mask_, value, &predicate));
  }
  // The value of the thread of rank `source`, modulo the size.
  template <typename T>
  __forceinline__ T shfl(T value, unsigned source) const {
    return from_rank(value, source % size());
  }
  // Of the thread whose rank is higher or lower by `delta`; its own where there is none.
  template <typename T>
  __forceinline__ T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return from_rank(value, rank + delta < size() ? rank + delta : rank);
  }
  template <typename T>
  __forceinline__ T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return from_rank(value, rank >= delta ? rank - delta : rank);
  }
  __forceinline__ unsigned mask() const { return mask_; }

 protected:
  template <typename T>
  __forceinline__ T from_rank(T value, unsigned rank) const {
    unsigned rest = mask_;
    while (rank-- > 0) rest &= rest - 1;
    return __shfl_sync(mask_, value, __ffs(static_cast<int>(rest)) - 1);
  }
  // One bit per thread of the group.
  __forceinline__ unsigned packed(unsigned lanes) const {
    unsigned bits = 0, rank = 0;
    for (unsigned rest = mask_; rest; rest &= rest - 1, ++rank) {
      if (lanes & rest & (0u - rest)) bits |= 1u << rank;
    }
    return bits;
  }

 private:
  unsigned mask_;
};

}  // namespace detail

class coalesced_group : public detail::Lanes {
 public:
  using Lanes::Lanes;
  __forceinline__ static unsigned meta_group_size() { return 1; }
  __forceinline__ static unsigned meta_group_rank() { return 0; }
};
// The lanes that arrive here together; see __activemask().
__forceinline__ coalesced_group coalesced_threads() {
  return coalesced_group(__activemask());
}

template <unsigned kSize, typename Parent = void>
class thread_block_tile : public detail::Lanes {
  static_assert(kSize >= 1 && (kSize & (kSize - 1)) == 0, "a tile has a power of two of threads");
  static_assert(kSize <= simt::kWarpSize, "simt has no tiles of several warps");
  using Whole = std::conditional_t<std::is_void_v<Parent>, thread_block, Parent>;

 public:
  __forceinline__ thread_block_tile()
      : Lanes((kSize == 32 ? ~0u : (1u << kSize % 32) - 1) << (detail::lane() & ~(kSize - 1))) {}
  template <typename Other>  // thread_block_tile<32> tile = tiled_partition<32>(...)
  __forceinline__ thread_block_tile(const thread_block_tile<kSize, Other>&) : thread_block_tile() {}
  __forceinline__ static constexpr unsigned num_threads() { return kSize; }
  __forceinline__ static constexpr unsigned size() { return kSize; }
  __forceinline__ static unsigned thread_rank() { return detail::lane() % kSize; }
  // Of the tiles into which the parent, the block or a larger tile, was partitioned.
  __forceinline__ static unsigned meta_group_size() {
    return (Whole::num_threads() + kSize - 1) / kSize;
  }
  __forceinline__ static unsigned meta_group_rank() { return Whole::thread_rank() / kSize; }
  template <typename T>
  __forceinline__ T shfl(T value, unsigned source) const {
    return __shfl_sync(mask(), value, static_cast<int>(source), static_cast<int>(kSize));
  }
  template <typename T>
  __forceinline__ T shfl_down(T value, unsigned delta) const {
    return __shfl_down_sync(mask(), value, delta, static_cast<int>(kSize));
  }
  template <typename T>
  __forceinline__ T shfl_up(T value, unsigned delta) const {
    return __shfl_up_sync(mask(), value, delta, static_cast<int>(kSize));
  }
  template <typename T>
  __forceinline__ T shfl_xor(T value, unsigned lane_mask) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lane_mask), static_cast<int>(kSize));
  }
};

template <unsigned kSize, typename Parent>
__forceinline__ thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}
// Groups of those of a tile or a group that pass the same label, or the same truth.
template <typename Group, typename Label>
__forceinline__ coalesced_group labeled_partition(const Group& group, Label label) {
  return coalesced_group(__match_any_sync(group.mask(), label));
}
template <unsigned kSize, typename Parent>
__forceinline__ coalesced_group binary_partition(const thread_block_tile<kSize, Parent>& tile,
                                                 bool predicate) {
  const unsigned yes = __ballot_sync(tile.mask(), predicate);
  return coalesced_group(predicate ? yes : tile.mask() & ~yes);
}
// A block or lanes of a warp: which, is known at run time.
class thread_group {
 public:
  __forceinline__ thread_group(const thread_block&) : lanes_(0) {}
  __forceinline__ thread_group(const detail::Lanes& lanes) : lanes_(lanes) {}
  __forceinline__ void sync() const { is_block() ? thread_block::sync() : lanes_.sync(); }
  __forceinline__ unsigned num_threads() const {
    return is_block() ? thread_block::num_threads() : lanes_.num_threads();
  }
  __forceinline__ unsigned size() const { return num_threads(); }
  __forceinline__ unsigned thread_rank() const {
    return is_block() ? thread_block::thread_rank() : lanes_.thread_rank();
  }

 private:
  __forceinline__ bool is_block() const { return lanes_.mask() == 0; }
  detail::Lanes lanes_;
};
// Tiles of `size` lanes, a power of two, of a block or of a larger tile.
__forceinline__ thread_group tiled_partition(const thread_group&, unsigned size) {
  const unsigned first = size == 32 ? ~0u : (1u << size) - 1;
  return detail::Lanes(first << (detail::lane() & ~(size - 1)));
}

template <typename Group>
__forceinline__ void sync(const Group& group) {
  group.sync();
}

using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::plus;
template <typename T>
struct less {
  __forceinline__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {
  __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; }
};

// combine() over all values of the group, in the order of the ranks; every thread gets it.
template <typename Group, typename T, typename Combine>
__forceinline__ T reduce(const Group& group, T value, Combine&& combine) {
  T total = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    total = combine(total, group.shfl(value, rank));
  }
  return total;
}
template <unsigned kSize, typename Parent, typename T, typename Combine>
__forceinline__ T reduce(const thread_block_tile<kSize, Parent>& tile, T value, Combine&& combine) {
  for (unsigned distance = kSize / 2; distance > 0; distance /= 2) {
    value = combine(value, tile.shfl_xor(value, distance));
  }
  return value;
}
// One thread of the group calls the function.
template <typename Group, typename Function>
__forceinline__ void invoke_one(const Group& group, Function&& function) {
  if (group.thread_rank() == 0) function();
}
template <typename Group, typename T, typename Combine>
__forceinline__ T inclusive_scan(const Group& group, T value, Combine&& combine) {
  for (unsigned distance = 1; distance < group.size(); distance *= 2) {
    const T before = group.shfl_up(value, distance);
    if (group.thread_rank() >= distance) value = combine(before, value);
  }
  return value;
}
template <typename Group, typename T>
__forceinline__ T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
// The first thread of the group gets T{}.
template <typename Group, typename T, typename Combine>
__forceinline__ T exclusive_scan(const Group& group, T value, Combine&& combine) {
  const T before = group.shfl_up(inclusive_scan(group, value, combine), 1);
  return group.thread_rank() == 0 ? T{} : before;
}
template <typename Group, typename T>
__forceinline__ T exclusive_scan(const Group& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

// Not offered: says so.
template <typename... Arguments>
void memcpy_async(Arguments&&...) {
  static_assert(sizeof...(Arguments) > 1000, "simt has no memcpy_async: copy with a loop");
}

}  // namespace cooperative_groups
