// says 1: 'a'
__global__ void read(const int *a, int *b) { b[0] = a[3]; }
int main() {
  int *a, *b;
  cudaMalloc(&a, 64), cudaMalloc(&b, 64);
  cudaMemset(a, 0, 64);
  cudaFree(a);
  read<<<1, 1>>>(a, b);
  cudaDeviceSynchronize();
  cudaFree(a);
}
