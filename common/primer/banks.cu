// An experiment: the lanes of a warp read every stride-th element of an array in shared memory, as
// they do who read a column of an array with stride columns. The argument is the stride.
#include "primer/puzzle.hpp"

__global__ void banks_kernel(int stride, float* out) {
  __shared__ float tile[32 * 64];
  const int lane = threadIdx.x;
  for (int i = lane; i < 32 * 64; i += 32) tile[i] = i;
  __syncthreads();
  out[lane] = tile[stride * lane];
}

void puzzle() {
  const int stride = primer::argument(1);  // at most 64
  const auto out = primer::output("out", 32);
  primer::launch(banks_kernel, {1, 32}, stride, out);

  std::vector<float> expected(32);
  for (int lane = 0; lane < 32; ++lane) expected[lane] = stride * lane;
  primer::expect(out, expected);
}
