// Step 08, sliced ELL with columns of 16 bits: bytes are the limit, so store fewer.
//
// sell_kernel reads as many bytes per second as a copy does, so only fewer bytes make it faster. In
// most matrices the rows of a slice, which are neighbours, have their j-th nonzeros near each
// other. So the 32 columns in column j of a slice, a tile, become a base of 4 bytes and 32
// distances from it of 2 bytes: 10.1 bytes per nonzero instead of 12 in double precision, 6.1
// instead of 8 in single. No column is lost: where a tile spans too many columns, 16 bits are the
// low half of a column, and the high half is in an array of its own. The kernel stays sell_kernel.
#pragma once

#include <cuda_runtime.h>

#include "sell.cuh"

namespace spmv {

inline constexpr unsigned kNoDistance = 0xffff;  // of padding; a narrow tile has smaller ones alone
inline constexpr int kWideTile = -1;             // in the place of a base

// The columns of a SlicedEll. Element 32 t + i is the one of lane i in tile t.
struct Columns16 {
  const int* bases;           // per tile: its least column, or kWideTile
  const unsigned short* low;  // distance from the base, or kNoDistance; of a wide tile the low half
  const unsigned short* high;  // the high half; null if there is no wide tile

  __host__ __device__ int operator[](std::size_t place) const;
};

struct Column16 {
  int base;
  unsigned low;
};

__device__ __forceinline__ Column16 no_column(const Columns16&) {
  return {0, kNoDistance};
}

// Two loads that do not depend on each other.
template <bool read_once>
__device__ __forceinline__ Column16 load_column(const Columns16& columns, std::size_t place) {
  return {columns.bases[place / kSlice], load<read_once>(&columns.low[place])};
}

__host__ __device__ __forceinline__ int decode(const Columns16& columns, Column16 column,
                                               std::size_t place) {
  if (column.base == kWideTile) {
    return static_cast<int>(static_cast<unsigned>(columns.high[place]) << 16 | column.low);
  }
  return column.low == kNoDistance ? kNoColumn : column.base + static_cast<int>(column.low);
}

__host__ __device__ __forceinline__ int Columns16::operator[](std::size_t place) const {
  return decode(*this, {bases[place / kSlice], low[place]}, place);
}

}  // namespace spmv
