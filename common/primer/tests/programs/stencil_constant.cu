// says 0: out[1] = 4, out[98] = 392
#include <cstdio>
#define RADIUS 1
#define BLOCK 32
__constant__ float weights[2 * RADIUS + 1];
__global__ void stencil(const float *in, float *out, int n) {
  __shared__ float temp[BLOCK + 2 * RADIUS];
  int g = threadIdx.x + blockIdx.x * blockDim.x, l = threadIdx.x + RADIUS;
  temp[l] = g < n ? in[g] : 0;
  if (threadIdx.x < RADIUS) {
    temp[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
    temp[l + BLOCK] = g + BLOCK < n ? in[g + BLOCK] : 0;
  }
  __syncthreads();
  float result = 0;
  for (int offset = -RADIUS; offset <= RADIUS; offset++)
    result += temp[l + offset] * weights[offset + RADIUS];
  if (g < n) out[g] = result;
}
int main() {
  const int n = 100;
  float host[n], w[] = {1, 2, 1}, *in, *out;
  for (int i = 0; i < n; i++) host[i] = i;
  cudaMemcpyToSymbol(weights, w, sizeof(w));
  cudaMalloc(&in, sizeof host), cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  stencil<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(in, out, n);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("out[1] = %g, out[98] = %g\n", host[1], host[98]);
}
