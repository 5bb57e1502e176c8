// A CSR matrix in device memory.
#pragma once

#include "device/buffer.hpp"
#include "sparse/matrix.hpp"

namespace spmv::device {

template <typename T>
struct DeviceCsr {
  Index rows = 0;
  Index cols = 0;
  Index nnz = 0;
  Buffer<Index> row_offsets;     // rows + 1
  Buffer<Index> column_indices;  // nnz
  Buffer<T> values;              // nnz

  DeviceCsr() = default;
  explicit DeviceCsr(const Csr<T>& host)
      : rows(host.rows),
        cols(host.cols),
        nnz(host.nnz()),
        row_offsets("row_offsets", host.row_offsets),
        column_indices("column_indices", host.column_indices),
        values("values", host.values) {}

  std::size_t bytes() const {
    return row_offsets.bytes() + column_indices.bytes() + values.bytes();
  }
};

}  // namespace spmv::device
