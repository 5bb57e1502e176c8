#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"

namespace spmv {
namespace {

constexpr long long kCouplings = 15;  // of a node on average, with itself

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
  Mesh(std::uint64_t seed, long long nodes, std::vector<long long> offsets)
      : seed_(seed), nodes_(nodes), offsets_(std::move(offsets)) {
    for (long long region = 0; region * kRegion < nodes; ++region) {
      const auto swing =
          static_cast<long long>(Rng(seed, ~static_cast<std::uint64_t>(region)).below(2001)) - 1000;
      weights_.push_back(kUnit + kUnit * kSpread / 100 * swing / 1000);
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
  static constexpr long long kSpread = 25;               // percentage by which they differ
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

}  // namespace

// Finite elements: every coupling of the mesh is a dense block x block block.
Pattern make_fem(const Specification& spec) {
  const long long nodes = spec.size(0);
  const long long block = spec.get("block");
  const double rows = static_cast<double>(nodes) * static_cast<double>(block);
  const double nnz = rows * static_cast<double>(kCouplings * block);
  spec.check_size(rows, rows, nnz);
  if (nodes == 0) return PatternBuilder(spec, 0, 0, 0).take();

  const long long reach = cube_root(nodes) * cube_root(nodes);
  std::vector<long long> offsets = mesh_offsets(std::min(kCouplings - 1, nodes - 1), reach);
  std::erase_if(offsets, [nodes](long long d) { return d >= nodes; });
  long long most = nodes;
  for (const long long offset : offsets) most += 2 * (nodes - offset);
  const Mesh& mesh = spec.once([&] {
    Mesh fitted(spec.seed(), nodes, offsets);
    fitted.fit((std::min(kCouplings * nodes, most) - nodes) / 2);
    return fitted;
  });

  PatternBuilder builder(spec, nodes * block, nodes * block, 1.01 * nnz);
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

}  // namespace spmv
