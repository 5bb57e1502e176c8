// Step 08, sliced ELL: ELL for 32 rows at a time, each slice as wide as its own longest row.
//
// ELL pads every row to the longest of the matrix. A warp owns 32 rows, so it suffices to pad them
// to the longest of these. Where neighbours differ much, the rows of a window of 256 are sorted by
// length first: the rows of a slice become similar, and x is still read nearby.
// (Monakov and others 2010; Kreutzer and others 2014, as SELL-C-sigma with C = 32 and sigma = 256.)
//
//   thread   owns one row
//   warp     owns one slice: 32 neighbouring rows, or 32 of a window that are of similar length
//   block    nothing of its own
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"
#include "ell.cuh"

namespace spmv {

inline constexpr unsigned kSlice = 32;
inline constexpr unsigned kSortWindow = 256;  // so that a place in it fits a byte

// The row in slot `slot`. Without `places` the rows are not permuted.
__host__ __device__ __forceinline__ unsigned row_of_slot(unsigned slot,
                                                         const unsigned char* places) {
  return places ? slot / kSortWindow * kSortWindow + places[slot] : slot;
}

// Slice s owns columns slice_begins[s] up to slice_begins[s + 1], each of 32 elements.
template <typename T>
__global__ void sell_kernel(unsigned rows, const long long* slice_begins,
                            const unsigned char* places, const int* columns, const T* values,
                            T alpha, const T* x, T beta, T* y) {
  const unsigned slot = blockIdx.x * blockDim.x + threadIdx.x;
  if (slot >= rows) return;  // slots without a row are the last ones

  // exercise: begin
  const long long begin = slice_begins[slot / kSlice];
  const int width = static_cast<int>(slice_begins[slot / kSlice + 1] - begin);
  std::size_t place = static_cast<std::size_t>(begin) * kSlice + slot % kSlice;
  T sum = 0;
#pragma unroll 4
  for (int j = 0; j < width; ++j, place += kSlice) {
    const int column = columns[place];
    if (column != kNoColumn) sum += values[place] * x[column];
  }
  const unsigned row = row_of_slot(slot, places);
  y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
