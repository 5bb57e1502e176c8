// Streams whose work is late, events, graphs.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "simt/tests/testing.hpp"

namespace simt_test {

__global__ void add_kernel(int* value, int summand) {
  *value += summand;
}
__global__ void copy_value_kernel(const int* from, int* to) {
  *to = *from;
}

// y[i] = x[i] + 1, by kernels that may start before the one that writes x has completed.
enum class Wait { kNever, kBeforeReading, kAfterReading };
template <Wait wait>
__global__ void overlapped_kernel(const int* x, int* y) {
  __shared__ int shared_value[32];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  shared_value[threadIdx.x] = 1;
  if (wait == Wait::kBeforeReading) cudaGridDependencySynchronize();
  const int value = x[i];
  if (wait == Wait::kAfterReading) cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  __syncthreads();
  y[i] = value + shared_value[threadIdx.x];
}

namespace {

using spmv::device::Event;
using spmv::device::Pinned;
using spmv::device::Stream;

void check_error(cudaError_t expected, cudaError_t got) {
  CHECK(std::string(cudaGetErrorName(got)) == cudaGetErrorName(expected));
  CHECK(cudaGetLastError() == expected);
}

}  // namespace

TEST_CASE("late streams: nothing is done before something waits for it", "[simt]") {
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  Buffer<int> value("value", std::vector<int>{1});
  const Stream stream;
  launch(add_kernel, {1, 1, 0, stream.get()}, value.data(), 10);
  CHECK(value.download() == std::vector<int>{1});  // the default stream waits for no other
  launch(add_kernel, {1, 1, 0, stream.get()}, value.data(), 100);
  stream.synchronize();
  CHECK(value.download() == std::vector<int>{111});

  Pinned<int> pinned(1);
  pinned.data()[0] = 5;
  CHECK(cudaMemcpyAsync(value.data(), pinned.data(), 4, cudaMemcpyHostToDevice, stream.get()) ==
        cudaSuccess);
  pinned.data()[0] = 6;  // too early: the copy has not read it
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(value.download() == std::vector<int>{6});
  int pageable = 7;
  CHECK(cudaMemcpyAsync(value.data(), &pageable, 4, cudaMemcpyDefault, stream.get()) ==
        cudaSuccess);
  pageable = 8;  // not too early
  CHECK(value.download() == std::vector<int>{7});
  CHECK(cudaMemsetAsync(value.data(), 0, 4, stream.get()) == cudaSuccess);
  launch(add_kernel, {1, 1, 0, stream.get()}, pinned.data(), 1);  // kernels may use pinned memory
  Buffer<int>("freeing memory waits for everything", 1) = {};
  CHECK(value.download() == std::vector<int>{0});
  CHECK(pinned.data()[0] == 7);
}

TEST_CASE("late streams: an order comes from events alone", "[simt]") {
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  Buffer<int> from("from", 1);
  Buffer<int> to("to", 1);
  int early = 0;
  for (int seed = 0; seed < 40; ++seed) {
    simt::settings().seed = static_cast<std::uint64_t>(seed);
    const bool with_event = seed % 2 == 0;
    from.upload({1});
    const Stream first, second;
    Event written;
    launch(add_kernel, {1, 1, 0, first.get()}, from.data(), 1);
    written.record(first);
    if (with_event) written.hold(second);
    launch(copy_value_kernel, {1, 1, 0, second.get()}, from.data(), to.data());
    second.synchronize();
    const int got = to.download()[0];
    if (with_event) CHECK(got == 2);
    early += got == 1;
    first.synchronize();
    CHECK(cudaEventSynchronize(nullptr) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();
  }
  CHECK(early > 4);
  CHECK(early < 16);
}

TEST_CASE("late streams: times and errors come with the work", "[simt]") {
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  const Stream stream;
  Event begin, end;
  begin.record(stream);
  end.record(stream);
  cudaEvent_t raw_begin = nullptr, raw_end = nullptr;
  REQUIRE(cudaEventCreate(&raw_begin) == cudaSuccess);
  REQUIRE(cudaEventCreate(&raw_end) == cudaSuccess);
  REQUIRE(cudaEventRecord(raw_begin, stream.get()) == cudaSuccess);
  REQUIRE(cudaEventRecord(raw_end, stream.get()) == cudaSuccess);
  float milliseconds = -1;
  check_error(cudaErrorNotReady, cudaEventElapsedTime(&milliseconds, raw_begin, raw_end));
  CHECK(end.milliseconds_since(begin) >= 0);
  stream.synchronize();
  CHECK(cudaEventElapsedTime(&milliseconds, raw_begin, raw_end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  cudaEventDestroy(raw_begin);
  cudaEventDestroy(raw_end);

  if (!simt::is_instrumented()) return;
  simt::set_quiet_reports(true);
  launch(add_kernel, {1, 1, 0, stream.get()}, static_cast<int*>(nullptr), 1);
  check_error(cudaErrorIllegalAddress, cudaStreamSynchronize(stream.get()));
  simt::set_quiet_reports(false);
  CHECK(contains(simt::take_report(), "null"));
}

// How often, of 30 seeds, a chain of ten such kernels comes to the right result.
template <Wait wait>
int right_chains(bool overlap, bool in_graph) {
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  simt::settings().check_races = false;  // see below
  constexpr int kBlocks = 12;
  int right = 0;
  for (int seed = 0; seed < 30; ++seed) {
    simt::settings().seed = static_cast<std::uint64_t>(seed);
    Buffer<int> a("a", std::vector<int>(kBlocks * 32));
    Buffer<int> b("b", std::vector<int>(kBlocks * 32));
    const Stream stream;
    if (in_graph) {
      REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
    }
    for (int i = 0; i < 10; ++i) {
      launch(overlapped_kernel<wait>, {kBlocks, 32, 0, stream.get(), overlap},
             i % 2 ? b.data() : a.data(), i % 2 ? a.data() : b.data());
    }
    if (in_graph) {
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
      REQUIRE(cudaGraphInstantiate(&executable, graph) == cudaSuccess);
      REQUIRE(cudaGraphLaunch(executable, stream.get()) == cudaSuccess);
      stream.synchronize();
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    }
    const bool done = cudaStreamSynchronize(stream.get()) == cudaSuccess;
    right += done && a.download() == std::vector<int>(kBlocks * 32, 10);
  }
  return right;
}

TEST_CASE("overlap: a kernel that waits for the previous one too late, or never, is found out",
          "[simt]") {
  for (const bool in_graph : {false, true}) {
    CAPTURE(in_graph);
    CHECK(right_chains<Wait::kBeforeReading>(true, in_graph) == 30);
    CHECK(right_chains<Wait::kAfterReading>(true, in_graph) == 0);
    CHECK(right_chains<Wait::kNever>(true, in_graph) == 0);
    CHECK(right_chains<Wait::kAfterReading>(false, in_graph) == 30);
    CHECK(right_chains<Wait::kNever>(false, in_graph) == 30);
  }
}

// Adds up `from`; before that it writes `early`, once it may or too soon.
template <Wait wait>
__global__ void early_store_kernel(int* early, const int* from, int* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (wait == Wait::kBeforeReading) cudaGridDependencySynchronize();
  early[i] = 1;
  if (wait == Wait::kAfterReading) cudaGridDependencySynchronize();
  to[i] = from[i];
}

TEST_CASE("overlap: accesses that do not wait for the previous kernel are races", "[simt]") {
  if (lacks_instrumentation()) return;
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  simt::set_quiet_reports(true);
  const Buffer<int> from("from", std::vector<int>(96, 1));
  Buffer<int> to("to", 96), beside("beside", 96);
  // What kernels one after the other say, under some seed. `early`: what the second one writes.
  const auto reports = [&](auto first, auto second, Buffer<int>& early, const Buffer<int>& read) {
    int told = 0;
    std::string last;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      simt::settings().seed = seed;
      const Stream stream;
      launch(first, {3, 32, 0, stream.get(), true}, beside.data(), from.data(), to.data());
      launch(second, {3, 32, 0, stream.get(), true}, early.data(), read.data(), beside.data());
      if (cudaStreamSynchronize(stream.get()) == cudaSuccess) continue;
      ++told;
      last = simt::take_report();
    }
    cudaGetLastError();
    INFO(last);
    CHECK((told > 0) == contains(last, "race: "));
    return last;
  };
  const auto right = early_store_kernel<Wait::kBeforeReading>;
  const auto wrong = early_store_kernel<Wait::kAfterReading>;
  Buffer<int> own("own", 96);
  CHECK(reports(right, right, to, from).empty());
  CHECK(reports(right, wrong, own, from).empty());  // nothing of the first kernel's
  const std::string written = reports(right, wrong, to, from);
  INFO(written);
  CHECK(contains(written, "kernel early_store_kernel<"));
  CHECK(contains(written, "race: writes 4 bytes, "));
  CHECK(contains(written, " bytes into 'to', which block ("));
  CHECK(contains(written, " of the next kernel, early_store_kernel<"));
  CHECK(contains(written, " writes at streams_test.cu:"));
  CHECK(contains(written, " before it waits by cudaGridDependencySynchronize()"));
  // A kernel that waits never is early as a whole.
  CHECK(contains(reports(right, early_store_kernel<Wait::kNever>, own, to), "which block ("));
  simt::set_quiet_reports(false);
}

TEST_CASE("graphs: what is captured is done at each launch", "[simt]") {
  const ScopedSettings restore;
  simt::settings().devices = 2;
  for (const bool late : {false, true}) {
    simt::settings().late_streams = late;
    CAPTURE(late);
    Buffer<int> value("value", std::vector<int>{0});
    Buffer<int> copied("copied", std::vector<int>{0});
    const Stream origin;
    Event fork, done;
    Event timed, timed_too;
    cudaSetDevice(1);
    Buffer<int> there("there", std::vector<int>{0});
    const Stream other;
    Event join;
    cudaSetDevice(0);

    REQUIRE(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeRelaxed) == cudaSuccess);
    timed.record_time(origin);
    launch(add_kernel, {1, 1, 0, origin.get()}, value.data(), 1);
    fork.record(origin);
    fork.hold(other);
    CHECK(cudaMemcpyAsync(there.data(), value.data(), 4, cudaMemcpyDefault, other.get()) ==
          cudaSuccess);
    cudaSetDevice(1);
    launch(add_kernel, {1, 1, 0, other.get()}, there.data(), 100);
    join.record(other);
    cudaSetDevice(0);
    join.hold(origin);
    CHECK(cudaMemcpyAsync(copied.data(), there.data(), 4, cudaMemcpyDefault, origin.get()) ==
          cudaSuccess);
    timed_too.record_time(origin);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(origin.get(), &graph) == cudaSuccess);
    CHECK(value.download() == std::vector<int>{0});  // nothing is done yet
    cudaGraphExec_t executable = nullptr;
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    for (int launches = 1; launches <= 3; ++launches) {
      CHECK(cudaGraphLaunch(executable, origin.get()) == cudaSuccess);
      launch(add_kernel, {1, 1, 0, origin.get()}, copied.data(), 1000);
      origin.synchronize();
      CHECK(value.download() == std::vector<int>{launches});
      CHECK(copied.download() == std::vector<int>{1100 + launches});
      CHECK(timed_too.milliseconds_since(timed) >= 0);
    }
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
    check_error(cudaErrorInvalidValue, cudaGraphLaunch(executable, origin.get()));
    check_error(cudaErrorInvalidValue, cudaGraphDestroy(graph));
    check_error(cudaErrorInvalidValue, cudaGraphInstantiate(&executable, graph, 0));
  }
}

TEST_CASE("graphs: what CUDA refuses to capture", "[simt]") {
  Buffer<int> value("value", std::vector<int>{0});
  const Stream first, second;
  Event event, before;
  cudaGraph_t graph = nullptr;
  check_error(cudaErrorStreamCaptureUnsupported,
              cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  check_error(cudaErrorInvalidValue, cudaStreamEndCapture(first.get(), &graph));

  // A stream that joined, with work that nothing waits for.
  before.record(second);
  REQUIRE(cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  check_error(cudaErrorInvalidValue,
              cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeGlobal));
  event.record(first);
  event.hold(second);
  launch(add_kernel, {1, 1, 0, second.get()}, value.data(), 1);
  check_error(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(second.get(), &graph));
  check_error(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(first.get(), &graph));
  CHECK(graph == nullptr);

  // Both are streams as before, and an event of a capture that is over delays nothing.
  event.hold(first);
  launch(add_kernel, {1, 1, 0, second.get()}, value.data(), 1);
  CHECK(value.download() == std::vector<int>{1});

  // Two captures do not meet.
  REQUIRE(cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(second.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  event.record(first);
  CHECK_THROWS_AS(event.hold(second), spmv::device::DeviceError);
  for (const Stream* stream : {&first, &second}) {
    check_error(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream->get(), &graph));
  }
}

TEST_CASE("graphs: what CUDA refuses while a stream is captured, and ends the capture", "[simt]") {
  Buffer<int> value("value", std::vector<int>{0});
  const Stream captured, other;
  cudaStream_t blocking = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  cudaEvent_t outside = nullptr;
  REQUIRE(cudaEventCreate(&outside) == cudaSuccess);
  REQUIRE(cudaEventRecord(outside, other.get()) == cudaSuccess);
  void* memory = nullptr;
  const std::function<cudaError_t()> wait_for_stream = [&] {
    return cudaStreamSynchronize(captured.get());
  };
  const std::function<cudaError_t()> unsafe[] = {
      [&] { return cudaStreamSynchronize(other.get()); },
      [&] { return cudaStreamQuery(other.get()); },
      [&] { return cudaEventSynchronize(outside); },
      [&] { return cudaMalloc(&memory, 4); },
      [&] { return cudaHostAlloc(&memory, 4, cudaHostAllocDefault); },
      [&] { return cudaFree(value.data()); },
  };
  const std::function<cudaError_t()> legacy[] = {
      [&] { return cudaMemset(value.data(), 0, 4); },
      [&] { return cudaMemsetAsync(value.data(), 0, 4, nullptr); },
      [&] { return cudaStreamSynchronize(nullptr); },
      [&] { return cudaEventRecord(outside, nullptr); },
      [&] { return cudaMemcpy(value.data(), value.data(), 4, cudaMemcpyDeviceToDevice); },
  };
  // What the call returns, and whether the capture survives it.
  const auto check = [&](cudaStream_t stream, cudaStreamCaptureMode mode, const auto& call,
                         cudaError_t expected) {
    REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
    launch(add_kernel, {1, 1, 0, stream}, value.data(), 1);
    CHECK(std::string(cudaGetErrorName(call())) == cudaGetErrorName(expected));
    cudaGetLastError();  // (of the thread that made the call)
    const bool is_valid = expected == cudaSuccess;
    check_error(is_valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated,
                cudaMemsetAsync(value.data(), 0, 4, stream));
    cudaGraph_t graph = nullptr;
    check_error(is_valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated,
                cudaStreamEndCapture(stream, &graph));
    CHECK((graph != nullptr) == is_valid);
    if (graph) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  };
  constexpr auto kGlobal = cudaStreamCaptureModeGlobal,
                 kOfThread = cudaStreamCaptureModeThreadLocal,
                 kRelaxed = cudaStreamCaptureModeRelaxed;
  for (const cudaStreamCaptureMode mode : {kGlobal, kOfThread, kRelaxed}) {
    CAPTURE(mode);
    check(captured.get(), mode, wait_for_stream, cudaErrorStreamCaptureUnsupported);
    check(captured.get(), mode, cudaDeviceSynchronize, cudaErrorStreamCaptureUnsupported);
    check(
        captured.get(), mode, [&] { return cudaStreamWaitEvent(captured.get(), outside, 0); },
        cudaErrorStreamCaptureIsolation);
    for (const auto& call : legacy) {
      check(captured.get(), mode, call, cudaSuccess);
      check(blocking, mode, call, cudaErrorStreamCaptureImplicit);
    }
  }
  for (const auto& call : unsafe) {
    check(captured.get(), kGlobal, call, cudaErrorStreamCaptureUnsupported);
    check(captured.get(), kOfThread, call, cudaErrorStreamCaptureUnsupported);
    const auto on_another_thread = [&] {
      cudaError_t error{};
      std::thread([&] { error = call(); }).join();
      return error;
    };
    check(captured.get(), kGlobal, on_another_thread, cudaErrorStreamCaptureUnsupported);
  }
  for (int i = 0; i < 3; ++i) check(captured.get(), kRelaxed, unsafe[i], cudaSuccess);
  CHECK(cudaEventDestroy(outside) == cudaSuccess);
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
  CHECK(value.download() == std::vector<int>{0});
}

TEST_CASE("devices without peer access", "[simt]") {
  const ScopedSettings restore;
  simt::settings().devices = 2;
  simt::settings().peer_access = false;
  CHECK(!spmv::device::enable_peer_access(0, 1));
  check_error(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(1, 0));
  simt::settings().peer_access = true;
  CHECK(spmv::device::enable_peer_access(0, 1));
  CHECK(spmv::device::enable_peer_access(0, 1));  // again
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
}

}  // namespace simt_test
