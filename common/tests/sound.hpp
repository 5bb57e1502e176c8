// The invariants of a CSR matrix.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sparse/matrix.hpp"

namespace spmv::test {

// Offsets from 0 to nnz that never fall; in each row columns of the matrix, ascending, none twice.
template <typename T>
bool is_sound(const Csr<T>& a) {
  if (a.rows < 0 || a.cols < 0 || a.row_offsets.size() != static_cast<std::size_t>(a.rows) + 1 ||
      a.column_indices.size() != a.values.size() || a.row_offsets.front() != 0 ||
      a.row_offsets.back() != a.nnz() ||
      !std::is_sorted(a.row_offsets.begin(), a.row_offsets.end())) {
    return false;
  }
  for (Index row = 0; row < a.rows; ++row) {
    Index least = 0;
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      const Index column = a.column_indices[k];
      if (column < least || column >= a.cols) return false;
      least = column + 1;
    }
  }
  return true;
}

}  // namespace spmv::test
