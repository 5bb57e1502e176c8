// What the host may read and change, and when: streams, events, copies.
#pragma once

#include <algorithm>

#include "device/devices.hpp"
#include "litmus.hpp"

namespace litmus {

constexpr int kElements = 1 << 16;

// Takes some milliseconds on a GPU before it stores.
__global__ void slow_kernel(const int* in, int* out, int value) {
  for (int i = 0; i < 10; ++i) __nanosleep(500000);
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  out[thread] = (in ? in[thread] : 0) + value;
}
constexpr int kBlocks = kElements / 256;

// Zeros, at first.
struct Pinned : spmv::device::Pinned<int> {
  Pinned() : spmv::device::Pinned<int>(kElements) { std::fill_n(data(), kElements, 0); }
  int wrong(int expected) const {
    return kElements - static_cast<int>(std::count(data(), data() + kElements, expected));
  }
};
struct Streams {
  explicit Streams(unsigned flags) {
    for (cudaStream_t* stream : {&first, &second}) {
      check(cudaStreamCreateWithFlags(stream, flags), "stream");
    }
  }
  ~Streams() {
    for (cudaStream_t stream : {first, second}) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
  }
  cudaStream_t first = nullptr, second = nullptr;
};

template <bool kWait>
int read_results() {
  Buffer<int> out("out", zeros(kElements));
  Pinned host;
  const Streams streams(cudaStreamNonBlocking);
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, out.data(), 1);
  check(
      cudaMemcpyAsync(host.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost, streams.first),
      "copy");
  if (kWait) check(cudaStreamSynchronize(streams.first), "waiting");
  return host.wrong(1);
}
LITMUS_IS(shows_late, results_read_before_the_stream_is_waited_for, read_results<false>())
LITMUS_IS(right, results_read_after_the_stream_is_waited_for, read_results<true>())

enum class Recorded { kNever, kBefore, kAfter };
template <Recorded kRecorded>
int two_streams() {
  Buffer<int> data("data", zeros(kElements)), out("out", zeros(kElements));
  const Streams streams(cudaStreamNonBlocking);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  if (kRecorded == Recorded::kBefore) check(cudaEventRecord(event, streams.first), "event");
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, data.data(), 1);
  if (kRecorded == Recorded::kAfter) check(cudaEventRecord(event, streams.first), "event");
  check(cudaStreamWaitEvent(streams.second, event, 0), "waiting");
  launch(slow_kernel, {kBlocks, 256, 0, streams.second}, data.data(), out.data(), 1);
  check(cudaDeviceSynchronize(), "waiting");
  cudaEventDestroy(event);
  return differences(out.download(), 2);
}
LITMUS_IS(shows_late, event_never_recorded, two_streams<Recorded::kNever>())
LITMUS_IS(shows_late, event_recorded_before_the_work, two_streams<Recorded::kBefore>())
LITMUS_IS(right, event_recorded_after_the_work, two_streams<Recorded::kAfter>())

template <bool kPinned, bool kWait>
int change_early() {
  Buffer<int> in("in", zeros(kElements)), out("out", zeros(kElements));
  Pinned pinned;
  std::vector<int> pageable(kElements);
  int* const host = kPinned ? pinned.data() : pageable.data();
  const Streams streams(cudaStreamNonBlocking);
  for (int i = 0; i < kElements; ++i) host[i] = 1;
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, out.data(), 0);  // not yet
  check(cudaMemcpyAsync(in.data(), host, in.bytes(), cudaMemcpyHostToDevice, streams.first),
        "copy");
  if (kWait) check(cudaStreamSynchronize(streams.first), "waiting");
  for (int i = 0; i < kElements; ++i) host[i] = 7;
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, in.data(), out.data(), 1);
  check(cudaStreamSynchronize(streams.first), "waiting");
  return differences(out.download(), 2);
}
LITMUS_IS(shows_late, pinned_memory_changed_early, change_early<true, false>())
LITMUS_IS(right, pinned_memory_changed_after_a_wait, change_early<true, true>())
LITMUS_IS(right, pageable_memory_changed_after_the_call, change_early<false, false>())

template <unsigned kFlags, bool kWait>
int plain_copy() {
  Buffer<int> out("out", zeros(kElements));
  const Streams streams(kFlags);
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, out.data(), 1);
  if (kWait) check(cudaStreamSynchronize(streams.first), "waiting");
  return differences(out.download(), 1);  // a plain cudaMemcpy
}
LITMUS_IS(shows_late, nonblocking_stream_and_plain_copy, plain_copy<cudaStreamNonBlocking, false>())
LITMUS_IS(right, nonblocking_stream_a_wait_and_plain_copy,
          plain_copy<cudaStreamNonBlocking, true>())
LITMUS_IS(right, blocking_stream_and_plain_copy, plain_copy<cudaStreamDefault, false>())

// A kernel on the default stream waits for blocking streams, and they for it.
LITMUS(right, blocking_streams_around_the_default_stream) {
  Buffer<int> a("a", zeros(kElements)), b("b", zeros(kElements)), c("c", zeros(kElements));
  const Streams streams(cudaStreamDefault);
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, a.data(), 1);
  launch(slow_kernel, {kBlocks, 256}, a.data(), b.data(), 1);
  launch(slow_kernel, {kBlocks, 256, 0, streams.second}, b.data(), c.data(), 1);
  check(cudaStreamSynchronize(streams.second), "waiting");
  return differences(c.download(), 3);
}
LITMUS(shows_late, two_blocking_streams_without_event) {
  Buffer<int> a("a", zeros(kElements)), b("b", zeros(kElements));
  const Streams streams(cudaStreamDefault);
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, a.data(), 1);
  launch(slow_kernel, {kBlocks, 256, 0, streams.second}, a.data(), b.data(), 1);
  check(cudaDeviceSynchronize(), "waiting");
  return differences(b.download(), 2);
}

// A memset of the default stream does not wait for a non-blocking one.
LITMUS(shows_late, nonblocking_stream_and_memset) {
  Buffer<int> out("out", zeros(kElements));
  const Streams streams(cudaStreamNonBlocking);
  check(cudaMemset(out.data(), 0xff, out.bytes()), "memset");
  launch(slow_kernel, {kBlocks, 256, 0, streams.first}, nullptr, out.data(), 1);
  check(cudaMemset(out.data(), 0, out.bytes()), "memset");
  check(cudaDeviceSynchronize(), "waiting");
  return differences(out.download(), 0);
}

// The host reads what a kernel wrote to pinned memory, without and with a wait.
template <bool kWait>
int read_mapped() {
  Pinned host;
  launch(slow_kernel, {kBlocks, 256}, nullptr, host.data(), 1);
  if (kWait) check(cudaDeviceSynchronize(), "waiting");
  const int count = host.wrong(1);
  check(cudaDeviceSynchronize(), "waiting");
  return count;
}
LITMUS_IS(shows_late, mapped_memory_read_before_a_wait, read_mapped<false>())
LITMUS_IS(right, mapped_memory_read_after_a_wait, read_mapped<true>())

}  // namespace litmus
