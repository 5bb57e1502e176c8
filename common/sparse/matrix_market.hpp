// Matrix Market files.
#pragma once

#include <filesystem>
#include <vector>

#include "sparse/load.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

// Reads `path` (.mtx, or gzip whatever its name): the triplets in the order of the file. Symmetric,
// skew-symmetric and Hermitian files are expanded, each mirrored entry after the one it mirrors;
// pattern entries become 1; zeros and duplicates are kept; an array file is refused. Values are
// rounded once, from their decimal digits to T; those too large for T become infinite.
//
// Of the rows [first, end) alone, row `first` being 0 in what is returned, unless `end` is -1: then
// the file is gone through from its beginning to its end, too, and no more is kept than these rows.
// lengths, if not null: how many entries each row of the file has, mirrored ones included.
//
// Throws InputError for the first fault in the file: "FILE:LINE: what is wrong; what to do".
template <typename T>
Coo<T> read_matrix_market(const std::filesystem::path& path, const LoadOptions& options = {},
                          Index first = 0, Index end = -1, std::vector<Index>* lengths = nullptr);

}  // namespace spmv
