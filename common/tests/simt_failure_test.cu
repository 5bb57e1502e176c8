// CUDA on the CPU: what kernels do wrong is reported, with kernel, source line, block and thread,
// and the next kernel runs as if nothing had been.
#include <initializer_list>

#include "tests/simt_test.hpp"

namespace simt_test {

// The line that is `below` lines below this one.
#define LINE(name, below) constexpr int name = __LINE__ + (below)
std::string place(int line) {
  return " at simt_failure_test.cu:" + std::to_string(line) + ",";
}

__global__ void sum_kernel(const float* in, float* out) {
  float sum = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  __syncthreads();
  out[threadIdx.x] = sum;
}

// After a failure: memory, stacks, barriers and shared memory must be as new.
void check_that_kernels_still_run() {
  const Buffer<float> in("in", std::vector<float>(64, 1.0f));
  Buffer<float> out("out", 64);
  launch(sum_kernel, {20, 64}, in.data(), out.data());
  CHECK(out.download() == std::vector<float>(64, 32.0f));
}

// The report must hold each of the parts.
void check_report(const std::string& report, std::initializer_list<std::string> parts) {
  CAPTURE(report);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(contains(report, part));
  }
  check_that_kernels_still_run();
}

// --- Memory -------------------------------------------------------------------------------------

// The CPU backend's other builds have no way to see an access.
bool lacks_instrumentation() {
  if (simt::is_instrumented()) return false;
  WARN("skipped: misuse of memory is caught in the instrumented build (COUNT=1)");
  return true;
}

LINE(kReadLine, 2);
__global__ void read_kernel(const float* from, int offset, float* to) {
  to[threadIdx.x] = from[static_cast<int>(threadIdx.x) + offset];
}

LINE(kWriteLine, 2);
__global__ void write_kernel(double* to, int offset) {
  to[static_cast<int>(threadIdx.x) + offset] = 0;
}

LINE(kAtomicLine, 2);
__global__ void atomic_kernel(int* to, int offset) {
  atomicAdd(to + offset, 1);
}

TEST_CASE("accesses past an array's ends are reported", "[simt]") {
  if (lacks_instrumentation()) return;
  const Buffer<float> x("x", 100);
  Buffer<float> y("y", 256);
  check_report(
      failure_of(read_kernel, {1, 128}, x.data(), 0, y.data()),
      {"cudaErrorIllegalAddress", "kernel simt_test::read_kernel(float const*, int, float*)",
       place(kReadLine), "block (0,0,0), thread (100,0,0)",
       "reads 4 bytes at an address that is 400 bytes into 'x', which has 400"});
  check_report(failure_of(read_kernel, {1, 64}, x.data(), -1, y.data()),
               {place(kReadLine), "thread (0,0,0): reads 4 bytes"});

  Buffer<double> z("z", 10);
  const ScopedSettings restore;
  simt::settings().workers = 1;
  check_report(failure_of(write_kernel, {{1, 2, 3}, {4, 3, 2}}, z.data(), 8),
               {place(kWriteLine),
                "block (0,0,0), thread (2,0,0): writes 8 bytes at an address that is 80 bytes into "
                "'z', which has 80"});
  simt::settings().schedule = simt::Schedule::kReverse;
  check_report(failure_of(write_kernel, {{1, 2, 3}, {4, 3, 2}}, z.data(), 8),
               {"block (0,1,2), thread (3,"});

  // Part of the access lies inside.
  const Buffer<unsigned char> bytes("bytes", 18);
  check_report(
      failure_of(read_kernel, {1, 5}, reinterpret_cast<const float*>(bytes.data()), 0, y.data()),
      {"thread (4,0,0): reads 4 bytes at an address that is 16 bytes into 'bytes', which has 18"});

  Buffer<int> counter("counter", 3);
  check_report(failure_of(atomic_kernel, {1, 1}, counter.data(), 3),
               {place(kAtomicLine),
                "updates 4 bytes at an address that is 12 bytes into 'counter', which has 12"});
}

