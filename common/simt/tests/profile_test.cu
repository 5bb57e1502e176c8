// CUDA on the CPU: the counts of what kernels ask of memory, on patterns whose counts are known.
#include <algorithm>

#include "simt/shared_memory.hpp"
#include "simt/tests/testing.hpp"

namespace simt_test {

using simt::Access;
using simt::AccessCounts;
using simt::Profile;
using simt::Space;

// (clang leaves out loads that a store to the same address follows, and narrows vector loads of
// which one member is used: the kernels here have neither.)

template <typename... Parameters, typename... Arguments>
Profile profile_of(void (*kernel)(Parameters...), const Shape& shape, Arguments&&... arguments) {
  simt::start_profile();
  launch(kernel, shape, std::forward<Arguments>(arguments)...);
  return simt::stop_profile();
}

// The counts of all accesses of one kind to one array.
AccessCounts counts(const Profile& profile, const std::string& array,
                    Access access = Access::kLoad) {
  AccessCounts sum;
  for (const auto& [key, value] : profile.accesses) {
    if (key.array == array && key.access == access) sum += value;
  }
  return sum;
}

struct Expected {
  std::uint64_t requests, lanes, bytes_used, sectors, ideal_sectors;
  std::uint64_t lines = 0, ideal_lines = 0;  // 0: not looked at
};

void check_global(const AccessCounts& got, const Expected& expected) {
  CHECK(got.requests == expected.requests);
  CHECK(got.lanes == expected.lanes);
  CHECK(got.bytes_used == expected.bytes_used);
  CHECK(got.sectors == expected.sectors);
  CHECK(got.ideal_sectors == expected.ideal_sectors);
  if (expected.lines) CHECK(got.lines == expected.lines);
  if (expected.lines) CHECK(got.ideal_lines == expected.ideal_lines);
  CHECK(got.passes == 0);
}

// --- Global memory ------------------------------------------------------------------------------

template <typename T>
__global__ void strided_kernel(int threads, int stride, int offset, const T* in, T* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) out[i] = in[i * stride + offset];
}

template <typename T>
AccessCounts strided(int threads, int stride, int offset) {
  const Buffer<T> in("in", std::vector<T>(10000));
  Buffer<T> out("out", 64);
  const Profile profile =
      profile_of(strided_kernel<T>, {2, 32}, threads, stride, offset, in.data(), out.data());
  // What is stored lies together in every one of these.
  const auto bytes = static_cast<std::uint64_t>(threads) * sizeof(T);
  const std::uint64_t requests = threads > 32 ? 2 : 1;
  check_global(
      counts(profile, "out", Access::kStore),
      {requests, static_cast<std::uint64_t>(threads), bytes, (bytes + 31) / 32, (bytes + 31) / 32});
  CHECK(counts(profile, "out").requests == 0);
  CHECK(profile.accesses.size() == 2);
  return counts(profile, "in");
}

TEST_CASE("sectors and lines of global memory", "[simt]") {
  check_global(strided<float>(64, 1, 0), {2, 64, 256, 8, 8, 2, 2});
  check_global(strided<int>(64, 1, 0), {2, 64, 256, 8, 8, 2, 2});
  check_global(strided<double>(64, 1, 0), {2, 64, 512, 16, 16, 4, 4});
  check_global(strided<unsigned char>(64, 1, 0), {2, 64, 64, 2, 2, 2, 2});
  check_global(strided<short>(64, 1, 0), {2, 64, 128, 4, 4, 2, 2});
  // Apart.
  check_global(strided<float>(64, 2, 0), {2, 64, 256, 16, 8, 4, 2});
  check_global(strided<double>(64, 2, 0), {2, 64, 512, 32, 16, 8, 4});
  check_global(strided<float>(64, 32, 0), {2, 64, 256, 64, 8, 64, 2});
  check_global(strided<double>(64, 32, 0), {2, 64, 512, 64, 16, 64, 4});
  // All at one address.
  check_global(strided<float>(64, 0, 5), {2, 64, 8, 2, 2, 2, 2});
  check_global(strided<double>(64, 0, 5), {2, 64, 16, 2, 2, 2, 2});
  // One element off, and a sector.
  check_global(strided<float>(64, 1, 1), {2, 64, 256, 10, 8, 4, 2});
  check_global(strided<double>(64, 1, 1), {2, 64, 512, 18, 16, 6, 4});
  check_global(strided<float>(64, 1, 8), {2, 64, 256, 8, 8, 4, 2});
  // Backwards.
  check_global(strided<float>(64, -1, 63), {2, 64, 256, 8, 8, 2, 2});
  check_global(strided<double>(64, -2, 200), {2, 64, 512, 34, 16, 10, 4});
  // Part of a warp.
  check_global(strided<float>(16, 1, 0), {1, 16, 64, 2, 2, 1, 1});
  check_global(strided<float>(48, 1, 0), {2, 48, 192, 6, 6, 2, 2});
  check_global(strided<double>(1, 1, 0), {1, 1, 8, 1, 1, 1, 1});
}

