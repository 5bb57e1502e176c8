#include "sparse/generators.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sparse/convert.hpp"
#include "sparse/grid.hpp"
#include "sparse/memory.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"
#include "sparse/specification.hpp"
#include "sparse/text.hpp"
#include "sparse/wlan.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace spmv {
namespace {

// Sorts drawn columns and makes them distinct: one that is taken moves on to the next free column,
// and those pushed past `end` fill up the free ones before it. Every value that was drawn stays in
// the set. There must be room.
void sort_and_separate(std::vector<Index>& columns, long long end) {
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

// ---- other grids ----------------------------------------------------------------------------

// The Wilson fermion matrix of lattice QCD without its diagonal: 4 spins x 3 colours at every site
// of a periodic grid. A step along x or y couples spins {0,3} and {1,2}, along z {0,2} and {1,3};
// in time spins 0 and 1 couple backwards and 2 and 3 forwards. 39 nonzeros in every row. These are
// the positions in the collection's QCD/conf5_* files.
Pattern make_lattice(const Specification& spec) {
  constexpr long long kSpins = 4, kColours = 3, kSite = kSpins * kColours;
  const std::array<long long, 4> extent{spec.size(0), spec.size(1), spec.size(2), spec.size(3)};
  double rows = kSite;
  for (const long long n : extent) rows *= static_cast<double>(n);
  spec.check_size(rows, rows, rows * 39);
  const auto row_count = static_cast<long long>(rows);
  PatternBuilder builder(spec, row_count, row_count, rows * 39);

  std::vector<Index> columns;
  std::array<long long, 4> at{};
  for (long long site = builder.begin(kSite); site < builder.end(kSite); ++site) {
    long long remainder = site;
    for (int axis = 0; axis < 4; ++axis) {
      at[axis] = remainder % extent[axis];
      remainder /= extent[axis];
    }
    for (long long spin = 0; spin < kSpins; ++spin) {
      columns.clear();
      const auto couple = [&](int axis, long long step, long long other_spin) {
        long long stride = kSite;
        for (int a = 0; a < axis; ++a) stride *= extent[a];
        const long long moved = (at[axis] + step + extent[axis]) % extent[axis];
        const long long first = site * kSite + (moved - at[axis]) * stride + other_spin * kColours;
        for (long long colour = 0; colour < kColours; ++colour)
          columns.push_back(static_cast<Index>(first + colour));
      };
      for (const long long step : {-1, 1}) {
        for (int axis = 0; axis < 3; ++axis) {
          const long long partner = axis < 2 ? 3 - spin : (spin + 2) % 4;
          couple(axis, step, spin);
          couple(axis, step, partner);
        }
      }
      couple(3, spin < 2 ? -1 : 1, spin);
      std::sort(columns.begin(), columns.end());
      columns.erase(std::unique(columns.begin(), columns.end()), columns.end());  // extents below 3
      for (const Index column : columns) builder.add(column);
      builder.end_block_row(kColours);
    }
  }
  return builder.take();
}

// States (x, y) with x + y < side; each stays, or moves to (x, y - 1), (x - 1, y + 1), (x + 1, y).
Pattern make_triangle(const Specification& spec) {
  const long long side = spec.size(0);
  const double exact = static_cast<double>(side) * (static_cast<double>(side) + 1) / 2;
  spec.check_size(exact, exact, 4 * exact);
  const long long states = side * (side + 1) / 2;
  PatternBuilder builder(spec, states, states, static_cast<double>(4 * states - 3 * side));
  const auto state = [side](long long x, long long y) { return x * (2 * side - x + 1) / 2 + y; };
  for (long long x = 0; x < side; ++x) {
    for (long long y = 0; x + y < side; ++y) {
      if (x > 0) builder.add(state(x - 1, y + 1));
      if (y > 0) builder.add(state(x, y - 1));
      builder.add(state(x, y));
      if (x + y + 1 < side) builder.add(state(x + 1, y));
      builder.end_row();
    }
  }
  return builder.take();
}

// ---- simple shapes --------------------------------------------------------------------------

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
    for (const Index column : columns) builder.add(column);
    builder.end_row();
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
    } else {
      Rng rng(spec.seed(), row);
      columns.assign(length, static_cast<Index>(row));  // the first stays on the diagonal
      for (std::size_t k = 1; k < columns.size(); ++k) {
        columns[k] = static_cast<Index>(begin + static_cast<long long>(rng.below(end - begin)));
      }
      sort_and_separate(columns, end);
      for (const Index column : columns) builder.add(column);
    }
    builder.end_row();
  }
  return builder.take();
}

