// Matrices of structured grids: Godwin, Holewinski and Sadayappan 2012, section 2.2.
//
// A grid of NX x NY (x NZ) points, x fastest, that couples every point to its neighbours: those one
// step along an axis (5 and 7 points with itself) or also the diagonal ones (9 and 27). A point has
// `dof` unknowns, numbered one after the other, and every coupling is a dense dof x dof block.
//
// A stencil reaches one step beyond the grid at its edge. What it couples a point to there:
//   drop      nothing
//   wrap      the point at the other end of the line, the plane, the grid
//   clamp     the nearest point of the grid; it then has several coefficients, which add up
//   constant  nothing, and the points at the edge hold a constant: each unknown there has an
//             equation of its own, whose one coefficient is on the diagonal
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"

namespace spmv {
namespace {

enum Boundary { kDrop, kWrap, kClamp, kConstant };  // in the order of kBoundaryWords

using Point = std::array<long long, 3>;  // x, y, z

// The steps of a stencil, in the order of the points that they lead to. An axis that a grid does
// not have, is no way to step.
std::vector<Point> steps_of(int axes, bool box) {
  std::vector<Point> steps;
  const long long reach_z = axes > 2 ? 1 : 0;
  for (long long z = -reach_z; z <= reach_z; ++z) {
    for (long long y = -1; y <= 1; ++y) {
      for (long long x = -1; x <= 1; ++x) {
        if (box || std::abs(x) + std::abs(y) + std::abs(z) <= 1) steps.push_back({x, y, z});
      }
    }
  }
  return steps;
}

Pattern make_grid(const Specification& spec, const Point& extent, int axes, bool box) {
  const long long dof = spec.get("dof");
  const auto boundary = static_cast<Boundary>(spec.get("boundary"));
  const std::vector<Point> steps = steps_of(axes, box);

  double rows = static_cast<double>(dof);
  for (int axis = 0; axis < axes; ++axis) rows *= static_cast<double>(extent[axis]);
  // Points at the edge may have fewer.
  const double nnz = rows * static_cast<double>(dof) * static_cast<double>(steps.size());
  spec.check_size(rows, rows, nnz);
  const auto row_count = static_cast<long long>(rows);
  PatternBuilder builder(spec, row_count, row_count, nnz);

  // Where a step along an axis ends, or -1.
  const auto moved = [boundary](long long from, long long step, long long length) {
    const long long to = from + step;
    if (to >= 0 && to < length) return to;
    if (boundary == kWrap) return (to + length) % length;
    return boundary == kClamp ? from : -1;
  };
  std::vector<long long> neighbours;
  Point at{};
  for (long long point = builder.begin(dof); point < builder.end(dof); ++point) {
    const long long row = point * dof;
    at = {point % extent[0], point / extent[0] % extent[1], point / extent[0] / extent[1]};
    bool at_edge = false;
    for (int axis = 0; axis < axes; ++axis) {
      at_edge |= at[axis] == 0 || at[axis] == extent[axis] - 1;
    }
    if (at_edge && boundary == kConstant) {
      for (long long unknown = 0; unknown < dof; ++unknown) {
        builder.add(row + unknown);
        builder.end_row();
      }
      continue;
    }
    neighbours.clear();
    for (const Point& step : steps) {
      const long long x = moved(at[0], step[0], extent[0]);
      const long long y = moved(at[1], step[1], extent[1]);
      const long long z = moved(at[2], step[2], extent[2]);
      if (x >= 0 && y >= 0 && z >= 0) neighbours.push_back((z * extent[1] + y) * extent[0] + x);
    }
    if (at_edge) std::sort(neighbours.begin(), neighbours.end());
    for (auto same = neighbours.begin(); same != neighbours.end();) {
      const auto next = std::upper_bound(same, neighbours.end(), *same);
      for (long long unknown = 0; unknown < dof; ++unknown) {
        for (auto each = same; each != next; ++each) builder.add(*same * dof + unknown);
      }
      same = next;
    }
    builder.end_block_row(dof);
  }
  Pattern pattern = builder.take();
  pattern.repeats = boundary == kWrap || boundary == kClamp;
  return pattern;
}

}  // namespace

Pattern make_stencil2d(const Specification& spec) {
  const long long points = spec.get("points");
  if (points != 5 && points != 9) spec.fail(fmt::format("points must be 5 or 9, not {}", points));
  return make_grid(spec, {spec.size(0), spec.size(1), 1}, 2, points == 9);
}

Pattern make_stencil3d(const Specification& spec) {
  const long long points = spec.get("points");
  if (points != 7 && points != 27) spec.fail(fmt::format("points must be 7 or 27, not {}", points));
  return make_grid(spec, {spec.size(0), spec.size(1), spec.size(2)}, 3, points == 27);
}

}  // namespace spmv
