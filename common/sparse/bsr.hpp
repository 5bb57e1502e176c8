// Block CSR: dense square blocks, on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// Block row r owns blocks row_offsets[r] up to row_offsets[r + 1], their columns ascending; a block
// is stored row by row.
template <typename T>
struct Bsr {
  Index block = 1;
  std::vector<Index> row_offsets{0};  // block rows + 1
  std::vector<Index> column_indices;  // blocks
  std::vector<T> values;              // block x block per block
};

// How many of the block x block blocks into which `a` falls hold a nonzero.
template <typename T>
std::int64_t count_blocks(const Csr<T>& a, Index block);

// The size of block, 2 to 8, in which `a` takes the fewest bytes, the larger of two alike; 0 where
// none divides rows and columns and stores at most half as many zeros as there are nonzeros.
template <typename T>
Index best_block(const Csr<T>& a);

// `block` must divide rows and columns.
template <typename T>
Bsr<T> to_bsr(const Csr<T>& a, Index block);

}  // namespace spmv
