#include "sparse/load.hpp"

#include <strings.h>

#include <cmath>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "sparse/catalogue.hpp"
#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/matrix_market.hpp"
#include "sparse/npz.hpp"
#include "sparse/text.hpp"

#ifndef SPMV_SOURCE_DIR
#define SPMV_SOURCE_DIR "."
#endif

namespace spmv {
namespace {

namespace fs = std::filesystem;

bool looks_like_a_path(const std::string& spec) {
  return spec.find('/') != std::string::npos || spec.ends_with(".mtx") || spec.ends_with(".gz") ||
         is_npz(spec);
}

// Where `entry`'s file may stand, in the order in which it is looked for.
std::vector<fs::path> candidate_files(const CatalogueEntry& entry) {
  const fs::path base = data_directory();
  std::vector<fs::path> files;
  for (const std::string& stem : {entry.name, entry.collection_name}) {
    for (const char* suffix : {".mtx", ".mtx.gz", ".npz"}) {
      files.push_back(base / (stem + suffix));
      files.push_back(base / stem / (stem + suffix));
    }
  }
  return files;
}

}  // namespace

const char* to_string(MatrixSource::Origin origin) {
  if (origin == MatrixSource::Origin::kFile) return "file";
  return origin == MatrixSource::Origin::kGenerated ? "generated" : "stand-in";
}

fs::path data_directory() {
  const char* chosen = std::getenv("SPMV_DATA");
  return chosen && *chosen ? fs::path(chosen) : fs::path(SPMV_SOURCE_DIR) / "data";
}

MatrixSource find_matrix(const std::string& spec) {
  using Origin = MatrixSource::Origin;
  if (spec.empty())
    throw InputError("no matrix given; name a file, a generator or a matrix of the papers");
  if (is_generator(spec)) return {spec, Origin::kGenerated, full_specification(spec)};
  const CatalogueEntry* entry = find_in_catalogue(spec);
  std::error_code not_a_file;
  if (!entry && (looks_like_a_path(spec) || fs::is_regular_file(spec, not_a_file))) {
    fs::path stem = fs::path(spec).filename();
    if (is_npz(stem)) stem = stem.stem();
    while (stem.extension() == ".gz" || stem.extension() == ".mtx") stem = stem.stem();
    return {stem.string(), Origin::kFile, spec};
  }
  if (!entry && spec.find(':') != std::string::npos) {
    full_specification(spec);  // throws, and says which generators there are
  }
  if (!entry) {
    std::string near;  // names that begin alike, in either case
    for (const CatalogueEntry& known : catalogue()) {
      if (::strncasecmp(known.name.c_str(), spec.c_str(), 3) == 0) {
        near += (near.empty() ? "; did you mean " : " or ") + known.name;
      }
    }
    throw InputError(printable(spec, 200) +
                     ": neither a file, nor a generator such as stencil2d:100x100, nor a " +
                     "matrix of the papers" + near + (near.empty() ? "" : "?"));
  }
  for (const fs::path& file : candidate_files(*entry)) {
    if (fs::is_regular_file(file)) return {entry->name, Origin::kFile, file.string()};
  }
  if (entry->is_made_by_scipy()) {
    throw InputError(entry->name + ": not made yet; `make data ARGS=large` makes it, with SciPy");
  }
  return {entry->name, entry->in_collection() ? Origin::kStandIn : Origin::kGenerated,
          entry->source};
}

// What was merged, and is zero or not finite, of the entries that the file stores: of a file of one
// triangle those outside of the diagonal stand twice in `matrix`.
template <typename T>
void count_entries(Matrix<T>& matrix) {
  const Coo<T>& coo = matrix.coo;
  const Csr<T>& csr = matrix.csr;
  Index merged[2] = {}, zeros[2] = {}, non_finite[2] = {};  // outside of the diagonal, and on it
  for (Index k = 0; k < coo.nnz(); ++k) {
    const bool on_diagonal = coo.row_indices[k] == coo.column_indices[k];
    ++merged[on_diagonal];
    zeros[on_diagonal] += coo.values[k] == T{0};
    non_finite[on_diagonal] += !std::isfinite(coo.values[k]);
  }
  for (Index row = 0; row < csr.rows; ++row) {
    for (Index k = csr.row_offsets[row]; k < csr.row_offsets[row + 1]; ++k) {
      --merged[csr.column_indices[k] == row];
    }
  }
  const Index copies = coo.is_expanded ? 2 : 1;
  matrix.duplicates = merged[0] / copies + merged[1];
  matrix.explicit_zeros = zeros[0] / copies + zeros[1];
  matrix.non_finite = non_finite[0] / copies + non_finite[1];
}

template <typename T>
Matrix<T> load_matrix(const std::string& spec, const LoadOptions& options) {
  Matrix<T> matrix;
  matrix.source = find_matrix(spec);
  if (matrix.source.origin != MatrixSource::Origin::kFile) {
    matrix.csr = generate<T>(matrix.source.detail, options.memory_limit());
    return matrix;
  }
  if (is_npz(matrix.source.detail)) {
    matrix.csr = read_npz<T>(matrix.source.detail, options, &matrix.duplicates);
    for (const T value : matrix.csr.values) {
      matrix.explicit_zeros += value == T{0};
      matrix.non_finite += !std::isfinite(value);
    }
  } else {
    matrix.coo = read_matrix_market<T>(matrix.source.detail, options);
    matrix.csr = to_csr(matrix.coo);
    count_entries(matrix);
  }
  if (!options.keep_coo) matrix.coo = {};
  return matrix;
}

template Matrix<float> load_matrix(const std::string&, const LoadOptions&);
template Matrix<double> load_matrix(const std::string&, const LoadOptions&);

}  // namespace spmv
