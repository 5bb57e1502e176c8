// CUDA on the CPU: every operation that a kernel may use, against what CUDA defines for it.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <cuda/atomic>

#include "device/texture.hpp"
#include "simt/tests/testing.hpp"

namespace {

// Named as that in which libstdc++ counts exceptions, which is among the program's own variables
// where the library is linked statically.
int& get_global() {
  thread_local int global = 0;
  return global;
}

}  // namespace

namespace simt_test {

using simt::Schedule;

// --- Shuffles -----------------------------------------------------------------------------------

enum Shuffle { kIndex, kUp, kDown, kXor };

// The CUDA C++ Programming Guide, "Warp Shuffle Functions", in its own words.
int shuffle_source(Shuffle kind, int lane, int operand, int width) {
  const int begin = lane / width * width;
  const int end = begin + width;
  switch (kind) {
    case kIndex:  // modulo width
      return begin + ((operand % width) + width) % width;
    case kUp:  // does not wrap around: the lower delta lanes are unchanged
      return lane - operand < begin ? lane : lane - operand;
    case kDown:
      return lane + operand >= end ? lane : lane + operand;
    case kXor:  // earlier groups may be read, later ones give the lane's own value
      return (lane ^ operand) >= end ? lane : lane ^ operand;
  }
  return -1;
}

template <typename T>
T lane_value(int lane) {
  // Distinct in the high half and in the low half of eight bytes.
  return static_cast<T>(lane * 3 - 40) * (sizeof(T) == 8 ? static_cast<T>(4294967297.0) : T(1));
}

template <typename T>
__global__ void shuffle_kernel() {
  const int lane = threadIdx.x;
  const T value = lane_value<T>(lane);
  for (int width = 1; width <= 32; width *= 2) {
    const auto from = [&](Shuffle kind, int operand) {
      return lane_value<T>(shuffle_source(kind, lane, operand, width));
    };
    for (int operand = -40; operand < 80; ++operand) {
      assert(__shfl_sync(~0u, value, operand, width) == from(kIndex, operand));
    }
    for (int operand = 0; operand < 32; ++operand) {
      assert(__shfl_up_sync(~0u, value, operand, width) == from(kUp, operand));
      assert(__shfl_down_sync(~0u, value, operand, width) == from(kDown, operand));
      assert(__shfl_xor_sync(~0u, value, operand, width) == from(kXor, operand));
    }
  }
}

TEST_CASE("shuffles of every kind, width and type", "[simt]") {
  under_every_schedule([] {
    for (const auto kernel :
         {shuffle_kernel<int>, shuffle_kernel<unsigned>, shuffle_kernel<float>,
          shuffle_kernel<double>, shuffle_kernel<long long>, shuffle_kernel<unsigned long long>}) {
      launch(kernel, {1, 32});
    }
  });
}

__global__ void shuffle_from_absent_kernel(float* out) {
  if (threadIdx.x >= 16) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, threadIdx.x == 3 ? 16 : 0);
}

TEST_CASE("a lane that is not there gives no usable value", "[simt]") {
  const ScopedSettings restore;
  simt::settings().check_races = false;  // in which a shuffle like this is reported
  Buffer<float> out("out", 16);
  launch(shuffle_from_absent_kernel, {1, 32}, out.data());
  const auto got = out.download();
  CHECK(got[2] == 1.0f);
  CHECK(std::isnan(got[3]));
}

// --- Votes, matches, reductions -----------------------------------------------------------------

struct VoteCase {
  unsigned mask;
  int values[32];
};

