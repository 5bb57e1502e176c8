// What generators build a pattern with.
#pragma once

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "sparse/specification.hpp"
#include "sparse/text.hpp"

namespace spmv {

// Collects a pattern row by row, columns ascending.
class PatternBuilder {
 public:
  PatternBuilder(const Specification& spec, long long rows, long long cols, double expected_nnz)
      : spec_(spec) {
    spec.check_size(static_cast<double>(rows), static_cast<double>(cols), expected_nnz);
    pattern_.rows = static_cast<Index>(rows);
    pattern_.cols = static_cast<Index>(cols);
    pattern_.row_offsets.reserve(static_cast<std::size_t>(rows) + 1);
    pattern_.row_offsets.push_back(0);
    pattern_.column_indices.reserve(static_cast<std::size_t>(expected_nnz));
  }

  void add(long long column) { pattern_.column_indices.push_back(static_cast<Index>(column)); }
  void add_run(long long first, long long count) {
    for (long long k = 0; k < count; ++k) add(first + k);
  }
  void end_row() {
    if (pattern_.column_indices.size() > static_cast<std::size_t>(kMaxNonzeros)) {
      spec_.fail(fmt::format("has more than {} nonzeros, which 32-bit indices do not allow",
                             with_commas(kMaxNonzeros)));
    }
    pattern_.row_offsets.push_back(static_cast<Index>(pattern_.column_indices.size()));
  }
  // Ends the row that was just added and adds it `copies` - 1 times more: the rows of a block.
  void end_block_row(long long copies) {
    const auto begin = static_cast<std::size_t>(pattern_.row_offsets.back());
    const std::size_t length = pattern_.column_indices.size() - begin;
    end_row();
    for (long long copy = 1; copy < copies; ++copy) {
      for (std::size_t k = 0; k < length; ++k) add(pattern_.column_indices[begin + k]);
      end_row();
    }
  }
  Pattern take() { return std::move(pattern_); }

 private:
  const Specification& spec_;
  Pattern pattern_;
};

}  // namespace spmv
