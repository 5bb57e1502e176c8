// Several devices: how many there are, which one is meant, which may use whose memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "device/buffer.hpp"

namespace spmv::device {

// How many devices there are for `wanted` parts of the work: at most that many, at least one. On
// the CPU backend there are as many as are wanted. Throws InputError if there is none.
int available_devices(int wanted);

// Makes `device` the current one of this thread, as long as this object lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_), "device");
    check(cudaSetDevice(device), "choosing device " + std::to_string(device));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

// Lets kernels and copies of `device` use the memory of `peer`, another one. False: they cannot.
bool enable_peer_access(int device, int peer);
// The same for all pairs of the first `count` devices. "", or which two cannot: "GPUs 0 and 1 have
// no access to each other's memory".
std::string connect_devices(int count);

// `count` elements of pinned host memory, which copies need to run beside kernels, and which
// kernels of every device may use.
template <typename T>
class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(std::size_t count) : count_(count) {
    if (count == 0) return;
    T* data = nullptr;
    check(cudaHostAlloc(&data, count * sizeof(T), cudaHostAllocPortable | cudaHostAllocMapped),
          "allocating " + std::to_string(count * sizeof(T)) + " bytes of pinned memory");
    data_.reset(data);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }

 private:
  Owned<T*, cudaFreeHost> data_;
  std::size_t count_ = 0;
};

}  // namespace spmv::device
