// says 0: remark: kernel count_kernel at common/primer/tests/programs/who_is_here.cu:9: CUDA does
// One addition for all active lanes: right for any set of them.
#include <cstdio>

__global__ void count_kernel(const int* in, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || in[i] % 3 != 0) return;
  const unsigned lane = threadIdx.x % 32;
  const unsigned here = __activemask();
  if (lane == __ffs(here) - 1u) atomicAdd(count, __popc(here));
}

int main() {
  constexpr int n = 1000;
  int host[n], total = 0, *in = nullptr, *count = nullptr;
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&count, sizeof total);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemset(count, 0, sizeof total);
  count_kernel<<<8, 128>>>(in, count, n);
  cudaMemcpy(&total, count, sizeof total, cudaMemcpyDeviceToHost);
  printf("%d\n", total);
  cudaFree(in);
  cudaFree(count);
  return total == 334 ? 0 : 1;
}
