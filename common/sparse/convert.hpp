// COO <-> CSR on the host.
#pragma once

#include "sparse/matrix.hpp"

namespace spmv {

// Sorts by counting, first by column and then by row (two stable passes, O(nnz + rows + cols), no
// comparisons), so columns ascend within a row. Entries at the same position are summed in the
// order in which they stand in `coo`; `duplicates`, if given, receives how many were merged away.
// Entries whose value is zero are kept.
template <typename T>
Csr<T> to_csr(const Coo<T>& coo, Index* duplicates = nullptr);

// Adds up the values of a column that stands several times, one after the other, in a row of `csr`.
// Returns how many entries were merged away.
template <typename T>
Index sum_repeated_columns(Csr<T>& csr);

// Row-major triplets of `csr`.
template <typename T>
Coo<T> to_coo(const Csr<T>& csr);

}  // namespace spmv
