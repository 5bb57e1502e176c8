// says 1: 'tile'
__global__ void copy(const int *in, int *out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}
int main() {
  int *in, *out;
  cudaMalloc(&in, 256), cudaMalloc(&out, 256);
  cudaMemset(in, 0, 256);
  copy<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
}
