// Data races on global and on shared memory: every one is reported, and the report does not depend
// on the number of workers or the schedule; no right kernel is reported.
#include <functional>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

constexpr int kBlocks = 6, kThreads = 64, kAll = kBlocks * kThreads;

// What launching says, which must be the same whoever runs the blocks and in which order.
std::string verdict_of(const std::function<std::string()>& launch_kernel) {
  const ScopedSettings restore;
  std::string first;
  bool is_first = true;
  under_every_schedule([&] {
    for (const unsigned workers : {1u, 2u, 4u}) {
      simt::settings().workers = workers;
      CAPTURE(workers);
      const std::string report = launch_kernel();
      if (std::exchange(is_first, false)) first = report;
      CHECK(report == first);
    }
  });
  return first;
}

Buffer<int> zeros(const char* name, int count) {
  return Buffer<int>(name, std::vector<int>(static_cast<std::size_t>(count)));
}

template <typename... Parameters>
void check_race(void (*kernel)(Parameters...), const std::string& text, int words = 4 * kAll) {
  if (!simt::is_instrumented()) return;
  const std::string report = verdict_of([&] {
    Buffer<int> data = zeros("data", words), flags = zeros("flags", words);
    return failure_of(kernel, {kBlocks, kThreads}, data.data(), flags.data());
  });
  CAPTURE(report);
  CHECK(contains(report, "race: "));
  CHECK(contains(report, text));
  CHECK(contains(report, " at race_test.cu:"));
}

template <typename... Parameters>
void check_right(void (*kernel)(Parameters...), int expected) {
  const std::string report = verdict_of([&] {
    Buffer<int> data = zeros("data", 4 * kAll), flags = zeros("flags", 4 * kAll);
    std::string failure = failure_of(kernel, {kBlocks, kThreads}, data.data(), flags.data());
    if (failure.empty()) CHECK(flags.download()[0] == expected);
    return failure;
  });
  CHECK(report == "");
}

__device__ int global_thread() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// --- Updates that are not atomic ----------------------------------------------------------------

LINE(kPlainUpdateLine, 2);
__global__ void plain_update_kernel(int* data, int*) {
  data[(global_thread() + 1) / 48] += 1;
}
__global__ void volatile_update_kernel(int* data, int*) {
  volatile int* const cell = &data[global_thread() / 48];
  *cell = *cell + 1;
}
__global__ void same_value_kernel(int* data, int*) {
  if (threadIdx.x == 5) data[3] = 1;
}
__global__ void same_warp_kernel(int* data, int*) {
  data[global_thread() / 4] = 1;
}
__global__ void plain_beside_atomic_kernel(int* data, int*) {
  if (blockIdx.x == 2) {
    data[0] += 1;
  } else {
    atomicAdd(&data[0], 1);
  }
}
__global__ void block_atomic_kernel(int* data, int*) {
  atomicAdd_block(&data[threadIdx.x], 1);
}
__global__ void early_total_kernel(int* data, int* flags) {
  atomicAdd(&data[0], 1);
  flags[global_thread()] = data[0];
}
__global__ void early_reset_kernel(int* data, int*) {
  if (global_thread() == 0) data[0] = 0;
  atomicAdd(&data[0], 1);
}
__global__ void boundary_rows_kernel(int* data, int*) {
  // The last row of a block may go on in the next one.
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += i;
  const int first = static_cast<int>(blockIdx.x) * 63;
  data[first + static_cast<int>(threadIdx.x)] += sum;
}
__global__ void wide_store_kernel(int* data, int*) {
  // Groups of four that overlap with their neighbours' by two.
  reinterpret_cast<int4*>(data)[global_thread()] = make_int4(1, 1, 1, 1);
  reinterpret_cast<int2*>(data)[(2 * global_thread() + 2) % (2 * kAll)] = make_int2(2, 2);
}
__global__ void bytes_kernel(int* data, int*) {
  reinterpret_cast<char*>(data)[global_thread()] = 1;
  if (threadIdx.x % 4 == 0) data[global_thread() / 4] = 2;
}

