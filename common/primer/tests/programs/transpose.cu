// says 0: PASS PASS
#include <cstdio>
#include <cstdlib>
const int TILE = 32, ROWS = 8;
template <int PAD>
__global__ void transpose(float *odata, const float *idata, int width) {
  __shared__ float tile[TILE][TILE + PAD];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) odata[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}
int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 96, bytes = n * n * sizeof(float);
  float *in = new float[n * n], *out = new float[n * n], *d_in, *d_out;
  for (int i = 0; i < n * n; i++) in[i] = i;
  cudaMalloc(&d_in, bytes), cudaMalloc(&d_out, bytes);
  cudaMemcpy(d_in, in, bytes, cudaMemcpyHostToDevice);
  for (int pad = 0; pad < 2; pad++) {
    cudaMemset(d_out, 0, bytes);
    if (pad)
      transpose<1><<<dim3(n / TILE, n / TILE), dim3(TILE, ROWS)>>>(d_out, d_in, n);
    else
      transpose<0><<<dim3(n / TILE, n / TILE), dim3(TILE, ROWS)>>>(d_out, d_in, n);
    cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost);
    bool right = true;
    for (int i = 0; i < n * n; i++) right &= out[i] == in[i % n * n + i / n];
    printf(right ? "PASS " : "FAIL ");
  }
  printf("\n");
  delete[] in;
  delete[] out;
}