// ---- skewed rows and columns ----------------------------------------------------------------

// x^(sixteenths / 16) for x in [0, 1]. Products and square roots are rounded alike by everything
// that follows IEEE 754, which cannot be said of pow().
double power_of_sixteenths(double x, int sixteenths) {
  double power = 1;
  for (int k = 0; k < sixteenths / 16; ++k) power *= x;
  double root = x;
  for (int bit = 8; bit > 0; bit /= 2) {
    root = std::sqrt(root);
    if (sixteenths & bit) power *= root;
  }
  return power;
}

// Lengths between `low` and `high` that fall with the rank r as
//   low + (high - low) * (c / (c + r))^exponent.
// c makes their sum come out, the exponent their spread: a small one gives a few long rows above
// many that are nearly equal, a large one rows of all lengths.
class LengthCurve {
 public:
  LengthCurve(long long count, long long total, long long low, long long high)
      : count_(count),
        excess_(total - count * low),
        low_(low),
        range_(static_cast<double>(std::min(high - low, excess_)) * 65536) {}

  // Chooses c for `exponent`, in sixteenths.
  void fit_sum(int exponent) {
    exponent_ = exponent;
    const std::uint64_t target = static_cast<std::uint64_t>(excess_) << 16;
    double below = 0x1p-60, above = 0x1p60;
    for (int step = 0; step < 40; ++step) {
      scale_ = std::sqrt(below) * std::sqrt(above);
      std::uint64_t sum = 0;
      for_ranks([&](std::uint64_t rank, std::uint64_t weight) {
        sum += excess_at(rank) * weight;
        return sum < target;
      });
      (sum < target ? below : above) = scale_;
    }
    scale_ = below;
  }

  // Chooses the exponent, too, such that the squares of the lengths add up to about `target`.
  void fit_squares(double target) {
    int below = 1, above = 128;
    while (below < above) {
      const int middle = (below + above) / 2;
      fit_sum(middle);
      double squares = 0;
      for_ranks([&](std::uint64_t rank, std::uint64_t weight) {
        const std::uint64_t length = static_cast<std::uint64_t>(low_) + (excess_at(rank) >> 16);
        squares += static_cast<double>(length * length * weight);
        return true;
      });
      if (squares < target) {
        below = middle + 1;
      } else {
        above = middle;
      }
    }
    fit_sum(below);
  }

  // The lengths, longest first; their sum is exact.
  std::vector<Index> lengths() const {
    std::vector<Index> lengths(count_, static_cast<Index>(low_));
    const auto highest = static_cast<Index>(low_ + static_cast<long long>(range_ / 65536));
    std::uint64_t carry = 0;  // passing fractions on from rank to rank keeps the sum
    long long missing = excess_;
    for (std::uint64_t rank = 0; rank < lengths.size(); ++rank) {
      carry += excess_at(rank);
      const auto whole = static_cast<Index>(carry >> 16);
      carry &= 0xFFFF;
      lengths[rank] += whole;
      missing -= whole;
    }
    while (missing != 0) {
      const Index step = missing > 0 ? 1 : -1;
      for (std::size_t rank = 1; rank < lengths.size() && missing != 0; ++rank) {
        const Index changed = lengths[rank] + step;
        if (changed < low_ || changed > highest) continue;
        lengths[rank] = changed;
        missing -= step;
      }
    }
    return lengths;
  }

 private:
  // What the row of this rank has above `low`, in 1/65536.
  std::uint64_t excess_at(std::uint64_t rank) const {
    const double ratio = scale_ / (scale_ + static_cast<double>(rank));
    return static_cast<std::uint64_t>(range_ * power_of_sixteenths(ratio, exponent_));
  }

  // Past the first few thousand ranks the curve is smooth enough to look at some only.
  template <typename Visit>
  void for_ranks(const Visit& visit) const {
    const auto stride = static_cast<std::uint64_t>(count_ / 65536 + 1);
    for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(count_);) {
      const std::uint64_t weight = rank < 4096 ? 1 : stride;
      if (!visit(rank, weight)) return;
      rank += weight;
    }
  }

  long long count_;
  long long excess_;
  long long low_;
  double range_;  // in 1/65536
  int exponent_ = 16;
  double scale_ = 1;
};

