// says 2: wrong_managed.cu:5: cudaMallocManaged: the CPU backend has no unified memory
__global__ void fill(int *a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  int *a;
  cudaMallocManaged(&a, 32 * sizeof(int));
  fill<<<1, 32>>>(a);
  cudaDeviceSynchronize();
}
