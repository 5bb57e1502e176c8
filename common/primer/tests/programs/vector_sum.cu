// says 0: c[999] = 2997
#include <stdio.h>
#include <stdlib.h>
#define CHECK(call)                                                           \
  do {                                                                        \
    cudaError_t error = (call);                                               \
    if (error != cudaSuccess) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)
__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) c[i] = a[i] + b[i];
}
int main() {
  const int n = 1000;
  size_t bytes = n * sizeof(float);
  float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
  for (int i = 0; i < n; i++) a[i] = i, b[i] = 2 * i;
  float *d_a, *d_b, *d_c;
  CHECK(cudaMalloc((void **)&d_a, bytes));
  CHECK(cudaMalloc((void **)&d_b, bytes));
  CHECK(cudaMalloc((void **)&d_c, bytes));
  CHECK(cudaMemcpy(d_a, a, bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b, bytes, cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(d_a, d_b, d_c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(c, d_c, bytes, cudaMemcpyDeviceToHost));
  printf("c[999] = %g\n", c[999]);
  cudaFree(d_a), cudaFree(d_b), cudaFree(d_c);
  free(a), free(b), free(c);
  return 0;
}
