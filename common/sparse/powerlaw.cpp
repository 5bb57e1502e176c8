#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/row_lengths.hpp"

namespace spmv {

Pattern make_powerlaw(const Specification& spec) {
  const long long rows = spec.size(0), cols = spec.size(1);
  const long long local = spec.get("local");
  const long long column_skew = spec.get("column_skew");
  const bool diagonal = spec.get("diagonal") != 0;
  const std::vector<Index>& lengths = spec.once([&] {
    std::vector<Index> drawn = descending_row_lengths(spec, rows, cols);
    Rng shuffle(spec.seed(), ~0ull);
    for (long long k = rows - 1; k > 0; --k) std::swap(drawn[k], drawn[shuffle.below(k + 1)]);
    return drawn;
  });
  const long long nnz = std::accumulate(lengths.begin(), lengths.end(), 0ll);
  PatternBuilder builder(spec, rows, cols, static_cast<double>(nnz));

  std::vector<Index> columns;
  for (long long row = builder.begin(); row < builder.end(); ++row) {
    Rng rng(spec.seed(), row);
    const long long length = lengths[row];
    const long long centre = row * cols / rows;
    const long long reach = std::max(spec.get("bandwidth"), length);
    const long long begin = std::max(centre - reach, 0ll);
    const long long window = std::min(centre + reach + 1, cols) - begin;
    columns.resize(length);
    for (Index& column : columns) {
      if (static_cast<long long>(rng.below(100)) < local) {
        column = static_cast<Index>(begin + static_cast<long long>(rng.below(window)));
      } else {
        column = static_cast<Index>(popular_column(rng, cols, column_skew));
      }
    }
    if (diagonal && length > 0) columns[0] = static_cast<Index>(centre);
    sort_and_separate(columns, cols);
    builder.add_row(columns);
  }
  return builder.take();
}

}  // namespace spmv
