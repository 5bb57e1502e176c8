// Step 08, conversions from CSR that go by rows: to COO, ELL and sliced ELL.
//
//   thread   owns one row of the CSR matrix, or one slot of a slice
#pragma once

#include <cuda_runtime.h>

#include "ell.cuh"
#include "sell.cuh"

namespace spmv {

__device__ __forceinline__ int max_of_warp(int value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = max(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// *longest becomes the length of the longest row. Precondition: it is 0.
static __global__ void longest_row_kernel(unsigned rows, const int* row_offsets, int* longest) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  const int length = row < rows ? row_offsets[row + 1] - row_offsets[row] : 0;
  const int of_warp = max_of_warp(length);
  if (threadIdx.x % 32 == 0) atomicMax(longest, of_warp);
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

// The first `width` nonzeros of each row.
template <typename T>
__global__ void csr_to_ell_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                  const T* values, int width, std::size_t pitch, int* ell_columns,
                                  T* ell_values) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int begin = row_offsets[row];
  const int length = row_offsets[row + 1] - begin;
  std::size_t place = row;
  for (int j = 0; j < width; ++j, place += pitch) {
    ell_columns[place] = j < length ? column_indices[begin + j] : kNoColumn;
    ell_values[place] = j < length ? values[begin + j] : T{0};
  }
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

// One warp per slice.
static __global__ void slice_widths_kernel(unsigned rows, const int* row_offsets,
                                           const unsigned char* places, int* widths) {
  const unsigned slot = blockIdx.x * blockDim.x + threadIdx.x;
  int length = 0;
  if (slot < rows) {
    const unsigned row = row_of_slot(slot, places);
    length = row_offsets[row + 1] - row_offsets[row];
  }
  const int widest = max_of_warp(length);
  if (slot % kSlice == 0 && slot < rows) widths[slot / kSlice] = widest;
}

// One thread per slot, those without a row included, so that all padding is written.
template <typename T>
__global__ void csr_to_sell_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                   const T* values, const long long* slice_begins,
                                   const unsigned char* places, int* sell_columns, T* sell_values) {
  const unsigned slot = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned slice = slot / kSlice;
  if (slice > (rows - 1) / kSlice) return;
  int begin = 0, length = 0;
  if (slot < rows) {
    const unsigned row = row_of_slot(slot, places);
    begin = row_offsets[row];
    length = row_offsets[row + 1] - begin;
  }
  const long long first = slice_begins[slice];
  const int width = static_cast<int>(slice_begins[slice + 1] - first);
  std::size_t place = static_cast<std::size_t>(first) * kSlice + slot % kSlice;
  for (int j = 0; j < width; ++j, place += kSlice) {
    sell_columns[place] = j < length ? column_indices[begin + j] : kNoColumn;
    sell_values[place] = j < length ? values[begin + j] : T{0};
  }
}

}  // namespace spmv
