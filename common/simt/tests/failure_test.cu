// CUDA on the CPU: what kernels do wrong is reported, with kernel, source line, block and thread,
// and the next kernel runs as if nothing had been.
#include <cassert>
#include <cstring>
#include <thread>

#include "simt/tests/testing.hpp"

namespace simt_test {

std::string place(int line) {
  return " at failure_test.cu:" + std::to_string(line) + ",";
}

__global__ void sum_kernel(const float* in, float* out) {
  float sum = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// After a failure: memory, stacks, barriers and shared memory must be as new.
void check_that_kernels_still_run() {
  const Buffer<float> in("in", std::vector<float>(64, 1.0f));
  Buffer<float> out("out", 20 * 64);
  launch(sum_kernel, {20, 64}, in.data(), out.data());
  CHECK(out.download() == std::vector<float>(20 * 64, 32.0f));
}

// The report must hold each of the parts.
void check_report(const std::string& report, const std::vector<std::string>& parts) {
  check_contains(report, parts);
  check_that_kernels_still_run();
}

// The launch fails with such a report.
template <typename... Parameters, typename... Arguments>
void fails(const std::vector<std::string>& parts, void (*kernel)(Parameters...), const Shape& shape,
           Arguments&&... arguments) {
  check_report(failure_of(kernel, shape, std::forward<Arguments>(arguments)...), parts);
}

// --- Memory -------------------------------------------------------------------------------------

LINE(kReadLine, 2);
__global__ void read_kernel(const float* from, int offset, float* to) {
  to[threadIdx.x] = from[static_cast<int>(threadIdx.x) + offset];
}

__global__ void write_kernel(double* to, int offset) {
  to[static_cast<int>(threadIdx.x) + offset] = 0;
}

LINE(kAtomicLine, 2);
__global__ void atomic_kernel(int* to, int offset) {
  atomicAdd(to + offset, 1);
}

TEST_CASE("accesses out of bounds, and of no device memory, are reported", "[simt]") {
  const float* freed = Buffer<float>("freed", 64).data();  // not given out again
  const Buffer<float> x("x", std::vector<float>(100)), nothing("nothing", 0);
  const Buffer<unsigned char> bytes("bytes", std::vector<unsigned char>(18));
  const std::vector<float> host(64);
  const float local[64] = {};
  float* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 512) == cudaSuccess);
  Buffer<float> y("y", 256);
  // The device may use pinned memory.
  CHECK(failure_of(read_kernel, {1, 128}, pinned, 0, y.data()).empty());
  cudaFreeHost(pinned);

  const std::string no_memory =
      "neither device memory nor shared memory of the block (the host's, or wild)";
  struct Case {
    const float* from;
    int offset;
    std::string thread, where;
  };
  for (const Case& c : {
           Case{x.data(), 0, "(100,0,0)", "400 bytes into 'x', which has 400"},
           {x.data(), -1, "(0,0,0)", "4 bytes before 'x', which has 400"},
           // Part of the access lies inside.
           {reinterpret_cast<const float*>(bytes.data()), 0, "(4,0,0)",
            "16 bytes into 'bytes', which has 18"},
           {host.data(), 0, "(0,0,0)", no_memory},
           {local, 0, "(0,0,0)", no_memory},
           {pinned, 0, "(0,0,0)", no_memory},
           {nullptr, 3, "(0,0,0)", "null"},
           {nothing.data(), -1, "(0,0,0)", "null, or of an array without elements"},
           {freed, 0, "(0,0,0)", "in 'freed', which has been freed"},
           // Nor is there another array near one's end, whatever the index.
           {x.data(), 10000, "(0,0,0)", ""},
           {x.data(), 1000000, "(0,0,0)", ""},
           {x.data(), 30000000, "(0,0,0)", ""},
           {x.data(), -30000000, "(0,0,0)", ""},
       }) {
    fails(
        {"cudaErrorIllegalAddress", "kernel read_kernel" + place(kReadLine),
         "block (0,0,0), thread " + c.thread + ": reads 4 bytes at an address that is " + c.where},
        read_kernel, {1, 128}, c.from, c.offset, y.data());
  }
  Buffer<int> counter("counter", 3);
  fails({place(kAtomicLine), "updates 4 bytes at an address that is 12 bytes into 'counter', "},
        atomic_kernel, {1, 1}, counter.data(), 3);