__global__ void vote_kernel(int count, const VoteCase* cases) {
  const unsigned lane = threadIdx.x;
  for (const VoteCase* c = cases; c < cases + count; ++c) {
    const unsigned mask = c->mask;
    if (!(mask >> lane & 1u)) continue;
    // combine(total, value) for each lane that the mask names.
    const auto over = [&](auto total, auto&& combine) {
      for (int other = 0; other < 32; ++other) {
        if (mask >> other & 1u) total = combine(total, c->values[other]);
      }
      return total;
    };
    const int value = c->values[lane];
    const unsigned bits = static_cast<unsigned>(value);
    unsigned odd = 0, same = 0;
    for (unsigned other = 0; other < 32; ++other) {
      odd |= (c->values[other] & 1u) << other;
      same |= (c->values[other] == value ? 1u : 0u) << other;
    }
    odd &= mask;
    same &= mask;
    int all_same = 0;
    assert(__ballot_sync(mask, value & 1) == odd);
    assert(__any_sync(mask, value & 1) == (odd != 0));
    assert(__all_sync(mask, value & 1) == (odd == mask));
    // All of eight bytes count, and of four.
    assert(__match_any_sync(mask, static_cast<long long>(value) << 32) == same);
    assert(__match_all_sync(mask, value, &all_same) == (same == mask ? mask : 0));
    assert(all_same == (same == mask));
    const unsigned sum = over(0u, [](unsigned a, int b) { return a + b; });
    assert(__reduce_add_sync(mask, bits) == sum);
    assert(__reduce_min_sync(mask, bits) == over(~0u, [](unsigned a, int b) { return min(a, b); }));
    assert(__reduce_max_sync(mask, bits) == over(0u, [](unsigned a, int b) { return max(a, b); }));
    __syncwarp(mask);
    assert(__reduce_add_sync(mask, value) == static_cast<int>(sum));
    assert(__reduce_min_sync(mask, value) == over(value, [](int a, int b) { return min(a, b); }));
    assert(__reduce_max_sync(mask, value) == over(value, [](int a, int b) { return max(a, b); }));
    assert(__reduce_and_sync(mask, bits) == over(~0u, [](unsigned a, int b) { return a & b; }));
    assert(__reduce_or_sync(mask, bits) == over(0u, [](unsigned a, int b) { return a | b; }));
    assert(__reduce_xor_sync(mask, bits) == over(0u, [](unsigned a, int b) { return a ^ b; }));
  }
}

TEST_CASE("votes, matches and reductions over any mask", "[simt]") {
  Rng random(7);
  std::vector<VoteCase> cases(100);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].mask = i == 0 ? ~0u : i <= 32 ? 1u << (i - 1) : random.bits32();
    const unsigned range = i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : 0;
    const int base = static_cast<int>(random.bits32());
    for (int& value : cases[i].values) {
      value = range ? base + static_cast<int>(random.below(range)) * 3
                    : static_cast<int>(random.bits32());
      if (i % 5 == 4) value |= 1;
    }
  }
  const Buffer<VoteCase> device_cases("cases", cases);
  under_every_schedule([&] {
    launch(vote_kernel, {1, 32}, static_cast<int>(cases.size()), device_cases.data());
  });
}

// --- Lanes that are not there -------------------------------------------------------------------

// Lane i leaves in round i; those that remain vote with a mask that names all.
__global__ void leave_one_by_one_kernel() {
  const int lane = threadIdx.x;
  for (int round = 0; round < 32; ++round) {
    if (lane == round) return;
    assert(__ballot_sync(~0u, 1) == ~0u << (round + 1));
    assert(__reduce_add_sync(~0u, lane) == (31 * 32 - round * (round + 1)) / 2);
    __syncwarp();
  }
}

// Lanes of a warp in groups that never meet, each with trip counts of its own.
__global__ void divergent_groups_kernel() {
  const int lane = threadIdx.x % 32;
  const int group = lane / 8;
  const int trips = group * group * 17 % 100;
  const unsigned mask = 0xffu << (8 * group);
  for (int i = 0; i < trips; ++i) {
    assert(__shfl_xor_sync(mask, lane, 1 + i % 7) == (lane ^ (1 + i % 7)));
    if (group % 2) __syncwarp(mask);
  }
}

