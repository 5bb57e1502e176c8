// says 0: 0 1 3 6 ... 2016
#include <cstdio>
__global__ void scan(float *out, const float *in, int n) {
  extern __shared__ float temp[];
  int t = threadIdx.x, pout = 0, pin = 1;
  temp[pout * n + t] = t > 0 ? in[t - 1] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    pout = 1 - pout;
    pin = 1 - pout;
    temp[pout * n + t] = temp[pin * n + t] + (t >= offset ? temp[pin * n + t - offset] : 0);
    __syncthreads();
  }
  out[t] = temp[pout * n + t];
}
int main() {
  const int n = 64;
  float host[n], *in, *out;
  for (int i = 0; i < n; i++) host[i] = i + 1;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  scan<<<1, n, 2 * n * sizeof(float)>>>(out, in, n);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g %g %g %g ... %g\n", host[0], host[1], host[2], host[3], host[63]);
}