TEST_CASE("updates of global memory that are not atomic are races", "[simt][race]") {
  check_race(plain_update_kernel, "into 'data', which thread (");
  check_race(volatile_update_kernel, "wrote");
  check_race(same_value_kernel,
             "writes 4 bytes, 12 bytes into 'data', which thread (5,0,0) of block (0,0,0) wrote");
  check_race(same_warp_kernel, "; both threads store to it: let one thread own it; with the lanes");
  check_race(plain_beside_atomic_kernel, "which takes an atomic operation in both");
  check_race(early_reset_kernel, "with no __syncwarp or __syncthreads between");
  check_race(plain_beside_atomic_kernel, "which thread (63,0,0) of block (1,0,0) updated");
  check_race(block_atomic_kernel, "updates 4 bytes");
  check_race(early_total_kernel, "into 'data'");
  check_race(boundary_rows_kernel, "of block (0,0,0) wrote");
  check_race(wide_store_kernel, "writes 16 bytes");
  check_race(bytes_kernel, "1 bytes into 'data', which thread (0,0,0) wrote");
}

constexpr const char* kTakesAtomic =
    "; both threads load it, change it and store it, which takes an atomic operation in both, such "
    "as atomicAdd";

TEST_CASE("the report of a race on global memory names both threads and both lines",
          "[simt][race]") {
  if (lacks_instrumentation()) return;
  const std::string place = " at race_test.cu:" + std::to_string(kPlainUpdateLine);
  const std::string report = verdict_of([] {
    Buffer<int> data = zeros("data", kAll);
    return failure_of(plain_update_kernel, {kBlocks, kThreads}, data.data(), nullptr);
  });
  CAPTURE(report);
  CHECK(contains(report, "plain_update_kernel" + place +
                             ", block (0,0,0), thread (1,0,0): race: reads 4 bytes, 0 bytes into "
                             "'data', which thread (0,0,0) wrote" +
                             place + kTakesAtomic + "; with the lanes of the warp in lockstep"));
  CHECK(!contains(report, "__syncwarp"));
  // Of one thread per block.
  const std::string between = verdict_of([] {
    Buffer<int> data = zeros("data", kAll);
    return failure_of(plain_update_kernel, {kBlocks, 1}, data.data(), nullptr);
  });
  CAPTURE(between);
  CHECK(contains(between,
                 "block (1,0,0), thread (0,0,0): race: reads 4 bytes, 0 bytes into "
                 "'data', which thread (0,0,0) of block (0,0,0) wrote" +
                     place + kTakesAtomic));
  const ScopedSettings restore;
  simt::settings().check_races = false;
  Buffer<int> data = zeros("data", kAll);
  CHECK(failure_of(plain_update_kernel, {kBlocks, kThreads}, data.data(), nullptr).empty());
}

// --- Within a block -----------------------------------------------------------------------------

enum class Order { kNothing, kSyncWarp, kShuffle, kFence, kSyncThreads };

template <Order kOrder>
__device__ __forceinline__ void wait() {
  if (kOrder == Order::kSyncWarp) __syncwarp();
  if (kOrder == Order::kShuffle) __shfl_sync(~0u, 1, 0);
  if (kOrder == Order::kFence) __threadfence();
  if (kOrder == Order::kSyncThreads) __syncthreads();
}

// Each thread writes its cell and reads the one `distance` on.
LINE(kExchangeLine, 7);
template <bool kShared, Order kOrder, int kDistance>
__global__ void exchange_kernel(int* data, int* flags) {
  __shared__ int own[kThreads];
  int* const cells = kShared ? own : data + blockIdx.x * blockDim.x;
  cells[threadIdx.x] = 0;
  __syncthreads();
  cells[threadIdx.x] = static_cast<int>(threadIdx.x);
  wait<kOrder>();
  const int other = cells[threadIdx.x ^ kDistance];
  if (other == 1000) flags[0] = 1;
}

// All read a cell, then thread 5 writes it.
template <Order kOrder>
__global__ void overwrite_kernel(int* data, int*) {
  __shared__ int cell;
  if (threadIdx.x == 0) cell = 1;
  __syncthreads();
  data[global_thread()] = cell;
  wait<kOrder>();
  if (threadIdx.x == 5) cell = 2;
}

__global__ void both_write_kernel(int* data, int*) {
  __shared__ int cell;
  if (threadIdx.x % 32 == 3) cell = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) data[blockIdx.x] = cell;
}

