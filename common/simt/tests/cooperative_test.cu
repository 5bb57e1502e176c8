// Co-resident grids on one device and on several: grid barriers, flags, deadlocks, late stores.
#include <cooperative_groups.h>

#include <cuda/atomic>
#include <string>
#include <vector>

#include "simt/tests/testing.hpp"

namespace {

using namespace simt_test;
using spmv::device::launch_cooperative;
using spmv::device::OnDevice;
using spmv::device::Stream;

// Each thread adds up what all threads of the grid have written.
__global__ void sum_of_grid_kernel(int* values, int* sums) {
  const auto grid = cooperative_groups::this_grid();
  const int thread = static_cast<int>(grid.thread_rank());
  const int threads = static_cast<int>(grid.num_threads());
  for (int round = 0; round < 3; ++round) {
    values[thread] = thread + round;
    grid.sync();
    int sum = 0;
    for (int t = 0; t < threads; ++t) sum += values[t];
    sums[thread] = sum;
    grid.sync();
  }
}

// One of its two barriers is of the block alone: the one that reading needs, or the one behind it.
__global__ void unsynchronized_sum_kernel(bool before, int* values, int* sums) {
  const auto grid = cooperative_groups::this_grid();
  const int thread = static_cast<int>(grid.thread_rank());
  const int threads = static_cast<int>(grid.num_threads());
  for (int round = 0; round < 2; ++round) {
    values[thread] = thread + round;
    if (before) {
      __syncthreads();
    } else {
      grid.sync();
    }
    int sum = 0;
    for (int t = 0; t < threads; ++t) sum += values[t];
    sums[thread] = sum;
    if (before) {
      grid.sync();
    } else {
      __syncthreads();
    }
  }
}

// A barrier of the grid as one writes it oneself: right with the fence, a race without.
__global__ void own_barrier_kernel(bool fence, int* values, unsigned* arrivals, int* sums) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[thread] = thread;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (fence) __threadfence();
    atomicAdd(arrivals, 1u);
    while (atomicAdd(arrivals, 0u) < gridDim.x) {
    }
    if (fence) __threadfence();
  }
  __syncthreads();
  int sum = 0;
  for (unsigned t = 0; t < gridDim.x * blockDim.x; ++t) sum += values[t];
  sums[thread] = sum;
}

// What block 0 has learnt by a flag, the others know by the barrier of the grid. The flag must be a
// release: that barrier is no fence towards other grids.
template <cuda::memory_order order>
__global__ void told_by_barrier_kernel(bool tell, int* there, unsigned* flag_there, const int* here,
                                       unsigned* flag_here, int* result) {
  const auto grid = cooperative_groups::this_grid();
  there[grid.thread_rank()] = 1;
  grid.sync();
  if (grid.thread_rank() == 0) {
    cuda::atomic_ref<unsigned>(*flag_there).store(1, order);
    while (cuda::atomic_ref<unsigned>(*flag_here).load(cuda::memory_order_acquire) != 1) {
    }
  }
  if (tell) grid.sync();
  result[grid.thread_rank()] = here[grid.thread_rank()];
}

// Stores a value at the peer, says so, and waits for the peer's.
template <cuda::memory_order order>
__global__ void exchange_kernel(int own, int* there, unsigned* flag_there, const int* here,
                                unsigned* flag_here, int* result) {
  if (threadIdx.x == 0) {
    there[0] = own;
    cuda::atomic_ref<unsigned>(*flag_there).store(1, order);
    while (cuda::atomic_ref<unsigned>(*flag_here).load(cuda::memory_order_acquire) != 1) {
    }
    result[0] = here[0];
  }
}

// The value is stored by another thread than the flag, ordered by a barrier of the block.
__global__ void exchange_behind_barrier_kernel(int own, int* there, unsigned* flag_there,
                                               const int* here, unsigned* flag_here, int* result) {
  if (threadIdx.x == 1) there[0] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    cuda::atomic_ref<unsigned>(*flag_there).store(1, cuda::memory_order_relaxed);
    while (cuda::atomic_ref<unsigned>(*flag_here).load(cuda::memory_order_acquire) != 1) {
    }
    result[0] = here[0];
  }
}

