// What generators build a pattern with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sparse/rng.hpp"
#include "sparse/specification.hpp"

namespace spmv {

// Collects a pattern row by row, columns ascending. Where the specification asks for some rows
// only, the others are dropped as they end; a generator that can begin in the middle goes through
//
//   for (long long row = builder.begin(); row < builder.end(); ++row)
class PatternBuilder {
 public:
  PatternBuilder(const Specification& spec, long long rows, long long cols, double expected_nnz)
      : spec_(spec), first_(spec.first_row()), end_(spec.end_row(rows)) {
    spec.check_size(static_cast<double>(rows), static_cast<double>(cols), expected_nnz);
    pattern_.rows = static_cast<Index>(rows);
    pattern_.cols = static_cast<Index>(cols);
    pattern_.row_offsets.reserve(static_cast<std::size_t>(end_ - first_) + 1);
    pattern_.row_offsets.push_back(0);
    if (rows > 0) {
      expected_nnz *= static_cast<double>(end_ - first_) / static_cast<double>(rows);
      pattern_.column_indices.reserve(static_cast<std::size_t>(expected_nnz));
    }
  }

  // The first block of `rows` rows that is wanted, and the end of those that are. What is added
  // after begin() is that block's.
  long long begin(long long rows = 1) {
    row_ = first_ / rows * rows;
    return first_ / rows;
  }
  long long end(long long rows = 1) const { return (end_ + rows - 1) / rows; }

  void add(long long column) { pattern_.column_indices.push_back(static_cast<Index>(column)); }
  void add_run(long long first, long long count) {
    for (long long k = 0; k < count; ++k) add(first + k);
  }
  void end_row() {
    const bool is_wanted = row_ >= first_ && row_ < end_;
    ++row_;
    if (!is_wanted) {
      pattern_.column_indices.resize(static_cast<std::size_t>(pattern_.row_offsets.back()));
      return;
    }
    spec_.check_nonzeros(pattern_.column_indices.size());
    pattern_.row_offsets.push_back(static_cast<Index>(pattern_.column_indices.size()));
  }
  void add_row(const std::vector<Index>& columns) {
    for (const Index column : columns) add(column);
    end_row();
  }
  // Ends the row that was just added and adds it `copies` - 1 times more: the rows of a block.
  void end_block_row(long long copies) {
    block_row_.assign(pattern_.column_indices.begin() + pattern_.row_offsets.back(),
                      pattern_.column_indices.end());
    end_row();
    for (long long copy = 1; copy < copies; ++copy) {
      pattern_.column_indices.insert(pattern_.column_indices.end(), block_row_.begin(),
                                     block_row_.end());
      end_row();
    }
  }
  Pattern take() { return std::move(pattern_); }

 private:
  const Specification& spec_;
  long long first_, end_;  // the rows that are wanted
  long long row_ = 0;      // that is being added
  Pattern pattern_;
  std::vector<Index> block_row_;
};

// A column drawn from [0, cols), some more often than others: u^skew is dense near 0, which makes
// the first ones hot; multiplying by a prime larger than any index moves the hot ones to all over
// the matrix.
inline long long popular_column(Rng& rng, long long cols, long long skew) {
  const std::uint64_t u = rng.bits32();
  std::uint64_t power = u;
  for (long long k = 1; k < skew; ++k) power = (power * u) >> 32;
  const std::uint64_t hot = (power * static_cast<std::uint64_t>(cols)) >> 32;
  return static_cast<long long>(hot * 2654435761ull % static_cast<std::uint64_t>(cols));
}

// Sorts drawn columns and makes them distinct: one that is taken moves on to the next free column,
// and those pushed past `end` fill up the free ones before it. Every value that was drawn stays in
// the set. There must be room.
inline void sort_and_separate(std::vector<Index>& columns, long long end) {
  std::sort(columns.begin(), columns.end());
  for (std::size_t k = 1; k < columns.size(); ++k) {
    const Index before = columns[k - 1];
    columns[k] = std::max(columns[k], before < end ? before + 1 : before);
  }
  auto limit = static_cast<Index>(end);
  for (auto column = columns.rbegin(); column != columns.rend() && *column >= limit; ++column) {
    *column = --limit;
  }
}

}  // namespace spmv