template <typename Vector>
__global__ void vectors_kernel(const Vector* in, Vector* out) {
  out[threadIdx.x] = __ldg(&in[threadIdx.x]);
}

template <typename Vector>
void check_vectors(const Expected& expected, std::uint64_t repeated_sectors = 0) {
  const Buffer<Vector> in("in", std::vector<Vector>(32));
  Buffer<Vector> out("out", 32);
  const Profile profile = profile_of(vectors_kernel<Vector>, {1, 32}, in.data(), out.data());
  check_global(counts(profile, "in"), expected);
  check_global(counts(profile, "out", Access::kStore), expected);
  CHECK(counts(profile, "in").repeated_sectors == repeated_sectors);
}

TEST_CASE("vectors of up to 16 bytes are one request", "[simt]") {
  check_vectors<float4>({1, 32, 512, 16, 16, 4, 4});
  check_vectors<double2>({1, 32, 512, 16, 16, 4, 4});
  check_vectors<int2>({1, 32, 256, 8, 8, 2, 2});
  // Two halves of 16 bytes, each of which touches every sector.
  check_vectors<double4>({2, 64, 1024, 64, 32, 16, 8}, 32);
}

// Thread by thread, or all of it by one thread.
__global__ void copy_kernel(bool serial, int ints, const int* in, int* out) {
  const int first = static_cast<int>(threadIdx.x) * ints;
  if (serial) ints *= threadIdx.x == 0 ? static_cast<int>(blockDim.x) : 0;
  memcpy(out + first, in + first, static_cast<std::size_t>(ints) * sizeof(int));
}

TEST_CASE("copies count as loads and stores of up to 16 bytes", "[simt]") {
  const Buffer<int> in("in", std::vector<int>(32 * 8));
  Buffer<int> out("out", 32 * 8);
  for (const bool serial : {false, true}) {
    const Profile profile = profile_of(copy_kernel, {1, 32}, serial, 8, in.data(), out.data());
    const std::uint64_t requests = serial ? 64 : 2, sectors = serial ? 64 : 2 * 32;
    for (const Access access : {Access::kLoad, Access::kStore}) {
      const std::string array = access == Access::kLoad ? "in" : "out";
      check_global(counts(profile, array, access),
                   {requests, 64, 1024, sectors, serial ? 64u : 32u});
    }
  }
}

// --- Lines of lanes -----------------------------------------------------------------------------

// A loop twice; between the two the lanes meet.
__global__ void regroup_kernel(bool meet, const float* in, float* out) {
  const int lane = threadIdx.x;
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    for (int k = 0; k < (lane < 16 ? 3 : 1); ++k) sum += in[32 * k + lane];
    if (meet) sum += __shfl_xor_sync(~0u, sum, 1);
  }
  out[lane] = sum;
}

// Groups of eight lanes, each with a row of its own, that only meet among themselves.
__global__ void groups_kernel(const int* lengths, const float* in, float* out) {
  const int lane = threadIdx.x;
  const int group = lane / 8;
  const unsigned mask = 0xffu << 8 * group;
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    for (int k = 0; k < lengths[group]; ++k) sum += in[32 * k + lane];
    for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(mask, sum, d);
  }
  out[lane] = sum;
}

