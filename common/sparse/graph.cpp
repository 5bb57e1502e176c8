// Graphs, circuits and linear programs: rows of all lengths that copy from each other.
//
// Neighbouring rows form a group (pages of a host, authors of a field, gates of a block). A group
// has a list of columns, its prototype; a row takes part of its columns from the list's beginning,
// as in a copying model (Kumar et al., "Stochastic models for the web graph", 2000), and draws the
// others itself. All are drawn in runs of neighbouring columns, which begin near the diagonal or
// anywhere, then with popular columns more often. Rows are functions of the seed and their number.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/row_lengths.hpp"

namespace spmv {
namespace {

// Gives the lengths, longest first, to rows, so that rows of a group are `alike` percent alike.
std::vector<Index> placed(const std::vector<Index>& descending, std::uint64_t seed, long long group,
                          long long alike) {
  constexpr std::size_t kKeys = 1 << 16;
  const std::size_t rows = descending.size();
  const auto key_of = [&](std::size_t row) {
    const auto of_group =
        Rng(seed ^ 0x67726F7570ull, row / static_cast<std::size_t>(group)).bits64();
    const auto own = Rng(seed ^ 0x726F77ull, row).bits64();
    const auto weight = static_cast<std::uint64_t>(alike);
    return static_cast<std::size_t>(((of_group >> 48) * weight + (own >> 48) * (100 - weight)) /
                                    100);
  };
  std::vector<std::size_t> next(kKeys + 1, 0);
  for (std::size_t row = 0; row < rows; ++row) ++next[key_of(row) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Index> lengths(rows);
  for (std::size_t row = 0; row < rows; ++row) lengths[row] = descending[next[key_of(row)]++];
  return lengths;
}

// Draws runs of columns.
class Columns {
 public:
  Columns(const Specification& spec, long long rows, long long cols)
      : rows_(rows),
        cols_(cols),
        local_(spec.get("local")),
        reach_(std::max(spec.get("reach"), 1ll)),
        run_(spec.get("run")),
        skew_(spec.get("column_skew")) {}

  // Appends up to `count` columns to `out`.
  void draw(Rng& rng, long long row, long long count, std::vector<Index>& out) const {
    while (count > 0) {
      const long long length = std::min(run_length(rng), count);
      const long long first =
          std::clamp(begin_of_run(rng, row), 0ll, std::max(cols_ - length, 0ll));
      for (long long k = 0; k < length; ++k) out.push_back(static_cast<Index>(first + k));
      count -= length;
    }
  }

 private:
  // Geometric, with mean run / 100.
  long long run_length(Rng& rng) const {
    long long length = 1;
    while (length < 4096 &&
           static_cast<long long>(rng.below(static_cast<std::uint64_t>(run_))) >= 100)
      ++length;
    return length;
  }

  long long begin_of_run(Rng& rng, long long row) const {
    if (static_cast<long long>(rng.below(100)) < local_) {
      // Every distance's logarithm is as likely.
      const long long centre = row * cols_ / rows_;
      const auto bits = static_cast<int>(rng.below(
          static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(reach_)))));
      const auto distance = static_cast<long long>((1ull << bits) + rng.below(1ull << bits)) - 1;
      return rng.below(2) ? centre + distance : centre - distance;
    }
    return popular_column(rng, cols_, skew_);
  }

  long long rows_, cols_, local_, reach_, run_, skew_;
};

}  // namespace

Pattern make_graph(const Specification& spec) {
  const long long rows = spec.size(0), cols = spec.size(1);
  const long long group = spec.get("group");
  const long long copy = spec.get("copy");
  const bool diagonal = spec.get("diagonal") != 0;
  const std::vector<Index>& lengths = spec.once([&] {
    return placed(descending_row_lengths(spec, rows, cols), spec.seed(), group, spec.get("alike"));
  });
  PatternBuilder builder(spec, rows, cols,
                         static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), 0ll)));
  if (builder.begin() == builder.end()) return builder.take();

  const Columns drawn(spec, rows, cols);
  std::vector<Index> prototype, columns;
  long long prototype_of = -1;
  for (long long row = builder.begin(); row < builder.end(); ++row) {
    const long long length = lengths[row];
    if (row / group != prototype_of) {
      prototype_of = row / group;
      prototype.clear();
      const long long begin = prototype_of * group, end = std::min(begin + group, rows);
      const Index longest = *std::max_element(lengths.begin() + begin, lengths.begin() + end);
      Rng rng(spec.seed(), ~static_cast<std::uint64_t>(prototype_of));
      drawn.draw(rng, (begin + end) / 2, longest, prototype);
      std::sort(prototype.begin(), prototype.end());
      prototype.erase(std::unique(prototype.begin(), prototype.end()), prototype.end());
    }
    Rng rng(spec.seed(), static_cast<std::uint64_t>(row));
    columns.clear();
    if (diagonal && length > 0) columns.push_back(static_cast<Index>(row * cols / rows));
    // Some rows copy all they can, the others half; always the beginning of the list.
    const bool copies_all = static_cast<long long>(rng.below(100)) < copy;
    const auto copied = static_cast<std::size_t>(copies_all ? length : length * copy / 200);
    for (std::size_t k = 0; columns.size() < copied && k < prototype.size(); ++k) {
      columns.push_back(prototype[k]);
    }
    drawn.draw(rng, row, length - static_cast<long long>(columns.size()), columns);
    sort_and_separate(columns, cols);
    builder.add_row(columns);
  }
  return builder.take();
}

}  // namespace spmv
