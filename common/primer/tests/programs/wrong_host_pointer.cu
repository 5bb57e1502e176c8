// says 1: wrong_host_pointer.cu:4, block (0,0,0), thread (0,0,0): reads
#include <vector>
__global__ void increment(int *a, int n) {
  if (threadIdx.x < n) a[threadIdx.x]++;
}
int main() {
  std::vector<int> a(100);
  increment<<<1, 128>>>(a.data(), 100);
  cudaDeviceSynchronize();
}