// A tree of sums per warp; without __syncwarp as it was written before Volta.
template <Order kOrder>
__global__ void tree_kernel(int*, int* flags) {
  __shared__ int sums[kThreads];
  int* const mine = sums + threadIdx.x / 32 * 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  mine[lane] = 1;
  __syncthreads();
  for (int distance = 16; distance > 0; distance /= 2) {
    if (lane < distance) mine[lane] += mine[lane + distance];
    wait<kOrder>();
  }
  if (lane == 0) atomicAdd(flags, mine[0]);
}

// Pairs of lanes exchange their cells; each pair waits for itself alone.
template <unsigned kDistance>
__global__ void pairs_kernel(int* data, int*) {
  __shared__ int cells[kThreads];
  const unsigned mask = 3u << threadIdx.x % 32 / 2 * 2;
  for (int i = 0; i < 3; ++i) {
    cells[threadIdx.x] = i;
    __syncwarp(mask);
    data[global_thread()] = cells[threadIdx.x ^ kDistance];
    __syncwarp(mask);
  }
}

// Neighbours in a word are not one address.
template <bool kEarly>
__global__ void count_in_shared_kernel(int* data, int* flags) {
  __shared__ int count;
  __shared__ unsigned char bytes[kThreads];
  if (threadIdx.x == 0) count = 0;
  bytes[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  if (bytes[threadIdx.x] == 0) bytes[threadIdx.x] = 1;
  if (kEarly && threadIdx.x == kThreads - 1) data[blockIdx.x] = count;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(flags, count + bytes[kThreads - 1]);
}

// Lane 0 of a warp reads, behind a __syncwarp, what lane 1 wrote; then another warp reads it, too.
template <bool kShared>
__global__ void behind_the_warp_kernel(int* data, int* flags) {
  __shared__ int own;
  int* const cell = kShared ? &own : data + blockIdx.x;
  if (threadIdx.x == 0) *cell = 0;
  __syncthreads();
  if (threadIdx.x == 1) *cell = 1;
  __syncwarp();
  if (threadIdx.x % 32 == 0 && *cell > 5) flags[blockIdx.x] = 1;
}

__global__ void in_place_kernel(int* data, int*) {
  const int i = global_thread();
  data[i + 1] = data[i] + 1;
}

template <bool kShared>
void check_exchanges() {
  const std::string warp = ", with no __syncwarp or __syncthreads between",
                    block = ", with no __syncthreads between";
  check_race(exchange_kernel<kShared, Order::kNothing, 1>, warp);
  check_race(exchange_kernel<kShared, Order::kShuffle, 1>, warp);
  check_race(exchange_kernel<kShared, Order::kFence, 1>, warp);
  check_race(exchange_kernel<kShared, Order::kFence, 32>, block);
  check_race(exchange_kernel<kShared, Order::kSyncWarp, 32>, block);
  check_right(exchange_kernel<kShared, Order::kNothing, 0>, 0);
  check_right(exchange_kernel<kShared, Order::kSyncWarp, 1>, 0);
  check_right(exchange_kernel<kShared, Order::kSyncThreads, 1>, 0);
  check_right(exchange_kernel<kShared, Order::kSyncThreads, 32>, 0);
  check_race(behind_the_warp_kernel<kShared>, "bytes");
}

TEST_CASE("threads of a block race unless a barrier orders them", "[simt][race]") {
  check_exchanges<false>();
  check_exchanges<true>();
  check_race(in_place_kernel, "into 'data'");
  // Who, where, what and with whom, in full.
  check_race(
      exchange_kernel<true, Order::kNothing, 1>,
      " at race_test.cu:" + std::to_string(kExchangeLine) +
          ", block (0,0,0), thread (1,0,0): race: writes 4 bytes, 4 bytes into shared 'own', "
          "which thread (0,0,0) read at race_test.cu:" +
          std::to_string(kExchangeLine + 2) + ", with no __syncwarp");
  check_race(overwrite_kernel<Order::kNothing>, "bytes, 0 bytes into shared 'cell'");
  check_race(overwrite_kernel<Order::kShuffle>, "with no __syncwarp or __syncthreads between");
  check_race(overwrite_kernel<Order::kSyncWarp>, "with no __syncthreads between");
  check_right(overwrite_kernel<Order::kSyncThreads>, 0);
  check_race(both_write_kernel, "race: writes 4 bytes");
  check_race(tree_kernel<Order::kNothing>, "into shared 'sums'");
  check_race(tree_kernel<Order::kShuffle>, "with no __syncwarp or __syncthreads between");
  check_right(tree_kernel<Order::kSyncWarp>, kAll);
  check_right(pairs_kernel<1>, 0);
  check_race(pairs_kernel<2>, "into shared 'cells'");
  check_right(count_in_shared_kernel<false>, kAll + kBlocks);
  check_race(count_in_shared_kernel<true>, "into shared 'count'");
}

// In another order, the first thing that is wrong is no race.
__global__ void unwritten_neighbour_kernel(int*, int* flags) {
  __shared__ int mine[kThreads];
  mine[threadIdx.x] = 1;
  if (threadIdx.x > 0) flags[global_thread()] = mine[threadIdx.x - 1];
}
__global__ void wait_without_fence_kernel(int* data, int* flags) {
  if (global_thread() == 0) {
    data[0] = 5;
    atomicExch(&flags[0], 1);
  }
  if (global_thread() == kThreads) {
    while (atomicAdd(&flags[0], 0) == 0) {
    }
    flags[1] = data[0];
  }
}

// It fails in every order.
__global__ void shift_kernel(int* data, int*) {
  data[global_thread()] = data[global_thread() + 1];
}

TEST_CASE("which of a race and another failure is reported depends on no order", "[simt][race]") {
  const ScopedSettings restore;
  simt::settings().spin_limit_seconds = 0.02;
  check_race(
      unwritten_neighbour_kernel,
      "thread (1,0,0): race: reads 4 bytes, 0 bytes into shared 'mine', which thread (0,0,0)");
  check_race(
      wait_without_fence_kernel,
      "block (1,0,0), thread (0,0,0): race: reads 4 bytes, 0 bytes into 'data', which thread");
  if (!simt::is_instrumented()) return;
  const std::string report = verdict_of([] {
    Buffer<int> data = zeros("data", kAll);
    return failure_of(shift_kernel, {kBlocks, kThreads}, data.data(), data.data());
  });
  CAPTURE(report);
  CHECK(contains(report, "block (5,0,0), thread (63,0,0): reads 4 bytes at an address that is"));
}

// --- The last block adds up ---------------------------------------------------------------------

enum class LastBlock {
  kRight,
  kFenceOfEachThread,  // before the barrier
  kFenceOfOneThread,   // after it
  kOnlyWriter,         // thread 0 writes, fences and counts
  kNoFence,
  kBlockFence,
  kFenceTooEarly,
  kNoBarrier,  // between the writes of all and the fence of one
  kPlainCounter,
  kFirstBlock,  // block 0 adds up, last or not
};

// Every thread writes a 1; the block that is the last to finish adds them up.
template <LastBlock kKind>
__global__ void last_block_kernel(int* data, int* flags) {
  __shared__ bool is_last;
  int* const counter = flags + 1;
  const int i = global_thread();
  if (kKind == LastBlock::kFenceTooEarly) __threadfence();
  if (kKind != LastBlock::kOnlyWriter) {
    data[i] = 1;
  } else if (threadIdx.x == 0) {
    data[blockIdx.x] = kThreads;
  }
  if (kKind == LastBlock::kRight || kKind == LastBlock::kFenceOfEachThread) __threadfence();
  if (kKind == LastBlock::kBlockFence) __threadfence_block();
  if (kKind != LastBlock::kNoBarrier) __syncthreads();
  if (threadIdx.x == 0) {
    if (kKind != LastBlock::kNoFence && kKind != LastBlock::kBlockFence &&
        kKind != LastBlock::kFenceOfEachThread && kKind != LastBlock::kFenceTooEarly) {
      __threadfence();
    }
    if (kKind == LastBlock::kPlainCounter) {
      is_last = ++*counter == static_cast<int>(gridDim.x);
    } else {
      is_last = atomicAdd(counter, 1) == static_cast<int>(gridDim.x) - 1;
    }
    if (kKind == LastBlock::kFirstBlock) is_last = blockIdx.x == 0;
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x < 32) {
    int sum = 0;
    const int parts = kKind == LastBlock::kOnlyWriter ? kBlocks : kAll;
    for (int k = static_cast<int>(threadIdx.x); k < parts; k += 32) sum += data[k];
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x == 0) {
      flags[0] = sum;
      *counter = 0;  // for the next launch
    }
  }
}

