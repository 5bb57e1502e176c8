// Streams whose work is late, events, graphs.
#include <functional>
#include <string>
#include <vector>

#include "simt/tests/testing.hpp"

namespace simt_test {

using spmv::device::Event;
using spmv::device::Stream;

__global__ void add_kernel(int* value, int summand) {
  *value += summand;
}
__global__ void copy_value_kernel(const int* from, int* to) {
  *to = *from;
}

// y[i] = x[i] by a kernel that may start before the previous one has completed; before that it
// writes `early`, once it may or too soon.
enum class Wait { kNever, kBeforeReading, kAfterReading, kAfterAll };
template <Wait wait>
__global__ void overlapped_kernel(int* early, const int* x, int* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (wait == Wait::kBeforeReading) cudaGridDependencySynchronize();
  early[i] = 1;
  if (wait == Wait::kAfterReading) cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  y[i] = x[i];
  if (wait == Wait::kAfterAll) cudaGridDependencySynchronize();
}

// (What may be read and changed before a stream is waited for, and what waits by itself, litmus
// programs show: litmus/host.cuh.)
TEST_CASE("late streams: freeing memory waits for all work, which is done in order", "[simt]") {
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  Buffer<int> value("value", std::vector<int>{1});
  const Stream stream;
  launch(add_kernel, {1, 1, 0, stream.get()}, value.data(), 10);
  CHECK(cudaMemsetAsync(value.data(), 0, 4, stream.get()) == cudaSuccess);
  launch(add_kernel, {1, 1, 0, stream.get()}, value.data(), 100);
  CHECK(value.download() == std::vector<int>{1});  // the default stream waits for no other
  Buffer<int>("freed", 1) = {};
  CHECK(value.download() == std::vector<int>{100});
}

TEST_CASE("late streams: an order comes from events alone", "[simt]") {
  const ScopedSettings restore;
  simt::settings().late_streams = true;
  Buffer<int> from("from", 1);
  Buffer<int> to("to", 1);
  int early = 0;
  for (int seed = 0; seed < 80; ++seed) {
    simt::settings().seed = static_cast<std::uint64_t>(seed);
    const bool with_event = seed % 4 < 2;
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
    if (!with_event && seed % 2) CHECK(got == 1);  // what was asked for last
    early += got == 1 && seed % 2 == 0;
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
  cudaEvent_t begin = nullptr, end = nullptr;
  REQUIRE(cudaEventCreate(&begin) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventRecord(begin, stream.get()) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream.get()) == cudaSuccess);
  float milliseconds = -1;
  CHECK_ERROR(cudaErrorNotReady, cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);

  simt::set_quiet_reports(true);
  launch(add_kernel, {1, 1, 0, stream.get()}, static_cast<int*>(nullptr), 1);
  CHECK_ERROR(cudaErrorIllegalAddress, cudaStreamSynchronize(stream.get()));
  simt::set_quiet_reports(false);
  CHECK(contains(simt::take_report(), "null"));
}

TEST_CASE("overlap: accesses that do not wait for the previous kernel are races", "[simt]") {
  const ScopedSettings restore;
  Buffer<int> from("from", std::vector<int>(96, 1)), to("to", 96), beside("beside", 96),
      own("own", 96);
  const auto right = overlapped_kernel<Wait::kBeforeReading>;
  const auto early_store = overlapped_kernel<Wait::kAfterReading>;
  const auto early_load = overlapped_kernel<Wait::kAfterAll>;
  const auto nothing = [](cudaStream_t) {};
  // What the second of two kernels says: the first reads `from` and writes `to` and `beside`.
  const auto race_of = [&](auto second, Buffer<int>& early, const Buffer<int>& read, Buffer<int>& y,
                           auto&& between, bool may_start_early = true) {
    const Stream stream;
    launch(right, {3, 32, 0, stream.get()}, beside.data(), from.data(), to.data());
    between(stream.get());
    return report_of([&] {
      launch(second, {3, 32, 0, stream.get(), may_start_early}, early.data(), read.data(),
             y.data());
      stream.synchronize();
    });
  };
  under_every_schedule([&] {
    for (const bool late : {false, true}) {
      simt::settings().late_streams = late;
      CHECK(race_of(right, to, to, from, nothing).empty());
      CHECK(race_of(early_store, own, to, beside, nothing).empty());  // nothing of the first's
      const std::string stored = race_of(early_store, to, from, own, nothing);
      check_contains(stored, {"kernel overlapped_kernel<", " at streams_test.cu:",
                              "thread (0,0,0): race: writes 4 bytes, 0 bytes into 'to', which the "
                              "previous kernel, overlapped_kernel<",
                              ", writes, before it waits by cudaGridDependencySynchronize()"});
      for (const auto& kernel : {early_load, overlapped_kernel<Wait::kNever>}) {
        CHECK(contains(race_of(kernel, own, to, own, nothing), "race: reads 4 bytes, 0 bytes"));
      }
      CHECK(contains(race_of(early_store, from, own, own, nothing), ", reads, before it waits"));
      // It is waited for otherwise.
      CHECK(race_of(early_store, to, from, own, nothing, false).empty());
      CHECK(race_of(early_store, to, from, own, [&](cudaStream_t stream) {
              CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
            }).empty());
      CHECK(race_of(early_store, to, from, own, [&](cudaStream_t stream) {
              CHECK(cudaMemsetAsync(own.data(), 0, 4, stream) == cudaSuccess);
            }).empty());
    }
  });
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
    CHECK_ERROR(cudaErrorInvalidValue, cudaGraphLaunch(executable, origin.get()));
    CHECK_ERROR(cudaErrorInvalidValue, cudaGraphDestroy(graph));
    CHECK_ERROR(cudaErrorInvalidValue, cudaGraphInstantiate(&executable, graph, 0));
  }
}

