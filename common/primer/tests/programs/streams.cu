// says 0: 4 streams: right
#include <cstdio>
__global__ void square(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= a[i];
}
int main() {
  const int n = 1 << 12, parts = 4, part = n / parts;
  float *host, *device;
  cudaMallocHost((void **)&host, n * sizeof(float));
  cudaMalloc((void **)&device, n * sizeof(float));
  for (int i = 0; i < n; i++) host[i] = i % 100;
  cudaStream_t streams[parts];
  for (auto &stream : streams) cudaStreamCreate(&stream);
  for (int i = 0; i < parts; i++) {
    const int at = i * part;
    cudaMemcpyAsync(device + at, host + at, part * sizeof(float), cudaMemcpyHostToDevice, streams[i]);
    square<<<part / 256, 256, 0, streams[i]>>>(device + at, part);
    cudaMemcpyAsync(host + at, device + at, part * sizeof(float), cudaMemcpyDeviceToHost, streams[i]);
  }
  for (auto &stream : streams) cudaStreamSynchronize(stream);
  bool right = true;
  for (int i = 0; i < n; i++) right &= host[i] == (i % 100) * (i % 100);
  for (auto &stream : streams) cudaStreamDestroy(stream);
  printf("%d streams: %s\n", parts, right ? "right" : "wrong");
  cudaFreeHost(host);
  cudaFree(device);
}
