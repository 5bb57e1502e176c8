// says 0: 5000 threads: invalid configuration argument
#include <cstdio>
__global__ void nothing() {}
int main() {
  nothing<<<1, 5000>>>();
  cudaError error = cudaGetLastError();
  printf("5000 threads: %s\n", cudaGetErrorString(error));
  nothing<<<1, 1>>>();
  error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  printf("1 thread: %s\n", cudaGetErrorName(error));
  cudaDeviceReset();
  return error != cudaSuccess;
}
