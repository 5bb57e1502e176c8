// Puzzle 9: a prefix sum in a warp.
//
// Lane l is to end up with the sum of the elements of lanes 0 to l. In five rounds, with distances
// 1, 2, 4, 8 and 16, every lane adds the sum of the lane `distance` below it, which covers twice as
// many elements each time:
//
//     __shfl_up_sync(0xffffffff, sum, distance)
//
// gives each lane the value that `sum` has in the lane `distance` below it. The lowest lanes have
// no lane there: they get their own value back, and must not add it.
//
// Target: at most 1 request per warp for the loads of in (6 warps).
#include "primer/puzzle.hpp"

// out[i] = the sum of in from the first element of i's group of 32 up to in[i].
__global__ void prefix_sum_kernel(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = i % 32;
  // TODO (puzzle 9): about six lines.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int warps = 6, n = 32 * warps;
  const auto in = primer::input("in", n);
  const auto out = primer::output("out", n);

  // Stands for prefix_sum_kernel<<<3, 64>>>(in, out).
  primer::launch(prefix_sum_kernel, {warps / 2, 64}, in, out);

  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = in.at(i) + (i % 32 > 0 ? expected[i - 1] : 0);
  primer::expect(out, expected);
}
