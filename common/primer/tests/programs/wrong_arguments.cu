// says 2: wrong_arguments.cu:6:
__global__ void add(int n, const float *a, float *b) { b[threadIdx.x] = a[threadIdx.x] + n; }
int main() {
  float *a, *b;
  cudaMalloc(&a, 128), cudaMalloc(&b, 128);
  add<<<1, 32>>>(a, b, 32);
}
