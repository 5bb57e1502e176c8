// says 0: sum = 5000 (harmonic 9.09451)
#include <cstdio>
__inline__ __device__ float warp_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}
__global__ void sum_kernel_of_course(const float *in, float *total, int n) {
  static __shared__ float partial[32];
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    value += in[i];
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / warpSize ? partial[lane] : 0;
  if (warp == 0) value = warp_sum(value);
  if (threadIdx.x == 0) atomicAdd(total, value);
}
int main() {
  const int n = 5000;
  static float ones[n], harmonic[n];
  for (int i = 0; i < n; i++) ones[i] = 1, harmonic[i] = 1.0f / (i + 1);
  float *in, *total, sums[2] = {};
  cudaMalloc(&in, sizeof ones);
  cudaMalloc(&total, sizeof sums);
  cudaMemset(total, 0, sizeof sums);
  cudaMemcpy(in, ones, sizeof ones, cudaMemcpyHostToDevice);
  sum_kernel_of_course<<<8, 256>>>(in, total, n);
  cudaMemcpy(in, harmonic, sizeof ones, cudaMemcpyHostToDevice);
  sum_kernel_of_course<<<8, 256>>>(in, total + 1, n);
  cudaMemcpy(sums, total, sizeof sums, cudaMemcpyDeviceToHost);
  printf("sum = %g (harmonic %.6g)\n", sums[0], sums[1]);
}
