// says 1: wrong_direction.cu:7: invalid argument (cudaErrorInvalidValue): the direction says that the target
#include <cstdio>
int main() {
  float host[10] = {}, *device;
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyHostToDevice);
  printf("%g\n", host[0]);
}
