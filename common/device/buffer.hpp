// Device memory and streams that free themselves.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "device/error.hpp"

namespace spmv::device {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};
// A handle of the CUDA runtime, or memory, with the function that ends its life.
template <typename Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

// `count` elements of device memory. The name stands in error messages and, on the CPU backend, in
// the table of what kernels ask of memory.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const std::string& name, std::size_t count) : count_(count) {
    if (count == 0) return;
    T* data = nullptr;
    check(cudaMalloc(&data, bytes()),
          "allocating " + std::to_string(bytes()) + " bytes for '" + name + "'");
    data_.reset(data);
#ifndef SPMV_CUDA
    simt::name_allocation(data, name.c_str());
#endif
  }
  Buffer(const std::string& name, const std::vector<T>& host) : Buffer(name, host.size()) {
    upload(host);
  }

  T* data() {
    return data_.get();
  }
  const T* data() const {
    return data_.get();
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
    check(cudaMemcpy(data(), host.data(), bytes(), cudaMemcpyHostToDevice),
          "copying to the device");
    // A copy from ordinary memory may return when its bytes are staged, before they have arrived,
    // and streams made here do not wait for the default stream, where the copy is.
    check(cudaStreamSynchronize(nullptr), "copying to the device");
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    if (count_ == 0) return host;
    check(cudaMemcpy(host.data(), data(), bytes(), cudaMemcpyDeviceToHost),
          "copying from the device");
    return host;
  }

 private:
  Owned<T*, cudaFree> data_;
  std::size_t count_ = 0;
};

class Stream {
 public:
  // See cudaDeviceGetStreamPriorityRange; 0 is the least.
  explicit Stream(int priority = 0) {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "stream");
    stream_.reset(stream);
  }

  cudaStream_t get() const { return stream_.get(); }
  void synchronize() const {
    check(cudaStreamSynchronize(get()), "waiting for the kernels of a stream");
  }

 private:
  Owned<cudaStream_t, cudaStreamDestroy> stream_;
};

// A point in a stream's work, with the time at which it was reached.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, flags), "event");
    event_.reset(event);
  }
  // One without a time, which costs less, for other streams to wait for.
  static Event untimed() { return Event(cudaEventDisableTiming); }

  void record(const Stream& stream) { check(cudaEventRecord(event_.get(), stream.get()), "event"); }
  // Also in a graph: each launch of it sets the time anew. For no other stream to wait for.
  void record_time(const Stream& stream) {
    check(cudaEventRecordWithFlags(event_.get(), stream.get(), cudaEventRecordExternal), "event");
  }
  // What `stream`, of any device, is asked for from now on waits for the point last recorded.
  void hold(const Stream& stream) const {
    check(cudaStreamWaitEvent(stream.get(), event_.get(), 0), "waiting for an event");
  }
  void synchronize() const { check(cudaEventSynchronize(event_.get()), "waiting for an event"); }
  // Milliseconds from `start` to this event; waits until both are reached.
  double milliseconds_since(const Event& start) const {
    synchronize();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_.get(), event_.get()),
          "time between events");
    return static_cast<double>(milliseconds);
  }

 private:
  Owned<cudaEvent_t, cudaEventDestroy> event_;
};

}  // namespace spmv::device
