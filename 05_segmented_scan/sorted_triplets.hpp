// What the kernels of step 05 are set up from: triplets sorted by row, in device memory.
#pragma once

#include <vector>

#include "device/coo.hpp"
#include "sparse/convert.hpp"

namespace spmv {

template <typename T>
std::vector<Index> rows_without_nonzeros(const Csr<T>& csr) {
  std::vector<Index> empty;
  for (Index row = 0; row < csr.rows; ++row) {
    if (csr.row_length(row) == 0) empty.push_back(row);
  }
  return empty;
}

template <typename T>
struct SortedTriplets {
  device::DeviceCoo<T> a;
  device::Buffer<Index> empty_rows;

  explicit SortedTriplets(const Csr<T>& csr)
      : a(to_coo(csr)), empty_rows("empty_rows", rows_without_nonzeros(csr)) {}

  std::size_t bytes() const { return a.bytes() + empty_rows.bytes(); }
};

}  // namespace spmv
