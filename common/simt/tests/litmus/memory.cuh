// What a thread sees of the memory that others write, and what compilers make of loads.
#pragma once

#include <cuda/atomic>
#include <utility>

#include "device/texture.hpp"
#include "litmus.hpp"

namespace litmus {

// --- Loads that the compiler merges, moves or sends another way ---------------------------------

// `out` is the same array as `in`, one element further: a chain, unless all is loaded first.
__global__ void restrict_kernel(const int* __restrict__ in, int* __restrict__ out) {
  const int first = threadIdx.x * 8;
  int before = in[first];
#pragma unroll
  for (int i = 0; i < 7; ++i) {
    out[first + i] = before + 1;
    before = in[first + i + 1];
  }
}
LITMUS(not_found, restrict_aliases) {
  Buffer<int> data("data", zeros(32 * 8 + 1));
  launch(restrict_kernel, {1, 32}, data.data(), data.data() + 1);
  std::vector<int> expected(32 * 8 + 1);
  for (int i = 1; i < 257; ++i) expected[i] = i % 8 == 0 ? 0 : i % 8;
  return differences(data.download(), expected);
}

__global__ void restrict_reload_kernel(const int* __restrict__ in, int* __restrict__ out) {
  const int before = in[threadIdx.x];
  out[threadIdx.x] = before + 1;
  out[threadIdx.x] += in[threadIdx.x];
}
LITMUS(shows, restrict_aliases_and_reloads) {
  Buffer<int> data("data", zeros(32));
  launch(restrict_reload_kernel, {1, 32}, data.data(), data.data());
  return differences(data.download(), 2);
}

// Stores, and reads what it stored through the path for what no thread writes.
__global__ void ldg_kernel(int* data, int* out) {
  const int before = __ldg(&data[threadIdx.x]);
  data[threadIdx.x] = before + 1;
  out[threadIdx.x] = __ldg(&data[threadIdx.x]);
}
// Likewise of what another thread of the block stored, ordered by a barrier.
__global__ void ldg_barrier_kernel(int* data, int* out) {
  const int other = (threadIdx.x + 32) % blockDim.x;
  const int before = __ldg(&data[other]);
  __syncthreads();
  data[threadIdx.x] = before + 1;
  __syncthreads();
  out[threadIdx.x] = __ldg(&data[other]);
}
inline int wrong_ldg(void (*kernel)(int*, int*)) {
  Buffer<int> data("data", zeros(256));
  return wrong_results(256, 1, kernel, {1, 256}, data.data());
}
LITMUS_IS(read_only, ldg_of_what_the_kernel_wrote, wrong_ldg(ldg_kernel))
LITMUS_IS(read_only, ldg_of_what_the_block_wrote, wrong_ldg(ldg_barrier_kernel))
__global__ void texture_kernel(cudaTextureObject_t texture, int* data, int* out) {
  const int before = tex1Dfetch<int>(texture, threadIdx.x);
  data[threadIdx.x] = before + 1;
  __syncthreads();
  out[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x);
}
LITMUS(read_only, texture_of_what_the_kernel_wrote) {
  Buffer<int> data("data", zeros(256));
  const spmv::device::LinearTexture<int> texture(data.data(), 256);
  return wrong_results(256, 1, texture_kernel, {1, 256}, texture.get(), data.data());
}

// Right: what an earlier launch wrote.
__global__ void fill_kernel(int* data) {
  data[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
}
__global__ void fetch_kernel(cudaTextureObject_t texture, const int* data, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x) - __ldg(&data[threadIdx.x]);
}
LITMUS(right, ldg_and_texture_of_what_an_earlier_kernel_wrote) {
  Buffer<int> data("data", zeros(256)), out("out", zeros(256));
  const spmv::device::LinearTexture<int> texture(data.data(), 256);
  int count = 0;
  launch(fetch_kernel, {1, 256}, texture.get(), data.data(), out.data());
  launch(fill_kernel, {1, 256}, data.data());
  launch(fetch_kernel, {1, 256}, texture.get(), data.data(), out.data());
  count += differences(out.download(), 0);
  return count;
}

// Block 1 polls a flag that block 0 sets, half a millisecond later.
inline __device__ void set_late(int* flag) {
  for (int i = 0; i < 10; ++i) __nanosleep(50000);
  __threadfence();
  atomicExch(flag, 1);
}
enum class Load { kPlain, kLdcg, kLdg, kVolatile };
template <Load kLoad>
__global__ void poll_kernel(int* flag, int* out) {
  if (blockIdx.x == 0) return set_late(flag);
  const auto load = [flag] {
    if constexpr (kLoad == Load::kPlain) return *flag;
    if constexpr (kLoad == Load::kLdcg) return __ldcg(flag);
    if constexpr (kLoad == Load::kLdg) return __ldg(flag);
    if constexpr (kLoad == Load::kVolatile) return *static_cast<volatile int*>(flag);
  };
  while (load() == 0) {
  }
  *out = 1;
}
template <Load kLoad>
int wrong_poll() {
  Buffer<int> flag("flag", zeros(1));
  return wrong_results(1, 1, poll_kernel<kLoad>, {2, 1}, flag.data());
}
LITMUS_IS(reported("kernel poll_kernel<"), polls_with_plain_loads, wrong_poll<Load::kPlain>())
LITMUS_IS(not_found, polls_with_ldcg, wrong_poll<Load::kLdcg>())
LITMUS_IS(read_only, polls_with_ldg, wrong_poll<Load::kLdg>())
LITMUS_IS(right, polls_with_volatile, wrong_poll<Load::kVolatile>())

// --- Messages from one block to another ---------------------------------------------------------
// Even blocks send, the next ones receive; each pair has words of its own, 128 bytes apart.

constexpr int kApart = 32;
struct Pairs {
  int *data, *flags, *ready, *results;
};
inline __device__ int* word(int* array) {
  return array + blockIdx.x / 2 * kApart;
}
inline __device__ bool is_sender() {
  return blockIdx.x % 2 == 0;
}
constexpr int kPairs = kInstances / 32;  // whose blocks fit on a GPU at once
template <typename Kernel>
std::vector<int> results_of_pairs(Kernel* kernel, int threads = 32) {
  const int words = kPairs * kApart;
  Buffer<int> data("data", zeros(words)), flags("flags", zeros(words)),
      ready("ready", zeros(words)), results("results", zeros(2 * words));
  launch(kernel, {2 * kPairs, dim3(threads)},
         Pairs{data.data(), flags.data(), ready.data(), results.data()});
  return results.download();
}
template <typename Kernel>
int wrong_messages(Kernel* kernel, int threads = 32) {
  const std::vector<int> results = results_of_pairs(kernel, threads);
  int count = 0;
  for (int pair = 0; pair < kPairs; ++pair) count += results[pair * kApart] != 1;
  return count;
}

enum class Send { kFence, kBlockFence, kNoFence };
enum class Receive { kFence, kBlockFence, kBarrier, kNothing };
inline __device__ int poll(int* word) {
  return atomicAdd(word, 0);
}

// The receiver has the data's line in its L1 cache when the sender stores to it.
template <Send kSend, Receive kReceive>
__global__ void message_kernel(Pairs pairs) {
  __shared__ int before;
  if (is_sender()) {
    if (threadIdx.x > 0) return;
    while (poll(word(pairs.ready)) == 0) {
    }
    __threadfence();
    *word(pairs.data) = 1;
    if (kSend == Send::kFence) __threadfence();
    if (kSend == Send::kBlockFence) __threadfence_block();
    atomicExch(word(pairs.flags), 1);
  } else {
    if (threadIdx.x == 31) {
      before = *word(pairs.data);
      cuda::atomic_ref<int, cuda::thread_scope_device> ready(*word(pairs.ready));
      ready.store(1, cuda::memory_order_release);  // which leaves the L1 cache as it is
    }
    if (threadIdx.x == 0) {
      while (poll(word(pairs.flags)) == 0) {
      }
      if (kReceive == Receive::kFence) __threadfence();
      if (kReceive == Receive::kBlockFence) __threadfence_block();
      if (kReceive != Receive::kBarrier) *word(pairs.results) = *word(pairs.data);
    }
    __syncthreads();
    if (kReceive == Receive::kBarrier && threadIdx.x == 31) {
      *word(pairs.results) = before + *word(pairs.data);
    }
  }
}
LITMUS_IS(right, message_with_fences, wrong_messages(message_kernel<Send::kFence, Receive::kFence>))
LITMUS_IS(no_fence, message_without_acquire,
          wrong_messages(message_kernel<Send::kFence, Receive::kNothing>))
LITMUS_IS(no_fence, message_with_barrier_for_acquire,
          wrong_messages(message_kernel<Send::kFence, Receive::kBarrier>))
LITMUS_IS(race, message_without_release,
          wrong_messages(message_kernel<Send::kNoFence, Receive::kFence>))
LITMUS_IS(race, message_with_block_fences,
          wrong_messages(message_kernel<Send::kBlockFence, Receive::kBlockFence>))

// With cuda::atomic_ref, of the device's or the block's scope.
template <cuda::thread_scope kScope, bool kOrdered>
__global__ void atomic_ref_kernel(Pairs pairs) {
  if (threadIdx.x > 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*word(pairs.ready));
  cuda::atomic_ref<int, kScope> flag(*word(pairs.flags));
  if (is_sender()) {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *word(pairs.data) = 1;
    flag.store(1, kOrdered ? cuda::memory_order_release : cuda::memory_order_relaxed);
  } else {
    const int before = *word(pairs.data);
    ready.store(1 + before, cuda::memory_order_release);
    while (flag.load(kOrdered ? cuda::memory_order_acquire : cuda::memory_order_relaxed) == 0) {
    }
    *word(pairs.results) = before + *word(pairs.data);
  }
}
LITMUS_IS(right, atomic_ref_acquire_release,
          wrong_messages(atomic_ref_kernel<cuda::thread_scope_device, true>))
LITMUS_IS(race, atomic_ref_relaxed,
          wrong_messages(atomic_ref_kernel<cuda::thread_scope_device, false>))
LITMUS_IS(race, atomic_ref_of_block_scope,
          wrong_messages(atomic_ref_kernel<cuda::thread_scope_block, true>))

// Flag and data both volatile: nothing torn, nothing kept in a register, nothing ordered.
template <bool kFence>
__global__ void volatile_message_kernel(Pairs pairs) {
  if (threadIdx.x > 0) return;
  volatile int* const data = word(pairs.data);
  volatile int* const flag = word(pairs.flags);
  if (is_sender()) {
    *data = 1;
    if (kFence) __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    if (kFence) __threadfence();
    *word(pairs.results) = *data;
  }
}
LITMUS_IS(right, volatile_message_with_fences, wrong_messages(volatile_message_kernel<true>))
LITMUS_IS(not_found, volatile_message_without_fences,
          wrong_messages(volatile_message_kernel<false>))

// Two warps of a block, through shared memory.
template <bool kFence>
__global__ void shared_message_kernel(int* out) {
  __shared__ int data[32], flag;
  if (threadIdx.x == 0) flag = data[0] = 0;
  __syncthreads();
  volatile int* const words = data;
  volatile int* const set = &flag;
  if (threadIdx.x == 0) {
    words[0] = 1;
    if (kFence) __threadfence_block();
    *set = 1;
  } else if (threadIdx.x == 32) {
    while (*set == 0) {
    }
    if (kFence) __threadfence_block();
    out[blockIdx.x] = words[0];
  }
}
LITMUS_IS(right, shared_message_with_fences,
          wrong_results(64, 1, shared_message_kernel<true>, {64, 64}))
LITMUS_IS(not_found, shared_message_without_fences,
          wrong_results(64, 1, shared_message_kernel<false>, {64, 64}))

// --- Order of atomics, many times over ----------------------------------------------------------
// Two blocks meet before each of kInstances instances; each has words of its own, in other lines.

enum class How { kVolatile, kFence, kAtomic };
template <How kHow, int kTest>  // 0: store buffering; 1: messages; 2: load buffering
__global__ void order_kernel(int* x, int* y, int* meet, int* seen) {
  const int me = blockIdx.x;
  if (threadIdx.x > 0) return;
  for (int i = 0; i < kInstances; ++i) {
    atomicAdd(meet, 1);
    while (poll(meet) < 2 * (i + 1)) {
    }
    int* const first = (me == 0 || kTest == 1 ? x : y) + 64 * i;
    int* const second = (me == 0 || kTest == 1 ? y : x) + 64 * i;
    const auto store = [](int* to) {
      if (kHow == How::kAtomic) {
        atomicExch(to, 1);
      } else {
        *static_cast<volatile int*>(to) = 1;
      }
    };
    const auto load = [](int* from) {
      return kHow == How::kAtomic ? atomicAdd(from, 0) : *static_cast<volatile int*>(from);
    };
    const auto fence = [] {
      if (kHow == How::kFence) __threadfence();
    };
    if (kTest == 0) {
      store(first);
      fence();
      seen[2 * i + me] = load(second);
    } else if (kTest == 1 && me == 0) {
      store(first);
      fence();
      store(second);
    } else if (kTest == 1) {
      seen[2 * i] = load(second);
      fence();
      seen[2 * i + 1] = load(first);
    } else {
      seen[2 * i + me] = load(first);
      fence();
      store(second);
    }
  }
}
template <How kHow, int kTest>
int forbidden() {
  Buffer<int> x("x", zeros(64 * kInstances)), y("y", zeros(64 * kInstances)),
      meet("meet", zeros(1)), seen("seen", zeros(2 * kInstances));
  launch(order_kernel<kHow, kTest>, {2, 32}, x.data(), y.data(), meet.data(), seen.data());
  const std::vector<int> results = seen.download();
  int count = 0;
  for (int i = 0; i < kInstances; ++i) {
    const std::pair<int, int> pair{results[2 * i], results[2 * i + 1]};
    count += pair == (kTest == 0   ? std::pair<int, int>{0, 0}
                      : kTest == 1 ? std::pair<int, int>{1, 0}
                                   : std::pair<int, int>{1, 1});
  }
  return count;
}
LITMUS_IS(not_found, store_buffering_volatile, forbidden<How::kVolatile, 0>())
LITMUS_IS(not_found, store_buffering_atomics, forbidden<How::kAtomic, 0>())
LITMUS_IS(right, store_buffering_fences, forbidden<How::kFence, 0>())
LITMUS_IS(not_found, message_order_volatile, forbidden<How::kVolatile, 1>())
LITMUS_IS(not_found, message_order_atomics, forbidden<How::kAtomic, 1>())
LITMUS_IS(right, message_order_fences, forbidden<How::kFence, 1>())
LITMUS_IS(not_found, load_buffering_volatile, forbidden<How::kVolatile, 2>())

// --- Scopes of atomics, and locks ---------------------------------------------------------------

template <bool kRef>
__global__ void atomic_block_kernel(int* sum) {
  if constexpr (kRef) {
    cuda::atomic_ref<int, cuda::thread_scope_block>(*sum).fetch_add(1, cuda::memory_order_relaxed);
  } else {
    atomicAdd_block(sum, 1);
  }
}
LITMUS_IS(race, atomic_block_across_blocks,
          wrong_results(1, 264 * 128, atomic_block_kernel<false>, {264, 128}))
LITMUS_IS(race, fetch_add_of_block_scope_across_blocks,
          wrong_results(1, 264 * 128, atomic_block_kernel<true>, {264, 128}))
__global__ void atomic_block_shared_kernel(int* sums) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd_block(&sum, 1);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
LITMUS_IS(right, atomic_block_within_block,
          wrong_results(16, 128, atomic_block_shared_kernel, {16, 128}))

enum class Unlock { kRight, kNoFence, kPlainStore };
template <Unlock kUnlock>
__global__ void lock_kernel(int* lock, int* sum) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  if (kUnlock != Unlock::kNoFence) __threadfence();
  *sum += 1;
  if (kUnlock != Unlock::kNoFence) __threadfence();
  if (kUnlock == Unlock::kPlainStore) {
    *lock = 0;
  } else {
    atomicExch(lock, 0);
  }
}
template <Unlock kUnlock>
int wrong_lock() {
  Buffer<int> lock("lock", zeros(1));
  return wrong_results(1, 8 * 64, lock_kernel<kUnlock>, {8, 64}, lock.data());
}
LITMUS_IS(right, spin_lock_since_volta, wrong_lock<Unlock::kRight>())
LITMUS_IS(race, spin_lock_without_fences, wrong_lock<Unlock::kNoFence>())
LITMUS_IS(race, spin_lock_released_by_plain_store, wrong_lock<Unlock::kPlainStore>())

