// Launches that a GPU refuses, what a thread's stack and a block's shared memory hold, arithmetic.
#pragma once

#include <climits>
#include <cmath>

#include "litmus.hpp"

namespace litmus {

__global__ void __launch_bounds__(128) bounded_kernel(int* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
LITMUS_IS(not_found, more_threads_than_launch_bounds,
          wrong_results(256, 1, bounded_kernel, {1, 256}))

// 96 doubles that live at once take about 200 registers: 1024 threads have 64 each.
__global__ void registers_kernel(const double* in, double* out, int n) {
  double values[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) values[i] = in[threadIdx.x + 1024 * i];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 96; ++i) values[i] = values[i] * values[(i + 1) % 96] + 1.0;
  }
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 96; ++i) sum += values[i];
  out[threadIdx.x] = sum;
}
LITMUS(not_found, more_registers_than_a_block_has) {
  const Buffer<double> in("in", std::vector<double>(96 * 1024, 1.0));
  Buffer<double> out("out", std::vector<double>(1024));
  launch(registers_kernel, {1, 1024}, in.data(), out.data(), 0);
  int count = 0;
  for (const double sum : out.download()) count += sum != 96;
  return count;
}

__device__ __noinline__ int deep(int depth, const int* in) {
  int frame[8];
  for (int i = 0; i < 8; ++i) frame[i] = in[(depth + i) % 8];
  if (depth == 0) return frame[0];
  return frame[depth % 8] + deep(depth - 1, in) * frame[(depth + 3) % 8];
}
__global__ void deep_kernel(const int* in, int* out, int depth) {
  out[threadIdx.x] = deep(depth, in);
}
LITMUS(not_found, recursion_deeper_than_the_stack) {  // of 1 KiB, by default
  const Buffer<int> in("in", std::vector<int>(8, 1));
  Buffer<int> out("out", zeros(32));
  launch(deep_kernel, {1, 32}, in.data(), out.data(), 400);
  return differences(out.download(), 401);
}

__global__ void much_shared_kernel(int* out) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = 1;
  out[threadIdx.x] = shared[threadIdx.x];
}
// (Without cudaFuncSetAttribute.)
LITMUS_IS(reported("cudaErrorInvalidValue"), more_shared_memory_than_allowed,
          wrong_results(32, 1, much_shared_kernel, {1, 32, 64 << 10}))

__global__ void two_extern_kernel(int* out) {
  extern __shared__ int own_ints[];
  extern __shared__ float own_floats[];
  own_ints[threadIdx.x] = static_cast<int>(threadIdx.x);
  own_floats[threadIdx.x] = 0.5f;
  __syncthreads();
  out[threadIdx.x] = own_ints[threadIdx.x];
}
LITMUS(reported("begin at the same address"), extern_shared_declared_twice) {
  Buffer<int> out("out", zeros(32));
  launch(two_extern_kernel, {1, 32, 32 * 8}, out.data());
  std::vector<int> expected;
  for (int i = 0; i < 32; ++i) expected.push_back(i);
  return differences(out.download(), expected);
}

__device__ int device_variable = 1;
__global__ void read_variable_kernel(int* out) {
  *out = device_variable;
}
LITMUS(not_found, host_writes_device_variable) {
  device_variable = 2;
  return wrong_results(1, 2, read_variable_kernel, {1, 1});
}
__device__ int device_result;
__global__ void write_variable_kernel() {
  device_result = 3;
}
LITMUS(not_found, host_reads_device_variable) {
  launch(write_variable_kernel, {1, 1});
  check(cudaDeviceSynchronize(), "waiting");
  return device_result != 3;
}

// --- Arithmetic ---------------------------------------------------------------------------------

__global__ void to_int_kernel(const float* in, int* out) {
  out[threadIdx.x] = static_cast<int>(in[threadIdx.x]);
}
LITMUS(not_found, float_to_int_out_of_range) {  // as on x86-64
  const Buffer<float> in("in", {3e9f, -3e9f, NAN, INFINITY});
  return wrong_results(4, INT_MIN, to_int_kernel, {1, 4}, in.data());
}
__global__ void to_unsigned_kernel(const float* in, unsigned* out) {
  out[threadIdx.x] = static_cast<unsigned>(in[threadIdx.x]);
}
LITMUS(not_found, negative_float_to_unsigned) {  // to wrap around, as on x86-64
  const Buffer<float> in("in", {-1.0f, -2.5f});
  Buffer<unsigned> out("out", std::vector<unsigned>(2));
  launch(to_unsigned_kernel, {1, 2}, in.data(), out.data());
  const std::vector<unsigned> results = out.download();
  return (results[0] != 0xffffffffu) + (results[1] != 0xfffffffeu);
}
__global__ void shift_kernel(const int* by, unsigned* out) {
  out[threadIdx.x] = 1u << by[threadIdx.x];
}
LITMUS(not_found, shift_by_the_width) {  // to wrap around, as on x86-64
  const Buffer<int> by("by", {32, 33});
  Buffer<unsigned> out("out", std::vector<unsigned>(2));
  launch(shift_kernel, {1, 2}, by.data(), out.data());
  const std::vector<unsigned> results = out.download();
  return (results[0] != 1) + (results[1] != 2);
}
// a * a - b * b of equal numbers is 0 if each product is rounded.
__global__ void contraction_kernel(const float* a, const float* b, float* out) {
  const int i = threadIdx.x;
  out[i] = std::sqrt(a[i] * a[i] - b[i] * b[i]);
}
LITMUS(not_found, products_rounded_before_they_are_subtracted) {
  std::vector<float> host;
  for (int i = 0; i < 64; ++i) host.push_back(1.0f + 0.137f * static_cast<float>(i));
  const Buffer<float> a("a", host), b("b", host);
  Buffer<float> out("out", std::vector<float>(64));
  launch(contraction_kernel, {1, 64}, a.data(), b.data(), out.data());
  int count = 0;
  for (const float root : out.download()) count += !(root == 0);
  return count;
}

}  // namespace litmus
