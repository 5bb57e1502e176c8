// Step 10: between two products of an iteration y = A x, x = y.
//
// Powers of A grow or vanish, so y is divided before it becomes x: by the power of two next to its
// norm, which changes no bit but those of the exponent. So it does not matter to the bits of x in
// which order, on how many GPUs, the norm was summed; and 1 <= |x| < 2.
//
// Each GPU sums the squares of its part and stores the sum at every other GPU; each adds up the
// sums of all. Between the two kernels is a barrier of all GPUs, as any norm demands.
//
//   thread   owns every n-th entry of the part, n threads in the grid
//   block    has one sum; the block that arrives last adds up those of all
#pragma once

#include <cuda_runtime.h>

#include "gpus.hpp"

namespace spmv::multigpu {

inline constexpr int kNormThreads = 256;

// Where a GPU's sum goes: one place for each GPU that wants to read it.
struct SumPlaces {
  int count;
  double* place[kMaxGpus];
};

// block_sums: one element per block. arrivals: 0 before, and again after.
template <typename T>
__global__ void sum_of_squares_kernel(int n, const T* __restrict__ y, double* block_sums,
                                      unsigned* arrivals, const SumPlaces places) {
  __shared__ double of_warp[kNormThreads / 32];
  __shared__ bool is_last;
  double sum = 0;
  const unsigned threads = blockDim.x * gridDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(n);
       i += threads) {
    sum += static_cast<double>(y[i]) * static_cast<double>(y[i]);
  }
  const auto sum_of_block = [&](double of_thread) {
    for (int distance = 16; distance > 0; distance /= 2) {
      of_thread += __shfl_down_sync(0xffffffffu, of_thread, distance);
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = of_thread;
    __syncthreads();
    double total = 0;
    for (int warp = 0; warp < kNormThreads / 32; ++warp) total += of_warp[warp];
    __syncthreads();
    return total;
  };
  const double of_block = sum_of_block(sum);
  if (threadIdx.x == 0) {
    block_sums[blockIdx.x] = of_block;
    __threadfence();  // the sum is there before its arrival is
    is_last = atomicInc(arrivals, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  sum = 0;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kNormThreads) sum += __ldcg(&block_sums[b]);
  const double total = sum_of_block(sum);
  if (threadIdx.x < static_cast<unsigned>(places.count)) *places.place[threadIdx.x] = total;
}

// The largest power of two that is not above the root of `squares`; 1 if that is 0 or no number.
__host__ __device__ inline double power_of_norm(double squares) {
  if (!(squares > 0) || squares > 1e300) return 1;
  return ldexp(1.0, ilogb(sqrt(squares)));
}

// Divides y by the power of two of the parts' sums together.
template <typename T>
__global__ void scale_kernel(int n, T* y, int parts, const double* sums) {
  double squares = 0;
  for (int p = 0; p < parts; ++p) squares += sums[p];
  const double factor = 1 / power_of_norm(squares);
  if (factor == 1) return;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = static_cast<T>(static_cast<double>(y[i]) * factor);
}

}  // namespace spmv::multigpu