// The block that comes last adds what all have stored.
template <bool kRelease, bool kAcquire>
__global__ void last_block_kernel(int* partial, unsigned* count, int* total) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = 1;
    if (kRelease) __threadfence();
    is_last = atomicAdd(count, 1) == gridDim.x - 1;
    if (kAcquire) __threadfence();
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
    *total = sum;
  }
}
template <bool kRelease, bool kAcquire>
int wrong_last_block() {
  Buffer<int> partial("partial", zeros(1000));
  Buffer<unsigned> count("count", std::vector<unsigned>(1));
  return wrong_results(1, 1000, last_block_kernel<kRelease, kAcquire>, {1000, 32}, partial.data(),
                       count.data());
}
LITMUS_IS(right, last_block_adds, wrong_last_block<true, true>())
LITMUS_IS(race, last_block_without_release, wrong_last_block<false, true>())
LITMUS_IS(not_found, last_block_without_acquire, wrong_last_block<true, false>())

// --- Blocks that wait for each other ------------------------------------------------------------

__global__ void block_waits_kernel(int* flag, int* out, unsigned setter) {
  if (blockIdx.x == setter) {
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (poll(flag) == 0) {
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = 1;
}
inline int wrong_wait(unsigned blocks, unsigned setter, unsigned threads) {
  Buffer<int> flag("flag", zeros(1)), out("out", zeros(static_cast<int>(blocks)));
  launch(block_waits_kernel, {dim3(blocks), dim3(threads)}, flag.data(), out.data(), setter);
  return differences(out.download(), 1);
}
LITMUS_IS(right, second_block_waits_for_first, wrong_wait(2, 0, 32))
LITMUS_IS(right, first_block_waits_for_second, wrong_wait(2, 1, 32))
#ifdef SPMV_CUDA
inline int wrong_wait_of_too_many() {
  return wrong_wait(4000, 3999, 1024);
}
#else  // whose time goes by threads
inline int wrong_wait_of_too_many() {
  return wrong_wait(4000, 3999, 64);
}
#endif
LITMUS_IS(deadlock, blocks_wait_for_the_last_of_too_many, wrong_wait_of_too_many())

}  // namespace litmus
