// Puzzle 10: one row per warp.
//
// y = A x with a sparse matrix A in CSR. The nonzeros of row r are values[k] in columns
// column_indices[k], for k from row_offsets[r] up to, but not including, row_offsets[r + 1]. A row
// may have any number of them, and may have none. A warp is to multiply a row: its lanes take 32
// neighbouring nonzeros at a time, and add up what they have by shuffles.
//
// Targets: at most 5 sectors per request for the loads of values; no more requests for them than
// rows of these lengths need, 32 nonzeros at a time.
#include "primer/puzzle.hpp"

__global__ void row_per_warp_kernel(int rows, const int* row_offsets, const int* column_indices,
                                    const float* values, const float* x, float* y) {
  // TODO (puzzle 10): about ten lines: which row and lane this is, the guard, the loop, the
  // shuffles, the store.
}

// What the host does: there is nothing to change from here on.
void puzzle() {
  const int rows = 50, columns = 300;
  std::vector<int> offsets(1, 0), indices;
  for (int row = 0; row < rows; ++row) {
    const int length = row % 9 == 4 ? 0 : row * row * 13 % 97;
    for (int k = 0; k < length; ++k) indices.push_back((row * 5 + k * 3) % columns);
    offsets.push_back(offsets.back() + length);
  }
  const int nonzeros = offsets.back();
  const primer::Array<int> row_offsets("row_offsets", offsets);
  const primer::Array<int> column_indices("column_indices", indices);
  const auto values = primer::input("values", nonzeros);
  const auto x = primer::input("x", columns);
  const auto y = primer::output("y", rows);

  // Stands for row_per_warp_kernel<<<13, 128>>>(...): 52 warps for 50 rows.
  primer::launch(row_per_warp_kernel, {13, 128}, rows, row_offsets, column_indices, values, x, y);

  std::vector<float> expected(rows);
  for (int row = 0; row < rows; ++row) {
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) {
      expected[row] += values.at(k) * x.at(indices[k]);
    }
  }
  primer::expect(y, expected);
}