__global__ void wait_kernel(unsigned* flag) {
  while (cuda::atomic_ref<unsigned>(*flag).load(cuda::memory_order_acquire) != 1) {
  }
}

__global__ void read_back_kernel(volatile int* there, int* result) {
  there[threadIdx.x] = static_cast<int>(threadIdx.x) + 7;
  result[threadIdx.x] = there[threadIdx.x];
}

__global__ void overrun_kernel(int* values, unsigned* flag) {
  if (blockIdx.x == 1) values[100000] = 1;
  while (cuda::atomic_ref<unsigned>(*flag).load(cuda::memory_order_acquire) != 1) {
  }
}

// Two devices that may use each other's memory, each with a value, a flag, a result and a stream.
struct Pair {
  Pair() {
    simt::settings().devices = 2;
    for (int d = 0; d < 2; ++d) {
      const OnDevice on(d);
      values.emplace_back("value", std::vector<int>{-1});
      flags.emplace_back("flag", std::vector<unsigned>{0});
      results.emplace_back("result", std::vector<int>{-2});
      streams.emplace_back();
    }
    for (int d = 0; d < 2; ++d) {
      CHECK(spmv::device::enable_peer_access(d, 1 - d));
    }
  }
  template <typename Kernel>
  std::vector<int> exchange(Kernel kernel) {
    for (int d = 0; d < 2; ++d) {
      const OnDevice on(d);
      launch_cooperative(kernel, {dim3(1), dim3(32), 0, streams[d].get()}, 100 + d,
                         values[1 - d].data(), flags[1 - d].data(), values[d].data(),
                         flags[d].data(), results[d].data());
    }
    for (const Stream& stream : streams) stream.synchronize();
    return {results[0].download()[0], results[1].download()[0]};
  }
  ScopedSettings restore;
  std::vector<Buffer<int>> values, results;
  std::vector<Buffer<unsigned>> flags;
  std::vector<Stream> streams;
};

const std::vector<int> kExchanged{101, 100};

}  // namespace

TEST_CASE("cooperative: a grid's blocks meet, in every schedule", "[simt]") {
  under_every_schedule([] {
    constexpr int kThreads = 3 * 40;
    Buffer<int> values("values", kThreads), sums("sums", kThreads);
    const Stream stream;
    launch_cooperative(sum_of_grid_kernel, {dim3(3), dim3(40), 0, stream.get()}, values.data(),
                       sums.data());
    stream.synchronize();
    CHECK(sums.download() ==
          std::vector<int>(kThreads, kThreads * (kThreads - 1) / 2 + 2 * kThreads));
    // On the default stream it runs at once.
    launch_cooperative(sum_of_grid_kernel, {dim3(3), dim3(40)}, values.data(), sums.data());
    CHECK(sums.download()[0] == kThreads * (kThreads - 1) / 2 + 2 * kThreads);
  });
}

// A lane waits for the other block; the rest of its warp waits for it.
__global__ void wait_then_meet_kernel(int* arrived, unsigned* masks) {
  if (threadIdx.x == 3) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {
    }
  }
  masks[32 * blockIdx.x + threadIdx.x] = __activemask();
}

TEST_CASE("cooperative: the active mask holds a lane that waits for a block", "[simt]") {
  under_every_schedule([] {
    Buffer<int> arrived("arrived", std::vector<int>(1));
    Buffer<unsigned> masks("masks", 64);
    launch_cooperative(wait_then_meet_kernel, {dim3(2), dim3(32)}, arrived.data(), masks.data());
    CHECK(masks.download() == std::vector<unsigned>(64, ~0u));
  });
}

TEST_CASE("cooperative: what must not be", "[simt]") {
  const ScopedSettings restore;
  Buffer<int> values("values", 4096), sums("sums", 4096);
  simt::settings().multiprocessors = 2;
  CHECK(contains(report_of([&] {
                   launch(sum_of_grid_kernel, {dim3(2), dim3(32)}, values.data(), sums.data());
                 }),
                 "not launched as a cooperative one"));
}

TEST_CASE("cooperative: grids of two devices wait for each other", "[simt]") {
  under_every_schedule([] {
    Pair pair;
    CHECK(pair.exchange(exchange_kernel<cuda::memory_order_release>) == kExchanged);
  });
}

