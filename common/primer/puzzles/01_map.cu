// Puzzle 1: map.
//
// A kernel is a function that many threads execute. Here 32 threads execute it, and threadIdx.x
// tells each of them its number, 0 to 31. Thread i is to write out[i].
#include "primer/puzzle.hpp"

// out[i] = 2 in[i], for i from 0 to 31.
__global__ void map_kernel(const float* in, float* out) {
  const int i = threadIdx.x;
  // TODO (puzzle 1): one line.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int n = 32;
  const auto in = primer::input("in", n);
  const auto out = primer::output("out", n);

  // Stands for map_kernel<<<1, 32>>>(in, out): one block of 32 threads.
  primer::launch(map_kernel, {1, 32}, in, out);

  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = 2 * in.at(i);
  primer::expect(out, expected);
}
