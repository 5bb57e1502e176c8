// Step 06, one pass: a dot product with the same bits in every run and on every device, for solvers
// that need one beside each product.
//
// The number of blocks does not depend on the device, and the block that arrives last adds up what
// all of them have, in the order of their numbers.
//
//   thread   adds up every 65,536th product
//   block    owns one of 256 partial sums
//
// Tested in test.cu, "one pass: a dot product ...".
#pragma once

#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#include "cut_rows.cuh"
#include "launch.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

inline constexpr int kDotBlocks = 256;
inline constexpr int kDotThreads = 256;

// The sum over the threads of a block, in thread 0.
template <typename T>
__device__ __forceinline__ T sum_of_block(T value) {
  __shared__ T of_warp[kDotThreads / 32];
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kDotThreads / 32; ++w) value += of_warp[w];
  }
  __syncthreads();
  return value;
}

// arrived: 0, and left so.
template <typename T>
__global__ void __launch_bounds__(kDotThreads)
    dot_kernel(long long n, const T* u, const T* v, T* partial_sums, unsigned* arrived, T* result) {
  __shared__ bool is_last;
  T sum = 0;
  for (long long i = blockIdx.x * kDotThreads + threadIdx.x; i < n; i += kDotBlocks * kDotThreads) {
    sum += u[i] * v[i];
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) {
    partial_sums[blockIdx.x] = sum;
    __threadfence();  // before the block counts itself
    is_last = atomicInc(arrived, kDotBlocks - 1) == kDotBlocks - 1;
    __threadfence();  // and the last one reads after it has counted
  }
  __syncthreads();
  if (!is_last) return;
  static_assert(kDotBlocks == kDotThreads, "one sum for each thread");
  sum = *const_cast<volatile T*>(&partial_sums[threadIdx.x]);
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) *result = sum;
}

// Computes dot products, one at a time as a plan its products. Movable, not copyable.
template <typename T>
class DotProduct {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "float or double");

 public:
  // Allocates 2 KB of device memory on the current device; waits for the default stream.
  [[nodiscard]] cudaError_t create() {
    owned_.reset();
    void* memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, kBytes);
    if (error != cudaSuccess) return error;
    DeviceMemory fresh(memory);
    error = cudaMemset(memory, 0, kBytes);
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    if (error == cudaSuccess) owned_ = std::move(fresh);
    return error;
  }

  // *result = u . v on `stream`, of n elements each; result is in device memory. Launches one
  // kernel, and may be captured. Error: cudaErrorIllegalState without create(); those of the
  // launch.
  [[nodiscard]] cudaError_t operator()(long long n, const T* u, const T* v, T* result,
                                       cudaStream_t stream) const {
    if (!owned_) return cudaErrorIllegalState;
    T* partial_sums = static_cast<T*>(owned_.get());
    return launch_kernel(dot_kernel<T>, kDotBlocks, kDotThreads, 0, stream, false, n, u, v,
                         partial_sums, reinterpret_cast<unsigned*>(partial_sums + kDotBlocks),
                         result);
  }

 private:
  static constexpr std::size_t kBytes = kDotBlocks * sizeof(T) + sizeof(unsigned);
  DeviceMemory owned_;
};

}  // namespace detail

using detail::DotProduct;

}  // namespace one_pass_2
}  // namespace spmv
