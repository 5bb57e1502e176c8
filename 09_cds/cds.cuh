// Step 09: a storage format without column indices, for block diagonals.
//
// The steps before read one column index per nonzero. On a structured grid with b unknowns per
// point they are redundant: the nonzeros are dense b x b blocks, and the blocks lie on k block
// diagonals. Column Diagonal Storage stores only the k offsets, and b columns per block diagonal:
// column c has, for each row, the row's element in column c of its block.
// (CDS: Godwin, Holewinski and Sadayappan 2012, section 3.)
//
//   thread   owns one row, k b of the stored values; the b rows of a block read the same x
//   warp     owns 32 neighbouring rows, and reads 32 neighbouring values of each column
//   block    owns kCdsThreads rows
//
// What to look at: every value is read by an aligned, full request, whatever b is.
#pragma once

#include <cuda_runtime.h>

#include <climits>
#include <cstddef>

#include "device/fetch.cuh"
#include "device/scale.cuh"

namespace spmv {

inline constexpr int kCdsThreads = 256;
inline constexpr int kDiagonalsPerLaunch = 256;
inline constexpr int kNoDiagonal = INT_MIN;  // no block row has a block this far to the left

// Offsets of block diagonals: block column less block row. An argument of the kernel, so that
// reading one takes no request. Past `count` they are kNoDiagonal.
struct CdsOffsets {
  int count;
  int at[kDiagonalsPerLaunch + 8];
};

// x, read by plain loads or through a texture.
template <typename T>
struct PlainX {
  const T* x;
  __device__ __forceinline__ T operator[](unsigned index) const { return x[index]; }
};
template <typename T>
struct TextureX {
  cudaTextureObject_t x;
  __device__ __forceinline__ T operator[](unsigned index) const {
    return device::fetch<T>(x, static_cast<int>(index));
  }
};

// Element (row, c) of block diagonal d is
//   values[row / kCdsThreads * pitch + row % kCdsThreads + (d * block + c) * stride].
// In the paper's layout, column after column, stride is the number of rows and pitch kCdsThreads.
// fixed_block is `block`, so that the loops are unrolled, or 0 for any.
template <int fixed_block, typename T, typename X>
__global__ void __launch_bounds__(kCdsThreads, 4)
    cds_kernel(unsigned rows, unsigned block_columns, unsigned any_block, const CdsOffsets offsets,
               const T* values, std::size_t stride, std::size_t pitch, T alpha, X x, T beta, T* y) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;

  // At least eight loads are in flight per thread before the first value is used: with one, a
  // multiprocessor has too few bytes in flight to saturate the memory.
  constexpr unsigned kColumns = fixed_block ? fixed_block : 8;
  constexpr unsigned kDiagonalsInFlight = (8 + kColumns - 1) / kColumns;
  const unsigned block = fixed_block ? fixed_block : any_block;
  const unsigned block_row = row / block;
  const T* value = values + blockIdx.x * pitch + threadIdx.x;
  T sum = 0;
  // exercise: begin
  for (int first = 0; first < offsets.count; first += kDiagonalsInFlight) {
    for (unsigned column = 0; column < block; column += kColumns) {
      T a[kDiagonalsInFlight][kColumns] = {};
      T factor[kDiagonalsInFlight][kColumns] = {};
#pragma unroll
      for (unsigned d = 0; d < kDiagonalsInFlight; ++d) {
        // Left of the first column it is negative: as an unsigned number, past the last one.
        const unsigned block_column = block_row + static_cast<unsigned>(offsets.at[first + d]);
        const bool inside = block_column < block_columns;
#pragma unroll
        for (unsigned c = 0; c < kColumns; ++c) {
          if (inside && (fixed_block || column + c < block)) {
            a[d][c] = __ldcs(&value[(d * block + column + c) * stride]);  // read only once
            factor[d][c] = x[block_column * block + column + c];
          }
        }
      }
#pragma unroll
      for (unsigned d = 0; d < kDiagonalsInFlight; ++d) {
#pragma unroll
        for (unsigned c = 0; c < kColumns; ++c) sum += a[d][c] * factor[d][c];
      }
    }
    value += kDiagonalsInFlight * block * stride;
  }
  // exercise: end
  y[row] = scale(alpha, sum, beta, &y[row]);
}

}  // namespace spmv
