// Puzzle 2: guard.
//
// 100 elements need more than one block of 32 threads. Four blocks have 128 threads, because blocks
// are all of the same size. blockIdx.x is the number of a thread's block, blockDim.x the number of
// threads in each. The kernel below is right for 128 elements. What must the last 28 threads not
// do?
#include "primer/puzzle.hpp"

// out[i] = 2 in[i], for i from 0 to n - 1.
__global__ void guard_kernel(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  // TODO (puzzle 2): one line.
  out[i] = 2 * in[i];
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int n = 100;
  const auto in = primer::input("in", n);
  const auto out = primer::output("out", n);

  // Stands for guard_kernel<<<4, 32>>>(n, in, out): four blocks of 32 threads.
  primer::launch(guard_kernel, {4, 32}, n, in, out);

  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = 2 * in.at(i);
  primer::expect(out, expected);
}