// Both branches synchronise with the lanes of their own branch only, then all meet.
__global__ void branch_kernel() {
  int value;
  if (threadIdx.x % 32 % 3 == 0) {
    value = __reduce_add_sync(0x49249249u, 1);
    assert(value == 11);
  } else {
    value = __reduce_add_sync(~0x49249249u, 1);
    assert(value == 21);
  }
  assert(__reduce_add_sync(~0u, value) == 11 * 11 + 21 * 21);
}

// A lane may be at an operation of its own while others already wait for it at another.
__global__ void late_lane_kernel() {
  const int lane = threadIdx.x;
  if (lane == 5) assert(__ballot_sync(1u << 5, 1) == 1u << 5);
  assert(__ballot_sync(~0u, lane == 5) == 1u << 5);
}

TEST_CASE("divergent lanes synchronise with those that they name", "[simt]") {
  under_every_schedule([] {
    launch(leave_one_by_one_kernel, {1, 32});
    launch(divergent_groups_kernel, {1, 64});
    launch(branch_kernel, {1, 64});
    launch(late_lane_kernel, {1, 32});
  });
}

// --- The active mask ----------------------------------------------------------------------------

// The mask at the start, in a branch, after it, in the last iteration of a loop that lanes leave
// one after the other, after that, and where all have met, once lane 0 has passed a fence, once the
// first half of the lanes wait elsewhere, and among those that have not returned.
__global__ void active_mask_kernel() {
  const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y;
  const unsigned lane = thread % 32;
  const unsigned all = thread < 64 ? ~0u : 3u, thirds = 0x49249249u;
  assert(__activemask() == all);
  if (lane % 3 == 0) {
    assert(__activemask() == (all & thirds));
  } else {
    assert(__activemask() == (all & ~thirds));
  }
  assert(__activemask() == all);
  unsigned last = 0;
  for (unsigned i = 0; i <= lane; ++i) last = __activemask();
  assert(last == (all & ~0u << lane));
  assert(__activemask() == 1u << lane);  // not all in the same iterations
  __syncwarp();
  assert(__activemask() == all);
  if (lane == 0) __threadfence();
  assert(__activemask() == all);
  if (lane < 16) __syncwarp();
  if (lane >= 16) assert(__activemask() == (all & ~0u << 16));
  if (lane >= 16) __syncwarp();
  if (lane % 2 == 0) return;
  assert(__activemask() == (all & 0xaaaaaaaau));
}

// Lane 5 waits for a flag that the others set behind their __activemask(), in a loop with one, too.
__global__ void spinning_lane_kernel(bool in_loop, int* flag) {
  if (threadIdx.x == 5) {
    unsigned mask = 0;
    while (atomicAdd(flag, 0) == 0) {
      if (in_loop) mask |= __activemask();
    }
    assert((mask | __activemask()) == 1u << 5);
  } else {
    const unsigned mask = __activemask();
    assert(mask >> threadIdx.x & 1 && !(mask & 1u << 5));
    if (threadIdx.x == 0) atomicExch(flag, 1);
  }
}

// Lanes leave a loop in different iterations, and ask who is there in their last one.
__global__ void last_iteration_kernel(unsigned* masks) {
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i <= lane % 3; ++i) {
    if (i == lane % 3) masks[lane] = __activemask();
  }
}

TEST_CASE("the active mask holds the lanes that make the call together", "[simt]") {
  const ScopedSettings restore;
  for (const Schedule schedule : {Schedule::kForward, Schedule::kTurns}) {
    simt::settings().schedule = schedule;
    launch(active_mask_kernel, {1, {11, 6}});
  }
  unsigned some = 0;  // named though not alone, nor with all
  under_every_schedule([&] {
    for (const bool in_loop : {false, true}) {
      Buffer<int> flag("flag", std::vector<int>(1));
      launch(spinning_lane_kernel, {1, 32}, in_loop, flag.data());
    }
    Buffer<unsigned> masks("masks", std::vector<unsigned>(32));
    launch(last_iteration_kernel, {1, 32}, masks.data());
    const std::vector<unsigned> found = masks.download();
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned together = 0x49249249u << lane % 3;
      const Schedule schedule = simt::settings().schedule;
      CHECK((found[lane] & (1u << lane | ~together)) == 1u << lane);
      if (schedule == Schedule::kForward) CHECK(found[lane] == together);
      if (schedule == Schedule::kReverse) CHECK(found[lane] == 1u << lane);
      some += found[lane] != together && found[lane] != 1u << lane;
    }
  });
  CHECK(some > 0);
}

