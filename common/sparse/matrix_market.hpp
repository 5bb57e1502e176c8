// Matrix Market files: reader and writer.
#pragma once

#include <filesystem>
#include <string>

#include "sparse/load.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

// What a file said of itself.
struct MatrixMarketHeader {
  std::string format;    // coordinate | array
  std::string field;     // real | integer | pattern | complex
  std::string symmetry;  // general | symmetric | skew-symmetric | hermitian
  Index rows = 0;
  Index cols = 0;
  long long stored_entries = 0;
};

template <typename T>
struct MatrixMarketFile {
  MatrixMarketHeader header;
  Coo<T> coo;  // in the order of the file; a mirrored entry follows the one it mirrors
};

// Reads `path` (.mtx, or gzip whatever its name). Symmetric, skew-symmetric and Hermitian files
// are expanded; pattern entries become 1. Throws InputError: "FILE:LINE: what is wrong; what to
// do".
template <typename T>
MatrixMarketFile<T> read_matrix_market(const std::filesystem::path& path,
                                       const LoadOptions& options = {});

// Writes coordinate real general, 1-based, with enough digits that reading gives the same bits.
// Writes beside `path` and renames, so that a failure leaves no partial file. A name that ends in
// .gz is compressed. Throws std::runtime_error when the file cannot be written.
template <typename T>
void write_matrix_market(const std::filesystem::path& path, const Coo<T>& coo,
                         const std::string& comment = {});

}  // namespace spmv