// One thread per block, as a loop.
__global__ void last_thread_kernel(int* data, int* flags) {
  if (threadIdx.x > 0) return;
  data[blockIdx.x] = 1;
  __threadfence();
  if (atomicInc(reinterpret_cast<unsigned*>(flags + 1), gridDim.x - 1) == gridDim.x - 1) {
    int sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += data[b];
    flags[0] = sum;
  }
}

// The thread whose fence orders the data has executed another one when the counter is updated.
__global__ void fence_again_kernel(int* data, int* flags) {
  if (threadIdx.x == 0) {
    data[blockIdx.x] = 1;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) __threadfence();
  const int last = static_cast<int>(gridDim.x) - 1;
  if (threadIdx.x != 32 || atomicAdd(flags + 1, 1) != last) return;
  __threadfence();
  int sum = 0;
  for (int b = 0; b <= last; ++b) sum += data[b];
  flags[0] = sum;
}

TEST_CASE("the last block may read what the others wrote, after fences", "[simt][race]") {
  check_right(fence_again_kernel, kBlocks);
  check_right(last_block_kernel<LastBlock::kRight>, kAll);
  check_right(last_block_kernel<LastBlock::kFenceOfEachThread>, kAll);
  check_right(last_block_kernel<LastBlock::kFenceOfOneThread>, kAll);
  check_right(last_block_kernel<LastBlock::kOnlyWriter>, kAll);
  check_right(last_thread_kernel, kBlocks);
  const std::string no_order =
      ", with no fence and atomic operation that order them: it takes a fence and a flag";
  check_race(last_block_kernel<LastBlock::kNoFence>, no_order);
  check_race(last_block_kernel<LastBlock::kBlockFence>, no_order);
  check_race(last_block_kernel<LastBlock::kFenceTooEarly>, no_order);
  check_race(last_block_kernel<LastBlock::kNoBarrier>, "into 'data'");
  check_race(last_block_kernel<LastBlock::kPlainCounter>, "into 'flags'");
  check_race(last_block_kernel<LastBlock::kFirstBlock>, "into 'data'");
}

