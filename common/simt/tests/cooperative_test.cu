// Co-resident grids on one device and on several: grid barriers, flags, deadlocks, late stores.
#include <cooperative_groups.h>

#include <cassert>
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
__global__ void sum_of_grid_kernel(int* values) {
  const auto grid = cooperative_groups::this_grid();
  const int thread = static_cast<int>(grid.thread_rank());
  const int threads = static_cast<int>(grid.num_threads());
  for (int round = 0; round < 3; ++round) {
    values[thread] = thread + round;
    grid.sync();
    int sum = 0;
    for (int t = 0; t < threads; ++t) sum += values[t];
    assert(sum == threads * (threads - 1) / 2 + round * threads);
    grid.sync();
  }
}

// Runs each thread's program, of one letter per operation on words and flags, of this device and of
// the other one; threads without a program return.
__global__ void litmus_kernel(const char* programs, int* here, int* there, unsigned* flag_here,
                              unsigned* flag_there, int* result) {
  const auto grid = cooperative_groups::this_grid();
  const int thread = static_cast<int>(grid.thread_rank());
  const cuda::atomic_ref<unsigned> set(*flag_there), seen(*flag_here);
  for (const char* next = programs + kProgram * thread; *next; ++next) {
    switch (*next) {
      // clang-format off
      case '|': __syncthreads(); break;
      case 'g': grid.sync(); break;
      case 'f': __threadfence_system(); break;
      case 'w': *there = 1; break;
      case 'W': *here = 1; break;
      case 'r': result[thread] = *here; break;
      // The other device's flag is set, and the own one waited for.
      case 'R': set.store(1, cuda::memory_order_release); break;
      case 'X': set.store(1, cuda::memory_order_relaxed); break;
      case 'A': while (seen.load(cuda::memory_order_acquire) != 1) continue; break;
      case 'Q': while (seen.load(cuda::memory_order_relaxed) != 1) continue; break;
      // Two threads of the grid wait for each other.
      case 'n': atomicAdd(flag_here, 1u); while (atomicAdd(flag_here, 0u) < 2) continue; break;
        // clang-format on
    }
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
      values.emplace_back("value", std::vector<int>{0});
      flags.emplace_back("flag", std::vector<unsigned>{0});
      results.emplace_back("result", std::vector<int>(64));
      streams.emplace_back();
    }
    for (int d = 0; d < 2; ++d) CHECK(spmv::device::enable_peer_access(d, 1 - d));
  }
  // Runs litmus_kernel() on both, each with its programs, "block.thread program" of each, in two
  // blocks. Returns what they have read.
  std::vector<int> run(const std::string& first, const std::string& second,
                       bool on_default = false) {
    std::vector<Buffer<char>> programs;
    for (int d = 0; d < 2; ++d) {
      const OnDevice on(d);
      programs.emplace_back("programs", litmus_programs(d == 0 ? first : second, 2, 32));
      values[d].upload({0});
      flags[d].upload({0});
    }
    for (int d = 0; d < 2; ++d) {
      const OnDevice on(d);
      launch_cooperative(litmus_kernel,
                         {dim3(2), dim3(32), 0, on_default ? nullptr : streams[d].get()},
                         programs[d].data(), values[d].data(), values[1 - d].data(),
                         flags[d].data(), flags[1 - d].data(), results[d].data());
    }
    for (int d = 0; d < 2; ++d) {
      const OnDevice on(d);
      spmv::device::check(cudaStreamSynchronize(on_default ? nullptr : streams[d].get()),
                          "waiting");
    }
    std::vector<int> read = results[0].download();
    for (const int value : results[1].download()) read.push_back(value);
    return read;
  }
  ScopedSettings restore;
  std::vector<Buffer<int>> values, results;
  std::vector<Buffer<unsigned>> flags;
  std::vector<Stream> streams;
};

}  // namespace

TEST_CASE("cooperative: a grid's blocks meet, in every schedule", "[simt]") {
  under_every_schedule([] {
    Buffer<int> values("values", 3 * 40);
    const Stream stream;
    launch_cooperative(sum_of_grid_kernel, {dim3(3), dim3(40), 0, stream.get()}, values.data());
    CHECK(values.download()[0] == -1);  // nothing has waited for it
    stream.synchronize();
    CHECK(values.download()[0] == 2);
    // A plain copy waits for the default stream.
    values.upload(std::vector<int>(3 * 40, 7));
    launch_cooperative(sum_of_grid_kernel, {dim3(3), dim3(40)}, values.data());
    CHECK(values.download()[0] == 2);
  });
}

// A lane waits for the other block, beside lanes that wait at __activemask().
__global__ void wait_then_meet_kernel(int* arrived) {
  if (threadIdx.x == 3) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {
    }
  }
  assert(__activemask() >> threadIdx.x & 1);
}

