#include <algorithm>
#include <array>
#include <vector>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"

namespace spmv {

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

}  // namespace spmv
