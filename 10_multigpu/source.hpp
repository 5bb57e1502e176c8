// Step 10: matrices by rows, so that nobody has to hold all of one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/verify.hpp"
#include "sparse/load.hpp"

namespace spmv::multigpu {

template <typename T>
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual Index rows() const = 0;
  virtual Index cols() const = 0;
  virtual const MatrixSource& source() const = 0;
  // How many nonzeros each of the rows [first, end) has, or a little more where some of them will
  // be added up.
  virtual std::vector<Index> lengths(Index first, Index end) const = 0;
  // The rows [first, end), their columns those of the whole matrix. `nonzeros_before`: in the rows
  // before `first`, as lengths() counts them.
  virtual Csr<T> read(Index first, Index end, long long nonzeros_before) const = 0;
};

// A generator that can makes the rows that it is asked for. All else is held as a whole, or, with
// `streamed`, gone through from the beginning to the end for every call, and only the rows that are
// wanted are kept.
template <typename T>
std::unique_ptr<RowSource<T>> open_rows(const std::string& spec, const LoadOptions& options,
                                        bool streamed);

// The x that all begin with: test_vector()'s, divided by 3 to have all the digits that T has. (With
// few digits a row's sum is exact in whatever order it is made, and its bits would tell nothing.)
template <typename T>
std::vector<T> first_x(Index cols, std::uint64_t seed) {
  std::vector<T> x = test_vector<T>(static_cast<std::size_t>(cols), seed);
  for (T& value : x) value /= 3;
  return x;
}

extern template std::unique_ptr<RowSource<float>> open_rows(const std::string&, const LoadOptions&,
                                                            bool);
extern template std::unique_ptr<RowSource<double>> open_rows(const std::string&, const LoadOptions&,
                                                             bool);

}  // namespace spmv::multigpu
