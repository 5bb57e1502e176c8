// Matrices that SciPy saved: scipy.sparse.save_npz(file, A.tocsr()). Large matrices are read
// several times as fast from such a file as from a Matrix Market file, since nothing is parsed.
#pragma once

#include <filesystem>

#include "sparse/load.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

// Whether a file of that name is read by read_npz().
bool is_npz(const std::filesystem::path& path);

// The matrix in `path`, an .npz archive, compressed or not, of the arrays "format" (csr), "shape",
// "indptr", "indices" and "data": indices of 32 or 64 bits, values of any type but objects and half
// precision, rounded once to T; those too large for T become infinite. Rows may be unsorted, and a
// column may stand several times in one: they are sorted and summed in the order of the file, and
// `duplicates`, if given, receives how many were merged away.
//
// Throws InputError "FILE: what is wrong; what to do" unless the archive and its arrays are whole
// (CRC-32, lengths), offsets ascend from 0 to the number of nonzeros, and columns are within the
// matrix.
template <typename T>
Csr<T> read_npz(const std::filesystem::path& path, const LoadOptions& options = {},
                Index* duplicates = nullptr);

}  // namespace spmv
