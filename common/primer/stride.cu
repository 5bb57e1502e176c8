// An experiment: the lanes of a warp read every stride-th element. The argument is the stride.
#include "primer/puzzle.hpp"

__global__ void stride_kernel(int stride, const float* in, float* out) {
  const int lane = threadIdx.x;
  out[lane] = in[stride * lane];
}

void puzzle() {
  const int stride = primer::argument(1);
  const auto in = primer::input("in", 32 * stride);
  const auto out = primer::output("out", 32);
  primer::launch(stride_kernel, {1, 32}, stride, in, out);

  std::vector<float> expected(32);
  for (int lane = 0; lane < 32; ++lane) expected[lane] = in.at(stride * lane);
  primer::expect(out, expected);
}
