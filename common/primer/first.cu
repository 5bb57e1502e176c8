// The whole of a small CUDA program: sum[i] = a[i] + b[i]. An argument i asks who computes sum[i].
#include <cstdio>
#include <cstdlib>
#include <vector>

// Every thread of the grid executes this function, on the device.
__global__ void add_kernel(int n, const float* a, const float* b, float* sum, int asked) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  sum[i] = a[i] + b[i];
  if (i == asked) {
    const int thread = threadIdx.x;
    std::printf("sum[%d]: thread %d of block %d, which is lane %d of warp %d\n", i, thread,
                blockIdx.x, thread % 32, thread / 32);
  }
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "error: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

// The program begins here, on the host.
int main(int count, char** words) {
  const int asked = count > 1 ? std::atoi(words[1]) : 0;
  const int n = 1000;
  const std::vector<float> a(n, 1), b(n, 2);
  std::vector<float> sum(n);

  float *device_a, *device_b, *device_sum;
  check(cudaMalloc(&device_a, n * sizeof(float)));
  check(cudaMalloc(&device_b, n * sizeof(float)));
  check(cudaMalloc(&device_sum, n * sizeof(float)));
  check(cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_b, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  add_kernel<<<4, 256>>>(n, device_a, device_b, device_sum, asked);
  check(cudaGetLastError());

  check(cudaMemcpy(sum.data(), device_sum, n * sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("sum[%d] is %g\n", n - 1, sum[n - 1]);
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_sum);
}
