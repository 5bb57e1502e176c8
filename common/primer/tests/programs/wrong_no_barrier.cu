// says 1: that was not written since the block started
#include <cstdio>
__global__ void reverse(int *d, int n) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = d[t];
  d[t] = s[n - t - 1];
}
int main() {
  int host[64], *d;
  for (int i = 0; i < 64; i++) host[i] = i;
  cudaMalloc(&d, sizeof host);
  cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
  reverse<<<1, 64>>>(d, 64);
  cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d\n", host[0]);
}
