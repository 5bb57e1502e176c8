// says 1: race
__global__ void smooth(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) a[i] = (a[i - 1] + a[i] + a[i + 1]) / 3;
}
int main() {
  float *a;
  cudaMalloc(&a, 512 * sizeof(float));
  cudaMemset(a, 0, 512 * sizeof(float));
  smooth<<<4, 128>>>(a, 512);
  cudaDeviceSynchronize();
}
