#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "sparse/generators.hpp"
#include "sparse/rng.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"

using namespace spmv;

namespace {

struct Grid {
  Index nx, ny, nz;  // nz = 0: two axes
  bool box;
  Index dof;
  std::string boundary;

  std::string specification() const {
    const std::string sizes = std::to_string(nx) + "x" + std::to_string(ny);
    return (nz ? "stencil3d:" + sizes + "x" + std::to_string(nz) : "stencil2d:" + sizes) +
           ",points=" + (nz ? (box ? "27" : "7") : (box ? "9" : "5")) +
           ",dof=" + std::to_string(dof) + ",boundary=" + boundary + ",seed=3";
  }
};

// How often each coupling of unknowns occurs, straight from the definition: every point looks at
// every place around it, and the boundary says which point that is.
std::map<std::pair<Index, Index>, int> couplings(const Grid& grid) {
  std::map<std::pair<Index, Index>, int> counts;
  const Index extent[3] = {grid.nx, grid.ny, std::max(grid.nz, 1)};
  const int axes = grid.nz ? 3 : 2;
  for (Index point = 0; point < extent[0] * extent[1] * extent[2]; ++point) {
    const Index at[3] = {point % extent[0], point / extent[0] % extent[1],
                         point / extent[0] / extent[1]};
    bool edge = false;
    for (int axis = 0; axis < axes; ++axis) {
      edge = edge || at[axis] == 0 || at[axis] + 1 == extent[axis];
    }
    if (edge && grid.boundary == "constant") {
      for (Index a = 0; a < grid.dof; ++a) ++counts[{point * grid.dof + a, point * grid.dof + a}];
      continue;
    }
    for (int step = 0; step < 27; ++step) {
      const Index steps[3] = {step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1};
      if (axes == 2 && steps[2] != 0) continue;
      if (!grid.box && std::abs(steps[0]) + std::abs(steps[1]) + std::abs(steps[2]) > 1) continue;
      Index other[3];
      bool exists = true;
      for (int axis = 0; axis < 3; ++axis) {
        other[axis] = at[axis] + steps[axis];
        const bool outside = other[axis] < 0 || other[axis] >= extent[axis];
        if (outside && grid.boundary == "wrap") {
          other[axis] += other[axis] < 0 ? extent[axis] : -extent[axis];
        } else if (outside && grid.boundary == "clamp") {
          other[axis] = at[axis];
        } else if (outside) {
          exists = false;
        }
      }
      if (!exists) continue;
      const Index neighbour = (other[2] * extent[1] + other[1]) * extent[0] + other[0];
      for (Index a = 0; a < grid.dof; ++a) {
        for (Index b = 0; b < grid.dof; ++b) {
          ++counts[{point * grid.dof + a, neighbour * grid.dof + b}];
        }
      }
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("structured grids couple what their stencil and boundary say", "[generators][grid]") {
  for (const std::string boundary : {"drop", "wrap", "clamp", "constant"}) {
    for (const Grid& grid :
         {Grid{5, 4, 0, false, 1, boundary}, Grid{4, 5, 0, true, 3, boundary},
          Grid{3, 4, 5, false, 2, boundary}, Grid{4, 3, 3, true, 2, boundary},
          Grid{2, 5, 0, true, 2, boundary}, Grid{1, 4, 0, false, 2, boundary},
          Grid{3, 1, 2, false, 1, boundary}, Grid{1, 1, 1, false, 8, boundary}}) {
      CAPTURE(grid.specification());
      const Csr<double> csr = generate<double>(grid.specification());
      const auto expected = couplings(grid);
      REQUIRE(csr.nnz() == static_cast<Index>(expected.size()));
      // Values are drawn coupling by coupling; those of one pair of unknowns add up.
      Rng rng(3, 0xA5A5A5A5ull << 32);
      bool same = true;
      Index row = 0, k = 0;
      for (const auto& [at, count] : expected) {
        while (csr.row_offsets[row + 1] <= k) ++row;
        double value = 0;
        for (int i = 0; i < count; ++i) value += signed_unit_value<double>(rng.bits64());
        same = same && at == std::pair(row, csr.column_indices[k]) && csr.values[k] == value;
        ++k;
      }
      CHECK(same);
      const Csr<float> single = generate<float>(grid.specification());
      CHECK(std::equal(csr.values.begin(), csr.values.end(), single.values.begin(),
                       single.values.end()));
    }
  }
}

TEST_CASE("a grid's size is checked with the couplings of its boundary", "[generators][grid]") {
  const auto bytes_asked = [](const std::string& spec) {
    const std::string what = test::error_of([&] { generate<double>(spec, 0); });
    return what.substr(what.find("needs"), what.find(" of memory") - what.find("needs"));
  };
  // 12 bytes per coupling of unknowns, 4 per row and 4 more.
  CHECK(bytes_asked("stencil2d:10000x10,boundary=drop") == "needs 5.9 MiB");
  CHECK(bytes_asked("stencil2d:10000x10,boundary=wrap") == "needs 6.1 MiB");
  CHECK(bytes_asked("stencil2d:10000x10,boundary=clamp,dof=2") == "needs 23.7 MiB");
  CHECK(bytes_asked("stencil2d:10000x10,boundary=constant") == "needs 5.2 MiB");
}