TEST_CASE("pointers that are no device memory are reported", "[simt]") {
  if (lacks_instrumentation()) return;
  Buffer<float> y("y", 64);
  const std::vector<float> host(64);
  check_report(
      failure_of(read_kernel, {1, 64}, host.data(), 0, y.data()),
      {place(kReadLine),
       "neither device memory nor shared memory of the block (the host's, freed, or wild)"});
  float local[64] = {};
  check_report(failure_of(read_kernel, {1, 64}, static_cast<const float*>(local), 0, y.data()),
               {"neither device memory nor shared memory"});
  check_report(failure_of(read_kernel, {1, 64}, static_cast<const float*>(nullptr), 3, y.data()),
               {"thread (0,0,0): reads 4 bytes at an address that is null"});
  const float* freed = nullptr;
  {
    const Buffer<float> x("x", 64);
    freed = x.data();
  }
  check_report(failure_of(read_kernel, {1, 64}, freed, 0, y.data()),
               {place(kReadLine), "reads 4 bytes"});
  float* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 256) == cudaSuccess);
  check_report(failure_of(read_kernel, {1, 64}, pinned, 0, y.data()), {"neither device memory"});
  cudaFreeHost(pinned);
}

LINE(kStaticLine, 4);
__global__ void static_overrun_kernel(float* out) {
  __shared__ float row[33];
  if (threadIdx.x < 33) row[threadIdx.x] = 1;
  out[threadIdx.x] = row[threadIdx.x];
}

LINE(kDynamicLine, 3);
__global__ void dynamic_overrun_kernel(float* out) {
  extern __shared__ float dynamic_floats[];
  dynamic_floats[threadIdx.x] = 2;
  out[threadIdx.x] = dynamic_floats[0];
}

TEST_CASE("accesses past shared arrays are reported", "[simt]") {
  if (lacks_instrumentation()) return;
  Buffer<float> out("out", 64);
  check_report(failure_of(static_overrun_kernel, {1, 64}, out.data()),
               {place(kStaticLine),
                "thread (33,0,0): reads 4 bytes at an address that is 132 bytes into shared 'row', "
                "which has 132"});
  check_report(failure_of(dynamic_overrun_kernel, {1, 64, 40 * 4}, out.data()),
               {place(kDynamicLine),
                "thread (40,0,0): writes 4 bytes at an address that is 160 bytes into shared "
                "'simt_test::dynamic_floats', which has 160"});
  check_report(failure_of(dynamic_overrun_kernel, {1, 64}, out.data()),
               {"thread (0,0,0): writes 4 bytes at an address that is 0 bytes into shared "
                "'simt_test::dynamic_floats', which has 0"});
}

__global__ void stray_pointer_kernel(float** cell) {
  float mine = 1;
  if (threadIdx.x == 0) *cell = &mine;
  __syncthreads();
  if (threadIdx.x == 1) **cell = 2;
  __syncthreads();
  if (mine > 5) *cell = nullptr;
}

TEST_CASE("a thread's own variables are its own", "[simt]") {
  if (lacks_instrumentation()) return;
  Buffer<float*> cell("cell", 1);
  check_report(failure_of(stray_pointer_kernel, {1, 2}, cell.data()),
               {"thread (1,0,0): writes 4 bytes at an address that is another thread's own"});
}

// --- Deadlocks ----------------------------------------------------------------------------------

LINE(kMissingLine, 3);
__global__ void missing_lane_kernel() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

__global__ void barrier_against_shuffle_kernel(float* out) {
  if (threadIdx.x % 2) {
    out[threadIdx.x] = __shfl_sync(~0u, 1.0f, 0);
  } else {
    __syncthreads();
  }
}

__global__ void other_mask_kernel(unsigned* out) {
  out[threadIdx.x] = __ballot_sync(threadIdx.x == 7 ? 0xffu : 0xffffu, 1);
}

__global__ void other_operation_kernel(unsigned* out) {
  out[threadIdx.x] = threadIdx.x == 7 ? __ballot_sync(~0u, 1) : __reduce_add_sync(~0u, 1u);
}

__global__ void other_barrier_kernel(int* out) {
  if (threadIdx.x == 40) {
    out[threadIdx.x] = __syncthreads_or(1);
  } else {
    __syncthreads();
  }
}

__global__ void not_named_kernel(unsigned* out) {
  out[threadIdx.x] = __ballot_sync(0x0fu, 1);
}

__global__ void width_kernel(int width, int* out) {
  out[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1, width);
}

__global__ void spin_kernel(int* flag) {
  if (threadIdx.x == 3) {
    while (atomicAdd(flag, 0) == 0) {
    }
  }
  __syncthreads();
}

