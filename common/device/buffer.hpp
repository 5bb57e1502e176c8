// Device memory and streams that free themselves.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "device/error.hpp"

namespace spmv::device {

// `count` elements of device memory. The name stands in error messages and, on the CPU backend, in
// the table of what kernels ask of memory.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const std::string& name, std::size_t count) : count_(count) {
    if (count == 0) return;
    check(cudaMalloc(&data_, bytes()),
          "allocating " + std::to_string(bytes()) + " bytes for '" + name + "'");
#ifndef SPMV_CUDA
    simt::name_allocation(data_, name.c_str());
#endif
  }
  Buffer(const std::string& name, const std::vector<T>& host) : Buffer(name, host.size()) {
    upload(host);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() {
    cudaFree(data_);
  }

  T* data() {
    return data_;
  }
  const T* data() const {
    return data_;
  }
  std::size_t size() const {
    return count_;
  }
  std::size_t bytes() const {
    return count_ * sizeof(T);
  }

  void upload(const std::vector<T>& host) {
    if (host.size() != count_) throw DeviceError("upload: sizes differ");
    if (count_ == 0) return;
    check(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice), "copying to the device");
    // A copy from ordinary memory may return when its bytes are staged, before they have arrived,
    // and streams made here do not wait for the default stream, where the copy is.
    check(cudaStreamSynchronize(nullptr), "copying to the device");
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    if (count_ == 0) return host;
    check(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost),
          "copying from the device");
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  // See cudaDeviceGetStreamPriorityRange.
  explicit Stream(int priority) {
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), "stream");
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_) cudaStreamDestroy(stream_);
  }

  cudaStream_t get() const { return stream_; }
  void synchronize() const {
    check(cudaStreamSynchronize(stream_), "waiting for the kernels of a stream");
  }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in a stream's work, with the time at which it was reached.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "event"); }
  // One without a time, which costs less, for other streams to wait for.
  static Event untimed() {
    Event event(nullptr);
    check(cudaEventCreateWithFlags(&event.event_, cudaEventDisableTiming), "event");
    return event;
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) cudaEventDestroy(event_);
  }

  void record(const Stream& stream) { check(cudaEventRecord(event_, stream.get()), "event"); }
  // Also in a graph: each launch of it sets the time anew. For no other stream to wait for.
  void record_time(const Stream& stream) {
    check(cudaEventRecordWithFlags(event_, stream.get(), cudaEventRecordExternal), "event");
  }
  // What `stream`, of any device, is asked for from now on waits for the point last recorded.
  void hold(const Stream& stream) const {
    check(cudaStreamWaitEvent(stream.get(), event_, 0), "waiting for an event");
  }
  void synchronize() const { check(cudaEventSynchronize(event_), "waiting for an event"); }
  // Milliseconds from `start` to this event; waits until both are reached.
  double milliseconds_since(const Event& start) const {
    check(cudaEventSynchronize(event_), "waiting for an event");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "time between events");
    return static_cast<double>(milliseconds);
  }

 private:
  explicit Event(cudaEvent_t event) : event_(event) {}
  cudaEvent_t event_ = nullptr;
};

}  // namespace spmv::device
