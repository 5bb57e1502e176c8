// Step 06, one pass: the product with 2, 4 or 8 vectors where rows are alike (SpMM without tiles).
//
// What lanes per row save for one vector (rows.cuh), they save for several: shared memory, the scan
// and the waits between them. All loads of an iteration are issued at once, and a row's sums are
// added up by shuffles.
//
//   lane     has 16 bytes of a row of X, its *part* (several.cuh)
//   group    of the 1, 2 or 4 lanes that have all parts: multiplies every `groups`-th nonzero of a
//            row, 4 at a time (an iteration), which its lanes load together
//   row      has `groups` groups, 1 to 16, of the same warp
//
// Launched by OnePassPlan::multiply_several (one_pass.cuh), which chooses this path and the number
// of groups. Tests: test.cu, "one pass: several vectors ...".
#pragma once

#include <cuda_runtime.h>

#include "rows.cuh"
#include "several.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

inline constexpr int kSeveralRowsThreads = 256;  // per block
inline constexpr int kSeveralRowsItems = 4;      // nonzeros per group and iteration
inline constexpr int kSeveralWidths = 5;         // numbers of groups per row: 2^0, ..., 2^4

template <int groups, typename T, int kVectors, typename Value = T>
__global__ void __launch_bounds__(kSeveralRowsThreads)
    pcsr_several_rows_kernel(int rows, bool read_once, const int* __restrict__ row_offsets,
                             const int* __restrict__ column_indices,
                             const Value* __restrict__ values,
                             const __grid_constant__ SeveralVectors<T, kVectors> vectors) {
  using Policy = SeveralPolicy<T, kVectors>;
  using Part = typename SeveralVectors<T, kVectors>::Part;
  constexpr int kItems = kSeveralRowsItems;
  constexpr int kRowLanes = groups * Policy::kLanes;
  static_assert(kRowLanes <= 32, "a row is added up within a warp");
  constexpr int kRows = kSeveralRowsThreads / kRowLanes;  // of a block
  const int thread = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.x) * kRows + thread / kRowLanes;
  const int group = thread % kRowLanes / Policy::kLanes;
  const int part = thread % Policy::kLanes;
  int k = 0;
  int end = 0;
  if (row < rows) {
    k = row_offsets[row] + group;
    end = row_offsets[row + 1];
  }
  Part sum = {};
  for (; k < end; k += groups * kItems) {
    int column[kItems];
    Value value[kItems];
    Part element[kItems];
    load_items<groups>(read_once, column_indices, values, k, end, column, value);
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (k + groups * j < end) element[j] = vectors.gather(column[j], part);
    }
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (k + groups * j >= end) continue;
#pragma unroll
      for (int p = 0; p < Policy::kPart; ++p) {
        sum.value[p] += static_cast<T>(value[j]) * element[j].value[p];
      }
    }
  }
#pragma unroll
  for (int distance = Policy::kLanes; distance < kRowLanes; distance *= 2) {
#pragma unroll
    for (int p = 0; p < Policy::kPart; ++p) {
      sum.value[p] += __shfl_xor_sync(0xffffffffu, sum.value[p], distance);
    }
  }
  if (group == 0 && row < rows) vectors.store(row, part, sum);
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