TEST_CASE("cooperative: a lane waits for a block while others ask who is there", "[simt]") {
  under_every_schedule([] {
    Buffer<int> arrived("arrived", std::vector<int>(1));
    launch_cooperative(wait_then_meet_kernel, {dim3(2), dim3(32)}, arrived.data());
    CHECK(arrived.download()[0] == 2);
  });
}

TEST_CASE("cooperative: on the default streams of devices, all run together", "[simt]") {
  under_every_schedule([] {
    Pair pair;
    const std::vector<int> read = pair.run("0.0 wRAr", "0.0 wRAr", true);
    CHECK(read[0] + read[64] == 2);
    // What a blocking stream is asked for next waits for them.
    cudaStream_t blocking = nullptr;
    CHECK(cudaStreamCreate(&blocking) == cudaSuccess);
    Buffer<int> values("values", 3 * 40);
    launch_cooperative(sum_of_grid_kernel, {dim3(3), dim3(40)}, values.data());
    CHECK(cudaMemsetAsync(values.data(), 0, sizeof(int), blocking) == cudaSuccess);
    CHECK(cudaStreamSynchronize(blocking) == cudaSuccess);
    CHECK(values.download()[0] == 0);
    CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
  });
}

TEST_CASE("cooperative: what must not be", "[simt]") {
  Buffer<int> values("values", 4096);
  CHECK(contains(failure_of(sum_of_grid_kernel, {2, 32}, values.data()),
                 "not launched as a cooperative one"));
}

TEST_CASE("cooperative: late stores show a missing order, and only that", "[simt]") {
  int wrong = 0;
  const auto received = [](const std::vector<int>& read) { return read[0] + read[64]; };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair;
    simt::settings().schedule = simt::Schedule::kRandom;
    simt::settings().seed = seed;
    simt::settings().late_peer_stores = true;
    CHECK(received(pair.run("0.0 wRAr", "0.0 wRAr")) == 2);
    // Stored by another thread than the flag, ordered by a barrier of the block.
    CHECK(received(pair.run("0.1 w|  0.0 |fXAr", "0.1 w|  0.0 |fXAr")) == 2);
    simt::settings().check_races = false;
    const int first = received(pair.run("0.0 wXAr", "0.0 wXAr"));
    wrong += first != 2;
    CHECK(received(pair.run("0.0 wXAr", "0.0 wXAr")) == first);
  }
  CHECK(wrong > 0);
}

TEST_CASE("cooperative: a thread finds what it has stored itself, late or not", "[simt]") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    Pair pair;
    simt::settings().late_peer_stores = late;
    Buffer<int> there, result("result", 32);
    {
      const OnDevice on(1);
      there = Buffer<int>("there", 32);
    }
    simt::start_profile();
    launch_cooperative(read_back_kernel, {dim3(1), dim3(32), 0, pair.streams[0].get()},
                       there.data(), result.data());
    pair.streams[0].synchronize();
    const simt::Profile profile = simt::stop_profile();
    CHECK(result.download() == there.download());
    CHECK(there.download()[31] == 38);
    // What crosses the link is counted apart.
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
    check_contains(report, {"deadlock: no block can go on before another one does",
                            "device 1, block (1,0,0), thread (0,0,0) polls memory",
                            "0 bytes into 'flag', where it finds 0", "cooperative_test.cu:"});
  }
}

TEST_CASE("cooperative: a block that fails ends all grids with one report", "[simt]") {
  Pair pair;
  for (int d = 0; d < 2; ++d) {
    const OnDevice on(d);
    launch_cooperative(overrun_kernel, {dim3(2), dim3(32), 0, pair.streams[d].get()},
                       pair.values[d].data(), pair.flags[d].data());
  }
  check_contains(report_of([&] { pair.streams[0].synchronize(); }), {"into 'value', which has 4"});
}

TEST_CASE("litmus: blocks of resident grids, and devices", "[simt]") {
  // The first thread of every block comes to each barrier of its grid.
  under_every_schedule([&] {
    const simt::Settings schedule = simt::settings();
    Pair pair;
    simt::settings().schedule = schedule.schedule;
    simt::settings().seed = schedule.seed;
    for (const auto& row : litmus_table("races_of_devices")) {
      const std::string report = report_of([&] { pair.run(row[0], row[1]); });
      CAPTURE(row[0], row[1], report);
      CHECK(report.empty() == (row[2] == "right"));
      if (report.empty()) continue;
      check_contains(report, {"kernel litmus_kernel at cooperative_test.cu:", "race: ",
                              " of device ", " 4 bytes, 0 bytes into 'value', which thread ("});
    }
  });
}
