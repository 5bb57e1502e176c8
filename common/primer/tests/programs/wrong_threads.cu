// says 1: wrong_threads.cu:7: invalid configuration argument (cudaErrorInvalidConfiguration): blockDim.x is 2048, and must be from 1 to 1024
#include <cstdio>
__global__ void fill(int *a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  int *a;
  cudaMalloc(&a, 2048 * sizeof(int));
  fill<<<1, 2048>>>(a);
  cudaDeviceSynchronize();
  printf("done\n");
}