  Buffer<double> z("z", 10);
  const ScopedSettings restore;
  simt::settings().workers = 1;
  fails({"block (0,0,0), thread (2,0,0): writes 8 bytes at an address that is 80 bytes into 'z', "},
        write_kernel, {{1, 2, 3}, {4, 3, 2}}, z.data(), 8);
  simt::settings().schedule = simt::Schedule::kReverse;
  simt::settings().check_races = false;  // a launch that fails is not run again in order
  fails({"block (0,1,2), thread (3,"}, write_kernel, {{1, 2, 3}, {4, 3, 2}}, z.data(), 8);
}

__global__ void static_overrun_kernel(float* out) {
  __shared__ float row[33];
  if (threadIdx.x < 33) row[threadIdx.x] = 1;
  out[threadIdx.x] = row[threadIdx.x];
}

__global__ void dynamic_overrun_kernel(float* out) {
  extern __shared__ float dynamic_floats[];
  dynamic_floats[threadIdx.x] = 2;
  out[threadIdx.x] = dynamic_floats[threadIdx.x];
}

TEST_CASE("accesses past shared arrays are reported", "[simt]") {
  Buffer<float> out("out", 64);
  fails({"thread (33,0,0): reads 4 bytes at an address that is 132 bytes into shared 'row', "
         "which has 132"},
        static_overrun_kernel, {1, 64}, out.data());
  fails({"thread (40,0,0): writes 4 bytes at an address that is 160 bytes into shared "
         "'simt_test::dynamic_floats', which has 160"},
        dynamic_overrun_kernel, {1, 64, 40 * 4}, out.data());
  fails({"thread (0,0,0): writes 4 bytes at an address that is 0 bytes into shared "
         "'simt_test::dynamic_floats', which has 0"},
        dynamic_overrun_kernel, {1, 64}, out.data());
}

__global__ void stray_pointer_kernel(float** cell) {
  float mine = 1;
  if (threadIdx.x == 0) *cell = &mine;
  __syncthreads();
  if (threadIdx.x == 1) **cell = 2;
  __syncthreads();
  if (mine > 5) *cell = nullptr;
}

// By an instruction that is right in the first thread.
__global__ void shared_pointer_kernel(int* out) {
  __shared__ const int* pointer;
  const int mine = static_cast<int>(threadIdx.x);
  if (threadIdx.x == 0) pointer = &mine;
  __syncthreads();
  out[threadIdx.x] = *pointer;
  __syncthreads();
}

__global__ void local_atomic_kernel(int* out) {
  int mine = 0;
  atomicAdd(&mine, 1);
  out[0] = mine;
}

TEST_CASE("a thread's own variables are its own", "[simt]") {
  Buffer<int> out("out", 2);
  fails({"thread (1,0,0): reads 4 bytes at an address that is another thread's own"},
        shared_pointer_kernel, {1, 2}, out.data());
  Buffer<float*> cell("cell", 1);
  fails({"thread (1,0,0): writes 4 bytes at an address that is another thread's own"},
        stray_pointer_kernel, {1, 2}, cell.data());
  fails({"thread (0,0,0): updates a local variable by an atomic"}, local_atomic_kernel, {1, 2},
        out.data());
}

// --- Copies of memory ---------------------------------------------------------------------------

__global__ void copy_bytes_kernel(const int* from, int* to, int bytes) {
  std::memcpy(to + 4 * threadIdx.x, from + 4 * threadIdx.x, static_cast<std::size_t>(bytes));
}
__global__ void copy_24_kernel(const int* from, int* to) {
  memcpy(to + 6 * threadIdx.x, from + 6 * threadIdx.x, 24);
}
__global__ void set_bytes_kernel(int* to, int bytes) {
  memset(to + 4 * threadIdx.x, 0, static_cast<std::size_t>(bytes));
}

TEST_CASE("copies of memory in kernels are observed", "[simt]") {
  Buffer<int> from("from", std::vector<int>(64, 5)), to("to", 64);
  launch(copy_bytes_kernel, {1, 16}, from.data(), to.data(), 16);
  CHECK(to.download() == std::vector<int>(64, 5));
  launch(copy_24_kernel, {1, 10}, from.data(), to.data());
  CHECK(contains(failure_of(copy_24_kernel, {1, 11}, from.data(), to.data()),
                 "256 bytes into 'from', which has 256"));
  CHECK(contains(failure_of(copy_bytes_kernel, {1, 16}, from.data(), to.data(), 24), "'from'"));
  CHECK(contains(failure_of(copy_bytes_kernel, {1, 8}, from.data(), to.data(), 20), "race: "));
  CHECK(contains(failure_of(set_bytes_kernel, {1, 8}, to.data(), 20), "race: writes"));
  CHECK(contains(failure_of(set_bytes_kernel, {1, 16}, to.data(), 20),
                 "256 bytes into 'to', which has 256"));
  Buffer<int> unwritten("unwritten", 64);
  CHECK(contains(failure_of(copy_bytes_kernel, {1, 1}, unwritten.data(), to.data(), 12),
                 "into 'unwritten', that was not written"));
}

