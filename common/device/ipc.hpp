// Device memory that several processes use (CUDA IPC).
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "device/buffer.hpp"

namespace spmv::device {

// What another process on this machine opens `buffer` with; it must not be empty.
template <typename T>
cudaIpcMemHandle_t handle_of(Buffer<T>& buffer) {
  cudaIpcMemHandle_t handle;
  check(cudaIpcGetMemHandle(&handle, buffer.data()), "sharing memory with other processes");
  return handle;
}

// A buffer of another process, for kernels of the current device. It must be closed before the
// other process frees it.
class Imported {
 public:
  explicit Imported(const cudaIpcMemHandle_t& handle) {
    check(cudaIpcOpenMemHandle(&data_, handle, cudaIpcMemLazyEnablePeerAccess),
          "opening memory of another process");
  }
  Imported(Imported&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Imported& operator=(Imported&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Imported() {
    if (data_) cudaIpcCloseMemHandle(data_);
  }

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace spmv::device
