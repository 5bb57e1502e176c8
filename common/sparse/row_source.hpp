// Matrices by rows, so that no process has to hold all of one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparse/load.hpp"

namespace spmv {

template <typename T>
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual Index rows() const = 0;
  virtual Index cols() const = 0;
  virtual const MatrixSource& source() const = 0;
  // How many nonzeros each of the rows [first, end) has, before any that coincide are added up.
  virtual std::vector<Index> lengths(Index first, Index end) const = 0;
  // The rows [first, end), their columns those of the whole matrix. `nonzeros_before`: in the rows
  // before `first`, as lengths() counts them.
  virtual Csr<T> read(Index first, Index end, long long nonzeros_before) const = 0;
};

// `spec` as in load_matrix(). A generator that works by rows makes those that it is asked for. Any
// other matrix is held as a whole or, with `streamed`, read from beginning to end by every call,
// which keeps the rows that it returns.
template <typename T>
std::unique_ptr<RowSource<T>> open_rows(const std::string& spec, const LoadOptions& options,
                                        bool streamed);

// The rows [first, end) of `a`, their columns those of `a`.
template <typename T>
Csr<T> slice_of(const Csr<T>& a, Index first, Index end);

extern template std::unique_ptr<RowSource<float>> open_rows(const std::string&, const LoadOptions&,
                                                            bool);
extern template std::unique_ptr<RowSource<double>> open_rows(const std::string&, const LoadOptions&,
                                                             bool);
extern template Csr<float> slice_of(const Csr<float>&, Index, Index);
extern template Csr<double> slice_of(const Csr<double>&, Index, Index);

}  // namespace spmv
