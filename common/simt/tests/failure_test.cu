// CUDA on the CPU: what kernels do wrong is reported, with kernel, source line, block and thread,
// and the next kernel runs as if nothing had been.
#include <cassert>
#include <cstring>
#include <functional>
#include <initializer_list>

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
void check_report(const std::string& report, std::initializer_list<std::string> parts) {
  CAPTURE(report);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(contains(report, part));
  }
  check_that_kernels_still_run();
}

// The launch fails with such a report.
template <typename... Parameters, typename... Arguments>
void fails(std::initializer_list<std::string> parts, void (*kernel)(Parameters...),
           const Shape& shape, Arguments&&... arguments) {
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

// --- Alignment, and other faults of the processor
// -------------------------------------------------

struct alignas(16) Quad {
  float x, y, z, w;
};
struct Pair {  // 16 bytes that need not be aligned to 16
  double value;
  long long key;
};

template <typename Vector, typename T>
__global__ void load_as_kernel(const T* from, int offset, T* to) {
  const Vector v = *reinterpret_cast<const Vector*>(from + offset);
  to[0] = static_cast<T>(v.x);
}

template <typename Structure, typename T>
__global__ void copy_as_kernel(const T* from, int offset, T* to, int offset_there) {
  *reinterpret_cast<Structure*>(to + offset_there) =
      *reinterpret_cast<const Structure*>(from + offset);
}

template <typename Vector>
__global__ void shared_as_kernel(int offset, float* out) {
  alignas(16) __shared__ float row[40];
  row[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    *reinterpret_cast<Vector*>(row + 36) = *reinterpret_cast<const Vector*>(row + offset);
  }
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x + 4];
}

template <typename T>
__global__ void add_at_kernel(unsigned char* bytes, int offset) {
  atomicAdd(reinterpret_cast<T*>(bytes + offset), T{1});
}

