// Puzzle 5: shared memory and a barrier.
//
// Every output is the sum of 8 neighbouring elements, so that each element is needed by 8 threads.
// Reading it 8 times from global memory is a waste. The threads of a block can bring their elements
// into shared memory once, and read them there. __syncthreads() is the barrier: a thread that
// reaches it waits until all threads of its block have, and sees what they wrote before.
//
// Target: at most 5 requests per block for the loads of in: one per warp, and one for the last 7
// elements, which no thread has as its own. There are 4 blocks: 20 requests.
#include "primer/puzzle.hpp"

constexpr int kThreads = 128;  // per block
constexpr int kWidth = 8;

// out[i] = in[i] + in[i + 1] + ... + in[i + 7], for as many i as there are threads. in has 7
// elements more than out.
__global__ void window_kernel(const float* in, float* out) {
  __shared__ float tile[kThreads + kWidth - 1];  // one per block
  const int t = threadIdx.x;
  const int i = blockIdx.x * kThreads + t;
  // TODO (puzzle 5): three lines that fill tile with in[i] and what follows the block's last
  // element.

  float sum = 0;
  for (int k = 0; k < kWidth; ++k) sum += tile[t + k];
  out[i] = sum;
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int blocks = 4, n = blocks * kThreads;
  const auto in = primer::input("in", n + kWidth - 1);
  const auto out = primer::output("out", n);

  // Stands for window_kernel<<<4, 128>>>(in, out).
  primer::launch(window_kernel, {blocks, kThreads}, in, out);

  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < kWidth; ++k) expected[i] += in.at(i + k);
  }
  primer::expect(out, expected);
}
