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

// Likewise of launching a kernel with two arrays of zeros.
std::string verdict_of(void (*kernel)(int*, int*), int threads = kThreads, int words = 4 * kAll) {
  return verdict_of([&] {
    Buffer<int> data = zeros("data", words), flags = zeros("flags", words);
    return failure_of(kernel, {kBlocks, threads}, data.data(), flags.data());
  });
}

void check_race(void (*kernel)(int*, int*), const std::string& text) {
  check_contains(verdict_of(kernel), {"race: ", text, " at race_test.cu:"});
}

void check_right(void (*kernel)(int*, int*), int expected) {
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
  check_race(wide_store_kernel, "writes 16 bytes");
  check_race(bytes_kernel, "1 bytes into 'data', which thread (0,0,0) wrote");
}

constexpr const char* kTakesAtomic =
    "; both threads load it, change it and store it: if both are to add to it, use an atomic "
    "operation in both, such as atomicAdd; if it belongs to one of them, two threads have computed "
    "the same index: look at where it comes from";

TEST_CASE("the report of a race on global memory names both threads and both lines",
          "[simt][race]") {
  const std::string place = " at race_test.cu:" + std::to_string(kPlainUpdateLine);
  const std::string report = verdict_of(plain_update_kernel);
  CAPTURE(report);
  CHECK(contains(report, "plain_update_kernel" + place +
                             ", block (0,0,0), thread (1,0,0): race: reads 4 bytes, 0 bytes into "
                             "'data', which thread (0,0,0) wrote" +
                             place + kTakesAtomic + "; with the lanes of the warp in lockstep"));
  CHECK(!contains(report, "__syncwarp"));
  // Of one thread per block.
  check_contains(verdict_of(plain_update_kernel, 1),
                 {"block (1,0,0), thread (0,0,0): race: reads 4 bytes, 0 bytes into 'data', "
                  "which thread (0,0,0) of block (0,0,0) wrote" +
                  place + kTakesAtomic});
  const ScopedSettings restore;
  simt::settings().check_races = false;
  Buffer<int> data = zeros("data", kAll);
  CHECK(failure_of(plain_update_kernel, {kBlocks, kThreads}, data.data(), nullptr).empty());
}

// --- Litmus tests -------------------------------------------------------------------------------

// An operation on the word `x`, and what it has read.
LINE(kLitmusLine, 5);
__device__ int act_on_word(char operation, int* x) {
  int old = 0, assumed = 0;
  switch (operation) {
    // clang-format off
    case 'w': *x = 1; break;
    case 'r': old = *x; break;
    case '+': *x = *x + 1; break;
    case 'v': *static_cast<volatile int*>(x) = 1; break;
    case 'u': atomicAdd(x, 1); break;
    case 'U': atomicAdd_block(x, 1); break;
    case 'c':  // as in the CUDA C++ Programming Guide: a plain load, checked by atomicCAS
      old = *x;
      do { assumed = old; old = atomicCAS(x, assumed, assumed + 1); } while (old != assumed);
      break;
      // clang-format on
  }
  return old;
}

// One that orders others, or is on a flag. False: the thread returns.
__device__ bool act(char operation, int* flag, volatile unsigned long long* wide) {
  volatile int* const seen = flag;
  switch (operation) {
    // clang-format off
    case '|': __syncthreads(); break;
    case '~': __syncwarp(); break;
    case 's': __shfl_sync(~0u, 1, 0); break;
    case 'f': __threadfence(); break;
    case 'b': __threadfence_block(); break;
    // The flag is set, or the lock released: by an atomic, a volatile and a plain store. It is
    // waited for in two ways. The lock is taken; and blocks count, of which the last goes on.
    case 'A': atomicExch(flag, 1); break;
    case 'V': *seen = 1; break;
    case 'P': *flag = 1; break;
    case 'a': while (atomicAdd(flag, 0) == 0) continue; break;
    case 'p': while (*seen == 0) continue; break;
    case 'l': while (atomicCAS(flag, 0, 2) != 0) continue; break;
    case 'E': atomicExch(flag, 0); break;
    case 'F': *seen = 0; break;
    case 'G': *flag = 0; break;
    case 'n': return atomicInc(reinterpret_cast<unsigned*>(flag), gridDim.x - 1) == gridDim.x - 1;
    // Data and flag in one word of 64 bits.
    case 'O': *wide = 1ull << 32 | 5; break;
    case 'o': while (*wide >> 32 == 0) continue; break;
      // clang-format on
  }
  return true;
}

