// Meshes of irregular connectivity, numbered line by line.
//
// Nodes stand one per cell of a grid whose lines differ in length, each moved at random within its
// cell. Two nodes are coupled when they are near; how near differs from part to part of the mesh,
// so that dense and sparse parts exist. A node that would have more couplings than the longest row
// allows gives up the farthest, and where the mesh has no row as long as that, a hub in 4096 nodes
// is coupled with as many as that. Everything is a function of the seed and of the place, so that
// any node's couplings can be computed alone, from both ends alike.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"

namespace spmv {
namespace {

constexpr int kCellBits = 10;
constexpr long long kCell = 1 << kCellBits;  // units of length

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
  static constexpr long long kAnyNumber = std::numeric_limits<long long>::max();

  // most: couplings that a node may have, without itself, or kAnyNumber.
  NodeMesh(const Specification& spec, long long nodes, double degree, long long most)
      : seed_(spec.seed()),
        nodes_(nodes),
        dims_(static_cast<int>(spec.get("dims"))),
        irregular_(spec.get("irregular")),
        far_(spec.get("far")),
        most_(most),
        window_(static_cast<long long>(
            std::bit_floor(static_cast<std::uint64_t>(std::max(spec.get("disorder"), 1ll))))),
        cells_(seed_, nodes, dims_, irregular_),
        reach_(cells_that_hold(degree)) {
    if (most_ == kAnyNumber) return;
    hub_reach_ = std::min(cells_that_hold(static_cast<double>(most_)), hub_spacing() / 2);
    cuts_.resize(kCuts, {-1, 0});
  }

  // Chooses how far couplings reach so that nodes have `degree` of them on average (without
  // themselves), and with `deviation` >= 0 how much that differs between parts of the mesh.
  void fit(double degree, double deviation, long long spread) {
    jitter_ = irregular_;
    spread_ = deviation < 0 ? spread : 0;
    Couplings natural = fit_reach(degree);
    if (deviation >= 0) {
      // They differ more by a density that differs, less where nodes stand more regularly.
      const bool is_enough = natural.deviation >= deviation;
      long long& knob = is_enough ? jitter_ : spread_;
      long long below = 0, above = is_enough ? irregular_ : 95;
      while (below < above) {
        knob = (below + above) / 2;
        if (fit_reach(degree).deviation < deviation) {
          below = knob + 1;
        } else {
          above = knob;
        }
      }
      knob = above;
      natural = fit_reach(degree);
    }
    if (most_ == kAnyNumber) return;
    has_hubs_ = natural.largest + (far_ > 0) < most_;
    // All couplings reach farther to make up for those that are given up.
    for (int step = 0; step < 4; ++step) {
      const double lost = given_up();
      if (lost < 0.001 * degree) break;
      fit_reach(degree + lost);
    }
  }

