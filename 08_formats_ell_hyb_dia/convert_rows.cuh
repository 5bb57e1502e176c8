// Step 08, conversions from CSR that go by rows: to COO, ELL and sliced ELL.
//
//   thread   owns one row of the CSR matrix
//   warp     for ELL and sliced ELL: owns 32 rows, or every so many columns of them
#pragma once

#include <cuda_runtime.h>

#include "ell.cuh"
#include "sell.cuh"
#include "sell_16.cuh"

namespace spmv {

__device__ __forceinline__ int max_of_warp(int value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = max(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

__device__ __forceinline__ unsigned min_of_warp(unsigned value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = min(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// *maximum becomes the largest `value` of any thread in the grid, if it is larger than *maximum.
// Called by all threads.
__device__ __forceinline__ void max_of_grid(int value, int* maximum) {
  __shared__ int of_block;
  if (threadIdx.x == 0) of_block = value;
  __syncthreads();
  const int of_warp = max_of_warp(value);
  if (threadIdx.x % 32 == 0) atomicMax(&of_block, of_warp);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(maximum, of_block);
}

// *longest becomes the length of the longest row. Precondition: it is 0.
static __global__ void longest_row_kernel(unsigned rows, const int* row_offsets, int* longest) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  max_of_grid(row < rows ? row_offsets[row + 1] - row_offsets[row] : 0, longest);
}

// histogram[n] becomes the number of rows of n nonzeros, and of `bins - 1` or more for the last.
static __global__ void row_histogram_kernel(unsigned rows, const int* row_offsets, int bins,
                                            int* histogram) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  int bin = -1;
  if (row < rows) bin = min(row_offsets[row + 1] - row_offsets[row], bins - 1);
  // Many rows have the same length: one lane counts for all lanes of its warp with that length.
  const unsigned alike = __match_any_sync(0xffffffffu, bin);
  const bool first = threadIdx.x % 32 == static_cast<unsigned>(__ffs(alike) - 1);
  if (first && bin >= 0) atomicAdd(&histogram[bin], __popc(alike));
}

// 32 rows on their way from CSR, where the nonzeros of a row lie side by side, to a format in which
// those of a column do. One column more than is used, against bank conflicts.
inline constexpr int kTileColumns = 16;
template <typename T>
struct Tile {
  int columns[32][kTileColumns + 1];
  T values[32][kTileColumns + 1];
};

inline constexpr int kConvertWarps = 4;  // per block

// Where copy_rows() puts columns: an array, or columns of 16 bits (sell_16.cuh) as they are in
// narrow slices. Called by all lanes of a warp, with column j of 32 rows.
__device__ __forceinline__ void put_column(int* columns, std::size_t place, int column) {
  columns[place] = column;
}

struct Columns16Sink {
  int* bases;
  unsigned short* low;
  // Precondition: all are 0.
  int* wide_slices;
  int* wide_columns;  // *wide_columns becomes the number of columns of all wide slices
  const long long* slice_begins;
};

__device__ __forceinline__ void put_column(const Columns16Sink& to, std::size_t place, int column) {
  // Padding, -1, is the least as a signed number and the greatest as an unsigned one.
  const unsigned base = min_of_warp(static_cast<unsigned>(column));
  const unsigned last = static_cast<unsigned>(max_of_warp(column));
  if (threadIdx.x == 0) {
    to.bases[place / kSlice] = static_cast<int>(base);
    const unsigned slice = blockIdx.x * blockDim.z + threadIdx.z;
    if (last - base >= kNoDistance && atomicExch(&to.wide_slices[slice], 1) == 0) {
      const long long width = to.slice_begins[slice + 1] - to.slice_begins[slice];
      atomicAdd(to.wide_columns, static_cast<int>(width));
    }
  }
  to.low[place] = static_cast<unsigned short>(column == kNoColumn ? kNoDistance : column - base);
}

// Copies 32 rows, one per lane of the calling warp, padded to `width`: column j of the lane's row
// goes to place + j * pitch. The blockDim.y warps that have the same rows share the tiles.
template <typename T, typename Columns>
__device__ __forceinline__ void copy_rows(int begin, int length, int width,
                                          const int* __restrict__ column_indices,
                                          const T* __restrict__ values, std::size_t place,
                                          std::size_t pitch, Columns to_columns,
                                          T* __restrict__ to_values) {
  __shared__ Tile<T> tiles[kConvertWarps];
  Tile<T>& tile = tiles[threadIdx.z * blockDim.y + threadIdx.y];
  const int lane = static_cast<int>(threadIdx.x);
  int lanes_per_row = 1;  // that read it
  while (lanes_per_row < kTileColumns && lanes_per_row < width) lanes_per_row *= 2;
  const int tiles_apart = static_cast<int>(blockDim.y) * kTileColumns;
  for (int first = static_cast<int>(threadIdx.y) * kTileColumns; first < width;
       first += tiles_apart) {
    const int own = lane % lanes_per_row;
#pragma unroll 4
    for (int row = lane / lanes_per_row; row < 32; row += 32 / lanes_per_row) {
      const int row_begin = __shfl_sync(0xffffffffu, begin, row);
      const int row_length = __shfl_sync(0xffffffffu, length, row);
      const bool exists = first + own < row_length;
      tile.columns[row][own] = exists ? column_indices[row_begin + first + own] : kNoColumn;
      tile.values[row][own] = exists ? values[row_begin + first + own] : T{0};
    }
    __syncwarp();
    for (int j = 0; j < kTileColumns && first + j < width; ++j) {
      put_column(to_columns, place + (first + j) * pitch, tile.columns[lane][j]);
      to_values[place + (first + j) * pitch] = tile.values[lane][j];
    }
    __syncwarp();
  }
}

// The first `width` nonzeros of each row. Blocks as tile_shape() makes them.
template <typename T>
__global__ void csr_to_ell_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                  const T* values, int width, std::size_t pitch, int* ell_columns,
                                  T* ell_values) {
  const unsigned first_row = (blockIdx.x * blockDim.z + threadIdx.z) * 32;
  if (first_row >= rows) return;
  const unsigned row = first_row + threadIdx.x;
  int begin = 0, length = 0;
  if (row < rows) {
    begin = row_offsets[row];
    length = row_offsets[row + 1] - begin;
  }
  copy_rows(begin, length, width, column_indices, values, row, pitch, ell_columns, ell_values);
}

// How many nonzeros each row has behind its first `skipped`.
static __global__ void remainders_kernel(unsigned rows, const int* row_offsets, int skipped,
                                         int* remainders) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) remainders[row] = max(row_offsets[row + 1] - row_offsets[row] - skipped, 0);
}

