// Matrix Market files: reader and writer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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
// are expanded; pattern entries become 1; zeros and duplicates are kept; an array file gives an
// entry for each of its positions. Values are rounded once, from their decimal digits to T; those
// too large for T become infinite.
//
// Throws InputError: "FILE:LINE: what is wrong; what to do". The first fault in the file is
// reported, whatever the number of threads.
template <typename T>
MatrixMarketFile<T> read_matrix_market(const std::filesystem::path& path,
                                       const LoadOptions& options = {});

// The same for a file whose bytes (gzip or not) are in memory; `name` stands for FILE in errors.
template <typename T>
MatrixMarketFile<T> parse_matrix_market(std::string_view content, const std::string& name,
                                        const LoadOptions& options = {});

// The rows [first, end) of a file, row `first` being 0 in what is returned; otherwise as
// read_matrix_market() would have them. The file is gone through from its beginning to its end, a
// few megabytes at a time, and no more is kept than these rows. lengths, if not null: how many
// entries each row of the file has, mirrored ones included.
template <typename T>
Coo<T> read_matrix_market_rows(const std::filesystem::path& path, Index first, Index end,
                               const LoadOptions& options = {},
                               std::vector<Index>* lengths = nullptr);

// Writes coordinate real general, 1-based, with enough digits that reading gives the same bits
// (of a NaN, only the sign). `comment` may have several lines. Writes beside `path` and renames,
// so that a failure leaves no partial file. A name that ends in .gz is compressed. Throws
// std::runtime_error when the file cannot be written.
template <typename T>
void write_matrix_market(const std::filesystem::path& path, const Coo<T>& coo,
                         const std::string& comment = {});

extern template MatrixMarketFile<float> read_matrix_market(const std::filesystem::path&,
                                                           const LoadOptions&);
extern template MatrixMarketFile<double> read_matrix_market(const std::filesystem::path&,
                                                            const LoadOptions&);
extern template MatrixMarketFile<float> parse_matrix_market(std::string_view, const std::string&,
                                                            const LoadOptions&);
extern template MatrixMarketFile<double> parse_matrix_market(std::string_view, const std::string&,
                                                             const LoadOptions&);
extern template Coo<float> read_matrix_market_rows(const std::filesystem::path&, Index, Index,
                                                   const LoadOptions&, std::vector<Index>*);
extern template Coo<double> read_matrix_market_rows(const std::filesystem::path&, Index, Index,
                                                    const LoadOptions&, std::vector<Index>*);
extern template void write_matrix_market(const std::filesystem::path&, const Coo<float>&,
                                         const std::string&);
extern template void write_matrix_market(const std::filesystem::path&, const Coo<double>&,
                                         const std::string&);

}  // namespace spmv
