// Puzzle 8: a histogram by atomics.
//
// Many threads may want to add to the same bin at once. With bins[b] += 1 two threads can read the
// same old number, and one of the additions is lost: this is a race. atomicAdd(&bins[b], 1) reads,
// adds and writes in one operation that no other thread can interrupt.
//
// Atomics on global memory are slow where many threads want the same address. Count in shared
// memory first, in an array of each block's own, and add that to bins at the end.
//
// Target: at most 1 request per block for the atomic operations on bins (16 blocks).
#include "primer/puzzle.hpp"

constexpr int kBins = 16;

// bins[b] += how many of in[0], ..., in[n - 1] are b. Every in[i] is from 0 to 15.
__global__ void histogram_kernel(int n, const int* in, int* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  // TODO (puzzle 8): about seven lines, two of them barriers.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int n = 3848, blocks = 16;  // 8 threads of the last block have a number
  std::vector<int> numbers(n), expected(kBins);
  for (int i = 0; i < n; ++i) {
    numbers[i] = (i * 7 + i / 50) % kBins;
    ++expected[numbers[i]];
  }
  const primer::Array<int> in("in", numbers);
  const primer::Array<int> bins("bins", std::vector<int>(kBins, 0));

  // Stands for histogram_kernel<<<16, 256>>>(n, in, bins).
  primer::launch(histogram_kernel, {blocks, 256}, n, in, bins);

  primer::expect(bins, expected);
}
