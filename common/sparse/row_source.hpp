// Matrices by rows, so that no process has to hold all of one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparse/load.hpp"
#include "sparse/specification.hpp"

namespace spmv {

// `spec` as in load_matrix(). A matrix is held as a whole. With `streamed` a generator that works
// by rows makes those that it is asked for, as it does without where the whole would be too large,
// and anything else is read or made from beginning to end by every call, which keeps the rows that
// it returns; but an .npz file, which stands for itself in memory, is held as a whole.
template <typename T>
class RowSource {
 public:
  RowSource(const std::string& spec, const LoadOptions& options, bool streamed);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  const MatrixSource& source() const { return source_; }
  // How many nonzeros each of the rows [first, end) has, before any that coincide are added up.
  std::vector<Index> lengths(Index first, Index end) const;
  // The rows [first, end), their columns those of the whole matrix. `nonzeros_before`: in the rows
  // before `first`, as lengths() counts them.
  Csr<T> read(Index first, Index end, long long nonzeros_before) const;

 private:
  MatrixSource source_;
  LoadOptions options_;
  bool is_streamed_file_;
  std::optional<Specification> generated_;
  Csr<T> whole_;  // where it is neither
  Index rows_ = 0, cols_ = 0;
  std::vector<Index> lengths_;  // of all rows, unless they are made when asked for
};

// The rows [first, end) of `a`, their columns those of `a`.
template <typename T>
Csr<T> slice_of(const Csr<T>& a, Index first, Index end);

}  // namespace spmv
