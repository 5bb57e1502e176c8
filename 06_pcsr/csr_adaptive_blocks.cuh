// Step 06, CSR-Adaptive: which rows each block takes.
//
// Greathouse and Daga (SC '14) give a block as many neighbouring rows as fit in its shared memory.
// They go through the rows one by one, on the host. Here a formula gives the borders, so that each
// can be found independently: row r stands at place r + row_offsets[r], and block b takes the rows
// whose place is from b row_block up to, but not including, (b + 1) row_block. Rows and nonzeros
// both count, so that neither many empty rows nor long ones make a block large. A block gets
//
//   - some rows, with fewer than row_block nonzeros before the last, which may reach out of it;
//   - or no row, where one that began before, row block_rows[b] - 1, reaches over the whole block,
//     or in the last block to the end.
//
//   thread   owns one border, and finds it by binary search
#pragma once

#include <cuda_runtime.h>

namespace spmv {

// A row longer than this is added up by all threads of its block, not by a few lanes, ...
constexpr int long_row(int row_block) {
  return row_block;
}
// ... and one longer than this is shared by the blocks that it spans.
constexpr int shared_row(int row_block) {
  return 8 * row_block;
}

// Up to 2^32, more than an int holds.
__host__ __device__ __forceinline__ long long place_of_row(const int* row_offsets, int row) {
  return static_cast<long long>(row) + row_offsets[row];
}

// block_rows[b] is the first row with a place of at least b row_block, or `rows`; b goes from 0 to
// `blocks`, which is (rows + nnz) / row_block, rounded up. The rows to share are listed in
// shared_rows, in any order, and *shared_row_count grows by their number.
template <int row_block>
__global__ void row_blocks_kernel(int rows, int blocks, const int* row_offsets, int* block_rows,
                                  int* shared_rows, int* shared_row_count) {
  const int block = blockIdx.x * blockDim.x + threadIdx.x;
  if (block > blocks) return;
  const long long border = static_cast<long long>(block) * row_block;
  int low = 0;
  int high = rows;  // the answer is one of low, ..., high
  while (low < high) {
    const int between = low + (high - low) / 2;
    if (place_of_row(row_offsets, between) < border) {
      low = between + 1;
    } else {
      high = between;
    }
  }
  block_rows[block] = low;

  // Several borders may lie within one row: only the first lists it.
  if (low == 0 || row_offsets[low] - row_offsets[low - 1] <= shared_row(row_block)) return;
  if (border - place_of_row(row_offsets, low - 1) <= row_block) {
    shared_rows[atomicAdd(shared_row_count, 1)] = low - 1;
  }
}

}  // namespace spmv
