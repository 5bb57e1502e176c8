// says 0: 3907 3906 of 1000000
#include <cstdio>
#include <cstdlib>
constexpr int kBins = 256;
__global__ void histogram(const unsigned char *data, unsigned int *bins, int n) {
  __shared__ unsigned int local[kBins];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&local[data[i]], 1);
  __syncthreads();
  atomicAdd(bins + threadIdx.x, local[threadIdx.x]);
}
int main() {
  const int n = 1000000;
  unsigned char *data = (unsigned char *)malloc(n), *d_data;
  for (int i = 0; i < n; i++) data[i] = i & 255;
  unsigned int bins[kBins], *d_bins, total = 0;
  cudaMalloc((void **)&d_data, n);
  cudaMalloc((void **)&d_bins, sizeof(bins));
  cudaMemset(d_bins, 0, sizeof(bins));
  cudaMemcpy(d_data, data, n, cudaMemcpyHostToDevice);
  histogram<<<4, kBins>>>(d_data, d_bins, n);
  cudaMemcpy(bins, d_bins, sizeof(bins), cudaMemcpyDeviceToHost);
  for (unsigned int bin : bins) total += bin;
  printf("%u %u of %u\n", bins[0], bins[255], total);
  return total != n;
}