// --- Alignment, and other faults of the processor -----------------------------------------------

struct alignas(16) Quad {
  float x, y, z, w;
};
struct Pair {  // 16 bytes that need not be aligned to 16
  double value;
  long long key;
};

// Copies a structure from and to places that lie so many bytes into two arrays.
template <typename Structure, bool kFromShared = false>
__global__ void copy_as_kernel(const float* from, int offset, float* to, int offset_there) {
  alignas(16) __shared__ float row[40];
  for (int i = 0; i < 40; ++i) row[i] = 1;
  const auto* const bytes = reinterpret_cast<const char*>(kFromShared ? row : from);
  *reinterpret_cast<Structure*>(reinterpret_cast<char*>(to) + offset_there) =
      *reinterpret_cast<const Structure*>(bytes + offset);
}

template <typename T>
__global__ void add_at_kernel(unsigned char* bytes, int offset) {
  atomicAdd(reinterpret_cast<T*>(bytes + offset), T{1});
}

TEST_CASE("accesses at misaligned addresses are reported", "[simt]") {
  const Buffer<float> x("x", std::vector<float>(64, 1));
  Buffer<float> y("y", std::vector<float>(64));
  Buffer<unsigned char> bytes("bytes", std::vector<unsigned char>(64));
  struct Case {
    void (*kernel)(const float*, int, float*, int);
    int from, to;
    const char *what, *where;  // null: it is right
  };
  const Case cases[] = {
      {copy_as_kernel<float4>, 4, 0, "reads 16 bytes at a multiple of 4", "4 bytes into 'x'"},
      {copy_as_kernel<float4>, 8, 0, "reads 16 bytes at a multiple of 8", "8 bytes into 'x'"},
      {copy_as_kernel<float4>, 16, 0, nullptr, nullptr},
      {copy_as_kernel<Quad>, 16, 32, nullptr, nullptr},
      {copy_as_kernel<Quad>, 24, 32, "reads 16 bytes at a multiple of 8", "24 bytes into 'x'"},
      {copy_as_kernel<Quad>, 32, 24, "writes 16 bytes at a multiple of 8", "24 bytes into 'y'"},
      {copy_as_kernel<float2>, 12, 0, "reads 8 bytes at a multiple of 4", "12 bytes into 'x'"},
      {copy_as_kernel<double2>, 8, 0, "reads 16 bytes at a multiple of 8", "8 bytes into 'x'"},
      // What holds two numbers of 8 bytes needs no more alignment than one.
      {copy_as_kernel<Pair>, 8, 24, nullptr, nullptr},
      {copy_as_kernel<float4, true>, 12, 0, "reads 16 bytes at a multiple of 4", "shared 'row'"},
      {copy_as_kernel<float4, true>, 8, 0, "reads 16 bytes at a multiple of 8", "shared 'row'"},
      {copy_as_kernel<float4, true>, 16, 0, nullptr, nullptr},
  };
  const std::string kind = "misaligned address (cudaErrorMisalignedAddress)";
  under_every_schedule([&] {
    for (const Case& c : cases) {
      CAPTURE(&c - cases);
      if (c.what) {
        fails({kind, "kernel copy_as_kernel<", " at failure_test.cu:",
               std::string("thread (0,0,0): misaligned address: ") + c.what + ", where one of ",
               " is needed; the address is ", c.where},
              c.kernel, {1, 1}, x.data(), c.from, y.data(), c.to);
      } else {
        CHECK(failure_of(c.kernel, {1, 1}, x.data(), c.from, y.data(), c.to) == "");
      }
    }
    fails({kind, "updates 4 bytes at a multiple of 2, where one of 4 is needed", "6 bytes into"},
          add_at_kernel<int>, {1, 1}, bytes.data(), 6);
    fails({kind, "updates 8 bytes at a multiple of 4"}, add_at_kernel<double>, {1, 1}, bytes.data(),
          4);
  });
}

