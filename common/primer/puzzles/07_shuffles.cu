// Puzzle 7: a sum by shuffles.
//
// The lanes of a warp can read each other's registers, without any memory:
//
//     __shfl_down_sync(0xffffffff, sum, distance)
//
// gives each lane the value that `sum` has in the lane `distance` above it. The highest lanes have
// no such lane: they get their own value back, and their sums do not matter. All 32 lanes must call
// it; that is what the mask 0xffffffff says. Each warp is to add up its 32 elements in 5 such
// calls.
//
// Target: at most 1 request per warp for the loads of in (10 warps), and 1 for the stores to out.
#include "primer/puzzle.hpp"

// out[w] = in[32 w] + in[32 w + 1] + ... + in[32 w + 31], for every warp w of the grid.
__global__ void warp_sum_kernel(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = i % 32, warp = i / 32;
  float sum = in[i];
  // TODO (puzzle 7): about four lines. Lane 0 ends up with the sum of all, and writes it.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int warps = 10;
  const auto in = primer::input("in", 32 * warps);
  const auto out = primer::output("out", warps);

  // Stands for warp_sum_kernel<<<5, 64>>>(in, out): each block has two warps.
  primer::launch(warp_sum_kernel, {warps / 2, 64}, in, out);

  std::vector<float> expected(warps);
  for (int i = 0; i < 32 * warps; ++i) expected[i / 32] += in.at(i);
  primer::expect(out, expected);
}
