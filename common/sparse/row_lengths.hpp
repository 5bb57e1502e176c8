// Row lengths of matrices with a few long rows, from a few numbers.
#pragma once

#include <vector>

#include "sparse/specification.hpp"

namespace spmv {

// The lengths of `rows` rows, longest first, from the keys nnz (their sum, exactly), min_row,
// max_row, stddev (of all rows, as near as the others allow) and empty (percentage of empty rows).
// Throws InputError where they contradict each other.
std::vector<Index> descending_row_lengths(const Specification& spec, long long rows,
                                          long long cols);

}  // namespace spmv
