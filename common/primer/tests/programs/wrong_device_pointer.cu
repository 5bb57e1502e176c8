// says 1: wrong_device_pointer.cu:8: the host touched device memory: byte 40 of 'result'
#include <cstdio>
__global__ void fill(int *a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  int *result;
  cudaMalloc(&result, 32 * sizeof(int));
  fill<<<1, 32>>>(result);
  printf("%d\n", result[10]);
}
