// What the kernels of step 05 are set up from: triplets sorted by row, in device memory.
#pragma once

#include <vector>

#include "device/coo.hpp"
#include "sparse/convert.hpp"
#include "sparse/load.hpp"

namespace spmv {

template <typename T>
Coo<T> sorted_triplets(const Matrix<T>& matrix) {
  return sorted_by_row(triplets_of(matrix));
}

template <typename T>
std::vector<Index> rows_without_nonzeros(const Coo<T>& coo) {
  std::vector<bool> has_nonzeros(coo.rows);
  for (const Index row : coo.row_indices) has_nonzeros[row] = true;
  std::vector<Index> empty;
  for (Index row = 0; row < coo.rows; ++row) {
    if (!has_nonzeros[row]) empty.push_back(row);
  }
  return empty;
}

template <typename T>
struct SortedTriplets {
  device::DeviceCoo<T> a;
  device::Buffer<Index> empty_rows;

  explicit SortedTriplets(const Matrix<T>& matrix) : SortedTriplets(sorted_triplets(matrix)) {}
  explicit SortedTriplets(const Coo<T>& sorted)
      : a(sorted), empty_rows("empty_rows", rows_without_nonzeros(sorted)) {}

  std::size_t bytes() const { return a.bytes() + empty_rows.bytes(); }
};

}  // namespace spmv
