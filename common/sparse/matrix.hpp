// The two host formats that every other format starts from: COO (what a file holds) and CSR
// (what a kernel is set up from).
//
// T is float or double. Indices are 32-bit and 0-based, as on the device, so a matrix may hold at
// most 2^31 - 1 nonzeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace spmv {

using Index = std::int32_t;
inline constexpr long long kMaxNonzeros = std::numeric_limits<Index>::max();

// Coordinate format: nonzero k is values[k] at (row_indices[k], column_indices[k]), in any order.
// The same position may occur more than once; the matrix is then their sum.
template <typename T>
struct Coo {
  Index rows = 0;
  Index cols = 0;
  std::vector<Index> row_indices;     // nnz
  std::vector<Index> column_indices;  // nnz
  std::vector<T> values;              // nnz
  bool is_expanded = false;           // of a file that stores one triangle

  Index nnz() const { return static_cast<Index>(values.size()); }
  void add(Index row, Index column, T value) {
    row_indices.push_back(row);
    column_indices.push_back(column);
    values.push_back(value);
  }
};

// Compressed sparse row: row r owns nonzeros row_offsets[r] up to but not including
// row_offsets[r + 1]; within a row the columns ascend and none occurs twice.
template <typename T>
struct Csr {
  Index rows = 0;
  Index cols = 0;
  std::vector<Index> row_offsets{0};  // rows + 1
  std::vector<Index> column_indices;  // nnz
  std::vector<T> values;              // nnz

  Index nnz() const { return static_cast<Index>(values.size()); }
  Index row_length(Index row) const { return row_offsets[row + 1] - row_offsets[row]; }
  bool operator==(const Csr&) const = default;
};

// Bytes of a CSR matrix in memory.
template <typename T>
std::size_t csr_bytes(const Csr<T>& a) {
  return a.row_offsets.size() * sizeof(Index) + a.values.size() * (sizeof(Index) + sizeof(T));
}

// What a user gave us cannot be used. what() is one line that names the input, where in it, what
// is wrong and what to do; main() prints it after "error: " and exits with status 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace spmv
