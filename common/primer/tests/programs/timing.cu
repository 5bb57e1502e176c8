// says 0: Times are the emulator's
#include <cstdio>
__global__ void fill(int *a) {
  a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}
int main() {
  int *a;
  cudaMalloc(&a, 1024 * sizeof(int));
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start);
  fill<<<4, 256>>>(a);
  cudaEventRecord(stop, 0);
  cudaEventSynchronize(stop);
  float ms = 0;
  cudaEventElapsedTime(&ms, start, stop);
  printf("%.3f ms\n", ms);
  cudaEventDestroy(start), cudaEventDestroy(stop);
  cudaFree(a);
}