// --- Locks --------------------------------------------------------------------------------------

enum class Lock { kRight, kNoFences, kNoReleaseFence, kPlainUnlock, kVolatileUnlock, kNoLock };

template <Lock kKind>
__global__ void lock_kernel(int* data, int* flags) {
  int* const lock = flags + 1;
  if (threadIdx.x % 32 == 0) {
    if (kKind != Lock::kNoLock) {
      while (atomicCAS(lock, 0, 1) != 0) {
      }
    }
    if (kKind != Lock::kNoFences) __threadfence();
    flags[0] = flags[0] + 1;
    if (kKind != Lock::kNoFences && kKind != Lock::kNoReleaseFence) __threadfence();
    if (kKind == Lock::kPlainUnlock) {
      *lock = 0;
    } else if (kKind == Lock::kVolatileUnlock) {
      *static_cast<volatile int*>(lock) = 0;
    } else if (kKind != Lock::kNoLock) {
      atomicExch(lock, 0);
    }
  }
  data[global_thread()] = 0;
}

// A lock in shared memory, for threads of the block.
template <bool kFences>
__global__ void shared_lock_kernel(int*, int* flags) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = 0, sum = 0;
  __syncthreads();
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      if (kFences) __threadfence_block();
      sum = sum + 1;
      if (kFences) __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(flags, sum);
}

TEST_CASE("a lock orders what it protects, with fences", "[simt][race]") {
  check_right(lock_kernel<Lock::kRight>, kAll / 32);
  check_right(lock_kernel<Lock::kVolatileUnlock>, kAll / 32);
  check_race(lock_kernel<Lock::kNoFences>, "4 bytes, 0 bytes into 'flags'");
  check_race(lock_kernel<Lock::kNoReleaseFence>, "4 bytes, 0 bytes into 'flags'");
  check_race(lock_kernel<Lock::kPlainUnlock>, "4 bytes into 'flags'");
  check_race(lock_kernel<Lock::kNoLock>, "4 bytes, 0 bytes into 'flags'");
  check_right(shared_lock_kernel<true>, kAll);
  check_race(shared_lock_kernel<false>, "into shared 'sum'");
}

