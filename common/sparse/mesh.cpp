// Meshes of irregular connectivity, numbered line by line.
//
// Nodes stand one per cell of a grid whose lines differ in length, each moved at random within its
// cell. Two nodes are coupled when they are near; how near differs from part to part of the mesh,
// so that dense and sparse parts exist. Everything is a function of the seed and of the place, so
// that any node's couplings can be computed alone, from both ends alike.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"

namespace spmv {
namespace {

constexpr long long kCell = 1024;  // units of length

std::uint64_t hash_of(std::uint64_t seed, std::uint64_t stream, std::uint64_t which) {
  return mix64(mix64(seed * kGoldenGamma + stream) + which * kGoldenGamma);
}

// Noise that changes slowly with `at`: from -1000 to 1000, with a value drawn at every multiple of
// `period` and straight lines between.
long long slow_noise(std::uint64_t seed, std::uint64_t stream, long long at, long long period) {
  const auto drawn = [&](long long k) {
    return static_cast<long long>(hash_of(seed, stream, static_cast<std::uint64_t>(k)) % 2001) -
           1000;
  };
  const long long k = at / period, rest = at % period;
  return (drawn(k) * (period - rest) + drawn(k + 1) * rest) / period;
}

long long root(long long n, int dims) {
  long long s = 1;
  const auto power = [dims](long long t) { return dims == 2 ? t * t : t * t * t; };
  while (power(s + 1) <= n) ++s;
  return s;
}

// The cells: planes of lines of cells, in the order in which nodes are counted.
class Cells {
 public:
  struct Cell {
    long long x, y, z;
  };

  // irregular: percentage; 0: all lines of all planes have the same length.
  Cells(std::uint64_t seed, long long nodes, int dims, long long irregular) {
    const long long side = root(nodes, dims);
    const auto varied = [&](std::uint64_t stream, long long at, long long period) {
      const long long swing = slow_noise(seed, stream, at, period) * irregular / 100;
      return std::max(side + side * swing * 3 / 10000, 1ll);
    };
    long long placed = 0;
    for (long long z = 0; placed < nodes; ++z) {
      const long long lines = dims == 2 ? nodes : varied(1, z, 8);
      planes_.push_back({static_cast<long long>(starts_.size()), -(dims == 2 ? 0 : lines / 2)});
      for (long long y = 0; y < lines && placed < nodes; ++y) {
        const long long length = varied(2 + static_cast<std::uint64_t>(z / 4), y, 8);
        starts_.push_back(placed);
        lefts_.push_back(-length / 2);
        placed = std::min(placed + length, nodes);
      }
    }
    planes_.push_back({static_cast<long long>(starts_.size()), 0});
    starts_.push_back(nodes);
  }

  Cell cell(long long node) const {
    const long long line =
        std::upper_bound(starts_.begin(), starts_.end(), node) - starts_.begin() - 1;
    long long z = std::upper_bound(planes_.begin(), planes_.end(), line,
                                   [](long long l, const Plane& p) { return l < p.first_line; }) -
                  planes_.begin() - 1;
    return {node - starts_[line] + lefts_[line], line - planes_[z].first_line + planes_[z].bottom,
            z};
  }

  // The nodes at x from `from` to `to` of line y of plane z, as first and count.
  std::array<long long, 3> nodes_at(long long from, long long to, long long y, long long z) const {
    if (z < 0 || z + 1 >= static_cast<long long>(planes_.size())) return {0, 0, 0};
    const long long line = planes_[z].first_line + y - planes_[z].bottom;
    if (line < planes_[z].first_line || line >= planes_[z + 1].first_line) return {0, 0, 0};
    const long long first = std::max(from - lefts_[line], 0ll);
    const long long end = std::min(to - lefts_[line] + 1, starts_[line + 1] - starts_[line]);
    return {starts_[line] + first, std::max(end - first, 0ll), first + lefts_[line]};
  }

 private:
  struct Plane {
    long long first_line;
    long long bottom;  // y of its first line
  };
  std::vector<Plane> planes_;      // and one past the last
  std::vector<long long> starts_;  // first node of each line, and one past the last
  std::vector<long long> lefts_;   // x of its first node
};

class NodeMesh {
 public:
  NodeMesh(const Specification& spec, long long nodes, double degree)
      : seed_(spec.seed()),
        nodes_(nodes),
        dims_(static_cast<int>(spec.get("dims"))),
        irregular_(spec.get("irregular")),
        far_(spec.get("far")),
        window_(static_cast<long long>(
            std::bit_floor(static_cast<std::uint64_t>(std::max(spec.get("disorder"), 1ll))))),
        cells_(seed_, nodes, dims_, irregular_) {
    // A ball that holds `degree` cells has this radius in hundredths.
    const auto holds = [&](double r) { return dims_ == 2 ? 3.1416 * r * r : 4.1888 * r * r * r; };
    long long radius = 0;
    while (holds(static_cast<double>(radius) / 100) < degree) ++radius;
    reach_ = (145 * radius + 9999) / 10000 + 1;  // dense parts reach less far, sparse ones farther
  }

