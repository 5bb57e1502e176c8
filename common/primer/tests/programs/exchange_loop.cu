// says 0: 256 256
// An addition made of cuda::atomic_ref's compare-exchange, which compares numbers bit by bit.
#include <cstdio>
#include <cuda/atomic>

template <typename T>
__global__ void add_kernel(T* sum) {
  cuda::atomic_ref<T, cuda::thread_scope_device> there(*sum);
  T old = there.load();
  while (!there.compare_exchange_weak(old, old + T(1))) {
  }
}

template <typename T>
T count() {
  T *sum = nullptr, host = 0;
  cudaMalloc(&sum, sizeof host);
  cudaMemcpy(sum, &host, sizeof host, cudaMemcpyHostToDevice);
  add_kernel<T><<<4, 64>>>(sum);
  cudaMemcpy(&host, sum, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(sum);
  return host;
}

int main() {
  printf("%g %g\n", count<float>(), count<double>());
  return 0;
}
