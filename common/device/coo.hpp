// A COO matrix in device memory.
#pragma once

#include "device/buffer.hpp"
#include "sparse/matrix.hpp"

namespace spmv::device {

template <typename T>
struct DeviceCoo {
  Index rows = 0;
  Index cols = 0;
  Index nnz = 0;
  Buffer<Index> row_indices;     // nnz
  Buffer<Index> column_indices;  // nnz
  Buffer<T> values;              // nnz

  DeviceCoo() = default;
  explicit DeviceCoo(const Coo<T>& host)
      : rows(host.rows),
        cols(host.cols),
        nnz(host.nnz()),
        row_indices("row_indices", host.row_indices),
        column_indices("column_indices", host.column_indices),
        values("values", host.values) {}

  std::size_t bytes() const {
    return row_indices.bytes() + column_indices.bytes() + values.bytes();
  }
};

}  // namespace spmv::device
