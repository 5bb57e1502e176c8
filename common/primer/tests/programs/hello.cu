// says 0: Hello from thread 1 of block 2
#include <stdio.h>
__global__ void hello() { printf("Hello from thread %d of block %d\n", threadIdx.x, blockIdx.x); }
int main(void) {
  hello<<<3, 2>>>();
  cudaDeviceSynchronize();
  return 0;
}