TEST_CASE("graphs: what CUDA refuses to capture", "[simt]") {
  Buffer<int> value("value", std::vector<int>{0});
  const Stream first, second;
  Event event, before;
  cudaGraph_t graph = nullptr;
  CHECK_ERROR(cudaErrorStreamCaptureUnsupported,
              cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  CHECK_ERROR(cudaErrorInvalidValue, cudaStreamEndCapture(first.get(), &graph));

  // A stream that joined, with work that nothing waits for.
  before.record(second);
  REQUIRE(cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue,
              cudaStreamBeginCapture(first.get(), cudaStreamCaptureModeGlobal));
  event.record(first);
  event.hold(second);
  launch(add_kernel, {1, 1, 0, second.get()}, value.data(), 1);
  CHECK_ERROR(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(second.get(), &graph));
  CHECK_ERROR(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(first.get(), &graph));
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
    CHECK_ERROR(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream->get(), &graph));
  }
}

TEST_CASE("graphs: what CUDA refuses while a stream is captured, and ends the capture", "[simt]") {
  Buffer<int> value("value", std::vector<int>{0});
  const Stream captured, other;
  cudaEvent_t outside = nullptr;
  REQUIRE(cudaEventCreate(&outside) == cudaSuccess);
  REQUIRE(cudaEventRecord(outside, other.get()) == cudaSuccess);
  void* memory = nullptr;
  struct Call {
    std::function<cudaError_t()> call;
    cudaError_t in_global, in_relaxed;  // what it returns in either mode of capture
  };
  constexpr cudaError_t kUnsupported = cudaErrorStreamCaptureUnsupported,
                        kIsolation = cudaErrorStreamCaptureIsolation;
  const Call calls[] = {
      {[&] { return cudaStreamSynchronize(captured.get()); }, kUnsupported, kUnsupported},
      {[&] { return cudaStreamSynchronize(other.get()); }, kUnsupported, cudaSuccess},
      {[&] { return cudaEventSynchronize(outside); }, kUnsupported, cudaSuccess},
      {[&] { return cudaDeviceSynchronize(); }, kUnsupported, kUnsupported},
      {[&] { return cudaStreamWaitEvent(captured.get(), outside, 0); }, kIsolation, kIsolation},
      {[&] { return cudaMalloc(&memory, 0); }, cudaSuccess, cudaSuccess},
      {[&] { return cudaMalloc(&memory, 4); }, kUnsupported, cudaSuccess},
      {[&] { return cudaFree(memory); }, cudaSuccess, cudaSuccess},
      {[&] { return cudaHostAlloc(&memory, 4, cudaHostAllocDefault); }, kUnsupported, cudaSuccess},
      {[&] { return cudaFreeHost(memory); }, cudaSuccess, cudaSuccess},
      {[&] { return cudaMemset(value.data(), 0, 4); }, cudaSuccess, cudaSuccess},
  };
  for (const cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed}) {
    for (const Call& c : calls) {
      CAPTURE(mode, &c - calls);
      const bool is_global = mode == cudaStreamCaptureModeGlobal;
      const cudaError_t expected = is_global ? c.in_global : c.in_relaxed;
      REQUIRE(cudaStreamBeginCapture(captured.get(), mode) == cudaSuccess);
      launch(add_kernel, {1, 1, 0, captured.get()}, value.data(), 1);
      CHECK(std::string(cudaGetErrorName(c.call())) == cudaGetErrorName(expected));
      cudaGetLastError();
      const cudaError_t then =
          expected == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
      CHECK_ERROR(then, cudaMemsetAsync(value.data(), 0, 4, captured.get()));
      cudaGraph_t graph = nullptr;
      CHECK_ERROR(then, cudaStreamEndCapture(captured.get(), &graph));
      CHECK((graph != nullptr) == (expected == cudaSuccess));
      if (graph) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    }
  }
  CHECK(cudaEventDestroy(outside) == cudaSuccess);
  CHECK(value.download() == std::vector<int>{0});
}

}  // namespace simt_test
