// Device memory that several processes use (CUDA IPC).
#pragma once

#include <cuda_runtime.h>

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
    void* data = nullptr;
    check(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess),
          "opening memory of another process");
    data_.reset(data);
  }

  void* data() const { return data_.get(); }

 private:
  Owned<void*, cudaIpcCloseMemHandle> data_;
};

}  // namespace spmv::device
