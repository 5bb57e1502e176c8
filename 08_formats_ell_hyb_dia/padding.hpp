// Step 08: the fill ratio of its formats, as text and as a limit.
#pragma once

#include <string>

#include "sparse/matrix.hpp"

namespace spmv {

// Throws Unsuitable if `stored` entries are more than `limit` for each nonzero. (In double
// precision: rows by width may be 2^62, whose bytes no integer holds.)
void check_padding(const std::string& format, double stored, Index nnz, double limit);

// Throws Unsuitable if the device has fewer than `bytes` bytes of memory left.
void check_memory(const std::string& format, double bytes);

// "padding 1.30x": entries stored for each nonzero. Nothing for a matrix without any.
std::string padding_text(double stored, Index nnz);

}  // namespace spmv
