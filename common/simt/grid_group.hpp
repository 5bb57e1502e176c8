// cooperative_groups: all threads of a grid that was launched as a cooperative one.
#pragma once

#include "simt/cuda_atomic.hpp"

namespace cooperative_groups {

class grid_group {
 public:
  __forceinline__ void sync() const {
    simt::grid_sync();
    simt::no_tail_call();
  }
  __forceinline__ unsigned long long size() const { return num_threads(); }
  __forceinline__ unsigned long long num_threads() const {
    return num_blocks() * blockDim.x * blockDim.y * blockDim.z;
  }
  __forceinline__ unsigned long long num_blocks() const {
    return 1ull * gridDim.x * gridDim.y * gridDim.z;
  }
  __forceinline__ unsigned long long block_rank() const {
    return blockIdx.x + gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  __forceinline__ unsigned long long thread_rank() const {
    return block_rank() * (blockDim.x * blockDim.y * blockDim.z) + threadIdx.x +
           blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
};

__forceinline__ grid_group this_grid() {
  return {};
}

}  // namespace cooperative_groups