// --- Carries between blocks ---------------------------------------------------------------------

enum class Carry {
  kVolatileFlag,
  kAtomicFlag,
  kOneWord,          // data and flag in 64 bits
  kBarrierForFence,  // of the reader: __syncthreads
  kNoWriterFence,
  kNoReaderFence,
  kPlainFlag,
  kFlagFirst,
};

// Blocks add 1 to what they get from the one before, in the order in which they come.
template <Carry kKind>
__global__ void carry_kernel(int* data, int* flags) {
  __shared__ int ticket, carried;
  if (threadIdx.x == 0) ticket = atomicAdd(flags + 1, 1);
  __syncthreads();
  const int block = ticket;
  volatile int* const ready = flags + 2;
  volatile unsigned long long* const words = reinterpret_cast<unsigned long long*>(data);
  if (threadIdx.x == 0) {
    int carry = 0;
    if (block > 0) {
      if (kKind == Carry::kOneWord) {
        unsigned long long word = 0;
        while ((word = words[block - 1]) >> 32 == 0) {
        }
        carry = static_cast<int>(word);
      } else {
        if (kKind == Carry::kAtomicFlag || kKind == Carry::kPlainFlag) {
          while (atomicAdd(flags + 2 + block - 1, 0) == 0) {
          }
        } else {
          while (ready[block - 1] == 0) {
          }
        }
        if (kKind != Carry::kNoReaderFence && kKind != Carry::kBarrierForFence) __threadfence();
        if (kKind != Carry::kBarrierForFence) carry = data[block - 1];
      }
    }
    carried = carry;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (kKind == Carry::kBarrierForFence && block > 0) carried = data[block - 1];
    const int sum = carried + 1;
    if (kKind == Carry::kOneWord) {
      words[block] = 1ull << 32 | static_cast<unsigned>(sum);
    } else {
      if (kKind == Carry::kFlagFirst) {
        ready[block] = 1;
        __threadfence();
      }
      data[block] = sum;
      if (kKind != Carry::kNoWriterFence) __threadfence();
      if (kKind == Carry::kAtomicFlag) {
        atomicExch(flags + 2 + block, 1);
      } else if (kKind == Carry::kPlainFlag) {
        flags[2 + block] = 1;
      } else if (kKind != Carry::kFlagFirst) {
        ready[block] = 1;
      }
    }
    if (block == static_cast<int>(gridDim.x) - 1) flags[0] = sum;
  }
}

TEST_CASE("blocks may carry sums to each other, with fences or in one word", "[simt][race]") {
  check_right(carry_kernel<Carry::kVolatileFlag>, kBlocks);
  check_right(carry_kernel<Carry::kAtomicFlag>, kBlocks);
  check_right(carry_kernel<Carry::kOneWord>, kBlocks);
  check_right(carry_kernel<Carry::kBarrierForFence>, kBlocks);
  const std::string no_order = "into 'data', which thread (0,0,0) of block (";
  check_race(carry_kernel<Carry::kNoWriterFence>, no_order);
  check_race(carry_kernel<Carry::kNoReaderFence>, no_order);
  check_race(carry_kernel<Carry::kPlainFlag>, "into 'flags'");
  check_race(carry_kernel<Carry::kFlagFirst>, no_order);
}

// --- Work that is drawn -------------------------------------------------------------------------

__global__ void tickets_kernel(int* data, int* flags) {
  int* const counter = flags + 1;
  for (int row; (row = atomicAdd(counter, 1)) < 2 * kAll;) data[row] += 1;
  atomicAdd(flags, 1);
}
template <bool kAtomic>
__global__ void warp_tickets_kernel(int* data, int* flags) {
  int* const counter = flags + 1;
  while (true) {
    int row = 0;
    if (threadIdx.x % 32 == 0) row = atomicAdd(counter, 1);
    row = __shfl_sync(~0u, row, 0);
    if (row >= 200) break;
    const int sum = __reduce_add_sync(~0u, 1);
    // Two rows share a sum.
    if (threadIdx.x % 32 == 0 && kAtomic) atomicAdd(&data[row / 2], sum);
    if (threadIdx.x % 32 == 0 && !kAtomic) data[row / 2] += sum;
  }
}
TEST_CASE("work that threads draw from a counter", "[simt][race]") {
  check_right(tickets_kernel, kAll);
  check_right(warp_tickets_kernel<true>, 0);
  check_race(warp_tickets_kernel<false>, "into 'data'");
}

