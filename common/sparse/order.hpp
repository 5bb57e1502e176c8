// Other orders of a matrix's rows and columns, by which neighbouring lanes find neighbouring
// entries of x.
#pragma once

#include <string>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// For each place of the new numbering the old number; empty: as it was. y'[k] = y[rows[k]] and
// x'[k] = x[columns[k]] for the reordered matrix's y' = A' x'.
struct Numbering {
  std::vector<Index> rows, columns;
};

// The order that `name` asks for:
//   none     as it is
//   columns  columns alone, those with most nonzeros first; ties as they were
//   degree   rows and columns alike, by nonzeros in row and column together
//   rcm      rows and columns alike, by reverse Cuthill-McKee on the pattern of A + A': breadth
//            first from a vertex far outside, neighbours of few neighbours first, then reversed
//            (Cuthill and McKee 1969; the start as George and Liu find it, 1979)
// Throws InputError when rows and columns are to be renumbered alike and the matrix is not square.
template <typename T>
Numbering order_of(const Csr<T>& a, const std::string& name);
inline const std::vector<std::string> kOrderNames = {"none", "rcm", "columns", "degree"};

// The matrix in another order, its columns ascending in each row.
template <typename T>
Csr<T> reordered(const Csr<T>& a, const Numbering& order);

// old[numbers[k]] for each k, and the inverse; with no `numbers` the vector as it is.
template <typename T>
std::vector<T> renumbered(const std::vector<T>& old, const std::vector<Index>& numbers) {
  if (numbers.empty()) return old;
  std::vector<T> result(old.size());
  for (std::size_t k = 0; k < old.size(); ++k) result[k] = old[numbers[k]];
  return result;
}
template <typename T>
std::vector<T> as_it_was(const std::vector<T>& renumbered, const std::vector<Index>& numbers) {
  if (numbers.empty()) return renumbered;
  std::vector<T> result(renumbered.size());
  for (std::size_t k = 0; k < renumbered.size(); ++k) result[numbers[k]] = renumbered[k];
  return result;
}

}  // namespace spmv
