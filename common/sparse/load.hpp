// From what a user typed to a matrix: a file, a generator's specification, or a catalogue name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "sparse/matrix.hpp"
#include "sparse/memory.hpp"

namespace spmv {

// Where a matrix came from. Shown with every number that was measured on it.
struct MatrixSource {
  enum class Origin {
    kFile,       // read from a file
    kGenerated,  // exact: made by a generator that the user (or a paper) named
    kStandIn     // made by a generator in place of a catalogue matrix whose file is not here
  };
  std::string name;  // short: "G3_circuit", "stencil2d:1000x1000"
  Origin origin = Origin::kGenerated;
  std::string detail;  // the path, or the full specification of the generator with its seed
};

// "file", "generated", "stand-in".
const char* to_string(MatrixSource::Origin origin);

struct LoadOptions {
  // Of a complex file the real parts are read; false: it is refused.
  bool real_part = false;
  // Whether Matrix::coo is kept, for kernels that need the triplets (KernelInfo::needs_triplets).
  // Off, since it takes more memory than the CSR matrix that nearly everyone wants; to_coo(csr)
  // gives row-major triplets.
  bool keep_coo = false;
  // A matrix that would need more is refused before anything is allocated for it. 0:
  // default_memory_limit().
  std::size_t memory_limit_bytes = 0;

  std::size_t memory_limit() const {
    return memory_limit_bytes != 0 ? memory_limit_bytes : default_memory_limit();
  }
};

// A matrix as read: `csr` is sorted, duplicates summed. `coo`, empty unless LoadOptions::keep_coo,
// holds the triplets of a Matrix Market file in its order (expanded if the file stores one
// triangle).
template <typename T>
struct Matrix {
  Coo<T> coo;
  Csr<T> csr;
  MatrixSource source;
  // Counted in the file, where an entry and its mirror image are one:
  Index duplicates = 0;      // entries that were merged into others
  Index explicit_zeros = 0;  // stored entries whose value is zero
  Index non_finite = 0;      // stored entries that are NaN or infinite
};

// The triplets in the order of the file, where they were kept and none was merged into another;
// else row-major.
template <typename T>
Coo<T> triplets_of(const Matrix<T>& matrix);

// Where files of catalogue matrices are looked for, and where `make data` puts them: the
// environment variable SPMV_DATA, else data/ in the repository.
std::filesystem::path data_directory();

// Where the matrix that `spec` names comes from, and in `detail` the path or the generator's
// specification. Throws InputError when it names none.
MatrixSource find_matrix(const std::string& spec);

// `spec` is a path (.mtx, .mtx.gz, .npz), a generator ("stencil2d:1000x1000"), or a catalogue name
// ("scircuit": data/scircuit.mtx[.gz] if `make data` fetched it, else its stand-in; "rgg_2e20":
// data/rgg_2e20.npz, which `make data ARGS=large` makes).
// Throws InputError when it is none of these or cannot be read.
template <typename T>
Matrix<T> load_matrix(const std::string& spec, const LoadOptions& options = {});

}  // namespace spmv
