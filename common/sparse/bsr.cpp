#include "sparse/bsr.hpp"

#include <algorithm>
#include <limits>

namespace spmv {
namespace {

// Calls visit(column) for each block of each block row, in the order in which their first nonzeros
// stand, and end_row() after a block row.
template <typename T, typename Visit, typename EndRow>
void for_each_block(const Csr<T>& a, Index block, const Visit& visit, const EndRow& end_row) {
  std::vector<Index> last_seen_in(static_cast<std::size_t>(a.cols / block), -1);  // block row
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      const Index column = a.column_indices[k] / block;
      if (last_seen_in[column] == row / block) continue;
      last_seen_in[column] = row / block;
      visit(column);
    }
    if ((row + 1) % block == 0) end_row();
  }
}

}  // namespace

template <typename T>
std::int64_t count_blocks(const Csr<T>& a, Index block) {
  std::int64_t count = 0;
  for_each_block(
      a, block, [&](Index) { ++count; }, [] {});
  return count;
}

template <typename T>
Index best_block(const Csr<T>& a) {
  Index best = 0;
  std::int64_t fewest_bytes = std::numeric_limits<std::int64_t>::max();
  for (Index block = 2; block <= 8; ++block) {
    if (a.rows % block || a.cols % block) continue;
    const std::int64_t blocks = count_blocks(a, block);
    const std::int64_t stored = blocks * block * block;
    if (stored > a.nnz() + std::int64_t{a.nnz()} / 2) continue;
    const std::int64_t bytes = stored * static_cast<std::int64_t>(sizeof(T)) +
                               (blocks + a.rows / block) * std::int64_t{sizeof(Index)};
    if (bytes > fewest_bytes) continue;
    fewest_bytes = bytes;
    best = block;
  }
  return best;
}

template <typename T>
Bsr<T> to_bsr(const Csr<T>& a, Index block) {
  Bsr<T> bsr;
  bsr.block = block;
  for_each_block(
      a, block, [&](Index column) { bsr.column_indices.push_back(column); },
      [&] {
        std::sort(bsr.column_indices.begin() + bsr.row_offsets.back(), bsr.column_indices.end());
        bsr.row_offsets.push_back(static_cast<Index>(bsr.column_indices.size()));
      });
  const auto side = static_cast<std::size_t>(block);
  bsr.values.assign(bsr.column_indices.size() * side * side, T{0});
  for (Index row = 0; row < a.rows; ++row) {
    auto at = static_cast<std::size_t>(bsr.row_offsets[row / block]);
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      const Index column = a.column_indices[k];
      while (bsr.column_indices[at] < column / block) ++at;
      bsr.values[(at * side + static_cast<std::size_t>(row % block)) * side +
                 static_cast<std::size_t>(column % block)] = a.values[k];
    }
  }
  return bsr;
}

template std::int64_t count_blocks(const Csr<float>&, Index);
template std::int64_t count_blocks(const Csr<double>&, Index);
template Index best_block(const Csr<float>&);
template Index best_block(const Csr<double>&);
template Bsr<float> to_bsr(const Csr<float>&, Index);
template Bsr<double> to_bsr(const Csr<double>&, Index);

}  // namespace spmv