Pattern make_powerlaw(const Specification& spec) {
  const long long rows = spec.size(0), cols = spec.size(1);
  const long long empty = rows * spec.get("empty") / 100;
  const long long filled = rows - empty;
  const long long nnz = spec.get("nnz", filled * std::min(8ll, cols));
  const long long min_row = spec.get("min_row", filled ? std::min({1ll, nnz / filled, cols}) : 0);
  const long long max_row =
      spec.get("max_row", filled ? std::min(cols, std::max(100 * (nnz / filled), 1ll)) : 0);
  const long long local = spec.get("local");
  const long long column_skew = spec.get("column_skew");
  const bool diagonal = spec.get("diagonal") != 0;
  if (min_row > max_row)
    spec.fail(fmt::format("min_row = {} is above max_row = {}", min_row, max_row));
  if (max_row > cols)
    spec.fail(fmt::format("max_row = {} does not fit in {} columns", max_row, cols));
  if (nnz < filled * min_row ||
      static_cast<double>(nnz) > static_cast<double>(filled) * static_cast<double>(max_row)) {
    spec.fail(fmt::format("nnz = {} cannot be spread over {} rows of {} to {}", nnz, filled,
                          min_row, max_row));
  }
  PatternBuilder builder(spec, rows, cols, static_cast<double>(nnz));

  std::vector<Index> lengths;
  if (filled > 0) {
    LengthCurve curve(filled, nnz, min_row, max_row);
    const long long stddev = spec.get("stddev");
    if (stddev == kDerived) {
      curve.fit_sum(16);
    } else {
      const double mean = static_cast<double>(nnz) / static_cast<double>(rows);
      const double mean_square = mean * mean;
      curve.fit_squares((mean_square + static_cast<double>(stddev * stddev)) *
                        static_cast<double>(rows));
    }
    lengths = curve.lengths();
  }
  lengths.resize(rows, 0);
  Rng shuffle(spec.seed(), ~0ull);
  for (long long k = rows - 1; k > 0; --k) std::swap(lengths[k], lengths[shuffle.below(k + 1)]);

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
        // u^skew is dense near 0, which makes the first columns hot; multiplying by a prime larger
        // than any index moves the hot ones to all over the matrix.
        const std::uint64_t u = rng.bits32();
        std::uint64_t power = u;
        for (long long k = 1; k < column_skew; ++k) power = (power * u) >> 32;
        const std::uint64_t hot = (power * static_cast<std::uint64_t>(cols)) >> 32;
        column = static_cast<Index>(hot * 2654435761ull % static_cast<std::uint64_t>(cols));
      }
    }
    if (diagonal && length > 0) columns[0] = static_cast<Index>(centre);
    sort_and_separate(columns, cols);
    for (const Index column : columns) builder.add(column);
    builder.end_row();
  }
  return builder.take();
}