TEST_CASE("remarks name what CUDA does not promise, a line per place", "[simt]") {
  simt::take_remarks();
  Buffer<unsigned> masks("masks", std::vector<unsigned>(32));
  launch(last_iteration_kernel, {1, 32}, masks.data());
  launch(last_iteration_kernel, {1, 32}, masks.data());
  const std::vector<std::string> remarks = simt::take_remarks().unpromised;
  REQUIRE(remarks.size() == 1);
  check_contains(remarks[0], {"kernel last_iteration_kernel at operations_test.cu:",
                              ": CUDA does not promise which lanes __activemask()"});
  CHECK(simt::take_remarks().unpromised.empty());
}

__global__ void add_once_kernel(int* sum, bool again) {
  for (bool stored = false; !stored;) {
    const int old = atomicAdd(sum, 0);
    __syncwarp();
    stored = atomicCAS(sum, old, old + 1) == old || !again;
  }
}

TEST_CASE("an atomicCAS that failed and was not repeated is where to look", "[simt]") {
  simt::take_remarks();
  Buffer<int> sum("sum", std::vector<int>{0});
  launch(add_once_kernel, {1, 1}, sum.data(), false);
  CHECK(simt::take_remarks().if_wrong.empty());
  launch(add_once_kernel, {1, 32}, sum.data(), false);
  const std::vector<std::string> places = simt::take_remarks().if_wrong;
  REQUIRE(places.size() == 1);
  check_contains(places[0], {"kernel add_once_kernel at operations_test.cu:", "did not repeat it"});
  CHECK(sum.download()[0] == 2);
}

// --- Atomics of libcu++ -------------------------------------------------------------------------

// Every operation, once by each thread, on words that begin at 0.
__global__ void atomic_ref_kernel(int* words, int* turns) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto at = [&](int i) { return cuda::atomic_ref<int, cuda::thread_scope_device>(words[i]); };
  at(0).fetch_add(3);
  at(1).fetch_sub(2, cuda::memory_order_relaxed);
  at(2).fetch_or(1 << thread);
  at(3).fetch_xor(1 << thread % 2, cuda::memory_order_acq_rel);
  at(4).fetch_max(thread);
  at(5).fetch_min(-thread);
  ++at(6);
  at(6)++;
  at(6) += 5;
  for (int seen = at(7).load(); !at(7).compare_exchange_weak(seen, seen + thread);) continue;
  int expected = thread;
  assert(at(8).compare_exchange_strong(expected, thread) == (thread == 0));
  assert(expected == 0);
  __shared__ cuda::atomic<int, cuda::thread_scope_block> sum;
  if (thread == 0) sum = 0;
  __syncthreads();
  turns[thread] = sum.fetch_add(1);
}

TEST_CASE("atomic_ref: every operation, by all threads at once", "[simt]") {
  under_every_schedule([] {
    Buffer<int> words("words", std::vector<int>(9)), turns("turns", 20);
    launch(atomic_ref_kernel, {1, 20}, words.data(), turns.data());
    CHECK(words.download() == std::vector<int>{60, -40, (1 << 20) - 1, 0, 19, -19, 140, 190, 0});
    std::vector<int> found = turns.download(), all(20);
    std::sort(found.begin(), found.end());
    std::iota(all.begin(), all.end(), 0);
    CHECK(found == all);
  });
}

// --- Barriers -----------------------------------------------------------------------------------

// Values travel around the block, one thread a round, through shared memory.
__global__ void rotate_kernel(int rounds) {
  __shared__ int cells[1024];
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  const int self = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int value = self;
  for (int round = 0; round < rounds; ++round) {
    cells[self] = value;
    __syncthreads();
    value = cells[(self + 1) % threads];
    __syncthreads();
  }
  assert(value == (self + rounds) % threads);
}

