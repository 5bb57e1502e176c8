// says 0: y[7] = 17, z[7] = 24
#include <cuda_runtime.h>
#include <iostream>
#include <vector>
template <typename T>
__global__ void axpy(T a, const T* x, T* y, std::size_t n) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = a * x[i] + y[i];
  }
}
template <typename T>
std::vector<T> run(T a, int n) {
  std::vector<T> x(n), y(n, 3);
  for (int i = 0; i < n; i++) x[i] = i;
  T *dx, *dy;
  cudaMalloc(&dx, n * sizeof(T));
  cudaMalloc(&dy, n * sizeof(T));
  cudaMemcpy(dx, x.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  cudaMemcpy(dy, y.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  axpy<<<2, 64>>>(a, dx, dy, y.size());
  cudaMemcpy(y.data(), dy, n * sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(dx);
  cudaFree(dy);
  return y;
}
int main() {
  std::cout << "y[7] = " << run(2.0f, 1000)[7] << ", z[7] = " << run(3.0, 10)[7] << std::endl;
}