// Half of the lanes leave after the load that all of them made.
__global__ void leave_kernel(const float* in, float* out) {
  float value = in[threadIdx.x];
  out[threadIdx.x] = value;
  if (threadIdx.x % 2) return;
  value += __shfl_xor_sync(~0u, value, 2);
  out[threadIdx.x] = value;
}

__global__ void two_arrays_kernel(const float* a, const float* b, float* out) {
  const float* const from = threadIdx.x < 8 ? a : b;
  out[threadIdx.x] = from[threadIdx.x];
}

TEST_CASE("lanes are lined up as the hardware would", "[simt]") {
  const Buffer<float> in("in", std::vector<float>(1024)), other("other", std::vector<float>(1024));
  Buffer<float> out("out", 64);

  // Where lanes meet, they start a request together again.
  for (const bool meet : {true, false}) {
    const Profile profile = profile_of(regroup_kernel, {1, 32}, meet, in.data(), out.data());
    check_global(counts(profile, "in"), {6, 2 * 64, 2 * 256, 2 * 8, 2 * 8});
  }

  // Groups that reach one instruction go on from it in step, whatever their masks.
  const Buffer<int> lengths("lengths", std::vector<int>{1, 4, 2, 0});
  Profile profile = profile_of(groups_kernel, {1, 32}, lengths.data(), in.data(), out.data());
  check_global(counts(profile, "in"), {8, 2 * 7 * 8, 2 * 7 * 32, 2 * 7, 2 * 7});

  profile = profile_of(leave_kernel, {1, 32}, in.data(), out.data());
  check_global(counts(profile, "in"), {1, 32, 128, 4, 4});

  // One instruction, two arrays: counted for each.
  profile = profile_of(two_arrays_kernel, {1, 32}, in.data(), other.data(), out.data());
  check_global(counts(profile, "in"), {1, 8, 32, 1, 1});
  check_global(counts(profile, "other"), {1, 24, 96, 3, 3});
}

// --- Lanes that wait ----------------------------------------------------------------------------

// Lane i loads in turns 0 to 7 of which bit i % 8 of `turns` is set.
__global__ void skipping_kernel(const int* turns, const float* in, float* out) {
  const int lane = threadIdx.x;
  const int mine = turns[lane];
  float sum = 0;
  for (int turn = 0; turn < 8; ++turn) {
    if (!(mine >> turn & 1)) continue;
    sum += in[32 * turn + lane];
  }
  out[lane] = sum;
}

// Rows of in[], one after the other, with no meeting between them; each lane `rows` of them.
__global__ void rows_kernel(int rows, const int* lengths, const float* in, float* out) {
  const int lane = threadIdx.x;
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int k = 0; k < lengths[32 * row + lane]; ++k) {
      sum += in[32 * k + lane];
      if (sum > 1e30f) break;
    }
    out[32 * row + lane] = sum;
  }
}

TEST_CASE("lanes wait for each other behind loops and branches", "[simt]") {
  const Buffer<float> in("in", std::vector<float>(1024));
  Buffer<float> out("out", 1024);
  Rng random(7);
  std::vector<int> turns(32), lengths(10 * 32);
  for (int& t : turns) t = static_cast<int>(random.below(256)) & 0xef;  // nobody in turn 4
  for (int& length : lengths) length = static_cast<int>(random.below(20));

  const Buffer<int> device_turns("turns", turns);
  AccessCounts got = counts(
      profile_of(skipping_kernel, {1, 32}, device_turns.data(), in.data(), out.data()), "in");
  std::uint64_t lanes = 0;
  for (const int t : turns) lanes += static_cast<std::uint64_t>(__builtin_popcount(t));
  CHECK(got.requests == 7);
  CHECK(got.lanes == lanes);

  // Each row lasts as long as its longest lane.
  const Buffer<int> device_lengths("lengths", lengths);
  std::uint64_t requests = 0;
  lanes = 0;
  for (int row = 0; row < 10; ++row) {
    int longest = 0;
    for (int lane = 0; lane < 32; ++lane) {
      longest = std::max(longest, lengths[32 * row + lane]);
      lanes += static_cast<std::uint64_t>(lengths[32 * row + lane]);
    }
    requests += static_cast<std::uint64_t>(longest);
  }
  under_every_schedule([&] {
    const Profile profile =
        profile_of(rows_kernel, {1, 32}, 10, device_lengths.data(), in.data(), out.data());
    got = counts(profile, "in");
    CHECK(got.requests == requests);
    CHECK(got.lanes == lanes);
    check_global(counts(profile, "out", Access::kStore), {10, 320, 1280, 40, 40});
  });
}

