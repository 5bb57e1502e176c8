#include "sparse/convert.hpp"

#include <numeric>

#include "sparse/load.hpp"

namespace spmv {
namespace {

// offsets[k] = how many of `keys` are below k; `count` + 1 entries.
std::vector<Index> counting_offsets(const std::vector<Index>& keys, Index count) {
  std::vector<Index> offsets(static_cast<std::size_t>(count) + 1, 0);
  for (const Index key : keys) ++offsets[static_cast<std::size_t>(key) + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  return offsets;
}

}  // namespace

template <typename T>
Index sum_repeated_columns(Csr<T>& csr) {
  Index kept = 0;  // closes the gaps that merging leaves
  for (Index row = 0; row < csr.rows; ++row) {
    const Index row_begin = csr.row_offsets[row];
    const Index row_end = csr.row_offsets[row + 1];
    const Index kept_begin = kept;
    for (Index k = row_begin; k < row_end; ++k) {
      if (kept > kept_begin && csr.column_indices[kept - 1] == csr.column_indices[k]) {
        csr.values[kept - 1] += csr.values[k];
      } else {
        csr.column_indices[kept] = csr.column_indices[k];
        csr.values[kept] = csr.values[k];
        ++kept;
      }
    }
    csr.row_offsets[row] = kept_begin;
  }
  csr.row_offsets[csr.rows] = kept;
  const Index merged = csr.nnz() - kept;
  csr.column_indices.resize(kept);
  csr.values.resize(kept);
  return merged;
}

template <typename T>
Csr<T> to_csr(const Coo<T>& coo, Index* duplicates) {
  const std::size_t nnz = coo.values.size();
  std::vector<Index> by_column(nnz);
  {
    std::vector<Index> next = counting_offsets(coo.column_indices, coo.cols);
    for (std::size_t k = 0; k < nnz; ++k) {
      by_column[next[coo.column_indices[k]]++] = static_cast<Index>(k);
    }
  }

  Csr<T> csr{coo.rows, coo.cols, counting_offsets(coo.row_indices, coo.rows),
             std::vector<Index>(nnz), std::vector<T>(nnz)};
  {
    std::vector<Index> next = csr.row_offsets;
    for (const Index k : by_column) {
      const Index target = next[coo.row_indices[k]]++;
      csr.column_indices[target] = coo.column_indices[k];
      csr.values[target] = coo.values[k];
    }
  }

  const Index merged = sum_repeated_columns(csr);  // which are neighbours now
  if (duplicates) *duplicates = merged;
  return csr;
}

template <typename T>
Coo<T> to_coo(const Csr<T>& csr) {
  Coo<T> coo{csr.rows, csr.cols, {}, csr.column_indices, csr.values};
  coo.row_indices.reserve(csr.values.size());
  for (Index row = 0; row < csr.rows; ++row) {
    coo.row_indices.insert(coo.row_indices.end(), csr.row_length(row), row);
  }
  return coo;
}

template <typename T>
Coo<T> triplets_of(const Matrix<T>& matrix) {
  // Whether the triplets of an empty matrix were kept does not matter.
  const bool kept = matrix.csr.nnz() > 0 && matrix.coo.nnz() == matrix.csr.nnz();
  return kept ? matrix.coo : to_coo(matrix.csr);
}

template Index sum_repeated_columns(Csr<float>&);
template Index sum_repeated_columns(Csr<double>&);
template Csr<float> to_csr(const Coo<float>&, Index*);
template Csr<double> to_csr(const Coo<double>&, Index*);
template Coo<float> to_coo(const Csr<float>&);
template Coo<double> to_coo(const Csr<double>&);
template Coo<float> triplets_of(const Matrix<float>&);
template Coo<double> triplets_of(const Matrix<double>&);

}  // namespace spmv
