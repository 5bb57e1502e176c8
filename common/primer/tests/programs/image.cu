// says 0: 2 iterations of the game of life: 3 cells
#include <cstdio>
#include <utility>
struct Grid {
  int width, height;
  __host__ __device__ int at(int x, int y) const {
    return (y + height) % height * width + (x + width) % width;
  }
};
__global__ void life(Grid grid, const unsigned char *now, unsigned char *next) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= grid.width || y >= grid.height) return;
  int around = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (dx || dy) around += now[grid.at(x + dx, y + dy)];
  next[y * grid.width + x] = around == 3 || (around == 2 && now[grid.at(x, y)]);
}
int main() {
  const Grid grid{20, 13};
  unsigned char cells[20 * 13] = {}, *now, *next;
  for (int x = 5; x < 8; x++) cells[grid.at(x, 6)] = 1;
  cudaMalloc(&now, sizeof cells), cudaMalloc(&next, sizeof cells);
  cudaMemcpy(now, cells, sizeof cells, cudaMemcpyHostToDevice);
  dim3 threads(8, 8), blocks((grid.width + 7) / 8, (grid.height + 7) / 8);
  for (int i = 0; i < 2; i++) {
    life<<<blocks, threads>>>(grid, now, next);
    std::swap(now, next);
  }
  cudaMemcpy(cells, now, sizeof cells, cudaMemcpyDeviceToHost);
  int alive = 0;
  for (int cell : cells) alive += cell;
  printf("2 iterations of the game of life: %d cells\n", alive);
}
