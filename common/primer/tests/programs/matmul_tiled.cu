// says 0: PASS
#include <cstdio>
#include <vector>
#define TILE 16
__global__ void matmul(float* C, const float* A, const float* B, int width) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float value = 0;
  for (int t = 0; t < (width + TILE - 1) / TILE; ++t) {
    int a = t * TILE + threadIdx.x, b = t * TILE + threadIdx.y;
    As[threadIdx.y][threadIdx.x] = row < width && a < width ? A[row * width + a] : 0;
    Bs[threadIdx.y][threadIdx.x] = col < width && b < width ? B[b * width + col] : 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) value += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < width && col < width) C[row * width + col] = value;
}
int main() {
  const int w = 40;
  std::vector<float> A(w * w), B(w * w), C(w * w);
  for (int i = 0; i < w * w; i++) A[i] = i % 7, B[i] = i % 5;
  float *dA, *dB, *dC;
  cudaMalloc(&dA, w * w * 4), cudaMalloc(&dB, w * w * 4), cudaMalloc(&dC, w * w * 4);
  cudaMemcpy(dA, A.data(), w * w * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dB, B.data(), w * w * 4, cudaMemcpyHostToDevice);
  dim3 block(TILE, TILE);
  dim3 grid((w + block.x - 1) / block.x, (w + block.y - 1) / block.y);
  matmul<<<grid, block>>>(dC, dA, dB, w);
  cudaMemcpy(C.data(), dC, w * w * 4, cudaMemcpyDeviceToHost);
  bool right = true;
  for (int i = 0; i < w; i++)
    for (int j = 0; j < w; j++) {
      float sum = 0;
      for (int k = 0; k < w; k++) sum += A[i * w + k] * B[k * w + j];
      right = right && sum == C[i * w + j];
    }
  printf(right ? "PASS\n" : "FAIL\n");
}
