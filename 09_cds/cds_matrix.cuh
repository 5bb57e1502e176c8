// Column Diagonal Storage: how a CSR matrix is recognised and converted, and converted back.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cds.cuh"
#include "convert.cuh"
#include "device/csr.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "sparse/diagonals.hpp"

namespace spmv {

// Of a matrix whose sides are multiples of `block`: block column less block row of the blocks that
// have a nonzero, ascending.
struct BlockDiagonals {
  Index block = 1;
  std::vector<Index> offsets;

  std::uint64_t columns() const { return std::uint64_t{offsets.size()} * block; }
};

// How the columns lie in memory.
enum class CdsLayout {
  kColumns,  // one after the other, as in the paper; each begins at an aligned address
  kSlices    // kCdsThreads rows of each, then the next: what a block of threads reads is contiguous
};

template <typename T>
struct CdsMatrix {
  Index rows = 0;
  Index cols = 0;
  BlockDiagonals diagonals;
  std::size_t stride = 0;  // see cds_kernel
  std::size_t pitch = 0;
  device::Buffer<T> values;

  // k b n values and k offsets.
  std::uint64_t stored_bytes() const {
    return diagonals.columns() * static_cast<std::uint64_t>(rows) * sizeof(T) +
           diagonals.offsets.size() * sizeof(Index);
  }
  // Those that a product reads: it skips blocks outside of the matrix.
  std::uint64_t read_bytes() const {
    const auto& [block, offsets] = diagonals;
    const std::uint64_t blocks = places_within(rows / block, cols / block, offsets);
    return blocks * sizeof(T) * static_cast<std::uint64_t>(block) *
               static_cast<std::uint64_t>(block) +
           offsets.size() * sizeof(Index);
  }
};

inline constexpr int kConvertThreads = 256;

// One bit for each block diagonal that the matrix could have, set where it has a nonzero.
template <typename T>
std::vector<unsigned> mark_diagonals(const device::DeviceCsr<T>& a, Index block) {
  if (a.nnz == 0) return {};
  const auto block_rows = static_cast<unsigned>(a.rows / block);
  const unsigned possible = block_rows + static_cast<unsigned>(a.cols / block) - 1;
  device::Buffer<unsigned> marks("marks", device::divide_up(possible, 32u));
  device::check(cudaMemset(marks.data(), 0, marks.bytes()), "clearing the marks");
  device::launch(mark_diagonals_kernel,
                 {dim3(device::divide_up(a.rows, kConvertThreads / 32)), dim3(kConvertThreads)},
                 static_cast<unsigned>(a.rows), static_cast<unsigned>(block), block_rows,
                 a.row_offsets.data(), a.column_indices.data(), marks.data());
  return marks.download();
}

inline std::uint64_t count_bits(const std::vector<unsigned>& marks) {
  std::uint64_t count = 0;
  for (const unsigned word : marks) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

// The block diagonals in which `a` takes the fewest bytes; of several the largest blocks, up to
// `largest`. Throws Unsuitable where that is more than `limit` values for each nonzero. Beside the
// matrix it takes a bit for each row and column.
template <typename T>
BlockDiagonals find_block_diagonals(const device::DeviceCsr<T>& a, double limit,
                                    Index largest = std::numeric_limits<Index>::max()) {
  const auto check_limit = [&](const std::string& prefix, double columns) {
    const double stored = columns * a.rows;
    if (stored <= limit * a.nnz) return;
    const auto whole = [](double number) { return std::to_string(std::llround(number)); };
    throw Unsuitable("block diagonals would take " + prefix + whole(stored) + " values for " +
                     std::to_string(a.nnz) + " nonzeros; to store them all the same, give " +
                     "--padding-limit " + whole(std::ceil(stored / a.nnz)) +
                     (prefix.empty() ? "" : " or more"));
  };
  Index block = 1;
  std::vector<unsigned> marks = mark_diagonals(a, block);
  const std::uint64_t lines = count_bits(marks);  // diagonals, in the usual sense
  // A diagonal of b x b blocks covers 2 b - 1 of them and has b columns. So whatever b is, a column
  // is stored for every two.
  check_limit("at least ", static_cast<double>(lines) / 2);

  std::uint64_t columns = lines;
  const Index common = std::gcd(a.rows, a.cols);
  for (Index b = 2; b <= std::min(common, largest) && static_cast<std::uint64_t>(b) <= columns;
       ++b) {
    const auto wide = static_cast<std::uint64_t>(b);
    if (common % b != 0 || device::divide_up(lines, 2 * wide - 1) * wide > columns) continue;
    std::vector<unsigned> marks_of_b = mark_diagonals(a, b);
    const std::uint64_t columns_of_b = count_bits(marks_of_b) * wide;
    if (columns_of_b > columns) continue;
    columns = columns_of_b;
    block = b;
    marks = std::move(marks_of_b);
  }
  check_limit("", static_cast<double>(columns));

  BlockDiagonals found{block, {}};
  found.offsets.reserve(columns / static_cast<std::uint64_t>(block));
  for (std::size_t word = 0; word < marks.size(); ++word) {
    for (unsigned bits = marks[word]; bits != 0; bits &= bits - 1) {
      const auto diagonal = static_cast<std::int64_t>(32 * word) + std::countr_zero(bits);
      found.offsets.push_back(static_cast<Index>(diagonal - (a.rows / block - 1)));
    }
  }
  return found;
}

// Throws Unsuitable, before anything is allocated, if the device lacks the memory.
template <typename T>
CdsMatrix<T> to_cds(const device::DeviceCsr<T>& a, BlockDiagonals diagonals, CdsLayout layout) {
  const bool sliced = layout == CdsLayout::kSlices;
  const std::uint64_t columns = diagonals.columns();
  const std::uint64_t together = sliced ? kCdsThreads : 32;
  const std::uint64_t stored_rows =
      device::divide_up(static_cast<std::uint64_t>(a.rows), together) * together;
  std::size_t free_bytes = 0, all_bytes = 0;
  device::check(cudaMemGetInfo(&free_bytes, &all_bytes), "free memory");
  if (columns * stored_rows > free_bytes / sizeof(T)) {
    throw Unsuitable("its block diagonals would take " + std::to_string(columns * stored_rows) +
                     " values of " + std::to_string(sizeof(T)) + " bytes; the device has " +
                     std::to_string(free_bytes) + " bytes free");
  }

  CdsMatrix<T> cds;
  cds.rows = a.rows;
  cds.cols = a.cols;
  cds.diagonals = std::move(diagonals);
  cds.stride = sliced ? kCdsThreads : stored_rows;
  cds.pitch = sliced ? columns * kCdsThreads : kCdsThreads;
  cds.values = device::Buffer<T>("values", columns * stored_rows);
  if (cds.values.size() == 0) return cds;
  device::check(cudaMemset(cds.values.data(), 0, cds.values.bytes()), "clearing the values");
  const device::Buffer<Index> offsets("offsets", cds.diagonals.offsets);
  device::launch(scatter_values_kernel<T>,
                 {dim3(device::divide_up(a.rows, kConvertThreads / 32)), dim3(kConvertThreads)},
                 static_cast<unsigned>(a.rows), cds.diagonals.block,
                 static_cast<int>(offsets.size()), offsets.data(), a.row_offsets.data(),
                 a.column_indices.data(), a.values.data(), cds.stride, cds.pitch,
                 cds.values.data());
  device::check(cudaDeviceSynchronize(), "converting to CDS");
  return cds;
}

// All that is not zero: a nonzero that the matrix stored as zero does not come back.
template <typename T>
Csr<T> to_csr(const CdsMatrix<T>& cds) {
  const std::vector<T> values = cds.values.download();
  const auto& [block, offsets] = cds.diagonals;
  Csr<T> csr;
  csr.rows = cds.rows;
  csr.cols = cds.cols;
  for (Index row = 0; row < cds.rows; ++row) {
    const std::size_t first = row / kCdsThreads * cds.pitch + row % kCdsThreads;
    for (std::size_t d = 0; d < offsets.size(); ++d) {
      for (Index c = 0; c < block; ++c) {
        const T value = values[first + (d * block + c) * cds.stride];
        if (value == T{0}) continue;
        csr.column_indices.push_back((row / block + offsets[d]) * block + c);
        csr.values.push_back(value);
      }
    }
    csr.row_offsets.push_back(csr.nnz());
  }
  return csr;
}

}  // namespace spmv