// --- Kernels as a whole -------------------------------------------------------------------------

__global__ void uneven_kernel(const float* in, float* out) {
  __shared__ float sums[64];
  float sum = 0;
  // Only thread 0 of block 1 has work.
  for (int k = 0; blockIdx.x == 1 && threadIdx.x == 0 && k < 100; ++k) sum += in[k];
  sum += __shfl_xor_sync(~0u, sum, 1);
  sums[threadIdx.x] = sum;
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = sums[63 - threadIdx.x];
}

// Lanes leave the loop eight at a time.
__global__ void active_loop_kernel(int* out) {
  int lanes = 0;
  for (unsigned i = 0; i <= threadIdx.x / 8; ++i) lanes += __popc(__activemask());
  out[threadIdx.x] = lanes;
}

TEST_CASE("meetings, and how work is spread", "[simt]") {
  Buffer<int> lanes("lanes", 32);
  const AccessCounts active = counts(profile_of(active_loop_kernel, {1, 32}, lanes.data()),
                                     "__activemask", Access::kWarpOperation);
  CHECK(active.requests == 4);
  CHECK(active.lanes == 32 + 24 + 16 + 8);
  CHECK(lanes.download()[31] == 32 + 24 + 16 + 8);

  const Buffer<float> in("in", std::vector<float>(100));
  Buffer<float> out("out", 4 * 64);
  const Profile profile = profile_of(uneven_kernel, {4, 64}, in.data(), out.data());
  REQUIRE(profile.kernels.size() == 1);
  const simt::KernelCounts& kernel = profile.kernels.begin()->second;
  CHECK(profile.order == std::vector<const void*>{profile.kernels.begin()->first});
  CHECK(kernel.launches == 1);
  CHECK(kernel.barriers == 4);
  CHECK(kernel.blocks.parts == 4);
  CHECK(kernel.warps.parts == 8);
  CHECK(kernel.lanes.parts == 256);
  // 3 accesses of everybody, 100 of one.
  CHECK(kernel.lanes.total == 3 * 256 + 100);
  CHECK(kernel.lanes.most == 103);
  CHECK(kernel.warps.total == 3 * 8 + 100);
  CHECK(kernel.warps.most == 103);
  CHECK(kernel.blocks.most == 106);
  CHECK(kernel.blocks.unevenness() == Approx(106.0 * 4 / 124));

  const AccessCounts barrier = counts(profile, "__syncthreads", Access::kBarrier);
  CHECK(barrier.requests == 8);
  CHECK(barrier.lanes == 256);
  CHECK(barrier.sectors == 0);
  CHECK(counts(profile, "__shfl_xor_sync", Access::kWarpOperation).requests == 8);
}

// Each warp of the blocks up to `last` draws rows, until there are none.
__global__ void draw_kernel(unsigned last, unsigned rows, unsigned* next, float* out) {
  while (blockIdx.x <= last) {
    unsigned row = 0;
    if (threadIdx.x % 32 == 0) row = atomicAdd(next, 1u);
    row = __shfl_sync(~0u, row, 0);
    if (row >= rows) return;
    out[32 * row + threadIdx.x % 32] = 1;
  }
}