TEST_CASE("barriers in blocks of any size and shape", "[simt]") {
  const dim3 shapes[] = {1, 31, 33, 512, 1000, 1024, {7, 5}, {4, 4, 4}, {1, 1, 64}, {2, 512}};
  under_every_schedule([&] {
    for (const dim3 block : shapes) launch(rotate_kernel, {3, block}, 5);
  });
}

// Threads below `leaving` return first; the others count.
__global__ void barrier_votes_kernel(int leaving, int threshold) {
  const int self = threadIdx.x, threads = blockDim.x;
  if (self < leaving) return;
  const int first = max(leaving, threshold);
  assert(__syncthreads_count(self >= threshold ? -7 : 0) == max(0, threads - first));
  assert(__syncthreads_or(self == threshold) == (threshold >= leaving && threshold < threads));
  assert(__syncthreads_and(self >= threshold) == (threshold <= leaving));
  __syncthreads();
  assert(__syncthreads_and(self >= 0) == 1);
}

TEST_CASE("barriers that vote, with threads that have returned", "[simt]") {
  under_every_schedule([] {
    for (const int threads : {1, 40, 96, 1024}) {
      for (const int leaving : {0, 1, 33}) {
        for (const int threshold : {0, 20, 50, 5000}) {
          launch(barrier_votes_kernel, {1, threads}, leaving, threshold);
        }
      }
    }
  });
}

// --- Built-in variables -------------------------------------------------------------------------

__global__ void index_kernel(int* visits) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  atomicAdd(&visits[block * 30 + thread], 1);
  assert(gridDim.x == 4 && gridDim.y == 3 && gridDim.z == 2);
  assert(blockDim.x == 5 && blockDim.y == 3 && blockDim.z == 2 && warpSize == 32);
  assert(threadIdx.x < 5 && threadIdx.y < 3 && threadIdx.z < 2);
}

TEST_CASE("every thread of every block runs once, and knows which it is", "[simt]") {
  under_every_schedule([] {
    Buffer<int> visits("visits", std::vector<int>(4 * 3 * 2 * 30));
    launch(index_kernel, {{4, 3, 2}, {5, 3, 2}}, visits.data());
    CHECK(visits.download() == std::vector<int>(visits.size(), 1));
  });
}

// --- Shared memory ------------------------------------------------------------------------------

template <typename T>
__device__ bool is_poison(T value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  for (const unsigned char byte : bytes) {
    if (byte != 0xff) return false;
  }
  return true;
}

__device__ int device_function_with_shared_memory() {
  __shared__ int counter;
  assert(is_poison(counter));
  __syncthreads();
  if (threadIdx.x == 0) counter = static_cast<int>(blockDim.x) - 59;
  __syncthreads();
  return counter;
}

template <typename T>
__global__ void shared_kernel() {
  __shared__ T values[64];
  __shared__ int flags[3];
  __shared__ double2 pair;
  const int self = threadIdx.x;
  assert(is_poison(values[self]) && is_poison(flags[self % 3]));
  assert(is_poison(pair.x) && is_poison(pair.y));
  assert(device_function_with_shared_memory() == 5);
  values[self] = static_cast<T>(self);
  flags[self % 3] = 1;
  if (self == 0) pair = make_double2(3, 4);
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < 64; ++i) sum += values[i];
  assert(sum == T(63 * 32) && flags[0] + flags[1] + flags[2] == 3 && pair.x + pair.y == 7);
}

// A template, and so an array of bytes: one name cannot be an array of two types, here as in CUDA.
template <typename T>
__global__ void dynamic_kernel(int count) {
  extern __shared__ unsigned char dynamic_bytes[];
  T* const dynamic_values = reinterpret_cast<T*>(dynamic_bytes);
  for (int i = threadIdx.x; i < count; i += blockDim.x) assert(is_poison(dynamic_values[i]));
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) dynamic_values[i] = i;
  __syncthreads();
  for (int i = 0; i < count; ++i) assert(dynamic_values[i] == i);
}

