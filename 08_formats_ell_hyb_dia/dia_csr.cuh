// Step 08, beyond the paper: the dense diagonals as diagonals, the rest as CSR, in one kernel.
//
// DIA stores a whole diagonal for a single nonzero; CSR stores a column for every value, also on a
// full diagonal. A Markov chain has both: a few diagonals on which nearly every state has a
// transition, and jumps, one or two per row, on hundreds of others. Here each nonzero is stored
// where it costs fewer bytes. The rest of a row is short: the thread that owns the row adds it up
// as in step 02, and y is written once.
//
// The indices of the rest are short: a column is stored as its distance from the row, a row's end
// as its distance from where the rest of its 32 rows begins, each in the fewest bytes that hold
// them all. 32 rows without a rest read no ends.
//
//   thread   owns one row: its elements of the diagonals, then its rest
//   warp     owns 32 neighbouring rows, which find their rest from one offset
//   block    nothing of its own
//
// What to look at: the loads of five diagonals are in flight together, and with them the load of
// the rest's position. No load depends on another but on the few offsets, which stay in the caches.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

inline constexpr unsigned kRestRows = 32;
inline constexpr int kDiagonalsInFlight = 5;

// End: an integer of 1, 2 or 4 bytes; Distance: of 2 or 4. group_begins is null if no row has a
// rest.
template <typename T, typename End, typename Distance>
__global__ void dia_csr_kernel(unsigned rows, unsigned cols, int diagonals, std::size_t pitch,
                               const int* __restrict__ offsets, const T* __restrict__ values,
                               const int* __restrict__ group_begins,
                               const End* __restrict__ rest_ends,
                               const Distance* __restrict__ rest_distances,
                               const T* __restrict__ rest_values, T alpha, const T* __restrict__ x,
                               T beta, T* y) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  // exercise: begin
  T value[kDiagonalsInFlight], x_value[kDiagonalsInFlight];  // whose loads are in flight together
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < kDiagonalsInFlight; ++i) {
      const unsigned column = first + i < diagonals ? row + offsets[first + i] : cols;
      value[i] = x_value[i] = 0;
      if (column < cols) {
        value[i] = __ldcs(&values[(first + i) * pitch + row]);  // read once
        x_value[i] = x[column];
      }
    }
  };
  load(0);
  int begin = 0, end = 0;
  if (group_begins) {
    begin = group_begins[row / kRestRows];
    end = group_begins[row / kRestRows + 1];
  }
  T sum = 0;
  for (int first = 0;;) {
#pragma unroll
    for (int i = 0; i < kDiagonalsInFlight; ++i) sum += value[i] * x_value[i];
    first += kDiagonalsInFlight;
    if (first >= diagonals) break;
    load(first);
  }
  if (begin < end) {
    const int rest_begin =
        row % kRestRows > 0 ? begin + static_cast<int>(rest_ends[row - 1]) : begin;
    const int rest_end = begin + static_cast<int>(rest_ends[row]);
#pragma unroll 2
    for (int k = rest_begin; k < rest_end; ++k) {
      sum += rest_values[k] * x[row + rest_distances[k]];
    }
  }
  y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