TEST_CASE("accesses at misaligned addresses are reported", "[simt]") {
  const Buffer<float> x("x", std::vector<float>(64, 1));
  const Buffer<double> d("d", std::vector<double>(64, 1));
  Buffer<float> y("y", std::vector<float>(64));
  Buffer<double> z("z", std::vector<double>(64));
  Buffer<unsigned char> bytes("bytes", std::vector<unsigned char>(64));
  struct Case {
    std::function<std::string()> launch;
    const char *what, *where;  // null: it is right
  };
  const auto of = [](auto kernel, auto... arguments) {
    return [=] { return failure_of(kernel, {1, 1}, arguments...); };
  };
  const auto of_shared = [&](int offset) {
    return [=, &y] { return failure_of(shared_as_kernel<float4>, {1, 36}, offset, y.data()); };
  };
  const auto load_float4 = load_as_kernel<float4, float>;
  const auto copy_quad = copy_as_kernel<Quad, float>;
  const Case cases[] = {
      {of(load_float4, x.data(), 1, y.data()),
       "reads 16 bytes at a multiple of 4, where one of 16 is needed", "4 bytes into 'x', which"},
      {of(load_float4, x.data(), 2, y.data()), "reads 16 bytes at a multiple of 8", "8 bytes into"},
      {of(load_float4, x.data(), 4, y.data()), nullptr, nullptr},
      {of(copy_quad, x.data(), 4, y.data(), 8), nullptr, nullptr},
      {of(copy_quad, x.data(), 6, y.data(), 8), "reads 16 bytes at a multiple of 8", "24 bytes"},
      {of(copy_quad, x.data(), 8, y.data(), 6), "writes 16 bytes at a multiple of 8", "'y'"},
      {of(load_as_kernel<float2, float>, x.data(), 3, y.data()), "reads 8 bytes at a multiple of 4",
       "'x'"},
      {of(load_as_kernel<double2, double>, d.data(), 1, z.data()),
       "reads 16 bytes at a multiple of 8", "8 bytes into 'd'"},
      {of_shared(3), "reads 16 bytes at a multiple of 4", "12 bytes into shared 'row', which"},
      {of_shared(2), "reads 16 bytes at a multiple of 8", "8 bytes into shared 'row', which"},
      {of_shared(4), nullptr, nullptr},
      {of(add_at_kernel<int>, bytes.data(), 6), "updates 4 bytes at a multiple of 2", "6 bytes"},
      {of(add_at_kernel<double>, bytes.data(), 4), "updates 8 bytes at a multiple of 4", "'bytes'"},
      // What holds two numbers of 8 bytes needs no more alignment than one.
      {of(copy_as_kernel<Pair, double>, d.data(), 1, z.data(), 3), nullptr, nullptr},
  };
  under_every_schedule([&] {
    for (const Case& c : cases) {
      CAPTURE(&c - cases);
      const std::string report = c.launch();
      if (!c.what) {
        CHECK(report == "");
        continue;
      }
      check_report(report,
                   {"misaligned address (cudaErrorMisalignedAddress)", " at failure_test.cu:",
                    std::string("thread (0,0,0): misaligned address: ") + c.what,
                    "; the address is ", c.where});
    }
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

TEST_CASE("lanes that wait for lanes that do not come are reported", "[simt]") {
  Buffer<unsigned> out("out", 64);
  Buffer<float> floats("floats", 64);
  Buffer<int> ints("ints", std::vector<int>(64));
  under_every_schedule([&] {
    fails({"cudaErrorLaunchFailure",
           "kernel missing_lane_kernel, block (0,0,0): deadlock: thread (0,0,0) "
           "waits at __syncwarp with mask 0xffffffff" +
               place(kMissingLine),
           "but thread (16,0,0) waits at __syncthreads at failure_test.cu:"},
          missing_lane_kernel, {1, 32});
    fails({"deadlock", "thread (1,0,0) waits at __shfl_sync with mask 0xffffffff",
           "but thread (0,0,0) waits at __syncthreads"},
          barrier_against_shuffle_kernel, {1, 64}, floats.data());
    fails({"deadlock: thread (0,0,0) waits at __ballot_sync with mask 0xffff at",
           "but thread (7,0,0) waits at __ballot_sync with mask 0xff at"},
          other_mask_kernel, {1, 16}, out.data());
    fails({"deadlock: thread (0,0,0) waits at __reduce_add_sync",
           "but thread (7,0,0) waits at __ballot_sync"},
          other_operation_kernel, {1, 32}, out.data());
    fails({"thread (40,0,0): waits at another __syncthreads than thread (0,0,0)"},
          other_barrier_kernel, {1, 64}, ints.data());
  });
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

// --- Barriers in divergent code -----------------------------------------------------------------

__global__ void two_barriers_kernel(int* out) {
  if (threadIdx.x < 40) {
    __syncthreads();
    out[threadIdx.x] = 1;
  } else {
    __syncthreads();
    out[threadIdx.x] = 2;
  }
}

__global__ void one_barrier_kernel(int rows, int* out) {
  if (static_cast<int>(threadIdx.x) >= rows) return;  // who has returned is not waited for
  for (int i = 0; i < 3; ++i) __syncthreads();
  out[threadIdx.x] = 1;
}

TEST_CASE("a barrier in divergent code is reported", "[simt]") {
  Buffer<int> out("out", 64);
  fails({"kernel two_barriers_kernel at ",
         "thread (40,0,0): waits at another __syncthreads than thread (0,0,0)",
         "a barrier in divergent code"},
        two_barriers_kernel, {1, 64}, out.data());
  CHECK(failure_of(two_barriers_kernel, {1, 40}, out.data()).empty());
  CHECK(failure_of(one_barrier_kernel, {1, 64}, 50, out.data()).empty());
  fails({"deadlock", "a barrier in divergent code"}, missing_lane_kernel, {1, 32});
}

TEST_CASE("misuse of warp operations is reported", "[simt]") {
  Buffer<unsigned> out("out", 64);
  Buffer<int> ints("ints", 64);
  fails({"thread (4,0,0): __ballot_sync with mask 0xf, which does not name the lane that calls "
         "it (4)"},
        not_named_kernel, {1, 32}, out.data());
  for (const int width : {0, -1, 3, 33, 64}) {
    fails({"thread (0,0,0): __shfl_xor_sync with width " + std::to_string(width) +
           "; it must be 1, 2, 4, 8, 16 or 32"},
          width_kernel, {1, 32}, width, ints.data());
  }
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

// Segments of 8 lanes, of which some return: no lane reads another segment's.
__global__ void segments_kernel(unsigned segments, int* out) {
  if (threadIdx.x / 8 >= segments) return;
  int sum = 1;
  for (int d = 4; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d, 8);
  if (threadIdx.x % 8 == 0) out[threadIdx.x / 8] = sum;
}

// A scan up to each lane of a part of a warp: lanes below the distance keep what they have.
__global__ void scan_kernel(unsigned mask, int* out) {
  if (!(mask >> threadIdx.x & 1)) return;
  int sum = 1;
  for (int d = 1; d < 32; d *= 2) {
    const int below = __shfl_up_sync(mask, sum, d);
    if (static_cast<int>(threadIdx.x) >= d) sum += below;
  }
  out[threadIdx.x] = sum;
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
      const std::string returned = what + "has returned";
      check_report(report(above_kernel<Use::kAdd>, 20, ~0u), {"failure_test.cu:", returned});
      check_report(report(above_kernel<Use::kGreater>, 20, ~0u), {returned});
      check_report(report(above_kernel<Use::kCompare>, 20, ~0u), {returned});
      check_report(report(above_kernel<Use::kIndex>, 20, ~0u), {returned});
      check_report(report(above_kernel<Use::kAdd>, 20, 0xfffffu),
                   {what + "mask 0xfffff does not name"});
      fails({"lane 4 reads from lane 20, which the block does not have"}, tree_of_shuffles_kernel,
            {1, 20}, floats.data(), sum.data());
      // The result is right if nothing depends on what is undefined.
      CHECK(report(above_kernel<Use::kGuarded>, 20, ~0u).empty());
      CHECK(report(above_kernel<Use::kGuarded>, 20, 0xfffffu).empty());
      CHECK(report(above_kernel<Use::kAdd>, 32, ~0u).empty());
      CHECK(failure_of(tree_of_shuffles_kernel, {1, 32}, floats.data(), sum.data()).empty());
      CHECK(failure_of(scan_kernel, {1, 32}, 0xffffu, out.data()).empty());
      CHECK(failure_of(segments_kernel, {1, 32}, 3u, out.data()).empty());
    }
  });
  launch(above_kernel<Use::kGuarded>, {4, 32}, 20u, ~0u, in.data(), out.data());
  CHECK(out.download()[15] == 6);
  CHECK(out.download()[16] == 3);
}

TEST_CASE("a loop that polls memory that is never written is reported", "[simt]") {
  const ScopedSettings restore;
  simt::settings().spin_limit_seconds = 0.05;
  Buffer<int> flag("flag", std::vector<int>(1));
  fails({"deadlock", "thread (0,0,0) waits at __syncthreads",
         "but thread (3,0,0) polls memory at failure_test.cu:"},
        spin_kernel, {1, 64}, flag.data());
  fails({"CUDA does not promise that one runs meanwhile, unless the launch is cooperative"},
        spin_kernel, {2, 64}, flag.data());
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

__device__ int recurse(int depth) {
  volatile char frame[1024];
  frame[depth % 1024] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[depth % 1024];
}

__global__ void recursive_kernel(int depth, int* out) {
  __syncthreads();
  out[threadIdx.x] = recurse(depth);
}

TEST_CASE("a stack that overflows is reported", "[simt]") {
  Buffer<int> out("out", 64);
  under_every_schedule([&] {
    CHECK(failure_of(recursive_kernel, {1, 64}, 20, out.data()).empty());
    fails({"kernel recursive_kernel at failure_test.cu:", "block (0,0,0), thread (",
           "needs more than 128 KiB of stack"},
          recursive_kernel, {1, 64}, 1000, out.data());
  });
}

__global__ void trap_kernel(int* out) {
  if (threadIdx.x == 3) __trap();
  out[threadIdx.x] = static_cast<int>(clock64() > 0);
}

__global__ void assert_kernel(int* out) {
  assert(blockDim.x < 32 || threadIdx.x != 3);
  out[threadIdx.x] = 1;
}

TEST_CASE("__trap and an assertion that fails end the launch and no more", "[simt]") {
  Buffer<int> out("out", 32);
  fails({"thread (3,0,0): __trap()"}, trap_kernel, {1, 32}, out.data());
  fails({"thread (3,0,0): assertion 'blockDim.x < 32 || threadIdx.x != 3' failed"}, assert_kernel,
        {1, 32}, out.data());
  CHECK(failure_of(trap_kernel, {1, 3}, out.data()).empty());
  CHECK(failure_of(assert_kernel, {1, 3}, out.data()).empty());
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
