// An experiment: the lanes of a warp read 32 neighbouring elements, of which the first is element 8
// + offset. (A sector has 8.) The argument is the offset.
#include "primer/puzzle.hpp"

__global__ void offset_kernel(int offset, const float* in, float* out) {
  const int lane = threadIdx.x;
  out[lane] = in[8 + offset + lane];
}

void puzzle() {
  const int offset = primer::argument(8);
  const auto in = primer::input("in", 40 + offset);
  const auto out = primer::output("out", 32);
  primer::launch(offset_kernel, {1, 32}, offset, in, out);

  std::vector<float> expected(32);
  for (int lane = 0; lane < 32; ++lane) expected[lane] = in.at(8 + offset + lane);
  primer::expect(out, expected);
}