// The nonzeros of each row behind its first `skipped`, as triplets from coo_begins[row] on.
template <typename T>
__global__ void csr_to_coo_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                  const T* values, int skipped, const int* coo_begins,
                                  int* coo_rows, int* coo_columns, T* coo_values) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int begin = coo_begins[row];
  const int from = row_offsets[row] + skipped;
  for (int k = begin; k < coo_begins[row + 1]; ++k) {
    coo_rows[k] = static_cast<int>(row);
    coo_columns[k] = column_indices[from + (k - begin)];
    coo_values[k] = values[from + (k - begin)];
  }
}

// places[window * kSortWindow + i] becomes the place in its window of the row that is the i-th when
// the longest come first; rows of one length keep their order. One block per window, one thread per
// row: its rank is the number of rows that go before it.
static __global__ void sort_windows_kernel(unsigned rows, const int* row_offsets,
                                           unsigned char* places) {
  __shared__ int lengths[kSortWindow];
  const unsigned window_begin = blockIdx.x * kSortWindow;
  const unsigned in_window = min(kSortWindow, rows - window_begin);
  const unsigned own = threadIdx.x;
  if (own < in_window) {
    lengths[own] = row_offsets[window_begin + own + 1] - row_offsets[window_begin + own];
  }
  __syncthreads();
  if (own >= in_window) return;
  unsigned rank = 0;
  for (unsigned other = 0; other < in_window; ++other) {
    rank += lengths[other] > lengths[own] || (lengths[other] == lengths[own] && other < own);
  }
  places[window_begin + rank] = static_cast<unsigned char>(own);
}

// One warp per slice. *widest becomes the width of the widest. Precondition: it is 0.
static __global__ void slice_widths_kernel(unsigned rows, const int* row_offsets,
                                           const unsigned char* places, int* widths, int* widest) {
  const unsigned slot = blockIdx.x * blockDim.x + threadIdx.x;
  int length = 0;
  if (slot < rows) {
    const unsigned row = row_of_slot(slot, places);
    length = row_offsets[row + 1] - row_offsets[row];
  }
  const int of_slice = max_of_warp(length);
  if (slot % kSlice == 0 && slot < rows) widths[slot / kSlice] = of_slice;
  max_of_grid(of_slice, widest);
}

// The slice that the calling warp converts, and the lane's row of it. Blocks as tile_shape() makes
// them.
struct OwnSlice {
  int begin = 0, length = 0;  // of the row; in a slot without one 0
  int width = 0;
  std::size_t place = 0;  // of the row's first entry

  __device__ OwnSlice(unsigned rows, const int* row_offsets, const long long* slice_begins,
                      const unsigned char* places) {
    const unsigned slice = blockIdx.x * blockDim.z + threadIdx.z;
    if (slice > (rows - 1) / kSlice) return;
    const unsigned slot = slice * kSlice + threadIdx.x;
    if (slot < rows) {
      const unsigned row = row_of_slot(slot, places);
      begin = row_offsets[row];
      length = row_offsets[row + 1] - begin;
    }
    width = static_cast<int>(slice_begins[slice + 1] - slice_begins[slice]);
    place = static_cast<std::size_t>(slice_begins[slice]) * kSlice + threadIdx.x;
  }
};

// All padding is written, also in slots without a row.
template <typename T, typename Columns>
__global__ void csr_to_sell_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                   const T* values, const long long* slice_begins,
                                   const unsigned char* places, Columns sell_columns,
                                   T* sell_values) {
  const OwnSlice own(rows, row_offsets, slice_begins, places);
  copy_rows(own.begin, own.length, own.width, column_indices, values, own.place, kSlice,
            sell_columns, sell_values);
}

// Writes the columns of wide slices again, in halves.
static __global__ void widen_slices_kernel(unsigned rows, const int* row_offsets,
                                           const int* column_indices, const long long* slice_begins,
                                           const unsigned char* places, const int* wide_slices,
                                           int* bases, unsigned short* low, unsigned short* high) {
  const OwnSlice own(rows, row_offsets, slice_begins, places);
  if (own.width == 0 || !wide_slices[blockIdx.x * blockDim.z + threadIdx.z]) return;
  for (int j = static_cast<int>(threadIdx.y); j < own.width; j += static_cast<int>(blockDim.y)) {
    const std::size_t place = own.place + static_cast<std::size_t>(j) * kSlice;
    const int column = j < own.length ? column_indices[own.begin + j] : kNoColumn;
    if (threadIdx.x == 0) bases[place / kSlice] = kWide;
    low[place] = static_cast<unsigned short>(column & 0xffff);
    high[place] = static_cast<unsigned short>(static_cast<unsigned>(column) >> 16);
  }
}

}  // namespace spmv