  // Row `number`'s neighbours, itself included, ascending, as their numbers.
  void neighbours(long long number, std::vector<long long>& found) {
    found.clear();
    const Place own = place(node_of(number));
    near_neighbours(own, found);
    for (long long& node : found) node = number_of(node);
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
  struct Couplings {
    double deviation;  // standard, of their number
    long long largest;
  };

  // So many cells to each side, corners left out, hold `degree` nodes, also where they are sparse.
  long long cells_that_hold(double degree) const {
    const auto holds = [&](double r) { return dims_ == 2 ? 3.1416 * r * r : 4.1888 * r * r * r; };
    long long radius = 0;  // in hundredths
    while (holds(static_cast<double>(radius) / 100) < degree) ++radius;
    return (145 * radius + 9999) / 10000 + 1;  // dense parts reach less far, sparse ones farther
  }

  Place place(long long node) const { return place(node, cells_.cell(node)); }
  Place place(long long node, const Cells::Cell& cell) const {
    Place p{node, cell, {cell.x * kCell, cell.y * kCell, cell.z * kCell}, kCell};
    if (jitter_ > 0) {
      std::uint64_t bits = hash_of(seed_, ~0ull, static_cast<std::uint64_t>(node));
      for (int axis = 0; axis < dims_; ++axis) {
        const auto moved = static_cast<long long>(bits & 0x3FF) - 512;
        bits >>= 10;
        p.at[axis] += moved * jitter_ / 100;
      }
    }
    if (spread_ > 0) {
      constexpr long long kPart = 6;  // cells along each side of a part
      const auto part = [](long long c) {
        return static_cast<std::uint64_t>((c + (1 << 20)) / kPart);
      };
      const std::uint64_t which = (part(cell.x) << 42) ^ (part(cell.y) << 21) ^ part(cell.z);
      const auto swing = static_cast<long long>(hash_of(seed_, ~1ull, which) % 2001) - 1000;
      p.weight = static_cast<std::uint64_t>(kCell + kCell * spread_ * swing / 100000);
    }
    return p;
  }

  // Some nodes are coupled with one more, far from them: where the mesh is folded or its parts
  // meet.
  long long far_partner(long long node) const {
    const long long partner = nodes_ - 1 - node;
    const auto pair = static_cast<std::uint64_t>(std::min(node, partner) / 4);
    return static_cast<long long>(hash_of(seed_, ~3ull, pair) % 100) < far_ ? partner : node;
  }

  // What decides whether two nodes are coupled: the square of their distance over the mean of both
  // weights; of equals the tie.
  std::uint64_t distance(const Place& a, const Place& b) const {
    std::uint64_t square = 0;
    for (int axis = 0; axis < dims_; ++axis) {
      const long long d = a.at[axis] - b.at[axis];
      square += static_cast<std::uint64_t>(d * d);
    }
    const std::uint64_t weighted = (square * 2 * kCell / (a.weight + b.weight)) << kTieBits;
    return jitter_ > 0 ? weighted : weighted | tie(a.cell, b.cell);
  }

  // Where nodes stand regularly, many are equally far, and the direction decides, so that all nodes
  // have the same couplings, as those of a stencil. Where only a part of the couplings in one
  // direction is wanted, they alternate along it (van der Corput's sequence), so that the nodes'
  // numbers of couplings differ by one.
  static std::uint64_t tie(const Cells::Cell& a, const Cells::Cell& b) {
    std::array<long long, 3> from{a.z, a.y, a.x}, to{b.z, b.y, b.x};
    if (to < from) std::swap(from, to);
    std::uint64_t direction = 0, reversed = 0;
    long long place_along = -1;
    for (int axis = 0; axis < 3; ++axis) {
      const long long step = to[axis] - from[axis];
      direction = direction << 4 | static_cast<std::uint64_t>((step + (axis > 0 ? 8 : 0)) & 15);
      if (step != 0 && place_along < 0) place_along = (from[axis] + (1 << 20)) / std::abs(step);
    }
    for (int bit = 0; bit < kTieBits / 2; ++bit) {
      reversed = reversed << 1 | static_cast<std::uint64_t>(place_along >> bit & 1);
    }
    return direction << (kTieBits / 2) | reversed;
  }

  // Visits the nodes within `reach` cells that may be within `limit` of `own`, with their distance.
  template <typename Visit>
  void for_candidates(const Place& own, long long reach, std::uint64_t limit,
                      const Visit& visit) const {
    const long long slack = kCell / 2 * jitter_ / 100 + 1;
    const double heaviest = static_cast<double>(kCell) * (1 + static_cast<double>(spread_) / 100);
    const double widest = static_cast<double>((reach + 1) * kCell);
    const double square =
        std::min(widest * widest, (static_cast<double>(limit >> kTieBits) + 1) *
                                      (static_cast<double>(own.weight) + heaviest) / (2 * kCell));
    // What is left of `square` for the other axes.
    const auto without = [&](double rest, int axis, long long cell) {
      const auto gap =
          static_cast<double>(std::max(std::abs(own.at[axis] - cell * kCell) - slack, 0ll));
      return rest - gap * gap;
    };
    const long long planes = dims_ == 3 ? reach : 0;
    for (long long z = own.cell.z - planes; z <= own.cell.z + planes; ++z) {
      const double in_plane = without(square, 2, z);
      if (in_plane < 0) continue;
      for (long long y = own.cell.y - reach; y <= own.cell.y + reach; ++y) {
        const double in_line = without(in_plane, 1, y);
        if (in_line < 0) continue;
        const long long half = static_cast<long long>(std::sqrt(in_line)) + slack + 1;
        const auto [first, count, x] = cells_.nodes_at(
            std::max((own.at[0] - half) >> kCellBits, own.cell.x - reach),
            std::min(((own.at[0] + half) >> kCellBits) + 1, own.cell.x + reach), y, z);
        for (long long k = 0; k < count; ++k) {
          if (first + k == own.node) continue;
          const Place other = place(first + k, {x + k, y, z});
          visit(other, distance(own, other));
        }
      }
    }
  }

  // Hubs stand at regular distances, in cells.
  long long hub_spacing() const { return dims_ == 2 ? 64 : 16; }
  std::optional<Place> hub_near(const Place& own) const {
    if (!has_hubs_) return std::nullopt;
    const long long spacing = hub_spacing();
    const auto nearest = [spacing](long long c, long long shift) {
      return (c + (spacing << 20) + spacing / 2 - shift) / spacing * spacing - (spacing << 20) +
             shift;
    };
    const Cells::Cell hub{nearest(own.cell.x, 0), nearest(own.cell.y, dims_ == 2 ? spacing / 2 : 0),
                          dims_ == 2 ? 0 : nearest(own.cell.z, spacing / 2)};
    const auto [node, count, x] = cells_.nodes_at(hub.x, hub.x, hub.y, hub.z);
    const long long away = std::max(
        {std::abs(hub.x - own.cell.x), std::abs(hub.y - own.cell.y), std::abs(hub.z - own.cell.z)});
    if (count == 0 || away > hub_reach_) return std::nullopt;
    return place(node, hub);
  }

  // Up to which distance a node is coupled: the limit, nearer where there are too many, farther for
  // a hub.
  std::uint64_t cut_of(const Place& own) {
    if (most_ == kAnyNumber) return limit_;
    Cut& known = cuts_[static_cast<std::size_t>(own.node) % kCuts];
    if (known.node == own.node) return known.distance;
    const std::optional<Place> hub = hub_near(own);
    const bool is_hub = hub && hub->node == own.node;
    const std::uint64_t limit = is_hub ? kNoLimit : limit_;
    distances_.clear();
    for_candidates(own, is_hub ? hub_reach_ : reach_, limit, [&](const Place&, std::uint64_t d) {
      if (d <= limit) distances_.push_back(d);
    });
    const long long others = (hub && !is_hub) + (far_partner(own.node) != own.node);
    const auto room = static_cast<std::size_t>(std::max(most_ - others, 0ll));
    known = {own.node, limit};
    if (distances_.size() > room) {
      const auto first_left_out = distances_.begin() + static_cast<std::ptrdiff_t>(room);
      std::nth_element(distances_.begin(), first_left_out, distances_.end());
      known.distance = *first_left_out - 1;
    }
    return known.distance;
  }

  // Appends the nodes that are coupled with `own` for being near; returns how many were given up.
  long long near_neighbours(const Place& own, std::vector<long long>& found) {
    const std::optional<Place> hub = hub_near(own);
    const bool is_hub = hub && hub->node == own.node;
    const std::uint64_t cut = cut_of(own);
    long long given_up = 0;
    for_candidates(own, is_hub ? hub_reach_ : reach_, is_hub ? cut : limit_,
                   [&](const Place& other, std::uint64_t d) {
                     if (hub && !is_hub && other.node == hub->node) return;
                     if (d <= cut && (is_hub || d <= cut_of(other))) {
                       found.push_back(other.node);
                     } else if (d <= limit_) {
                       ++given_up;
                     }
                   });
    if (hub && !is_hub && distance(own, *hub) <= cut_of(*hub)) found.push_back(hub->node);
    return given_up;
  }

  // How many couplings within the limit a node gives up, on average.
  double given_up() {
    const long long samples = std::min(nodes_, 1ll << 10);
    std::vector<long long> found;
    long long sum = 0;
    std::fill(cuts_.begin(), cuts_.end(), Cut{-1, 0});
    for (long long k = 0; k < samples; ++k)
      sum += near_neighbours(place(k * nodes_ / samples), found);
    std::fill(cuts_.begin(), cuts_.end(), Cut{-1, 0});
    return static_cast<double>(sum) / static_cast<double>(samples);
  }

  // What is near `samples` nodes: the distances to all within `limit`, and where each node's end.
  struct Sampled {
    std::vector<std::uint64_t> distances;
    std::vector<std::size_t> ends;

    std::uint64_t least(std::size_t wanted) const {  // the largest of so many least ones
      std::vector<std::uint64_t> sorted = distances;
      const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
      std::nth_element(sorted.begin(), last, sorted.end());
      return *last;
    }
  };
  Sampled sample(long long samples, std::uint64_t limit) const {
    Sampled sampled;
    for (long long k = 0; k < samples; ++k) {
      for_candidates(place(k * nodes_ / samples), reach_, limit,
                     [&](const Place&, std::uint64_t d) {
                       if (d <= limit) sampled.distances.push_back(d);
                     });
      sampled.ends.push_back(sampled.distances.size());
    }
    return sampled;
  }

  // Sets limit_ so that nodes have `degree` couplings on average.
  Couplings fit_reach(double degree) {
    degree = std::max(degree - static_cast<double>(far_) / 100, 0.0);
    const auto of = [degree](long long nodes) {
      return static_cast<std::size_t>(degree * static_cast<double>(nodes));
    };
    // A few nodes tell how far to look from the others: as far as twice as many couplings reach.
    const long long samples = std::min(nodes_, 1ll << 13), few = samples / 32;
    Sampled sampled = sample(few, kNoLimit);
    const bool is_known = of(few) > 0 && sampled.distances.size() >= 2 * of(few);
    sampled = sample(samples, is_known ? sampled.least(2 * of(few)) : kNoLimit);
    if (is_known && sampled.distances.size() < of(samples)) sampled = sample(samples, kNoLimit);
    const std::size_t wanted = std::min(of(samples), sampled.distances.size());
    if (wanted == 0) {
      limit_ = 0;
      return {0, 0};
    }
    limit_ = sampled.least(wanted);
    const auto begin_of_all = sampled.distances.begin();
    double squares = 0;
    long long largest = 0;
    std::size_t begin = 0;
    for (const std::size_t end : sampled.ends) {
      const auto count = std::count_if(begin_of_all + static_cast<std::ptrdiff_t>(begin),
                                       begin_of_all + static_cast<std::ptrdiff_t>(end),
                                       [this](std::uint64_t d) { return d <= limit_; });
      const double off = static_cast<double>(count) - degree;
      squares += off * off;
      largest = std::max<long long>(largest, count);
      begin = end;
    }
    return {std::sqrt(squares / static_cast<double>(samples)), largest};
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

  static constexpr int kTieBits = 24;
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kCuts = 1 << 17;  // a few planes' nodes

  struct Cut {
    long long node;
    std::uint64_t distance;
  };

  std::uint64_t seed_;
  long long nodes_;
  int dims_;
  long long irregular_, far_, most_;
  long long window_;
  Cells cells_;
  long long reach_;          // in cells
  long long hub_reach_ = 0;  // in cells
  bool has_hubs_ = false;
  long long jitter_ = 0;  // percentage of a cell, and of the density
  long long spread_ = 0;
  std::uint64_t limit_ = 0;
  std::vector<Cut> cuts_;  // those that were computed last
  std::vector<std::uint64_t> distances_;
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
  long long most = NodeMesh::kAnyNumber;
  if (const long long max_row = spec.get("max_row"); max_row != kDerived) {
    most = (max_row + block / 2) / block - 1;
    if (static_cast<double>(most) < degree) {
      spec.fail(fmt::format("nnz = {} does not fit in {} rows of {}", nnz, rows, max_row));
    }
  }
  NodeMesh mesh = spec.once([&] {
    NodeMesh fitted(spec, nodes, std::min(degree, static_cast<double>(nodes - 1)), most);
    fitted.fit(degree, spec.real("stddev", -1) / static_cast<double>(block), spec.get("spread"));
    return fitted;
  });
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
