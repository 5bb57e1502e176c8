#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"

namespace spmv {

Pattern make_dense(const Specification& spec) {
  const long long rows = spec.size(0), cols = spec.size(1);
  PatternBuilder builder(spec, rows, cols, static_cast<double>(rows) * static_cast<double>(cols));
  for (long long row = builder.begin(); row < builder.end(); ++row) {
    builder.add_run(0, cols);
    builder.end_row();
  }
  return builder.take();
}

Pattern make_diagonal(const Specification& spec) {
  const long long n = spec.size(0);
  PatternBuilder builder(spec, n, n, static_cast<double>(n));
  for (long long row = builder.begin(); row < builder.end(); ++row) {
    builder.add(row);
    builder.end_row();
  }
  return builder.take();
}

Pattern make_random(const Specification& spec) {
  const long long rows = spec.size(0), cols = spec.size(1);
  const long long length = spec.get("nnz_per_row", std::min(16ll, cols));
  if (length > cols)
    spec.fail(fmt::format("nnz_per_row = {} does not fit in {} columns", length, cols));
  PatternBuilder builder(spec, rows, cols, static_cast<double>(rows) * static_cast<double>(length));
  std::vector<Index> columns(length);
  for (long long row = builder.begin(); row < builder.end(); ++row) {
    Rng rng(spec.seed(), row);
    for (Index& column : columns) column = static_cast<Index>(rng.below(cols));
    sort_and_separate(columns, cols);
    builder.add_row(columns);
  }
  return builder.take();
}

Pattern make_banded(const Specification& spec) {
  const long long n = spec.size(0);
  const long long bandwidth = std::min(spec.get("bandwidth"), std::max(n - 1, 0ll));
  const long long length = spec.get("nnz_per_row", 2 * bandwidth + 1);
  PatternBuilder builder(
      spec, n, n,
      static_cast<double>(n) * static_cast<double>(std::min(length, 2 * bandwidth + 1)));
  std::vector<Index> columns;
  for (long long row = builder.begin(); row < builder.end(); ++row) {
    const long long begin = std::max(row - bandwidth, 0ll);
    const long long end = std::min(row + bandwidth + 1, n);
    if (length >= end - begin) {
      builder.add_run(begin, end - begin);
      builder.end_row();
      continue;
    }
    Rng rng(spec.seed(), row);
    columns.assign(length, static_cast<Index>(row));  // the first stays on the diagonal
    for (std::size_t k = 1; k < columns.size(); ++k) {
      columns[k] = static_cast<Index>(begin + static_cast<long long>(rng.below(end - begin)));
    }
    sort_and_separate(columns, end);
    builder.add_row(columns);
  }
  return builder.take();
}

}  // namespace spmv
