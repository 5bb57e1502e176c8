// says 0: dot = 332833500
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void dot(const double *a, const double *b, double *result, int n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  for (int offset = warp.size() / 2; offset > 0; offset /= 2) sum += warp.shfl_down(sum, offset);
  if (warp.thread_rank() == 0) atomicAdd(result, sum);
}
int main() {
  const int n = 1000;
  double host[n], *a, *result, sum;
  for (int i = 0; i < n; i++) host[i] = i;
  cudaMalloc(&a, sizeof host), cudaMalloc(&result, sizeof *result);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemset(result, 0, sizeof *result);
  dot<<<2, 128>>>(a, a, result, n);
  cudaMemcpy(&sum, result, sizeof sum, cudaMemcpyDeviceToHost);
  printf("dot = %.0f\n", sum);
}