TEST_CASE("cooperative: late stores show a missing order, and only that", "[simt]") {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair;
    simt::settings().schedule = simt::Schedule::kRandom;
    simt::settings().seed = seed;
    simt::settings().late_peer_stores = true;
    CHECK(pair.exchange(exchange_kernel<cuda::memory_order_release>) == kExchanged);
    pair.flags[0].upload({0});
    pair.flags[1].upload({0});
    CHECK(pair.exchange(exchange_behind_barrier_kernel) == kExchanged);
    for (int d = 0; d < 2; ++d) {
      pair.flags[d].upload({0});
      pair.values[d].upload({-1});
    }
    simt::settings().check_races = false;
    const std::vector<int> first = pair.exchange(exchange_kernel<cuda::memory_order_relaxed>);
    wrong += first != kExchanged;
    // The same again: the same result.
    for (int d = 0; d < 2; ++d) {
      pair.flags[d].upload({0});
      pair.values[d].upload({-1});
    }
    CHECK(pair.exchange(exchange_kernel<cuda::memory_order_relaxed>) == first);
  }
  CHECK((wrong > 0) == simt::is_instrumented());
}

TEST_CASE("cooperative: a thread finds what it has stored itself", "[simt]") {
  Pair pair;
  simt::settings().late_peer_stores = true;
  Buffer<int> there, result("result", 32);
  {
    const OnDevice on(1);
    there = Buffer<int>("there", 32);
  }
  launch_cooperative(read_back_kernel, {dim3(1), dim3(32), 0, pair.streams[0].get()}, there.data(),
                     result.data());
  pair.streams[0].synchronize();
  CHECK(result.download() == there.download());
  CHECK(there.download()[31] == 38);
}

TEST_CASE("cooperative: a deadlock names device, block, line and flag", "[simt]") {
  for (const unsigned workers : {1u, 4u}) {
    Pair pair;
    simt::settings().workers = workers;
    for (int d = 0; d < 2; ++d) {
      const OnDevice on(d);
      launch_cooperative(wait_kernel, {dim3(2), dim3(32), 0, pair.streams[d].get()},
                         pair.flags[d].data());
    }
    const std::string report = report_of([&] { pair.streams[0].synchronize(); });
    INFO(report);
    CHECK(contains(report, "deadlock: no block can go on before another one does"));
    CHECK(contains(report, "device 1, block (1,0,0), thread (0,0,0) polls memory"));
    CHECK(contains(report, "0 bytes into 'flag', where it finds 0"));
    CHECK(contains(report, "cooperative_test.cu:"));
  }
}