TEST_CASE("shared memory belongs to a block and is poisoned when it starts", "[simt]") {
  const ScopedSettings restore;
  simt::settings().check_uninitialised = false;  // the kernels look at the poison
  simt::settings().check_races = false;          // and all write one value to one place
  get_global() = 3;
  under_every_schedule([] {
    for (const auto kernel : {shared_kernel<float>, shared_kernel<double>, shared_kernel<int>}) {
      launch(kernel, {40, 64});
    }
    for (const int count : {64, 6144}) {
      launch(dynamic_kernel<double>, {5, 64, count * sizeof(double)}, count);
    }
  });
  CHECK(get_global() == 3);
}

// --- Atomics ------------------------------------------------------------------------------------

template <typename T>
__global__ void atomic_add_kernel(T* sum, int* seen) {
  const T before = atomicAdd(sum, T(1));
  atomicAdd(&seen[static_cast<int>(before)], 1);  // each value is handed out once
  atomicExch(sum + 1, static_cast<T>(threadIdx.x));
}

template <typename T>
void check_atomic_add() {
  constexpr int kThreads = 40 * 96;
  Buffer<T> sum("sum", std::vector<T>(2, T(0)));
  Buffer<int> seen("seen", std::vector<int>(kThreads));
  launch(atomic_add_kernel<T>, {40, 96}, sum.data(), seen.data());
  CHECK(sum.download()[0] == static_cast<T>(kThreads));
  CHECK(sum.download()[1] < T(96));
  CHECK(seen.download() == std::vector<int>(kThreads, 1));
}

template <typename T>
__global__ void atomic_integer_kernel(T* cells, T* exchanged) {
  const T self = static_cast<T>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicSub(&cells[0], self);
  atomicMin(&cells[1], self);
  atomicMax(&cells[2], self);
  atomicAnd(&cells[3], static_cast<T>(~(T{1} << (self % 20))));
  atomicOr(&cells[4], T{1} << (self % 20));
  atomicXor(&cells[5], self);
  exchanged[self] = atomicExch(&cells[6], self);
  for (T old = cells[7];;) {  // a sum of squares modulo 1009, by compare and swap
    const T assumed = old;
    old = atomicCAS(&cells[7], assumed, (assumed + self * self) % 1009);
    if (old == assumed) break;
  }
  atomicAdd(&cells[8], T{2});
  atomicAdd_system(&cells[8], T{3});
}

template <typename T>
void check_atomic_integers() {
  constexpr int kThreads = 10 * 64;
  std::vector<T> cells = {1000000, 100, 100, static_cast<T>(~T{0}), 0, 0, kThreads, 0, 0};
  Buffer<T> device_cells("cells", cells);
  Buffer<T> device_exchanged("exchanged", kThreads);
  launch(atomic_integer_kernel<T>, {10, 64}, device_cells.data(), device_exchanged.data());
  cells = device_cells.download();
  T squares = 0, xors = 0;
  for (T i = 0; i < T{kThreads}; ++i) {
    squares = (squares + i * i) % 1009;
    xors ^= i;
  }
  CHECK(cells[0] == static_cast<T>(1000000 - kThreads * (kThreads - 1) / 2));
  CHECK(cells[1] == 0);
  CHECK(cells[2] == kThreads - 1);
  CHECK(cells[3] == static_cast<T>(~T{0xfffff}));
  CHECK(cells[4] == 0xfffff);
  CHECK(cells[5] == xors);
  CHECK(cells[7] == squares);
  CHECK(cells[8] == 5 * kThreads);
  // Each thread's value is taken out once, by another thread or at the end.
  std::vector<T> exchanged = device_exchanged.download();
  exchanged.push_back(cells[6]);
  std::sort(exchanged.begin(), exchanged.end());
  std::vector<T> all(kThreads + 1);
  std::iota(all.begin(), all.end(), T{0});
  CHECK(exchanged == all);
}

