// says 2: wrong_nested.cu:4: the CPU backend has no dynamic parallelism
__global__ void child(int *a) { a[threadIdx.x] = 1; }
__global__ void parent(int *a) {
  if (threadIdx.x == 0) child<<<1, 32>>>(a);
}
int main() {
  int *a;
  cudaMalloc(&a, 128);
  parent<<<1, 32>>>(a);
}