// Recursive matrix (Chakrabarti, Zhan, Faloutsos, 2004) with the Graph500 probabilities: every
// edge falls into one of four quadrants with 0.57, 0.19, 0.19, 0.05, `scale` times over. Edges are
// drawn twice, once to count and once to place them, so that they need not be kept.
Pattern make_rmat(const Specification& spec) {
  const auto scale = static_cast<int>(spec.get("scale"));
  const bool symmetric = spec.get("symmetric") != 0;
  const long long n = 1ll << scale;
  const long long edges = spec.get("edge_factor") * n;
  const double placed = static_cast<double>(edges) * (symmetric ? 2 : 1);
  spec.check_size(static_cast<double>(n), static_cast<double>(n), placed);

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
  if (std::accumulate(next.begin(), next.end(), 0LL) > kMaxNonzeros) {
    spec.fail(fmt::format("has more than {} nonzeros, which 32-bit indices do not allow",
                          with_commas(kMaxNonzeros)));
  }
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

// ---- meshes and saddle points ---------------------------------------------------------------

// Distances to which a node of a mesh may be coupled: a third next to it, a third around reach / 4,
// a third just within `reach`, as the lines and planes of a mesh that is numbered front by front.
std::vector<long long> mesh_offsets(long long count, long long reach) {
  std::vector<long long> offsets;
  if (reach < 8 * count) {
    for (long long k = 0; k < count; ++k) offsets.push_back(1 + k * std::max(reach, count) / count);
    return offsets;
  }
  const long long near = (count + 2) / 3, middle = (count + 1) / 3, far = count / 3;
  for (long long k = 0; k < near; ++k) offsets.push_back(1 + k);
  for (long long k = 0; k < middle; ++k) offsets.push_back(reach / 4 + k - middle / 2);
  for (long long k = 0; k < far; ++k) offsets.push_back(reach - far + 1 + k);
  return offsets;
}

// Largest s with s * s * s <= n.
long long cube_root(long long n) {
  long long s = 0;
  while ((s + 1) * (s + 1) * (s + 1) <= n) ++s;
  return s;
}

// Which nodes of a mesh are coupled. Node i and node i + d are, for an offset d, with a probability
// share * weight(i) * weight(i + d), where a weight belongs to a region of the mesh: that makes
// long rows and short rows neighbours of their like, and the structure symmetric.
class Mesh {
 public:
  Mesh(std::uint64_t seed, long long nodes, std::vector<long long> offsets, long long spread)
      : seed_(seed), nodes_(nodes), offsets_(std::move(offsets)) {
    for (long long region = 0; region * kRegion < nodes; ++region) {
      const auto swing =
          static_cast<long long>(Rng(seed, ~static_cast<std::uint64_t>(region)).below(2001)) - 1000;
      weights_.push_back(kUnit + kUnit * spread / 100 * swing / 1000);
    }
  }

  const std::vector<long long>& offsets() const { return offsets_; }

  bool coupled(long long lower, std::size_t offset) const {
    const std::uint64_t threshold =
        probability(lower / kRegion, (lower + offsets_[offset]) / kRegion);
    const std::uint64_t pair = static_cast<std::uint64_t>(lower) * offsets_.size() + offset;
    return mix64(seed_ * kGoldenGamma + pair) >> 32 < threshold;
  }

  // Makes the expected number of coupled pairs `wanted`, or as many as there can be.
  void fit(long long wanted) {
    std::uint64_t below = 0, above = kCertain << 12;
    while (below + 1 < above) {
      share_ = (below + above) / 2;
      (expected_pairs() < static_cast<std::uint64_t>(wanted) ? below : above) = share_;
    }
    share_ = above;
  }

 private:
  static constexpr long long kRegion = 64;               // nodes that share a weight
  static constexpr long long kUnit = 1 << 10;            // of weights
  static constexpr std::uint64_t kCertain = 1ull << 32;  // of probabilities

  std::uint64_t probability(long long region, long long other) const {
    const auto weight = static_cast<std::uint64_t>(weights_[region] * weights_[other]);
    return std::min((share_ >> 10) * weight >> 10, kCertain);
  }

  std::uint64_t expected_pairs() const {
    std::uint64_t sum = 0;
    const auto regions = static_cast<long long>(weights_.size());
    for (const long long offset : offsets_) {
      for (long long region = 0; region < regions; ++region) {
        // The nodes of a region that lie `offset` on are spread over two regions.
        const long long begin = region * kRegion + offset;
        const long long split = (begin / kRegion + 1) * kRegion;
        const long long end = std::min(begin + kRegion, nodes_);
        if (begin >= nodes_) break;
        sum += probability(region, begin / kRegion) *
                   static_cast<std::uint64_t>(std::min(split, end) - begin) >>
               12;
        if (end > split) {
          sum +=
              probability(region, split / kRegion) * static_cast<std::uint64_t>(end - split) >> 12;
        }
      }
    }
    return sum >> 20;
  }

  std::uint64_t seed_;
  long long nodes_;
  std::vector<long long> offsets_;
  std::vector<long long> weights_;
  std::uint64_t share_ = 0;
};

// Finite elements: every coupling of the mesh is a dense block x block block.
Pattern make_fem(const Specification& spec) {
  const long long nodes = spec.size(0);
  const long long block = spec.get("block");
  const double rows = static_cast<double>(nodes) * static_cast<double>(block);
  const long long nnz = spec.get(
      "nnz", static_cast<long long>(std::min(rows * 15.0 * static_cast<double>(block), 1e18)));
  spec.check_size(rows, rows, static_cast<double>(nnz));
  if (nodes == 0) return PatternBuilder(spec, 0, 0, 0).take();

  const long long couplings = nnz / (block * block);
  if (couplings < nodes) {
    spec.fail(fmt::format("nnz = {} is less than the {} of the diagonal blocks alone", nnz,
                          nodes * block * block));
  }
  const long long max_row = spec.get("max_row", 2 * (nnz / (nodes * block)));
  const long long reach = spec.get("reach", cube_root(nodes) * cube_root(nodes));
  const long long offset_count = std::clamp((max_row / block - 1) / 2, 0ll, nodes - 1);
  std::vector<long long> offsets = mesh_offsets(offset_count, reach);
  offsets.erase(
      std::remove_if(offsets.begin(), offsets.end(), [nodes](long long d) { return d >= nodes; }),
      offsets.end());
  long long most = nodes;
  for (const long long offset : offsets) most += 2 * (nodes - offset);
  if (couplings > most && spec.get("nnz") != kDerived) {
    spec.fail(fmt::format("nnz = {} does not fit; max_row = {} and reach = {} leave room for {}",
                          nnz, max_row, reach, most * block * block));
  }
  Mesh mesh(spec.seed(), nodes, std::move(offsets), spec.get("spread"));
  mesh.fit((std::min(couplings, most) - nodes) / 2);

  PatternBuilder builder(spec, nodes * block, nodes * block, 1.01 * static_cast<double>(nnz));
  const std::size_t count = mesh.offsets().size();
  for (long long node = builder.begin(block); node < builder.end(block); ++node) {
    for (std::size_t k = count; k-- > 0;) {
      const long long other = node - mesh.offsets()[k];
      if (other >= 0 && mesh.coupled(other, k)) builder.add_run(other * block, block);
    }
    builder.add_run(node * block, block);
    for (std::size_t k = 0; k < count; ++k) {
      const long long other = node + mesh.offsets()[k];
      if (other < nodes && mesh.coupled(node, k)) builder.add_run(other * block, block);
    }
    builder.end_block_row(block);
  }
  return builder.take();
}

// Saddle point [H A'; A 0]: H is a band, and a constraint, a row of A, involves unknowns around the
// one that stands at the same fraction of the way, evenly spaced and past an end from the other.
Pattern make_kkt(const Specification& spec) {
  const long long unknowns = spec.size(0), constraints = spec.size(1);
  if (constraints > unknowns) {
    spec.fail(fmt::format("has more constraints than the {} unknowns", unknowns));
  }
  const long long half_band = std::min(spec.get("hessian") / 2, std::max(unknowns - 1, 0ll));
  const long long in_hessian = unknowns * (2 * half_band + 1) - half_band * (half_band + 1);
  const long long nnz = spec.get("nnz", in_hessian + 2 * constraints * std::min(3ll, unknowns));
  if (nnz < in_hessian) {
    spec.fail(fmt::format("nnz = {} is less than the {} of H alone", nnz, in_hessian));
  }
  const long long in_constraints = (nnz - in_hessian) / 2;
  const long long mean = constraints ? (in_constraints + constraints - 1) / constraints : 0;
  const long long width = spec.get("width", mean);
  if (in_constraints > width * constraints || width > unknowns) {
    spec.fail(fmt::format("nnz = {} does not fit; {} constraints of width {} over {} unknowns", nnz,
                          constraints, width, unknowns));
  }
  const long long places = std::max(width * constraints, 1ll);
  const std::uint64_t share =
      (static_cast<std::uint64_t>(in_constraints) << 32) / static_cast<std::uint64_t>(places);
  const long long reach = std::min(spec.get("reach", width), unknowns);
  const long long spacing = std::max(reach / std::max(width, 1ll), 1ll);
  const auto wrap = [unknowns](long long at) { return (at % unknowns + unknowns) % unknowns; };
  const auto involved = [&](long long constraint, long long k) {
    return mix64(spec.seed() * kGoldenGamma + static_cast<std::uint64_t>(constraint * width + k)) >>
           32 < share;
  };

  PatternBuilder builder(spec, unknowns + constraints, unknowns + constraints,
                         static_cast<double>(nnz));
  std::vector<Index> columns;
  const auto end_sorted_row = [&] {
    std::sort(columns.begin(), columns.end());
    for (const Index column : columns) builder.add(column);
    columns.clear();
    builder.end_row();
  };
  for (long long unknown = 0; unknown < unknowns; ++unknown) {
    const long long begin = std::max(unknown - half_band, 0ll);
    builder.add_run(begin, std::min(unknown + half_band + 1, unknowns) - begin);
    for (long long k = 0; k < width; ++k) {
      const long long centre = wrap(unknown - (k - width / 2) * spacing);
      const long long constraint = (centre * constraints + unknowns - 1) / unknowns;
      const bool is_centre =
          constraint < constraints && constraint * unknowns / constraints == centre;
      if (is_centre && involved(constraint, k))
        columns.push_back(static_cast<Index>(unknowns + constraint));
    }
    end_sorted_row();
  }
  for (long long constraint = 0; constraint < constraints; ++constraint) {
    const long long centre = constraint * unknowns / constraints;
    for (long long k = 0; k < width; ++k) {
      if (involved(constraint, k))
        columns.push_back(static_cast<Index>(wrap(centre + (k - width / 2) * spacing)));
    }
    end_sorted_row();
  }
  return builder.take();
}

// ---- the table ------------------------------------------------------------------------------

constexpr long long kAny = kMaxNonzeros;
constexpr Key kSeed{"seed", 1, 0, kAny, "another seed, another matrix of the same kind"};
constexpr Key kDof{"dof", 1, 1, 64,
                   "unknowns at a grid point; every coupling is a dense dof x dof block"};
constexpr Key kBoundary{"boundary",
                        0,
                        0,
                        3,
                        "drop, wrap, clamp or constant: what becomes of couplings past the edge",
                        kBoundaryWords};

constexpr Key rate(const char* name, long long fallback, const char* meaning) {
  return {name, fallback, 1, 1'000'000 * kRateUnit, meaning, nullptr, kRateDecimals};
}

}  // namespace

