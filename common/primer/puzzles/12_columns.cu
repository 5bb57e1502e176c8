// Puzzle 12, after step 08: the order of x.
//
// Each nonzero of a graph's matrix reads an element of x. A request of 32 lanes needs as many
// sectors as its elements lie in, of 8 floats each. If the columns with most nonzeros lie side by
// side, their elements of x share few sectors. 08_formats_ell_hyb_dia/ordering.md has what a GPU
// gains. Here the host renumbers the columns, and x with them; rows and y stay as they are.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>
#include <vector>

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

std::vector<float> multiply(const std::vector<int>& column_indices, const std::vector<float>& x) {
  std::vector<float> y(kRows);
  int* columns;
  float *device_x, *device_y;
  cudaMalloc(&columns, column_indices.size() * sizeof(int));
  cudaMalloc(&device_x, x.size() * sizeof(float));
  cudaMalloc(&device_y, kRows * sizeof(float));
  cudaMemcpy(columns, column_indices.data(), column_indices.size() * sizeof(int),
             cudaMemcpyHostToDevice);
  cudaMemcpy(device_x, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
  multiply_kernel<<<kRows, 32>>>(columns, device_x, device_y);
  cudaMemcpy(y.data(), device_y, kRows * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(columns);
  cudaFree(device_x);
  cudaFree(device_y);
  return y;
}

// Sectors of x per request.
double sectors(const std::vector<int>& column_indices) {
  std::size_t found = 0;
  for (int row = 0; row < kRows; ++row) {
    std::set<int> touched;
    for (int j = 0; j < kPerRow; ++j) touched.insert(column_indices[row * kPerRow + j] / 8);
    found += touched.size();
  }
  return 1.0 * found / kRows;
}

std::vector<int> counts_of(const std::vector<int>& column_indices, std::size_t columns) {
  std::vector<int> counts(columns, 0);
  for (const int column : column_indices) ++counts[column];
  return counts;
}

int main() {
  constexpr int kColumns = 1009;
  std::vector<int> column_indices(kRows * kPerRow);
  std::vector<float> x(kColumns);
  unsigned random = 1;
  for (int& column : column_indices) {  // the product of three uniform numbers: few popular columns
    double share = 1;
    for (int i = 0; i < 3; ++i) share *= ((random = 1664525 * random + 1013904223) >> 8) * 0x1p-24;
    column = static_cast<int>(share * kColumns) * 337 % kColumns;  // scattered: 1009 is a prime
  }
  for (int i = 0; i < kColumns; ++i) x[i] = i % 64;  // all sums are exact
  const std::vector<float> expected = multiply(column_indices, x);
  const double before = sectors(column_indices);

  renumber_columns(column_indices, x);

  if (x.size() != kColumns || column_indices.size() != kRows * kPerRow) {
    std::printf("WRONG: x or the column indices have another length\n");
    return 1;
  }
  for (const int column : column_indices) {
    if (0 <= column && column < kColumns) continue;
    std::printf("WRONG: there is no column %d\n", column);
    return 1;
  }
  const std::vector<float> y = multiply(column_indices, x);
  for (int row = 0; row < kRows; ++row) {
    if (y[row] == expected[row]) continue;
    std::printf("WRONG: y[%d] is %g; %g is expected, as before\n", row, y[row], expected[row]);
    return 1;
  }
  const std::vector<int> counts = counts_of(column_indices, x.size());
  for (int i = 1; i < kColumns; ++i) {
    if (counts[i - 1] >= counts[i]) continue;
    std::printf("WRONG: column %d has %d nonzeros, and column %d has %d: most first\n", i - 1,
                counts[i - 1], i, counts[i]);
    return 1;
  }
  std::printf("right: %.1f sectors of x per request, %.1f before\n", sectors(column_indices),
              before);
}