LINE(kDivisionLine, 2);
__global__ void divide_kernel(const int* divisor, int* out) {
  out[threadIdx.x] = 7 / divisor[threadIdx.x] + 7 % divisor[threadIdx.x];
}

TEST_CASE("a division of integers by zero is reported", "[simt]") {
  std::vector<int> numbers(64, 2);
  numbers[40] = 0;
  const Buffer<int> in("in", numbers);
  Buffer<int> out("out", 64);
  under_every_schedule([&] {
    CHECK(failure_of(divide_kernel, {1, 40}, in.data(), out.data()).empty());
    fails({"cudaErrorLaunchFailure", "kernel divide_kernel", place(kDivisionLine),
           "thread (40,0,0): divides an integer by zero"},
          divide_kernel, {1, 64}, in.data(), out.data());
  });
}

// --- Deadlocks ----------------------------------------------------------------------------------

// Runs each thread's program, of one letter per operation; threads without a program return.
LINE(kMeetLine, 6);
__global__ void meet_kernel(const char* programs, int* flag) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (const char* next = programs + kProgram * thread; *next; ++next) {
    switch (*next) {
      // clang-format off
      case '~': __syncwarp(); break;
      case '|': __syncthreads(); break;
      case ':': __syncthreads(); break;
      case 'o': __syncthreads_or(1); break;
      case 's': __shfl_sync(~0u, 1.0f, 0); break;
      case 'b': __ballot_sync(~0u, 1); break;
      case '4': __ballot_sync(0xf, 1); break;
      case '8': __ballot_sync(0xff, 1); break;
      case '9': __ballot_sync(0xffff, 1); break;
      case 'r': __reduce_add_sync(~0u, 1u); break;
      case 'p': while (atomicAdd(flag, 0) == 0) continue; break;
      case 't': __trap(); break;
      case 'a': assert(threadIdx.x != 3); break;
        // clang-format on
    }
  }
}

__global__ void width_kernel(int width, int* out) {
  out[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1, width);
}

Buffer<char> programs(const std::string& text) {
  return {"programs", litmus_programs(text, 2, 64)};
}

TEST_CASE("threads that wait for others that do not come are reported", "[simt]") {
  under_every_schedule([&] {
    simt::settings().spin_limit_seconds = 0.02;
    Buffer<int> flag("flag", std::vector<int>(1));
    for (const auto& row : litmus_table("meetings")) {
      CAPTURE(row[0]);
      const Buffer<char> device_programs = programs(row[0]);
      const std::string report =
          failure_of(meet_kernel, {2, 64}, device_programs.data(), flag.data());
      CHECK(report.empty() == (row.size() == 1));
      std::vector<std::string> parts(row.begin() + 1, row.end());
      for (std::string& part : parts) {
        const std::size_t at = part.find("{place}");
        if (at != std::string::npos) part.replace(at, 7, place(kMeetLine));
      }
      check_report(report, parts);
    }
  });
  Buffer<int> ints("ints", 64);
  for (const int width : {0, -1, 3, 33, 64}) {
    fails({"thread (0,0,0): __shfl_xor_sync with width " + std::to_string(width) +
           "; it must be 1, 2, 4, 8, 16 or 32"},
          width_kernel, {1, 32}, width, ints.data());
  }
}

