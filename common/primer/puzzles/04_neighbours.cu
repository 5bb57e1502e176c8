// Puzzle 4: neighbours.
//
// A thread may read any element, not only its own. Each output is the sum of an element and of its
// neighbours on the left and on the right; the first and the last element have only one. Reading
// past either end of an array is an error that a GPU may leave unreported. The emulator reports it.
//
// Target: at most 5 sectors per request for the loads of in. 32 floats fill 4 sectors; a request
// that begins in the middle of a sector touches 5.
#include "primer/puzzle.hpp"

// out[i] = in[i - 1] + in[i] + in[i + 1], for i from 0 to n - 1.
__global__ void neighbours_kernel(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  // TODO (puzzle 4): about five lines.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int n = 200;
  const auto in = primer::input("in", n);
  const auto out = primer::output("out", n);

  // Stands for neighbours_kernel<<<4, 64>>>(n, in, out).
  primer::launch(neighbours_kernel, {4, 64}, n, in, out);

  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) {
    expected[i] = (i > 0 ? in.at(i - 1) : 0) + in.at(i) + (i + 1 < n ? in.at(i + 1) : 0);
  }
  primer::expect(out, expected);
}
