// says 0: warps of 32, at most 1024 threads per block
#include <cstdio>
int main() {
  int devices;
  cudaGetDeviceCount(&devices);
  for (int i = 0; i < devices; ++i) {
    cudaDeviceProp prop;
    cudaGetDeviceProperties(&prop, i);
    printf("%s, compute capability %d.%d, %d multiprocessors, %zu bytes of shared memory per block\n",
           prop.name, prop.major, prop.minor, prop.multiProcessorCount, prop.sharedMemPerBlock);
    printf("warps of %d, at most %d threads per block\n", prop.warpSize, prop.maxThreadsPerBlock);
  }
}
