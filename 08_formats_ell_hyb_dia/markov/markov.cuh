// What an iteration with a Markov chain needs beside the product: small kernels without atomics, so
// that the sums are the same in every run.
#pragma once

#include <cuda_runtime.h>

namespace spmv {

// The sum over the threads of a block, returned to thread 0.
template <int kThreads>
__device__ double sum_of_block(double own) {
  __shared__ double sums[kThreads];
  __syncthreads();  // the sums of the last call have been read
  sums[threadIdx.x] = own;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] = own += sums[threadIdx.x + half];
  }
  return own;
}

// parts[2 b] and parts[2 b + 1] are block b's shares of the sums of |after - before| and of after.
// Sums are of doubles in either precision: n rounding errors of a float would be the whole result.
template <int kThreads, typename T>
__global__ void change_parts_kernel(int n, const T* before, const T* after, double* parts) {
  double change = 0, sum = 0;
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += stride) {
    const auto value = static_cast<double>(after[i]);
    const double difference = value - static_cast<double>(before[i]);
    change += difference < 0 ? -difference : difference;
    sum += value;
  }
  change = sum_of_block<kThreads>(change);
  sum = sum_of_block<kThreads>(sum);
  if (threadIdx.x == 0) {
    parts[2 * blockIdx.x] = change;
    parts[2 * blockIdx.x + 1] = sum;
  }
}

// One block: sums[0] and sums[1] of what change_parts_kernel left.
template <int kThreads>
__global__ void change_kernel(int blocks, const double* parts, double* sums) {
  double change = 0, sum = 0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += kThreads) {
    change += parts[2 * b];
    sum += parts[2 * b + 1];
  }
  change = sum_of_block<kThreads>(change);
  sum = sum_of_block<kThreads>(sum);
  if (threadIdx.x == 0) {
    sums[0] = change;
    sums[1] = sum;
  }
}

// x = factor x
template <int kThreads, typename T>
__global__ void rescale_kernel(int n, T factor, T* x) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) x[i] *= factor;
}

// total = total + weight x
template <int kThreads, typename T>
__global__ void add_weighted_kernel(int n, T weight, const T* x, T* total) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) total[i] += weight * x[i];
}

}  // namespace spmv