__global__ void atomic_wrap_kernel(int* signed_cell, unsigned* cell) {
  atomicAdd(signed_cell, 1);
  atomicSub(cell, 1u);
}

// Counts in circles of 0 to `last`.
__global__ void atomic_circle_kernel(unsigned last, unsigned* cells, int* seen_up, int* seen_down) {
  atomicAdd(&seen_up[atomicInc(&cells[0], last)], 1);
  atomicAdd(&seen_down[atomicDec(&cells[1], last)], 1);
}

TEST_CASE("atomicInc and atomicDec begin again at their ends", "[simt]") {
  under_every_schedule([] {
    constexpr unsigned kLast = 6;
    // 640 = 91 * 7 + 3
    Buffer<unsigned> cells("cells", std::vector<unsigned>(2));
    Buffer<int> up("up", std::vector<int>(kLast + 1)), down("down", std::vector<int>(kLast + 1));
    launch(atomic_circle_kernel, {10, 64}, kLast, cells.data(), up.data(), down.data());
    CHECK(up.download() == std::vector<int>{92, 92, 92, 91, 91, 91, 91});
    CHECK(down.download() == std::vector<int>{92, 91, 91, 91, 91, 92, 92});
    CHECK(cells.download() == std::vector<unsigned>{3, 4});
  });
  // From beyond the last: up to 0, down to the last. The greatest `last` is none.
  Buffer<unsigned> cells("cells", std::vector<unsigned>{8, 8});
  Buffer<int> up("up", std::vector<int>(9)), down("down", std::vector<int>(9));
  launch(atomic_circle_kernel, {1, 1}, 6u, cells.data(), up.data(), down.data());
  CHECK(cells.download() == std::vector<unsigned>{0, 6});
  launch(atomic_circle_kernel, {1, 1}, 0xffffffffu, cells.data(), up.data(), down.data());
  CHECK(cells.download() == std::vector<unsigned>{1, 5});
}

TEST_CASE("atomics of every type, contended across blocks", "[simt]") {
  under_every_schedule([] {
    check_atomic_add<int>();
    check_atomic_add<unsigned>();
    check_atomic_add<unsigned long long>();
    check_atomic_add<float>();
    check_atomic_add<double>();
    check_atomic_integers<int>();
    check_atomic_integers<unsigned>();
    check_atomic_integers<unsigned long long>();
  });
  Buffer<int> most("most", std::vector<int>{std::numeric_limits<int>::max()});
  Buffer<unsigned> least("least", std::vector<unsigned>{0});
  launch(atomic_wrap_kernel, {1, 1}, most.data(), least.data());
  CHECK(most.download()[0] == std::numeric_limits<int>::min());
  CHECK(least.download()[0] == ~0u);
}

__global__ void read_by_atomics_kernel(int n, int* words, int* sums) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += atomicAdd(&words[i], 0);
  sums[threadIdx.x] = sum;
}

TEST_CASE("reading word after word by atomics that add 0 is no deadlock", "[simt]") {
  constexpr int kWords = 30000;
  Buffer<int> words("words", std::vector<int>(kWords, 1)), sums("sums", 64);
  launch(read_by_atomics_kernel, {1, 64}, kWords, words.data(), sums.data());
  CHECK(sums.download() == std::vector<int>(64, kWords));
}

// --- Textures -----------------------------------------------------------------------------------

template <typename T>
__global__ void fetch_kernel(cudaTextureObject_t texture, int first, T* out) {
  const int i = threadIdx.x;
  if (i % 2) {
    out[i] = tex1Dfetch<T>(texture, first + i);
  } else {
    tex1Dfetch(&out[i], texture, first + i);
  }
}

using spmv::device::LinearTexture;

