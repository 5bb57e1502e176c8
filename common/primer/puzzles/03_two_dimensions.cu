// Puzzle 3: an index in two dimensions.
//
// Blocks and grids may have two dimensions: threadIdx.x and threadIdx.y, blockIdx.x and blockIdx.y.
// The matrix is stored row by row, so that element (row, column) is out[row * n + column]. The 32
// threads of a warp have the same threadIdx.y here, and threadIdx.x from 0 to 31. They are fastest
// when they write elements that lie side by side in memory.
//
// Target: at most 4 sectors per request for the stores to out.
#include "primer/puzzle.hpp"

// out[row * n + column] = a[row] * b[column], for n rows and n columns.
__global__ void outer_product_kernel(int n, const float* a, const float* b, float* out) {
  // TODO (puzzle 3): four lines: the row, the column, the guard, the product.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int n = 72;
  const auto a = primer::input("a", n);
  const auto b = primer::input("b", n);
  const auto out = primer::output("out", n * n);

  // Stands for outer_product_kernel<<<dim3(3, 3), dim3(32, 32)>>>(n, a, b, out).
  primer::launch(outer_product_kernel, {dim3(3, 3), dim3(32, 32)}, n, a, b, out);

  std::vector<float> expected(n * n);
  for (int i = 0; i < n * n; ++i) expected[i] = a.at(i / n) * b.at(i % n);
  primer::expect(out, expected);
}
