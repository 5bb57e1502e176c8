// says 1: with no __syncwarp or __syncthreads between
__global__ void sum(const int *in, int *total) {
  __shared__ int partial;
  if (threadIdx.x == 0) partial = 0;
  __syncthreads();
  atomicAdd(&partial, in[threadIdx.x]);
  if (threadIdx.x == 0) *total = partial;
}
int main() {
  int *in, *total;
  cudaMalloc(&in, 256 * sizeof(int)), cudaMalloc(&total, sizeof(int));
  cudaMemset(in, 1, 256 * sizeof(int));
  sum<<<1, 256>>>(in, total);
  cudaDeviceSynchronize();
}