template <typename T>
void check_texture(std::vector<T> host) {
  Buffer<T> buffer("elements", host);
  const LinearTexture<T> texture(buffer.data(), buffer.size());
  Buffer<T> out("out", 20);
  launch(fetch_kernel<T>, {1, 20}, texture.get(), -5, out.data());
  const auto got = out.download();
  const T zero{};
  for (int i = 0; i < 20; ++i) {
    const bool inside = i >= 5 && i - 5 < static_cast<int>(host.size());
    CHECK(std::memcmp(&got[i], inside ? &host[i - 5] : &zero, sizeof(T)) == 0);
  }
}

TEST_CASE("textures over linear memory, with zeros beyond their ends", "[simt]") {
  check_texture<float>({1.5f, 2.5f, 3.5f});
  check_texture<int2>({{1, 2}, {3, 4}, {5, 6}});
  check_texture<int4>({{1, 2, 3, 4}, {5, 6, 7, 8}});
}

TEST_CASE("wrong uses of textures are reported", "[simt]") {
  Buffer<int2> buffer("elements", 3);
  Buffer<float> out("out", 20);
  cudaTextureObject_t dangling = 0;
  {
    const LinearTexture<int2> texture(buffer.data(), buffer.size());
    dangling = texture.get();
    CHECK(contains(failure_of(fetch_kernel<float>, {1, 20}, dangling, 0, out.data()),
                   "tex1Dfetch of 4 bytes from a texture whose elements have 8"));
  }
  CHECK(contains(failure_of(fetch_kernel<float>, {1, 20}, dangling, 0, out.data()),
                 "a texture object that does not exist"));
  CHECK(contains(failure_of(fetch_kernel<float>, {1, 20}, cudaTextureObject_t{0}, 0, out.data()),
                 "a texture object that does not exist"));
}

// --- Loads and stores with hints ----------------------------------------------------------------

template <typename T>
__global__ void hints_kernel(const T* in, T* out) {
  out[0] = __ldg(in);
  out[1] = __ldca(in + 1);
  out[2] = __ldcg(in + 2);
  out[3] = __ldcs(in + 3);
  __stcg(out + 4, __ldcv(in + 4));
  __stcs(out + 5, __ldlu(in + 5));
  __stwb(out + 6, in[6]);
  __stwt(out + 7, in[7]);
}

template <typename T>
void check_hints(T scale) {
  std::vector<T> host(8);
  for (int i = 0; i < 8; ++i) host[i] = static_cast<T>(i + 1) * scale;
  const Buffer<T> in("in", host);
  Buffer<T> out("out", 8);
  launch(hints_kernel<T>, {1, 1}, in.data(), out.data());
  CHECK(out.download() == host);
}

TEST_CASE("loads and stores with a hint are loads and stores", "[simt]") {
  check_hints<int>(-3);
  check_hints<float>(0.5f);
  check_hints<double>(0.25);
  check_hints<unsigned long long>(1ull << 40);
}

// --- Vectors -------------------------------------------------------------------------------------

TEST_CASE("vectors have the sizes and alignments of CUDA", "[simt]") {
  CHECK((sizeof(char2) == 2 && alignof(char2) == 2 && sizeof(uchar4) == 4 && alignof(uchar4) == 4));
  CHECK((sizeof(short2) == 4 && alignof(short2) == 4 && sizeof(ushort4) == 8));
  CHECK((sizeof(float3) == 12 && alignof(float3) == 4 && sizeof(double3) == 24));
  CHECK((sizeof(char3) == 3 && alignof(char3) == 1 && sizeof(longlong2) == 16));
  CHECK((sizeof(double4) == 32 && alignof(double4) == 16 && sizeof(int4) == 16));
  const float3 v = make_float3(1, 2, 3);
  CHECK(v.x + 10 * v.y + 100 * v.z == 321);
  const uchar4 bytes = make_uchar4(1, 2, 3, 4), copy = bytes;
  CHECK((copy.x == 1 && copy.y == 2 && copy.z == 3 && copy.w == 4));
  const short2 pair = make_short2(-1, 7);
  CHECK((pair.x == -1 && pair.y == 7));
}

}  // namespace simt_test
