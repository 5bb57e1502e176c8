// says 1: if both are to add to it, use an atomic operation in both, such as atomicAdd
__global__ void count(const int *in, int *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) bins[in[i] % 8]++;
}
int main() {
  int host[256], *in, *bins;
  for (int i = 0; i < 256; i++) host[i] = i * i;
  cudaMalloc(&in, sizeof host), cudaMalloc(&bins, 8 * sizeof(int));
  cudaMemset(bins, 0, 8 * sizeof(int));
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  count<<<2, 128>>>(in, bins, 256);
  cudaDeviceSynchronize();
}
