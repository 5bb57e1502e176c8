// says 1: 'device' has 100 bytes, and 400 are asked for
#include <vector>
int main() {
  std::vector<float> host(100);
  float *device;
  cudaMalloc(&device, host.size());
  cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
}