TEST_CASE("lanes that wait in vain are reported", "[simt]") {
  Buffer<unsigned> out("out", 64);
  Buffer<float> floats("floats", 64);
  Buffer<int> ints("ints", std::vector<int>(64));
  under_every_schedule([&] {
    check_report(
        failure_of(missing_lane_kernel, {1, 32}),
        {"cudaErrorLaunchFailure",
         "kernel simt_test::missing_lane_kernel(), block (0,0,0): deadlock: thread (0,0,0) "
         "waits at __syncwarp with mask 0xffffffff" +
             place(kMissingLine),
         "but thread (16,0,0) waits at __syncthreads at simt_failure_test.cu:"});
    check_report(failure_of(barrier_against_shuffle_kernel, {1, 64}, floats.data()),
                 {"deadlock", "thread (1,0,0) waits at __shfl_sync with mask 0xffffffff",
                  "but thread (0,0,0) waits at __syncthreads"});
    check_report(failure_of(other_mask_kernel, {1, 16}, out.data()),
                 {"deadlock: thread (0,0,0) waits at __ballot_sync with mask 0xffff at",
                  "but thread (7,0,0) waits at __ballot_sync with mask 0xff at"});
    check_report(failure_of(other_operation_kernel, {1, 32}, out.data()),
                 {"deadlock: thread (0,0,0) waits at __reduce_add_sync",
                  "but thread (7,0,0) waits at __ballot_sync"});
    check_report(failure_of(other_barrier_kernel, {1, 64}, ints.data()),
                 {"thread (40,0,0): waits at another kind of __syncthreads than thread (0,0,0)"});
  });
}

TEST_CASE("misuse of warp operations is reported", "[simt]") {
  Buffer<unsigned> out("out", 64);
  Buffer<int> ints("ints", 64);
  check_report(
      failure_of(not_named_kernel, {1, 32}, out.data()),
      {"thread (4,0,0): __ballot_sync with mask 0xf, which does not name the lane that calls "
       "it (4)"});
  for (const int width : {0, -1, 3, 33, 64}) {
    check_report(failure_of(width_kernel, {1, 32}, width, ints.data()),
                 {"thread (0,0,0): __shfl_xor_sync with width " + std::to_string(width) +
                  "; it must be 1, 2, 4, 8, 16 or 32"});
  }
}

TEST_CASE("a loop that polls memory which nobody writes is reported", "[simt]") {
  const ScopedSettings restore;
  simt::settings().spin_limit_seconds = 0.05;
  Buffer<int> flag("flag", std::vector<int>(1));
  check_report(failure_of(spin_kernel, {1, 64}, flag.data()),
               {"deadlock", "thread (0,0,0) waits at __syncthreads",
                "but thread (3,0,0) polls memory at simt_failure_test.cu:"});
}

__global__ void fail_in_one_block_kernel(int bad, int* out) {
  if (static_cast<int>(blockIdx.x) == bad && threadIdx.x == 1) __syncwarp(1u);
  __syncthreads();
  atomicAdd(out, 1);
}

TEST_CASE("a failure ends the grid, whichever block it is in", "[simt]") {
  const ScopedSettings restore;
  Buffer<int> out("out", std::vector<int>(1));
  for (const unsigned workers : {1u, 2u, 4u}) {
    simt::settings().workers = workers;
    for (const int bad : {0, 17, 199}) {
      check_report(
          failure_of(fail_in_one_block_kernel, {200, 40}, bad, out.data()),
          {"block (" + std::to_string(bad) + ",0,0), thread (1,0,0): __syncwarp with mask 0x1"});
    }
  }
}

__device__ int recurse(int depth) {
  volatile char frame[1024];
  frame[depth % 1024] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[depth % 1024];
}

__global__ void recursive_kernel(int depth, int* out) {
  __syncthreads();
  out[threadIdx.x] = recurse(depth);
}

// Run by the test below, in a process of its own.
TEST_CASE("a kernel recurses without end", "[.simt-overflow]") {
  Buffer<int> out("out", 64);
  launch(recursive_kernel, {1, 64}, 20, out.data());
  std::puts("20 levels are fine");
  std::fflush(stdout);
  launch(recursive_kernel, {1, 64}, 1000, out.data());
}

TEST_CASE("a stack that overflows ends the process", "[simt]") {
  const std::string output = output_of_test("[.simt-overflow]");
  CAPTURE(output);
  CHECK(contains(output, "20 levels are fine"));
  CHECK(!contains(output, "status 0"));
}

TEST_CASE("reports can be taken once", "[simt]") {
  simt::set_quiet_reports(true);
  cudaLaunchConfig_t config = {};
  config.blockDim = 32;
  simt::take_report();
  CHECK(cudaLaunchKernelEx(&config, missing_lane_kernel) == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(contains(simt::take_report(), "deadlock"));
  CHECK(simt::take_report().empty());
  simt::set_quiet_reports(false);
}

}  // namespace simt_test
