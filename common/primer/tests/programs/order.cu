// says 0: remark: with blocks, warps and lanes in another order (SEED=1) it prints something else
#include <cstdio>
__global__ void last(int *winner) { atomicExch(winner, blockIdx.x); }
int main() {
  int *winner, host;
  cudaMalloc(&winner, sizeof *winner);
  cudaMemset(winner, 0, sizeof *winner);
  last<<<50, 1>>>(winner);
  cudaMemcpy(&host, winner, sizeof host, cudaMemcpyDeviceToHost);
  printf("the last block was %d\n", host);
}