TEST_CASE("cooperative: a kernel waits for another process, but not for ever", "[simt]") {
  const ScopedSettings restore;
  simt::settings().spin_limit_seconds = 0.5;
  Buffer<unsigned> flag("flag", std::vector<unsigned>{0});
  cudaIpcMemHandle_t handle;
  REQUIRE(cudaIpcGetMemHandle(&handle, flag.data()) == cudaSuccess);
  const Stream stream;
  const auto run = [&] {
    launch_cooperative(wait_kernel, {dim3(2), dim3(64), 0, stream.get()}, flag.data());
    stream.synchronize();
  };
  const OtherProcess other([&] {
    void* there = nullptr;
    if (cudaIpcOpenMemHandle(&there, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
      return 1;
    }
    usleep(50'000);
    const unsigned one = 1;
    return cudaMemcpy(there, &one, sizeof one, cudaMemcpyHostToDevice) == cudaSuccess ? 0 : 1;
  });
  CHECK(report_of(run) == "");
  CHECK(other.status() == 0);
  flag.upload({0});
  const std::string text = report_of(run);
  INFO(text);
  CHECK(contains(text, "deadlock"));
  CHECK(contains(text, "0 bytes into 'flag', where it finds 0"));
}

TEST_CASE("cooperative: a block that fails ends all grids with one report", "[simt]") {
  if (lacks_instrumentation()) return;
  Pair pair;
  for (int d = 0; d < 2; ++d) {
    const OnDevice on(d);
    launch_cooperative(overrun_kernel, {dim3(2), dim3(32), 0, pair.streams[d].get()},
                       pair.values[d].data(), pair.flags[d].data());
  }
  const std::string report = report_of([&] { pair.streams[0].synchronize(); });
  INFO(report);
  CHECK(contains(report, "into 'value', which has 4"));
}

TEST_CASE("cooperative: what crosses the link is counted apart", "[simt]") {
  if (lacks_instrumentation()) return;
  Pair pair;
  Buffer<int> there, result("result", 32);
  {
    const OnDevice on(1);
    there = Buffer<int>("there", 32);
  }
  simt::start_profile();
  launch_cooperative(read_back_kernel, {dim3(1), dim3(32), 0, pair.streams[0].get()}, there.data(),
                     result.data());
  pair.streams[0].synchronize();
  const simt::Profile profile = simt::stop_profile();
  int peer = 0, own = 0;
  for (const auto& [key, counts] : profile.accesses) {
    if (key.space == simt::Space::kPeer) {
      ++peer;
      CHECK(key.array == "there");
      CHECK(counts.requests == 1);
      CHECK(counts.sectors == 4);
    }
    own += key.space == simt::Space::kGlobal;
  }
  CHECK(peer == 2);  // a store and a load
  CHECK(own == 1);
}

TEST_CASE("cooperative: races between blocks and between devices", "[simt]") {
  if (lacks_instrumentation()) return;
  under_every_schedule([] {
    constexpr int kThreads = 3 * 40;
    Buffer<int> values("values", std::vector<int>(kThreads)), sums("sums", kThreads);
    const Stream stream;
    const auto race_of = [&](auto kernel, auto... arguments) {
      return report_of([&] {
        launch_cooperative(kernel, {dim3(3), dim3(40), 0, stream.get()}, arguments...);
        stream.synchronize();
      });
    };
    const std::string behind =
        race_of(unsynchronized_sum_kernel, false, values.data(), sums.data());
    INFO(behind);
    CHECK(contains(behind, "kernel unsynchronized_sum_kernel at cooperative_test.cu:"));
    CHECK(contains(behind, "race: "));
    CHECK(contains(behind, " bytes into 'values', which thread ("));
    CHECK(contains(behind, " of block ("));
    const std::string before = race_of(unsynchronized_sum_kernel, true, values.data(), sums.data());
    INFO(before);
    CHECK(contains(before, "race: "));
    CHECK(contains(before, " of block ("));

    for (const bool fence : {true, false}) {
      Buffer<unsigned> arrivals("arrivals", std::vector<unsigned>(1));
      const std::string own =
          race_of(own_barrier_kernel, fence, values.data(), arrivals.data(), sums.data());
      INFO(own);
      CHECK(contains(own, "race: reads 4 bytes") == !fence);
      CHECK(own.empty() == fence);
    }
  });
  under_every_schedule([] {
    const simt::Settings schedule = simt::settings();
    Pair pair;
    simt::settings().schedule = schedule.schedule;
    simt::settings().seed = schedule.seed;
    CHECK(contains(report_of([&] { pair.exchange(exchange_kernel<cuda::memory_order_relaxed>); }),
                   "race: reads 4 bytes, 0 bytes into 'value', which thread (0,0,0) of block "
                   "(0,0,0) of device "));
    constexpr auto kReleased = told_by_barrier_kernel<cuda::memory_order_release>;
    constexpr auto kRelaxed = told_by_barrier_kernel<cuda::memory_order_relaxed>;
    for (const auto& [kernel, tell] :
         {std::pair{kReleased, true}, {kReleased, false}, {kRelaxed, true}}) {
      const bool is_right = kernel == kReleased && tell;
      std::vector<Buffer<int>> here, results;
      for (int d = 0; d < 2; ++d) {
        const OnDevice on(d);
        here.emplace_back("here", std::vector<int>(64));
        results.emplace_back("results", 64);
        pair.flags[d].upload({0});
      }
      const std::string report = report_of([&] {
        for (int d = 0; d < 2; ++d) {
          const OnDevice on(d);
          launch_cooperative(kernel, {dim3(2), dim3(32), 0, pair.streams[d].get()}, tell,
                             here[1 - d].data(), pair.flags[1 - d].data(), here[d].data(),
                             pair.flags[d].data(), results[d].data());
        }
        for (const Stream& stream : pair.streams) stream.synchronize();
      });
      INFO(report);
      CHECK(contains(report, "into 'here', which thread (") == !is_right);
      CHECK(report.empty() == is_right);
    }
  });
}
