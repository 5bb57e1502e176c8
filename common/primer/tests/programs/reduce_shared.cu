// says 0: sum = 8191
#include <cstdio>
__global__ void reduce(const int *in, int *out, int n) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
  sdata[tid] = (i < n ? in[i] : 0) + (i + blockDim.x < n ? in[i + blockDim.x] : 0);
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = sdata[0];
}
int main() {
  const int n = 8191, threads = 128, blocks = (n + 2 * threads - 1) / (2 * threads);
  static int in[n], out[blocks];
  for (int &value : in) value = 1;
  int *d_in, *d_out, sum = 0;
  cudaMalloc(&d_in, sizeof in);
  cudaMalloc(&d_out, sizeof out);
  cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice);
  reduce<<<blocks, threads, threads * sizeof(int)>>>(d_in, d_out, n);
  cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
  for (int value : out) sum += value;
  printf("sum = %d\n", sum);
}