// --- Right kernels ------------------------------------------------------------------------------

// As in the CUDA C++ Programming Guide: a plain load, checked by atomicCAS.
__global__ void compare_and_swap_kernel(int*, int* flags) {
  int old = *flags, assumed;
  do {
    assumed = old;
    old = atomicCAS(flags, assumed, assumed + 1);
  } while (old != assumed);
}
__global__ void aggregate_kernel(int* data, int* flags) {
  const int i = global_thread();
  const unsigned votes = __ballot_sync(~0u, i % 3 == 0);
  int base = 0;
  if (threadIdx.x % 32 == 0) base = atomicAdd(flags, __popc(votes));
  base = __shfl_sync(~0u, base, 0);
  if (i % 3 == 0) data[base + __popc(votes & ((1u << threadIdx.x % 32) - 1))] = i;
}
__global__ void neighbours_kernel(int* data, int* flags) {
  reinterpret_cast<char*>(data)[global_thread()] = 1;
  reinterpret_cast<short*>(data + kAll)[global_thread()] = 2;
  if (global_thread() == 0) flags[0] = 7;
}
__global__ void read_shared_input_kernel(int* data, int* flags) {
  // All read what is never written, of the array that all write.
  const int i = global_thread();
  data[kAll + i] = data[0] + data[i % 7];
  if (i == 0) flags[0] = 7;
}

TEST_CASE("right kernels are not reported", "[simt][race]") {
  check_right(compare_and_swap_kernel, kAll);
  check_right(aggregate_kernel, kAll / 3);
  check_right(neighbours_kernel, 7);
  check_right(read_shared_input_kernel, 7);
}

// --- Variables of the program, pinned memory ----------------------------------------------------

__device__ int device_total;
__device__ unsigned device_arrivals;

template <bool kAtomic>
__global__ void device_variable_kernel(int*, int* flags) {
  if (kAtomic) {
    atomicAdd(&device_total, 1);
  } else {
    ++device_total;
  }
  __threadfence();
  if (atomicInc(&device_arrivals, kAll - 1) == kAll - 1) {
    flags[0] = device_total;
    device_total = 0;
  }
}

TEST_CASE("races on __device__ variables and pinned memory are reported", "[simt][race]") {
  check_right(device_variable_kernel<true>, kAll);
  check_race(device_variable_kernel<false>, "device_total'");
  if (lacks_instrumentation()) return;
  int* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, kAll * sizeof(int)) == cudaSuccess);
  std::fill(pinned, pinned + kAll, 0);
  CHECK(contains(failure_of(plain_update_kernel, {kBlocks, kThreads}, pinned, nullptr),
                 "bytes into 'pinned memory', which thread"));
  cudaFreeHost(pinned);
}

// --- Looking twice leaves no trace --------------------------------------------------------------

__global__ void add_one_kernel(int* data, int* flags) {
  // Suspicious, but right: each thread reads what its neighbour wrote before the __syncwarp.
  data[global_thread()] += 1;
  __syncwarp();
  const int other = data[global_thread() ^ 1];
  __syncwarp();
  data[global_thread()] += other;
  atomicAdd(flags, 1);
}

TEST_CASE("a launch that is looked at again happens once", "[simt][race]") {
  Buffer<int> data = zeros("data", kAll), flags = zeros("flags", 1);
  for (int times = 1; times <= 3; ++times) {
    launch(add_one_kernel, {kBlocks, kThreads}, data.data(), flags.data());
    CHECK(flags.download()[0] == times * kAll);
  }
  CHECK(data.download() == std::vector<int>(kAll, 2 * (2 * (2 * 0 + 2) + 2) + 2));
}

}  // namespace
}  // namespace simt_test
