#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"

namespace spmv {
namespace {

// The vertices 0 to n - 1 in random order.
std::vector<Index> random_numbers(Index n, std::uint64_t seed) {
  std::vector<Index> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  // A stream of its own: edges are drawn from those with numbers from 0 on.
  Rng rng(seed, ~std::uint64_t{0});
  for (Index left = n; left > 1; --left) std::swap(numbers[left - 1], numbers[rng.below(left)]);
  return numbers;
}

}  // namespace

// Recursive matrix (Chakrabarti, Zhan, Faloutsos, 2004) with the Graph500 probabilities: every
// edge falls into one of four quadrants with 0.57, 0.19, 0.19, 0.05, `scale` times over. Edges are
// drawn twice, once to count and once to place them, so that they need not be kept. With `permute`
// the vertices then get random numbers: a Kronecker graph as Graph500 defines it.
Pattern make_rmat(const Specification& spec) {
  const auto scale = static_cast<int>(spec.get("scale"));
  const bool symmetric = spec.get("symmetric") != 0;
  const long long n = 1ll << scale;
  const long long edges = spec.get("edge_factor") * n;
  const double placed = static_cast<double>(edges) * (symmetric ? 2 : 1);
  spec.check_size(static_cast<double>(n), static_cast<double>(n), placed);

  std::vector<Index> numbers;
  if (spec.get("permute", 0) == 1) numbers = random_numbers(static_cast<Index>(n), spec.seed());

  // From several threads at once.
  const long long first_row = spec.first_row(), end_row = spec.end_row(n);
  const auto for_each_entry = [&](const auto& visit) {
#pragma omp parallel for schedule(static) if (edges > 100000)
    for (long long edge = 0; edge < edges; ++edge) {
      Rng rng(spec.seed(), static_cast<std::uint64_t>(edge));
      std::uint64_t bits = 0;
      Index row = 0, column = 0;
      for (int level = 0; level < scale; ++level) {
        if (level % 4 == 0) bits = rng.bits64();
        const unsigned draw = bits & 0xFFFF;
        bits >>= 16;
        const bool down = draw >= 49807;                          // 0.76
        const bool right = down ? draw >= 62259 : draw >= 37355;  // 0.95, 0.57
        row = 2 * row + down;
        column = 2 * column + right;
      }
      if (!numbers.empty()) {
        row = numbers[row];
        column = numbers[column];
      }
      if (row >= first_row && row < end_row) visit(row - first_row, column);
      if (symmetric && row != column && column >= first_row && column < end_row) {
        visit(column - first_row, row);
      }
    }
  };

  Pattern pattern;
  pattern.rows = pattern.cols = static_cast<Index>(n);
  const long long rows = end_row - first_row;
  if (rows == 0) {
    pattern.row_offsets.assign(1, 0);
    return pattern;
  }
  std::vector<Index> next(rows + 1, 0);
  for_each_entry([&](long long row, Index) {
    std::atomic_ref(next[row + 1]).fetch_add(1, std::memory_order_relaxed);
  });
  spec.check_nonzeros(std::accumulate(next.begin(), next.end(), std::size_t{0}));
  std::partial_sum(next.begin(), next.end(), next.begin());
  pattern.column_indices.resize(next[rows]);
  for_each_entry([&](long long row, Index column) {
    const Index place = std::atomic_ref(next[row]).fetch_add(1, std::memory_order_relaxed);
    pattern.column_indices[place] = column;
  });

  // next[row] is now the end of `row`, whose columns are in any order, some twice.
  const auto begin_of = [&](long long row) {
    return pattern.column_indices.begin() + (row ? next[row - 1] : 0);
  };
  pattern.row_offsets.assign(rows + 1, 0);
#pragma omp parallel for schedule(dynamic, 1024) if (edges > 100000)
  for (long long row = 0; row < rows; ++row) {
    std::sort(begin_of(row), begin_of(row + 1));
    const auto end = std::unique(begin_of(row), begin_of(row + 1));
    pattern.row_offsets[row + 1] = static_cast<Index>(end - begin_of(row));
  }
  // Close the gaps.
  auto kept = pattern.column_indices.begin();
  for (long long row = 0; row < rows; ++row) {
    kept = std::copy(begin_of(row), begin_of(row) + pattern.row_offsets[row + 1], kept);
    pattern.row_offsets[row + 1] = static_cast<Index>(kept - pattern.column_indices.begin());
  }
  pattern.column_indices.resize(pattern.row_offsets[rows]);
  return pattern;
}

}  // namespace spmv