  // Chooses how far couplings reach so that nodes have `degree` of them on average (without
  // themselves), and with `deviation` >= 0 how much that differs between parts of the mesh.
  void fit(double degree, double deviation, long long spread) {
    jitter_ = irregular_;
    spread_ = deviation < 0 ? spread : 0;
    const double natural = fit_reach(degree);
    if (deviation < 0) return;
    // More differ by a density that differs, fewer where nodes stand more regularly.
    long long& knob = natural < deviation ? spread_ : jitter_;
    long long below = 0, above = natural < deviation ? 95 : irregular_;
    while (below < above) {
      knob = (below + above) / 2;
      if (fit_reach(degree) < deviation) {
        below = knob + 1;
      } else {
        above = knob;
      }
    }
    knob = above;
    fit_reach(degree);
  }

  // Row `number`'s neighbours, itself included, ascending, as their numbers.
  void neighbours(long long number, std::vector<long long>& found) const {
    found.clear();
    const Place own = place(node_of(number));
    for_candidates(own, [&](const Place& other, std::uint64_t distance) {
      if (distance <= limit_) found.push_back(number_of(other.node));
    });
    found.push_back(number);
    const long long partner = far_partner(own.node);
    if (partner != own.node) found.push_back(number_of(partner));
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
  }

 private:
  struct Place {
    long long node;
    Cells::Cell cell;
    std::array<long long, 3> at;
    std::uint64_t weight;
  };

  Place place(long long node) const { return place(node, cells_.cell(node)); }
  Place place(long long node, const Cells::Cell& cell) const {
    std::uint64_t bits = hash_of(seed_, ~0ull, static_cast<std::uint64_t>(node));
    Place p{node, cell, {cell.x * kCell, cell.y * kCell, cell.z * kCell}, 0};
    for (int axis = 0; axis < dims_; ++axis) {
      const auto moved = static_cast<long long>(bits & 0x3FF) - 512;
      bits >>= 10;
      p.at[axis] += moved * jitter_ / 100;
    }
    constexpr long long kPart = 6;  // cells along each side of a part
    const auto part = [](long long c) {
      return static_cast<std::uint64_t>((c + (1 << 20)) / kPart);
    };
    const std::uint64_t which = (part(cell.x) << 42) ^ (part(cell.y) << 21) ^ part(cell.z);
    const auto swing = static_cast<long long>(hash_of(seed_, ~1ull, which) % 2001) - 1000;
    p.weight = static_cast<std::uint64_t>(kCell + kCell * spread_ * swing / 100000);
    return p;
  }

  // Some nodes are coupled with one more, far from them: where the mesh is folded or its parts
  // meet.
  long long far_partner(long long node) const {
    const long long partner = nodes_ - 1 - node;
    const auto pair = static_cast<std::uint64_t>(std::min(node, partner) / 4);
    return static_cast<long long>(hash_of(seed_, ~3ull, pair) % 100) < far_ ? partner : node;
  }

  // Visits the nodes that may be coupled with `own`, with what decides it: the square of their
  // distance over the mean of both weights.
  template <typename Visit>
  void for_candidates(const Place& own, const Visit& visit) const {
    const long long planes = dims_ == 3 ? reach_ : 0;
    for (long long z = own.cell.z - planes; z <= own.cell.z + planes; ++z) {
      for (long long y = own.cell.y - reach_; y <= own.cell.y + reach_; ++y) {
        const auto [first, count, x] =
            cells_.nodes_at(own.cell.x - reach_, own.cell.x + reach_, y, z);
        for (long long k = 0; k < count; ++k) {
          if (first + k == own.node) continue;
          const Place other = place(first + k, {x + k, y, z});
          std::uint64_t square = 0;
          for (int axis = 0; axis < 3; ++axis) {
            const long long d = own.at[axis] - other.at[axis];
            square += static_cast<std::uint64_t>(d * d);
          }
          // Where nodes stand regularly, many are equally far: a number drawn for the pair decides.
          const auto pair = static_cast<std::uint64_t>(std::min(own.node, other.node)) *
                                static_cast<std::uint64_t>(nodes_) +
                            static_cast<std::uint64_t>(std::max(own.node, other.node));
          const std::uint64_t tie = hash_of(seed_, ~4ull, pair) >> 48;
          visit(other, (square * 2 * kCell / (own.weight + other.weight)) << 16 | tie);
        }
      }
    }
  }