TEST_CASE("reports can be taken once", "[simt]") {
  simt::set_quiet_reports(true);
  simt::take_report();
  cudaLaunchConfig_t config = {};
  CHECK(cudaLaunchKernelEx(&config, width_kernel, 3, nullptr) == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(contains(simt::take_report(), "with width 3"));
  CHECK(simt::take_report().empty());
  simt::set_quiet_reports(false);
}

// --- What was never written ---------------------------------------------------------------------

__global__ void copy_kernel(const double* from, double* to) {
  to[threadIdx.x] = from[threadIdx.x];
}

__global__ void count_kernel(int* counter) {
  atomicAdd(counter, 1);
}

__global__ void first_sum_kernel(int written, float* out) {
  __shared__ float sums[40];
  if (static_cast<int>(threadIdx.x) < written) sums[threadIdx.x] = 1;
  __syncthreads();
  out[blockIdx.x * 40 + threadIdx.x] = sums[threadIdx.x];
}

__global__ void bytes_kernel(unsigned char* bytes, int* out) {
  bytes[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) *out = *reinterpret_cast<const int*>(bytes);
}

TEST_CASE("reads of what was never written are reported", "[simt]") {
  Buffer<double> from("from", 100), to("to", 100);
  fails({"cudaErrorLaunchFailure", "kernel copy_kernel at ",
         "block (0,0,0), thread (0,0,0): reads 8 bytes, 0 bytes into "
         "'from', that was not written"},
        copy_kernel, {1, 100}, from.data(), to.data());
  // Written by the host, by a memset, by a kernel, by a copy of what was written.
  from.upload(std::vector<double>(100, 1));
  CHECK(failure_of(copy_kernel, {1, 70}, from.data(), to.data()).empty());
  Buffer<double> again("again", 100), last("last", 100);
  CHECK(cudaMemset(again.data(), 0, 50 * 8) == cudaSuccess);
  CHECK(failure_of(copy_kernel, {1, 50}, again.data(), last.data()).empty());
  fails({"thread (50,0,0): reads 8 bytes, 400 bytes into 'again', that was not written"},
        copy_kernel, {1, 51}, again.data(), last.data());
  CHECK(cudaMemcpy(again.data(), to.data(), 800, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(failure_of(copy_kernel, {1, 70}, again.data(), last.data()).empty());
  fails({"thread (70,0,0)", "560 bytes into 'again'"}, copy_kernel, {1, 71}, again.data(),
        last.data());
  Buffer<int> counter("counter", 1);
  fails({"updates 4 bytes, 0 bytes into 'counter', that was not written"}, count_kernel, {1, 1},
        counter.data());

  // A word of which three bytes were written.
  Buffer<unsigned char> bytes("bytes", 64);
  Buffer<int> out("out", 1);
  CHECK(failure_of(bytes_kernel, {1, 4}, bytes.data(), out.data()).empty());
  Buffer<unsigned char> three("three", 64);
  fails({"reads 4 bytes, 0 bytes into 'three', that was not written"}, bytes_kernel, {1, 3},
        three.data(), out.data());

  // Shared memory is new in each block.
  Buffer<float> sums("sums", 3 * 40);
  CHECK(failure_of(first_sum_kernel, {3, 40}, 40, sums.data()).empty());
  fails({"thread (33,0,0): reads 4 bytes, 132 bytes into shared 'sums', "
         "that was not written since the block started"},
        first_sum_kernel, {3, 40}, 33, sums.data());

  const ScopedSettings restore;
  simt::settings().check_uninitialised = false;
  CHECK(failure_of(count_kernel, {1, 1}, Buffer<int>("unwritten", 1).data()).empty());
}

// --- Shuffles that CUDA leaves undefined --------------------------------------------------------

// What a lane does with what it gets from a lane that takes no part.
enum class Use {
  kAdd,      // shows in the result
  kGreater,  // only if it is a large number
  kCompare,  // only if it is the lane's own value
  kIndex,    // an access out of bounds
  kGuarded,  // nothing
};

template <Use use>
__device__ int use_of(int value, int other, bool is_there, const int* in) {
  if (use == Use::kAdd) return value + other;
  if (use == Use::kGreater) return max(value, other);
  if (use == Use::kCompare) return other == value ? 1 : 2;
  if (use == Use::kIndex) return in[other];
  return is_there ? value + other : value;
}

// Of each block the first `lanes` threads go on, and read from those above them.
template <Use use>
__global__ void above_kernel(unsigned lanes, unsigned mask, const int* in, int* out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x >= lanes) return;
  const int value = in[thread];
  const int above = __shfl_down_sync(mask, value, 4);
  out[thread] = use_of<use>(value, above, threadIdx.x + 4 < lanes, in);
}

// The sum of a warp, by a tree that needs all lanes of it.
__global__ void tree_of_shuffles_kernel(const float* in, float* out) {
  float sum = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x == 0) *out = sum;
}

TEST_CASE("undefined shuffles on which a kernel depends are reported", "[simt]") {
  const Buffer<int> in("in", std::vector<int>(128, 3));
  const Buffer<float> floats("floats", std::vector<float>(32, 1.0f));
  Buffer<int> out("out", 128);
  Buffer<float> sum("sum", 1);
  under_every_schedule([&] {
    for (const unsigned workers : {1u, 2u, 4u}) {
      simt::settings().workers = workers;
      const auto report = [&](auto kernel, unsigned lanes, unsigned mask) {
        return failure_of(kernel, {4, 32}, lanes, mask, in.data(), out.data());
      };
      const std::string what =
          "block (0,0,0), thread (16,0,0): the result of __shfl_down_sync is used, and undefined: "
          "lane 16 reads from lane 20, which ";
      for (const auto kernel : {above_kernel<Use::kAdd>, above_kernel<Use::kGreater>,
                                above_kernel<Use::kCompare>, above_kernel<Use::kIndex>}) {
        check_report(report(kernel, 20, ~0u), {"failure_test.cu:", what + "has ended"});
      }
      check_report(report(above_kernel<Use::kAdd>, 20, 0xfffffu),
                   {what + "mask 0xfffff does not name"});
      fails({"lane 4 reads from lane 20, which the block does not have"}, tree_of_shuffles_kernel,
            {1, 20}, floats.data(), sum.data());
      // The result is right if nothing depends on what is undefined.
      CHECK(report(above_kernel<Use::kGuarded>, 20, ~0u).empty());
      CHECK(report(above_kernel<Use::kGuarded>, 20, 0xfffffu).empty());
      CHECK(report(above_kernel<Use::kAdd>, 32, ~0u).empty());
      CHECK(failure_of(tree_of_shuffles_kernel, {1, 32}, floats.data(), sum.data()).empty());
    }
  });
  launch(above_kernel<Use::kGuarded>, {4, 32}, 20u, ~0u, in.data(), out.data());
  CHECK(out.download()[15] == 6);
  CHECK(out.download()[16] == 3);
}

// Every block fails, each in its own place and way.
__global__ void fail_in_all_blocks_kernel(int* out) {
  const int block = static_cast<int>(blockIdx.x);
  __shared__ int never_written[32];
  volatile int delay = 10 * (200 - block);
  while (delay > 0) {
    const int left = delay;
    delay = left - 1;
  }
  if (block % 3 == 0) out[64 + block] = 1;
  if (block % 3 == 1 && threadIdx.x == 1) __syncwarp(1u);
  if (block % 3 == 2) out[block % 64] = never_written[threadIdx.x % 32];
  __syncthreads();
}

TEST_CASE("of several failures the same one is reported, whatever the workers and the schedule",
          "[simt]") {
  const ScopedSettings restore;
  Buffer<int> out("out", std::vector<int>(64));
  simt::settings().workers = 1;
  const std::string wanted = failure_of(fail_in_all_blocks_kernel, {200, 40}, out.data());
  check_report(wanted, {"block (0,0,0)"});
  under_every_schedule([&] {
    for (const unsigned workers : {1u, 2u, 4u}) {
      simt::settings().workers = workers;
      for (int run = 0; run < 3; ++run) {
        CHECK(failure_of(fail_in_all_blocks_kernel, {200, 40}, out.data()) == wanted);
      }
    }
  });
}

// Touches the far end of each frame alone.
template <int bytes>
[[gnu::noinline]] __device__ int recurse(int depth) {
  volatile char frame[bytes];
  frame[depth % 64] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse<bytes>(depth - 1) + frame[depth % 64];
}

template <int bytes>
__global__ void recursive_kernel(int depth, unsigned thread, int* out) {
  __syncthreads();
  if (threadIdx.x == thread || thread == 64) out[threadIdx.x] = recurse<bytes>(depth);
  __syncthreads();
}

template <int bytes>
void check_overflow(int allowed) {
  Buffer<int> out("out", 64);
  for (const unsigned thread : {0u, 7u, 63u, 64u}) {
    CHECK(failure_of(recursive_kernel<bytes>, {1, 64}, allowed, thread, out.data()).empty());
    for (const int depth : {2 * 131072 / bytes, 1000}) {
      fails({"kernel recursive_kernel", "at failure_test.cu:", "block (0,0,0), thread (",
             "needs more than 128 KiB of stack"},
            recursive_kernel<bytes>, {1, 64}, depth, thread, out.data());
    }
  }
}

TEST_CASE("a stack that overflows is reported", "[simt]") {
  // Stacks that were in use before take no guards from those that are.
  Buffer<int> before("before", 1024);
  for (int i = 0; i < 40; ++i) {
    std::thread([&] { launch(recursive_kernel<64>, {1, 1024}, 1, 7u, before.data()); }).join();
  }
  under_every_schedule([] {
    check_overflow<1024>(20);
    check_overflow<8 << 10>(6);
    check_overflow<16 << 10>(4);
    check_overflow<60 << 10>(0);
    check_overflow<120 << 10>(0);
  });
}

}  // namespace simt_test
