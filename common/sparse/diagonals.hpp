// Diagonals of a matrix, of elements or of blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// How many places of these diagonals lie within a matrix of rows x cols elements (or blocks): what
// a product reads of diagonals that are stored whole. offsets: column less row, each of a diagonal
// that the matrix has.
inline std::uint64_t places_within(Index rows, Index cols, const std::vector<Index>& offsets) {
  std::uint64_t places = 0;
  for (const std::int64_t offset : offsets) {
    places += static_cast<std::uint64_t>(std::min<std::int64_t>(rows, cols - offset) -
                                         std::max<std::int64_t>(0, -offset));
  }
  return places;
}

}  // namespace spmv
