// Puzzle 12, after step 08: the order of x.
//
// Each nonzero of a graph's matrix reads an element of x. A request of 32 lanes needs as many
// sectors as its elements lie in, of 8 floats each. If the columns with most nonzeros lie side by
// side, their elements of x share few sectors. 08_formats_ell_hyb_dia/ordering.md has what a GPU
// gains. Here the host renumbers the columns, and x with them; rows and y stay as they are.
#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "primer/puzzle.hpp"

// Gives the columns new numbers, those with most nonzeros first; equal ones in any order. Changes
// column_indices, and brings x into the new order, so that A x stays the same. The values of a
// column_indices entry are from 0 to x.size() - 1.
void renumber_columns(std::vector<int>& column_indices, std::vector<float>& x) {
  // TODO (puzzle 12): about ten lines. Count the nonzeros of each column. Sort the columns by these
  // counts. What are the new number of an old column, and the old number of a new one?
}

// There is nothing to change from here on.
constexpr int kRows = 1024, kPerRow = 32;

// One warp per row.
__global__ void multiply_kernel(const int* column_indices, const float* x, float* y) {
  float sum = x[column_indices[blockIdx.x * kPerRow + threadIdx.x]];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

void puzzle() {
  constexpr int kColumns = 1009;
  std::vector<int> column_indices(kRows * kPerRow), nonzeros(kColumns);
  std::vector<float> x(kColumns), expected(kRows);
  unsigned random = 1;
  for (int& column : column_indices) {  // the product of three uniform numbers: few popular columns
    double share = 1;
    for (int i = 0; i < 3; ++i) share *= ((random = 1664525 * random + 1013904223) >> 8) * 0x1p-24;
    column = static_cast<int>(share * kColumns) * 337 % kColumns;  // scattered: 1009 is a prime
  }
  for (int i = 0; i < kColumns; ++i) x[i] = i % 64;  // all sums are exact
  for (int k = 0; k < kRows * kPerRow; ++k) expected[k / kPerRow] += x[column_indices[k]];

  renumber_columns(column_indices, x);

  const primer::Array<int> columns("column_indices", column_indices);
  const primer::Array<float> new_x("x", x), y = primer::output("y", kRows);
  primer::launch(multiply_kernel, {kRows, kPerRow}, columns, new_x, y);
  primer::expect(y, expected);
  for (const int column : column_indices) ++nonzeros[column];
  const primer::Array<int> of_columns("nonzeros of columns", nonzeros);
  std::sort(nonzeros.begin(), nonzeros.end(), std::greater());
  primer::expect(of_columns, nonzeros);  // most first
}