// Runs each thread's program, of one letter per operation; threads without a program return. In
// shared memory, or global. Blocks are numbered as they start: each waits for earlier ones.
template <bool kShared>
__global__ void litmus_kernel(const char* programs, int* data, int* flags) {
  __shared__ int word, shared_flag, ticket;
  if (threadIdx.x == 0) {
    word = shared_flag = 0;
    ticket = atomicAdd(flags + 1, 1);
  }
  __syncthreads();
  const int thread = ticket * kThreads + static_cast<int>(threadIdx.x);
  int old = 0;
  for (const char* next = programs + kProgram * thread; *next; ++next) {
    old += act_on_word(*next, kShared ? &word : data);
    auto* const wide = reinterpret_cast<unsigned long long*>(data + 2);
    if (!act(*next, kShared ? &shared_flag : flags, wide)) return;
  }
  if (old > 100000) flags[4 + thread] = 1;
}

// `threads`: "block.thread program" of each; `report`: what it must hold, or nothing if all is
// right.
template <bool kShared>
void check_litmus(const std::string& threads, const std::string& expected) {
  CAPTURE(kShared, threads);
  const Buffer<char> programs("programs", litmus_programs(threads, kBlocks, kThreads));
  const std::string report = verdict_of([&] {
    Buffer<int> data = zeros("data", 4), flags = zeros("flags", 4 + kAll);
    return failure_of(litmus_kernel<kShared>, {kBlocks, kThreads}, programs.data(), data.data(),
                      flags.data());
  });
  CHECK(report.empty() == expected.empty());
  if (expected.empty()) return;
  check_contains(report, {"race: ", expected, " at race_test.cu:"});
}

__global__ void barrier_in_if_kernel(int* data) {
  __shared__ int cells[64];
  cells[threadIdx.x] = 1;
  __syncthreads();
  for (unsigned d = 32; d > 0; d /= 2) {
    if (threadIdx.x < d) {
      cells[threadIdx.x] += cells[threadIdx.x + d];
      __syncthreads();
    }
  }
  data[threadIdx.x] = cells[0];
}
__global__ void counter_kernel(int* data) {  // data[0] counts, data[8 + n] belongs to who drew n
  const int drawn = data[0];
  atomicAdd(&data[0], 1);
  data[8 + drawn] += 1;
}

TEST_CASE("the remedy in the report of a race follows from the accesses", "[simt][race]") {
  const auto report_of = [](void (*kernel)(int*), unsigned blocks, unsigned threads) {
    Buffer<int> data = zeros("data", 80);
    return failure_of(kernel, {blocks, threads}, data.data());
  };
  check_contains(report_of(barrier_in_if_kernel, 1, 64),
                 {", with no __syncthreads between; thread (0,0,0) waits at the __syncthreads at "
                  "race_test.cu:",
                  " 6 times, thread (32,0,0) never: move the barrier out of the branch or loop"});
  check_contains(report_of(counter_kernel, 2, 1),
                 {"'data', which",
                  "reads it and updates it in two steps, and the other thread "
                  "comes between: use the value that the atomic operation returns"});
}

TEST_CASE("litmus: threads of a block race unless a barrier orders them", "[simt][race]") {
  // A shuffle and a fence order nothing; __syncwarp() orders lanes of one warp.
  for (const auto& row : litmus_table("races_of_threads")) {
    check_litmus<false>(row[0], row.size() > 1 ? row[1] : "");
    check_litmus<true>(row[0], row.size() > 1 ? row[1] : "");
  }
  // Who, where, what and with whom, in full.
  const std::string place = " at race_test.cu:" + std::to_string(kLitmusLine);
  const std::string report =
      place +
      ", block (0,0,0), thread (1,0,0): race: writes 4 bytes, 0 bytes into shared 'word', "
      "which thread (0,0,0) wrote" +
      place;
  check_litmus<true>("0.0 w  0.1 w", report);
  check_litmus<true>("0.0 +  0.1 +",
                     "give each thread an element of its own, put a __syncthreads between");
}

TEST_CASE("litmus: blocks race unless release and acquire order them", "[simt][race]") {
  for (const auto& row : litmus_table("races_of_blocks")) {
    check_litmus<false>(row[0], row.size() > 1 ? row[1] : "");
  }
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

TEST_CASE("__syncwarp orders the lanes that its mask names", "[simt][race]") {
  check_right(pairs_kernel<1>, 0);
  check_race(pairs_kernel<2>, "into shared 'cells'");
}

// In another order, the first thing that is wrong is no race.
__global__ void unwritten_neighbour_kernel(int*, int* flags) {
  __shared__ int mine[kThreads];
  mine[threadIdx.x] = 1;
  if (threadIdx.x > 0) flags[global_thread()] = mine[threadIdx.x - 1];
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
  check_contains(verdict_of(shift_kernel, kThreads, kAll),
                 {"block (5,0,0), thread (63,0,0): reads 4 bytes at an address that is"});
}

// --- Right kernels ------------------------------------------------------------------------------

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
