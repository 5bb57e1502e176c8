// Step 08, sliced ELL: ELL for 32 rows at a time, each slice as wide as its own longest row.
//
// ELL pads every row to the longest of the matrix. A slice of 32 rows needs to be padded only to
// the longest of these. Where neighbours differ much, the rows of a window of 256 are sorted by
// length first: the rows of a slice become similar, and x is still read nearby.
// (Monakov and others 2010; Kreutzer and others 2014, as SELL-C-sigma with C = 32 and sigma = 256.)
//
// One warp takes long for a wide slice: column after column. So several warps may share a slice,
// each with every `warps`-th column, and a thread loads from eight columns before it uses the
// first.
//
//   thread   multiplies its row's entries in the columns of its warp
//   warp     owns every `warps`-th column of a slice
//   block    owns one slice or more
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"
#include "ell.cuh"

namespace spmv {

inline constexpr unsigned kSlice = 32;
inline constexpr unsigned kSortWindow = 256;  // so that a place in it fits a byte
// Per thread. Of 4 and 8, 8 is 2 to 5% faster with columns of 16 bits (27-point grid of 140^3,
// H200, f32 and f64); with 32 bits there is no difference.
inline constexpr int kColumnsInFlight = 8;

// The row in slot `slot`. Without `places` the rows are not permuted.
__host__ __device__ __forceinline__ unsigned row_of_slot(unsigned slot,
                                                         const unsigned char* places) {
  return places ? slot / kSortWindow * kSortWindow + places[slot] : slot;
}

template <bool read_once, typename T>
__device__ __forceinline__ T load(const T* address) {
  return read_once ? __ldcs(address) : *address;
}

// sell_kernel reads columns from an array of int, or from columns of 16 bits (sell_16.cuh): of a
// row whose first entry is at `place` it loads the j-th column, and decodes it when it has arrived.
template <typename What>
__device__ __forceinline__ void with_row(const int* columns, unsigned, std::size_t place,
                                         What what) {
  what(columns + place);
}
template <bool read_once>
__device__ __forceinline__ int load_column(const int* own, std::size_t j) {
  return load<read_once>(&own[j * kSlice]);
}
__device__ __forceinline__ int decode(int column) {
  return column;
}

// Slices per block of sell_kernel: 4 warps, if one slice does not need more.
__host__ __device__ constexpr unsigned slices_per_block(unsigned warps) {
  return warps < 4 ? 4 / warps : 1;
}

// Slice s owns columns slice_begins[s] up to slice_begins[s + 1], each of 32 elements, those of
// padding with kNoColumn and 0. `columns` is an array of them, or what can be used as one.
// `read_once`: the matrix does not fit in the L2 cache, so what is read of it is evicted first
// (__ldcs), and x stays there. Blocks of kSlice x warps x slices_per_block(warps) threads.
template <typename T, int warps, bool read_once, typename Columns>
__global__ void sell_kernel(unsigned rows, const long long* slice_begins,
                            const unsigned char* places, Columns columns, const T* values, T alpha,
                            const T* x, T beta, T* y) {
  const unsigned slice = blockIdx.x * slices_per_block(warps) + threadIdx.z;
  const unsigned slot = slice * kSlice + threadIdx.x;
  const int warp = static_cast<int>(threadIdx.y);  // of those of the slice

  // exercise: begin
  T sum = 0;
  if (slot < rows) {  // slots without a row are the last ones
    const long long begin = slice_begins[slice];
    const int width = static_cast<int>(slice_begins[slice + 1] - begin);
    const std::size_t place = static_cast<std::size_t>(begin) * kSlice + threadIdx.x;
    const T* own_values = values + place;
    with_row(columns, slice, place, [&](auto own_columns) {
      for (int first = warp; first < width; first += kColumnsInFlight * warps) {
        decltype(load_column<read_once>(own_columns, 0)) column[kColumnsInFlight] = {};
        T value[kColumnsInFlight] = {};
#pragma unroll
        for (int k = 0; k < kColumnsInFlight; ++k) {
          const std::size_t j = first + k * warps;
          if (first + k * warps < width) {
            column[k] = load_column<read_once>(own_columns, j);
            value[k] = load<read_once>(&own_values[j * kSlice]);
          }
        }
#pragma unroll
        for (int k = 0; k < kColumnsInFlight; ++k) {
          const int from = decode(column[k]);
          if (first + k * warps < width && from != kNoColumn) sum += value[k] * x[from];
        }
      }
    });
  }
  if constexpr (warps > 1) {
    __shared__ T sums[slices_per_block(warps)][warps][kSlice];
    sums[threadIdx.z][warp][threadIdx.x] = sum;
    __syncthreads();
    if (warp != 0) return;
#pragma unroll
    for (int other = 1; other < warps; ++other) sum += sums[threadIdx.z][other][threadIdx.x];
  }
  if (slot >= rows) return;
  const unsigned row = row_of_slot(slot, places);
  y[row] = scale(alpha, sum, beta, &y[row]);
  // exercise: end
}

}  // namespace spmv
