// Puzzle 11: the host's side.
//
// A kernel needs its arrays in device memory, and only the host can put them there. This is a whole
// program, in CUDA's own notation. nvcc compiles it as it stands, and make program SOURCE=... runs
// it on the emulator. Every call of CUDA returns an error, or cudaSuccess; a launch returns
// nothing, and cudaGetLastError() says afterwards whether it could start. The pointers that
// cudaMalloc gives are of no use on the host.
#include <cstdio>
#include <vector>

__global__ void add_kernel(int n, const float* a, const float* b, float* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

// sum = a + b, computed on the device in blocks of 256 threads. Returns the first error, if there
// is one, and frees what it has allocated.
cudaError_t add(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& sum) {
  const int n = a.size();
  // TODO (puzzle 11): about fifteen lines: allocate three arrays, copy a and b there, launch, ask
  // for the error, copy the sum back, free.
  return cudaSuccess;
}

// There is nothing to change from here on.
int main() {
  const int n = 1000;
  std::vector<float> a(n), b(n), sum(n), none;
  for (int i = 0; i < n; ++i) a[i] = i, b[i] = 1000 - 2 * i;
  const cudaError_t error = add(a, b, sum);
  if (error != cudaSuccess) {
    std::printf("WRONG: add() returns %s\n", cudaGetErrorName(error));
    return 1;
  }
  for (int i = 0; i < n; ++i) {
    if (sum[i] == a[i] + b[i]) continue;
    std::printf("WRONG: sum[%d] is %g; %g is expected\n", i, sum[i], a[i] + b[i]);
    return 1;
  }
  std::printf("right: all %d sums. Now with no elements: a launch of 0 blocks fails.\n", n);
  if (add(none, none, none) == cudaSuccess) {
    std::printf("WRONG: add() does not say so\n");
    return 1;
  }
  std::printf("right: add() says so\n");
}
