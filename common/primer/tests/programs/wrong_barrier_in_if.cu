// says 1: wrong_barrier_in_if.cu:9 6 times, thread (32,0,0) never: move the barrier out of the branch or loop
__global__ void sum(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (threadIdx.x < d) {
      s[threadIdx.x] += s[threadIdx.x + d];
      __syncthreads();
    }
  }
  out[threadIdx.x] = s[0];
}
int main() {
  int *out;
  cudaMalloc(&out, 64 * sizeof *out);
  sum<<<1, 64>>>(out);
  cudaDeviceSynchronize();
}
