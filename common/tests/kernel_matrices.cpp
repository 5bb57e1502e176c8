#include "tests/kernel_matrices.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "sparse/rng.hpp"

namespace spmv::test {
namespace {

// A rows x cols matrix whose row r has length(r) nonzeros in ascending random columns; the triplets
// stand in random order.
Coo<double> build(Index rows, Index cols, std::uint64_t seed,
                  const std::function<Index(Index)>& length) {
  Coo<double> coo{rows, cols, {}, {}, {}};
  Rng rng(seed);
  for (Index row = 0; row < rows; ++row) {
    Index left = std::min(length(row), cols);
    // Each column is taken with the chance that makes the number come out exactly.
    for (Index column = 0; column < cols && left > 0; ++column) {
      if (static_cast<Index>(rng.below(static_cast<std::uint64_t>(cols - column))) >= left)
        continue;
      coo.add(row, column, signed_unit_value<double>(rng.bits64()));
      --left;
    }
  }
  for (Index k = coo.nnz(); k > 1; --k) {
    const auto other = static_cast<Index>(rng.below(static_cast<std::uint64_t>(k)));
    std::swap(coo.row_indices[k - 1], coo.row_indices[other]);
    std::swap(coo.column_indices[k - 1], coo.column_indices[other]);
    std::swap(coo.values[k - 1], coo.values[other]);
  }
  return coo;
}

}  // namespace

std::vector<NamedMatrix> adversarial_matrices(std::uint64_t seed) {
  std::vector<NamedMatrix> matrices;
  const auto add = [&](const std::string& name, Index rows, Index cols,
                       const std::function<Index(Index)>& length) {
    matrices.push_back({name, build(rows, cols, seed + matrices.size() + 1, length)});
  };
  const auto all = [](Index n) { return [n](Index) { return n; }; };
  add("0 x 0", 0, 0, all(0));
  add("0 x 5", 0, 5, all(0));
  add("5 x 0", 5, 0, all(0));
  add("1 x 1", 1, 1, all(1));
  add("1 x 1, empty", 1, 1, all(0));
  add("one row of 5000", 1, 5000, all(5000));
  add("one column of 1500", 1500, 1, all(1));
  add("all rows empty", 600, 10, all(0));
  add("first row alone", 600, 100, [](Index r) { return r == 0 ? 7 : 0; });
  add("last row alone", 600, 100, [](Index r) { return r == 599 ? 7 : 0; });
  add("one full row among empty ones", 500, 4099, [](Index r) { return r == 333 ? 4099 : 0; });
  add("one full row among rows of 1", 500, 4099, [](Index r) { return r == 333 ? 4099 : 1; });
  add("two full rows side by side", 40, 3001, [](Index r) { return r == 7 || r == 8 ? 3001 : 2; });
  add("rows of 0 and 1 in turn", 1025, 1025, [](Index r) { return r % 2; });
  add("wide", 33, 10000, all(9));
  add("tall", 4001, 33, all(3));
  // Around the sizes of warps, blocks and tiles: as the length of rows, as the number of rows, and
  // as the number of nonzeros.
  for (const Index size : {32, 64, 128, 256, 512, 1024, 2048}) {
    for (const Index n : {size - 1, size, size + 1}) {
      add("rows of " + std::to_string(n), std::clamp(3000 / n, 3, 35), n + 50, all(n));
      add(std::to_string(n) + " rows", n, 50, all(n < 1000 ? 5 : 1));
      add(std::to_string(n) + " nonzeros", n / 15 + 1, 50,
          [n](Index r) { return std::min<Index>(15, n - 15 * r); });
    }
  }
  add("lengths 0 to 99", 100, 100, [](Index r) { return r; });
  add("lengths 99 to 0", 100, 100, [](Index r) { return 99 - r; });
  add("a row of 2048 at each 100th", 500, 2500, [](Index r) { return r % 100 ? 1 : 2048; });
  return matrices;
}

std::vector<NamedMatrix> random_matrices(int count, std::uint64_t seed) {
  std::vector<NamedMatrix> matrices;
  for (int i = 0; i < count; ++i) {
    Rng rng(seed + 1000 + static_cast<std::uint64_t>(i));
    const auto rows = static_cast<Index>(1 + rng.below(i % 10 == 0 ? 400 : 90));
    const auto cols = static_cast<Index>(1 + rng.below(i % 7 == 0 ? 900 : 120));
    const std::uint64_t longest = 1 + rng.below(static_cast<std::uint64_t>(cols));
    const std::uint64_t kind = rng.below(4);
    matrices.push_back({"random " + std::to_string(i),
                        build(rows, cols, seed + 5000 + static_cast<std::uint64_t>(i), [&](Index) {
                          switch (kind) {
                            case 0:
                              return static_cast<Index>(rng.below(longest + 1));
                            case 1:
                              return static_cast<Index>(rng.below(8));
                            case 2:
                              return rng.below(20) == 0 ? static_cast<Index>(longest) : Index{0};
                            default:
                              return static_cast<Index>(rng.below(rng.below(longest + 1) + 1));
                          }
                        })});
  }
  return matrices;
}

}  // namespace spmv::test