TEST_CASE("warps that draw their work have equal shares of it", "[simt]") {
  constexpr unsigned kRows = 60, kBlocks = 4;
  for (const unsigned last : {0u, 1u, kBlocks - 1}) {
    Buffer<unsigned> next("next", std::vector<unsigned>{0});
    Buffer<float> out("out", 32 * kRows);
    const Profile profile =
        profile_of(draw_kernel, {kBlocks, 64}, last, kRows, next.data(), out.data());
    const simt::KernelCounts& kernel = profile.kernels.begin()->second;
    const std::uint64_t drawers = 2 * (last + 1);
    CHECK(kernel.drawers.parts == drawers);
    // A draw and a store for each row, and the draw of each warp that fails.
    CHECK(kernel.busiest_warp() == 2 * kRows / drawers + 1);
  }
}

// --- Caches -------------------------------------------------------------------------------------

__global__ void twice_kernel(int n, const float* in, float* out) {
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

TEST_CASE("the model of the caches", "[simt]") {
  // Two multiprocessors of one block each; an L1 of 64 sectors, an L2 of 256.
  const simt::Gpu small{"small", "small", 2, 32, 1, 2048, 1024, false, 8192};
  const auto check = [&](int blocks, int n, std::uint64_t l2, std::uint64_t dram) {
    CAPTURE(blocks, n);
    const Buffer<float> in("in", std::vector<float>(n));
    Buffer<float> out("out", static_cast<std::size_t>(32 * blocks));
    simt::start_profile(&small);
    launch(twice_kernel, {static_cast<unsigned>(blocks), 32}, n, in.data(), out.data());
    const Profile profile = simt::stop_profile();
    const AccessCounts got = counts(profile, "in");
    CHECK(got.sectors == static_cast<std::uint64_t>(2 * blocks * n / 8));
    CHECK(got.l2_sectors == l2);
    CHECK(got.dram_sectors == dram);
    // What was stored is written once, in the end.
    CHECK(profile.kernels.begin()->second.dram_write_sectors ==
          static_cast<std::uint64_t>(4 * blocks));
    CHECK(counts(profile, "out", Access::kStore).dram_sectors == 0);
  };
  check(1, 512, 64, 64);             // the second round is in the L1
  check(2, 512, 128, 64);            // each L1 asks once, the L2 has it the second time
  check(3, 512, 128, 64);            // the third block follows the first, and finds its L1
  check(1, 1024, 2 * 128, 128);      // a round is twice the L1, which then has nothing of use
  check(1, 4096, 2 * 512, 2 * 512);  // and twice the L2
  check(2, 4096, 4 * 512, 2 * 512);  // two blocks in step share what is in the L2

  CHECK(simt::find_gpu("h200") == &simt::kGpus[0]);
  CHECK(simt::find_gpu("none") == nullptr);
  simt::start_profile();
  launch(twice_kernel, {1, 1}, 0, nullptr, Buffer<float>("out", 1).data());
  for (const auto& [key, c] : simt::stop_profile().accesses) CHECK(c.l2_sectors == 0);
}

// --- Atomics ------------------------------------------------------------------------------------

__global__ void atomics_kernel(int divisor, float* cells) {
  atomicAdd(&cells[threadIdx.x / divisor], 1.0f);
}

TEST_CASE("lanes of an atomic on one address", "[simt]") {
  Buffer<float> cells("cells", std::vector<float>(64));
  struct Case {
    int divisor;
    std::uint64_t same, addresses;  // most lanes on one; distinct ones of a block of two warps
  };
  for (const Case& c : {Case{1, 1, 64}, {2, 2, 32}, {5, 5, 14}, {32, 32, 2}, {64, 32, 2}}) {
    const AccessCounts got = counts(profile_of(atomics_kernel, {3, 64}, c.divisor, cells.data()),
                                    "cells", Access::kAtomic);
    CHECK(got.requests == 6);
    CHECK(got.lanes == 192);
    CHECK(got.max_same_address == c.same);
    CHECK(got.addresses == 3 * c.addresses);
  }
}

// --- Shared memory ------------------------------------------------------------------------------

template <typename T>
__global__ void banks_kernel(int stride, T* out) {
  __shared__ T tile[1024];
  const int lane = threadIdx.x;
  tile[lane * stride] = static_cast<T>(lane);
  __syncthreads();
  out[lane] = tile[lane * stride];
}

TEST_CASE("passes over the banks of shared memory", "[simt]") {
  const ScopedSettings restore;
  simt::settings().check_races = false;  // at stride 0 all lanes write to one place
  Buffer<float> floats("floats", 32);
  Buffer<double> doubles("doubles", 32);
  struct Case {
    int stride;
    std::uint64_t floats, doubles;  // passes: of doubles there are two halves
  };
  // Stride 0: all lanes want one word. An odd stride spreads floats over all banks.
  for (const Case& c :
       {Case{0, 1, 2}, {1, 1, 2}, {2, 2, 4}, {3, 1, 2}, {8, 8, 16}, {16, 16, 32}, {31, 1, 2}}) {
    CAPTURE(c.stride);
    Profile profile = profile_of(banks_kernel<float>, {1, 32}, c.stride, floats.data());
    for (const Access access : {Access::kLoad, Access::kStore}) {
      const AccessCounts got = counts(profile, "tile", access);
      CHECK(got.requests == 1);
      CHECK(got.lanes == 32);
      CHECK(got.passes == c.floats);
      CHECK(got.sectors == 0);
    }
    profile = profile_of(banks_kernel<double>, {1, 32}, c.stride, doubles.data());
    CHECK(counts(profile, "tile").passes == c.doubles);
  }
  const Profile profile = profile_of(banks_kernel<float>, {1, 32}, 32, floats.data());
  CHECK(counts(profile, "tile").passes == 32);
}

// --- The profile itself -------------------------------------------------------------------------

__global__ void compete_kernel(int rows, int* next, const float* in, float* out) {
  __shared__ int row;
  for (;;) {
    if (threadIdx.x == 0) row = atomicAdd(next, 1);
    __syncthreads();
    const int mine = row;
    __syncthreads();
    if (mine >= rows) return;
    for (int k = threadIdx.x; k < mine % 100; k += blockDim.x) atomicAdd(&out[mine], in[mine + k]);
  }
}

TEST_CASE("a profile is the same in every run", "[simt]") {
  const Buffer<float> in("in", std::vector<float>(1000));
  Buffer<float> out("out", std::vector<float>(1000));
  std::map<simt::AccessKey, AccessCounts> first;
  const auto add = [&] {
    Buffer<int> next("next", std::vector<int>(1));
    const Profile profile =
        profile_of(compete_kernel, {20, 64}, 500, next.data(), in.data(), out.data());
    if (first.empty()) first = profile.accesses;
    CHECK(profile.accesses == first);
  };
  const ScopedSettings restore;
  for (simt::settings().workers = 0; simt::settings().workers < 5; ++simt::settings().workers)
    add();
  under_every_schedule(add);  // whichever block gets a row does the same with it
}

TEST_CASE("profiles hold what happens between start and stop", "[simt]") {
  const Buffer<float> in("in", std::vector<float>(64));
  Buffer<float> out("out", 64);
  const auto run = [&] { launch(strided_kernel<float>, {2, 32}, 64, 1, 0, in.data(), out.data()); };
  run();
  simt::start_profile();
  CHECK(simt::stop_profile().empty());
  simt::start_profile();
  run();
  run();
  const Profile two = simt::stop_profile();
  run();
  CHECK(counts(two, "in").requests == 4);
  CHECK(simt::stop_profile().empty());

  simt::start_profile();
  run();
  simt::start_profile();  // starts anew
  run();
  const Profile one = simt::stop_profile();
  CHECK(counts(one, "in").requests == 2);
  for (const auto& [key, value] : one.accesses) {
    CHECK(contains(simt::kernel_name(key.kernel), "strided_kernel<float>"));
    CHECK(contains(simt::source_line(key.pc), "profile_test.cu:"));
    CHECK(key.space == Space::kGlobal);
  }
}

}  // namespace simt_test
