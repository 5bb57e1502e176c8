// Step 08, conversions from CSR that go by diagonals: to DIA, and to diagonals with a rest.
//
// Diagonals are numbered from the lower left corner: that of row r and column c is
// c - r + (rows - 1), which is an unsigned number below rows + cols.
//
//   thread   owns one row, or one diagonal
#pragma once

#include <cuda_runtime.h>

#include "convert_rows.cuh"
#include "dia_csr.cuh"

namespace spmv {

__device__ __forceinline__ unsigned diagonal_of(unsigned row, int column, unsigned rows) {
  return static_cast<unsigned>(column) + (rows - 1) - row;
}

// counts[d] becomes the number of nonzeros on diagonal d.
static __global__ void count_diagonals_kernel(unsigned rows, const int* row_offsets,
                                              const int* column_indices, int* counts) {
  constexpr unsigned kNone = 0xffffffffu;
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  const int begin = row < rows ? row_offsets[row] : 0;
  const int length = row < rows ? row_offsets[row + 1] - begin : 0;
  // Neighbouring rows are on the same diagonals: one lane counts for all lanes with equal
  // diagonals. All lanes loop until the longest row is done, since the comparison needs the whole
  // warp.
  const int longest = max_of_warp(length);
  for (int j = 0; j < longest; ++j) {
    const unsigned diagonal =
        j < length ? diagonal_of(row, column_indices[begin + j], rows) : kNone;
    const unsigned alike = __match_any_sync(0xffffffffu, diagonal);
    const bool first = threadIdx.x % 32 == static_cast<unsigned>(__ffs(alike) - 1);
    if (first && diagonal != kNone) atomicAdd(&counts[diagonal], __popc(alike));
  }
}

// Which diagonals are stored as such: those of at least so many nonzeros, near the main diagonal
// (at most kNear away, so that a distance fits 16 bits) or farther off. Empty ones never are.
inline constexpr int kNear = 32767;
struct Cut {
  int least_near = 1;
  int least_far = 1;
};
__device__ __forceinline__ bool is_kept(unsigned diagonal, int count, unsigned rows, Cut cut) {
  const unsigned main = rows - 1;
  const unsigned distance = diagonal > main ? diagonal - main : main - diagonal;
  return count > 0 && count >= (distance <= kNear ? cut.least_near : cut.least_far);
}

// How many diagonals a cut keeps, and how many nonzeros are on them: kept[0] and kept[1].
static __global__ void weigh_cut_kernel(unsigned diagonals, const int* counts, unsigned rows,
                                        Cut cut, unsigned long long* kept) {
  const unsigned diagonal = blockIdx.x * blockDim.x + threadIdx.x;
  const int count = diagonal < diagonals ? counts[diagonal] : 0;
  const bool keeps = is_kept(diagonal, count, rows, cut);
  const unsigned of_warp = __ballot_sync(0xffffffffu, keeps);
  if (of_warp == 0) return;
  unsigned nonzeros = keeps ? count : 0;  // at most 2^31 on all diagonals together
  for (int distance = 16; distance > 0; distance /= 2) {
    nonzeros += __shfl_down_sync(0xffffffffu, nonzeros, distance);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&kept[0], static_cast<unsigned long long>(__popc(of_warp)));
  atomicAdd(&kept[1], static_cast<unsigned long long>(nonzeros));
}

// kept[d] = 1 for a diagonal that is stored as such, else 0.
static __global__ void keep_diagonals_kernel(unsigned diagonals, const int* counts, unsigned rows,
                                             Cut cut, unsigned char* kept) {
  const unsigned diagonal = blockIdx.x * blockDim.x + threadIdx.x;
  if (diagonal < diagonals) kept[diagonal] = is_kept(diagonal, counts[diagonal], rows, cut);
}

// places[d], the number of kept diagonals before d, becomes -1 for those that are not kept;
// offsets receives the others' column - row.
static __global__ void place_diagonals_kernel(unsigned diagonals, const unsigned char* kept,
                                              unsigned rows, int* places, int* offsets) {
  const unsigned diagonal = blockIdx.x * blockDim.x + threadIdx.x;
  if (diagonal >= diagonals) return;
  if (kept[diagonal]) {
    offsets[places[diagonal]] = static_cast<int>(diagonal - (rows - 1));
  } else {
    places[diagonal] = -1;
  }
}

// Stores the nonzeros of kept diagonals at their places in `dia`. Precondition: `dia` is 0.
template <typename T>
__global__ void csr_to_dia_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                  const T* values, const int* places, std::size_t pitch, T* dia) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k) {
    const int place = places[diagonal_of(row, column_indices[k], rows)];
    if (place >= 0) dia[place * pitch + row] = values[k];
  }
}

// How many nonzeros of each row are on no kept diagonal.
static __global__ void rest_lengths_kernel(unsigned rows, const int* row_offsets,
                                           const int* column_indices, const int* places,
                                           int* lengths) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int length = 0;
  for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k) {
    length += places[diagonal_of(row, column_indices[k], rows)] < 0;
  }
  lengths[row] = length;
}

// Of groups of kRestRows rows: where the rest of each begins, in begins[group]; and in found[0] and
// found[1], which were 0 before, the longest rest of a group and the number of groups that have
// one.
static __global__ void rest_groups_kernel(unsigned rows, unsigned groups, const int* rest_begins,
                                          int* begins, int* found) {
  const unsigned group = blockIdx.x * blockDim.x + threadIdx.x;
  int length = 0;
  if (group < groups) {
    const unsigned first = group * kRestRows;
    const unsigned last = min(first + (kRestRows - 1), rows - 1);
    length = rest_begins[last + 1] - rest_begins[first];
    begins[group] = rest_begins[first];
    if (group == groups - 1) begins[groups] = rest_begins[rows];
  }
  const int longest = max_of_warp(length);
  const unsigned with_rest = __ballot_sync(0xffffffffu, length > 0);
  if (threadIdx.x % 32 != 0 || with_rest == 0) return;
  atomicMax(&found[0], longest);
  atomicAdd(&found[1], __popc(with_rest));
}

// The rest of each row, from rest_begins[row] on.
template <typename T, typename End, typename Distance>
__global__ void csr_to_rest_kernel(unsigned rows, const int* row_offsets, const int* column_indices,
                                   const T* values, const int* places, const int* rest_begins,
                                   End* rest_ends, Distance* rest_distances, T* rest_values) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int at = rest_begins[row];
  for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k) {
    if (places[diagonal_of(row, column_indices[k], rows)] >= 0) continue;
    rest_distances[at] = static_cast<Distance>(column_indices[k] - static_cast<int>(row));
    rest_values[at] = values[k];
    ++at;
  }
  rest_ends[row] = static_cast<End>(at - rest_begins[row - row % kRestRows]);
}

}  // namespace spmv
