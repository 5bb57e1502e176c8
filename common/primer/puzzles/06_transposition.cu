// Puzzle 6: a transposition whose requests are coalesced.
//
// The kernel below is right. Its loads are coalesced: the 32 lanes of a warp read neighbouring
// elements of a row. Its stores are not: the lanes write into 32 different rows of out, and each of
// them touches a sector of its own. Let each block bring its 32 x 32 elements into shared memory,
// wait, and write them from there, row by row of out.
//
// Shared memory has 32 banks, each 4 bytes wide, and neighbouring floats lie in neighbouring banks.
// Lanes that want different elements of the same bank are served in different passes. Where all 32
// lanes read a column of an array with 32 columns, they want the same bank.
//
// Targets: at most 4 sectors per request for loads of in and stores to out; at most 1 pass per
// request for the loads of tile.
#include "primer/puzzle.hpp"

// out[column * n + row] = in[row * n + column]. n is a multiple of 32.
__global__ void transpose_kernel(int n, const float* in, float* out) {
  __shared__ float tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 32, column = blockIdx.x * 32;  // the first ones of this block
  // TODO (puzzle 6): three lines instead of the next one, and a change to the array above.
  out[(column + x) * n + row + y] = in[(row + y) * n + column + x];
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int n = 96;
  const auto in = primer::input("in", n * n);
  const auto out = primer::output("out", n * n);

  // Stands for transpose_kernel<<<dim3(3, 3), dim3(32, 32)>>>(n, in, out).
  primer::launch(transpose_kernel, {dim3(3, 3), dim3(32, 32)}, n, in, out);

  std::vector<float> expected(n * n);
  for (int i = 0; i < n * n; ++i) expected[i] = in.at(i % n * n + i / n);
  primer::expect(out, expected);
}
