// says 1: wrong_guard.cu:3, block (3,0,0), thread (232,0,0): reads 'd_a'[1000] of 1000
__global__ void twice(float *a) {
  a[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
int main() {
  float *d_a;
  cudaMalloc(&d_a, 1000 * sizeof(float));
  cudaMemset(d_a, 0, 1000 * sizeof(float));
  twice<<<4, 256>>>(d_a);
  cudaDeviceSynchronize();
}
