// says 0: 300 odd numbers, the largest 599, flag 7
#include <cstdio>
__device__ int count;
__device__ unsigned int largest = 0;
__device__ const int table[2] = {0, 1};
__constant__ int factor = 1;
__global__ void look(const int *in, int n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  atomicAdd(&count, table[in[i] % 2] * factor);
  atomicMax(&largest, (unsigned)in[i]);
}
int main() {
  int host[600], *in, flag = 7;
  for (int i = 0; i < 600; ++i) host[i] = i;
  cudaMalloc(&in, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  int zero = 0;
  cudaMemcpyToSymbol(count, &zero, sizeof zero);
  look<<<3, 200>>>(in, 600);
  unsigned int most;
  cudaMemcpyFromSymbol(&flag, count, sizeof flag);
  cudaMemcpyFromSymbol(&most, largest, sizeof most);
  printf("%d odd numbers, the largest %u, flag 7\n", flag, most);
}
