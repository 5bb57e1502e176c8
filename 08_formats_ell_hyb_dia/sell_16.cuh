// Step 08, sliced ELL with columns of 16 bits: bytes are the limit, so store fewer.
//
// sell_kernel reads as many bytes per second as a copy does, so only fewer bytes make it faster. In
// most matrices the rows of a slice, which are neighbours, have their j-th nonzeros near each
// other. So the 32 columns in column j of a slice become a base of 4 bytes and 32 distances from it
// of 2 bytes: 10.1 bytes per nonzero instead of 12 in double precision, 6.1 instead of 8 in single.
// No column is lost: in a slice of which 32 columns lie too far apart, which is called wide, 16
// bits are the low half of a column, and the high half is in an array of its own. The kernel is
// sell_kernel.
#pragma once

#include <cuda_runtime.h>

#include "sell.cuh"

namespace spmv {

inline constexpr unsigned kNoDistance = 0xffff;  // of padding; all others are less
inline constexpr int kWide = -1;                 // in the place of a base

// The columns of a SlicedEll. Of slice s, whose columns begin at slice_begins[s]:
struct Columns16 {
  const int* wide_slices;      // [s]: 1 if it is wide, else 0; null if none is
  const int* bases;            // per column of the slice: the least of its 32 columns, or kWide
  const unsigned short* low;   // distance from the base, or kNoDistance; if wide, the low half
  const unsigned short* high;  // the high half, if wide; null if no slice is

  __host__ __device__ int operator[](std::size_t place) const {
    const unsigned value = low[place];
    const int base = bases[place / kSlice];
    if (base == kWide) return static_cast<int>(static_cast<unsigned>(high[place]) << 16 | value);
    return value == kNoDistance ? kNoColumn : base + static_cast<int>(value);
  }
};

// One row's columns in either kind of slice. What load_column() returns of it is two independent
// loads, which decode() puts together.
struct NarrowRow {
  const int* bases;
  const unsigned short* low;
};
struct WideRow {
  const unsigned short* high;
  const unsigned short* low;
};
template <typename Row>
struct Halves {
  int upper;  // base, or high half
  unsigned low;
};

template <bool read_once>
__device__ __forceinline__ Halves<NarrowRow> load_column(const NarrowRow& own, std::size_t j) {
  return {own.bases[j], load<read_once>(&own.low[j * kSlice])};
}
template <bool read_once>
__device__ __forceinline__ Halves<WideRow> load_column(const WideRow& own, std::size_t j) {
  return {load<read_once>(&own.high[j * kSlice]), load<read_once>(&own.low[j * kSlice])};
}
__device__ __forceinline__ int decode(Halves<NarrowRow> column) {
  return column.low == kNoDistance ? kNoColumn : column.upper + static_cast<int>(column.low);
}
__device__ __forceinline__ int decode(Halves<WideRow> column) {
  return static_cast<int>(static_cast<unsigned>(column.upper) << 16 | column.low);
}

// The kind of slice is decided once, outside of the loop over its columns: inside, every load would
// wait for the base that says which one it is.
template <typename What>
__device__ __forceinline__ void with_row(const Columns16& columns, unsigned slice,
                                         std::size_t place, What what) {
  if (columns.wide_slices && columns.wide_slices[slice]) {
    what(WideRow{columns.high + place, columns.low + place});
  } else {
    what(NarrowRow{columns.bases + place / kSlice, columns.low + place});
  }
}

}  // namespace spmv