const std::vector<Generator>& all_generators() {
  static const std::vector<Generator> generators{
      {"stencil2d",
       "NXxNY",
       "2-D grid, every point coupled to its neighbours",
       {{"points", 5, 0, 99, "5 (star) or 9 (box)"}, kDof, kBoundary, kSeed},
       make_stencil2d},
      {"stencil3d",
       "NXxNYxNZ",
       "3-D grid, every point coupled to its neighbours",
       {{"points", 7, 0, 99, "7 (star) or 27 (box)"}, kDof, kBoundary, kSeed},
       make_stencil3d},
      {"lattice",
       "NXxNYxNZxNT",
       "lattice QCD: periodic 4-D grid, 12 rows a site, 39 nonzeros a row",
       {kSeed},
       make_lattice},
      {"triangle",
       "SIDE",
       "Markov chain on the states x + y < SIDE, up to 4 nonzeros a row",
       {kSeed},
       make_triangle,
       false},
      {"random",
       "ROWSxCOLS",
       "uniformly random columns, all rows of the same length",
       {{"nnz_per_row", kDerived, 0, kAny, "at most COLS (16)"}, kSeed},
       make_random},
      {"banded",
       "N",
       "a band around the diagonal",
       {{"bandwidth", 2, 0, kAny, "largest |row - column|"},
        {"nnz_per_row", kDerived, 1, kAny,
         "that many drawn from the band, with the diagonal (all)"},
        kSeed},
       make_banded},
      {"powerlaw",
       "ROWSxCOLS",
       "a few huge rows and columns, some empty rows: graphs, circuits, LP",
       {{"nnz", kDerived, 0, kAny, "exactly this many (8 a row)"},
        {"min_row", kDerived, 0, kAny, "length of the shortest row that is not empty (1)"},
        {"max_row", kDerived, 0, kAny, "length of the longest row (100 x the mean)"},
        {"stddev", kDerived, 0, 46340, "of the row length, as near as the other keys allow"},
        {"empty", 5, 0, 100, "percentage of rows that are empty"},
        {"local", 0, 0, 100, "percentage of nonzeros near the diagonal"},
        {"bandwidth", 64, 0, kAny, "how near"},
        {"column_skew", 2, 1, 8, "how steeply the popularity of columns falls; 1: all alike"},
        {"diagonal", 0, 0, 1, "1: the diagonal is in every row that is not empty"},
        kSeed},
       make_powerlaw},
      {"rmat",
       "",
       "R-MAT graph of 2^scale vertices with Graph500 probabilities, duplicates merged",
       {{"scale", 16, 0, 30, "binary logarithm of the number of rows"},
        {"edge_factor", 16, 0, 4096, "edges drawn per row"},
        {"symmetric", 0, 0, 1, "1: every edge both ways"},
        kSeed},
       make_rmat,
       false},
      {"fem",
       "NODES",
       "finite elements: dense blocks over a mesh, symmetric structure",
       {{"block", 3, 1, 64, "unknowns at a node"},
        {"nnz", kDerived, 0, kAny, "about this many (15 couplings a node)"},
        {"max_row", kDerived, 1, kAny, "bound on the row length (2 x the mean)"},
        {"spread", 25, 0, 100, "percentage by which density differs between parts of the mesh"},
        {"reach", kDerived, 1, kAny, "bandwidth in nodes (NODES^(2/3))"},
        kSeed},
       make_fem},
      {"kkt",
       "UNKNOWNSxCONSTRAINTS",
       "saddle point [H A'; A 0] of an optimisation, symmetric structure",
       {{"nnz", kDerived, 0, kAny, "about this many (3 a constraint in A, and H)"},
        {"hessian", 1, 1, 999, "nonzeros a row of H, odd"},
        {"width", kDerived, 0, kAny,
         "positions from which a constraint takes its unknowns (the mean)"},
        {"reach", kDerived, 1, kAny,
         "how far apart the first and the last of them are (side by side)"},
        kSeed},
       make_kkt,
       false},
      {"wlan",
       "",
       "Markov chain of wireless nodes that share a channel: its rates, transposed",
       {{"C", 10, 1, 1'000'000, "packets that a node can hold"},
        {"m", 3, 0, 20, "failures after which waits grow no longer"},
        {"W", 8, 1, 1 << 20, "slots of the first wait; after k failures 2^k W"},
        rate("lambda", 200'000, "rate of packets that arrive at a node"),
        rate("mu", 1'000'000, "rate at which a packet is sent"),
        {"p", kDerived, 0, kRateUnit - 1,
         "chance that another device has the channel (0.1; 0 if nodes > 1)", nullptr,
         kRateDecimals},
        rate("eta", 4'000'000, "rate of slots"),
        {"nodes", 1, 1, 16, "that share the channel"},
        {"freeze", 0, 0, 1, "1: a wait stands still while another node sends"},
        {"states", 0, 0, 1, "reachable or all: from the empty system", kWlanStates}},
       make_wlan,
       false},
      {"dense", "ROWSxCOLS", "every position is a nonzero", {kSeed}, make_dense},
      {"diagonal", "N", "the diagonal and nothing else", {kSeed}, make_diagonal},
  };
  return generators;
}

bool is_generator(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  return colon != std::string::npos && find_generator(std::string_view(spec).substr(0, colon));
}

std::string full_specification(const std::string& spec) {
  return Specification(spec, 0, std::numeric_limits<std::uint64_t>::max()).full();
}

namespace {

// Of a generator that always makes all rows, those from `first` up to `end`.
Pattern only_these(Pattern pattern, long long first, long long end) {
  if (static_cast<long long>(pattern.row_offsets.size()) - 1 == end - first) return pattern;
  std::vector<Index>& offsets = pattern.row_offsets;
  const Index from = offsets[first], to = offsets[end];
  const auto cut = [&](auto& array) {
    if (array.empty()) return;
    array.erase(array.begin() + to, array.end());
    array.erase(array.begin(), array.begin() + from);
  };
  cut(pattern.column_indices);
  cut(pattern.values);
  offsets.erase(offsets.begin() + end + 1, offsets.end());
  offsets.erase(offsets.begin(), offsets.begin() + first);
  for (Index& offset : offsets) offset -= from;
  return pattern;
}

// The rows [first, end) of what `spec` describes, made by all cores where that is of use.
Pattern make_rows(const Specification& spec, long long first, long long end, bool of_whole) {
  constexpr long long kWorthwhile = 20000;  // rows
  [[maybe_unused]] constexpr int kMostThreads = 64;
  int threads = 1;
#ifdef _OPENMP
  threads = std::min(omp_get_max_threads(), kMostThreads);
#endif
  const long long rows = end - first;
  if (!spec.generator().by_rows || rows < kWorthwhile) threads = 1;
  std::vector<Pattern> pieces(threads);
  std::vector<std::exception_ptr> errors(threads);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int k = 0; k < threads; ++k) {
    try {
      Specification piece = spec;
      piece.only_rows(first + rows * k / threads, first + rows * (k + 1) / threads, of_whole);
      pieces[k] = piece.generator().make(piece);
    } catch (...) {
      errors[k] = std::current_exception();
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  if (threads == 1) return only_these(std::move(pieces[0]), first, end);

  Pattern all;
  all.rows = pieces[0].rows;
  all.cols = pieces[0].cols;
  all.repeats = pieces[0].repeats;
  std::vector<std::size_t> before{0};
  for (const Pattern& piece : pieces) before.push_back(before.back() + piece.column_indices.size());
  if (before.back() > static_cast<std::size_t>(kMaxNonzeros)) {
    spec.fail(fmt::format("has more than {} nonzeros, which 32-bit indices do not allow",
                          with_commas(kMaxNonzeros)));
  }
  all.row_offsets.resize(static_cast<std::size_t>(rows) + 1);
  resize_large(all.column_indices, before.back());
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int k = 0; k < threads; ++k) {
    const Pattern& piece = pieces[k];
    std::copy(piece.column_indices.begin(), piece.column_indices.end(),
              all.column_indices.begin() + static_cast<std::ptrdiff_t>(before[k]));
    const long long first_of_piece = rows * k / threads;
    for (std::size_t row = 1; row < piece.row_offsets.size(); ++row) {
      all.row_offsets[static_cast<std::size_t>(first_of_piece) + row] =
          static_cast<Index>(before[k]) + piece.row_offsets[row];
    }
  }
  return all;
}

// Value k of the matrix is the k-th draw, whoever makes it.
template <typename T>
Csr<T> with_values(Pattern pattern, const Specification& spec, long long nonzeros_before) {
  Csr<T> csr;
  csr.rows = static_cast<Index>(pattern.row_offsets.size()) - 1;
  csr.cols = pattern.cols;
  csr.row_offsets = std::move(pattern.row_offsets);
  csr.column_indices = std::move(pattern.column_indices);
  if (!pattern.values.empty()) {
    csr.values.assign(pattern.values.begin(), pattern.values.end());
    return csr;
  }
  resize_large(csr.values, csr.column_indices.size());
  constexpr long long kTurn = 1 << 16;
  const auto count = static_cast<long long>(csr.values.size());
#pragma omp parallel for schedule(static) if (count > 4 * kTurn)
  for (long long turn = 0; turn < (count + kTurn - 1) / kTurn; ++turn) {
    Rng rng(spec.seed(), 0xA5A5A5A5ull << 32);
    rng.skip(static_cast<std::uint64_t>(nonzeros_before + turn * kTurn));
    for (long long k = turn * kTurn; k < std::min((turn + 1) * kTurn, count); ++k) {
      csr.values[k] = signed_unit_value<T>(rng.bits64());
    }
  }
  if (pattern.repeats) sum_repeated_columns(csr);
  return csr;
}

}  // namespace

template <typename T>
Csr<T> generate(const std::string& spec, std::uint64_t memory_limit) {
  const Specification parsed(spec, sizeof(T), memory_limit);
  Specification sizes = parsed;
  sizes.only_rows(0, 0, true);
  const bool by_rows = parsed.generator().by_rows;
  const long long rows = by_rows ? parsed.generator().make(sizes).rows : 0;
  return with_values<T>(
      by_rows ? make_rows(parsed, 0, rows, true) : parsed.generator().make(parsed), parsed, 0);
}

GeneratedRows::GeneratedRows(const std::string& spec, std::size_t value_bytes)
    : spec_(std::make_unique<Specification>(spec, value_bytes, default_memory_limit())) {
  Specification sizes = *spec_;
  sizes.only_rows(0, 0, false);
  const Pattern empty = sizes.generator().make(sizes);
  rows_ = empty.rows;
  cols_ = empty.cols;
}
GeneratedRows::~GeneratedRows() = default;

bool GeneratedRows::by_rows() const {
  return spec_->generator().by_rows;
}

std::vector<Index> GeneratedRows::lengths(Index first, Index end) const {
  const Pattern pattern = make_rows(*spec_, first, end, false);
  std::vector<Index> lengths(static_cast<std::size_t>(end - first));
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    lengths[row] = pattern.row_offsets[row + 1] - pattern.row_offsets[row];
  }
  return lengths;
}

template <typename T>
Csr<T> GeneratedRows::rows(Index first, Index end, long long nonzeros_before) const {
  return with_values<T>(make_rows(*spec_, first, end, false), *spec_, nonzeros_before);
}

std::string generator_help() {
  std::string help;
  for (const Generator& generator : all_generators()) {
    help += fmt::format("  {}:{}\n      {}\n", generator.name, generator.sizes, generator.summary);
    for (const Key& key : generator.keys) {
      const std::string value = key.fallback == kDerived ? "..." : key.text_of(key.fallback);
      help += fmt::format("      {:<18}{}\n", fmt::format("{}={}", key.name, value), key.meaning);
    }
  }
  return help;
}

template Csr<float> generate(const std::string&, std::uint64_t);
template Csr<double> generate(const std::string&, std::uint64_t);
template Csr<float> GeneratedRows::rows(Index, Index, long long) const;
template Csr<double> GeneratedRows::rows(Index, Index, long long) const;

}  // namespace spmv