  // Sets limit_; returns the standard deviation of the number of couplings.
  double fit_reach(double degree) {
    degree = std::max(degree - static_cast<double>(far_) / 100, 0.0);
    const long long samples = std::min(nodes_, 1ll << 13);
    std::vector<std::uint64_t> distances;
    std::vector<std::size_t> ends;
    for (long long k = 0; k < samples; ++k) {
      for_candidates(place(k * nodes_ / samples),
                     [&](const Place&, std::uint64_t distance) { distances.push_back(distance); });
      ends.push_back(distances.size());
    }
    std::vector<std::uint64_t> sorted = distances;
    const auto wanted = static_cast<std::size_t>(degree * static_cast<double>(samples));
    if (wanted == 0 || sorted.empty()) {
      limit_ = 0;
      return 0;
    }
    const auto nth =
        sorted.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, sorted.size()) - 1);
    std::nth_element(sorted.begin(), nth, sorted.end());
    limit_ = *nth;
    double squares = 0;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const auto count =
          static_cast<double>(std::count_if(distances.begin() + static_cast<std::ptrdiff_t>(begin),
                                            distances.begin() + static_cast<std::ptrdiff_t>(end),
                                            [this](std::uint64_t d) { return d <= limit_; }));
      squares += (count - degree) * (count - degree);
      begin = end;
    }
    return std::sqrt(squares / static_cast<double>(samples));
  }

  // Numbers are the nodes' order, shuffled within windows.
  struct Shuffle {
    std::uint64_t odd, add, mask;
    int half;
  };
  Shuffle shuffle_of(long long window) const {
    const std::uint64_t bits = hash_of(seed_, ~2ull, static_cast<std::uint64_t>(window));
    const auto mask = static_cast<std::uint64_t>(window_ - 1);
    return {(bits | 1) & mask, (bits >> 32) & mask, mask, std::max(std::countr_one(mask) / 2, 1)};
  }
  long long number_of(long long node) const {
    const long long base = node & ~(window_ - 1);
    if (window_ == 1 || base + window_ > nodes_) return node;
    const Shuffle s = shuffle_of(base / window_);
    auto offset = static_cast<std::uint64_t>(node - base);
    offset = (offset * s.odd + s.add) & s.mask;
    offset ^= offset >> s.half;
    return base + static_cast<long long>(offset);
  }
  long long node_of(long long number) const {
    const long long base = number & ~(window_ - 1);
    if (window_ == 1 || base + window_ > nodes_) return number;
    const Shuffle s = shuffle_of(base / window_);
    const auto given = static_cast<std::uint64_t>(number - base);
    std::uint64_t offset = given;
    for (int k = 0; k < 64; k += s.half) offset = given ^ (offset >> s.half);
    std::uint64_t inverse = s.odd;  // modulo 2^64, by Newton's iteration
    for (int k = 0; k < 5; ++k) inverse *= 2 - s.odd * inverse;
    offset = ((offset - s.add) * inverse) & s.mask;
    return base + static_cast<long long>(offset);
  }

  std::uint64_t seed_;
  long long nodes_;
  int dims_;
  long long irregular_, far_;
  long long window_;
  Cells cells_;
  long long reach_ = 1;   // in cells
  long long jitter_ = 0;  // percentage of a cell, and of the density
  long long spread_ = 0;
  std::uint64_t limit_ = 0;
};

}  // namespace

Pattern make_mesh(const Specification& spec) {
  const long long rows = spec.size(0), block = spec.get("block");
  const long long nodes = (rows + block - 1) / block;  // the last may have fewer unknowns
  const auto size = static_cast<double>(rows);
  const double mean = spec.get("dims") == 2 ? 7 : 15;
  const auto nnz = static_cast<double>(spec.get(
      "nnz", static_cast<long long>(std::min(size * mean * static_cast<double>(block), 1e18))));
  spec.check_size(size, size, nnz);
  PatternBuilder builder(spec, rows, rows, 1.01 * nnz);
  if (nodes == 0 || builder.begin(block) == builder.end(block)) return builder.take();
  const double degree = nnz / (size * static_cast<double>(block)) - 1;
  if (degree < 0) {
    spec.fail(fmt::format("nnz = {} is less than the {} of the diagonal blocks alone", nnz,
                          rows * block));
  }
  NodeMesh mesh(spec, nodes, std::min(degree, static_cast<double>(nodes - 1)));
  mesh.fit(degree, spec.real("stddev", -1) / static_cast<double>(block), spec.get("spread"));
  std::vector<long long> neighbours;
  for (long long node = builder.begin(block); node < builder.end(block); ++node) {
    mesh.neighbours(node, neighbours);
    for (const long long other : neighbours) {
      builder.add_run(other * block, std::min(block, rows - other * block));
    }
    builder.end_block_row(std::min(block, rows - node * block));
  }
  return builder.take();
}

}  // namespace spmv
