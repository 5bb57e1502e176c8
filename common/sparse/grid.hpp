// Matrices of structured grids: Godwin, Holewinski and Sadayappan 2012, section 2.2.
#pragma once

#include "sparse/specification.hpp"

namespace spmv {

// A stencil reaches one step beyond the grid at its edge. What it couples a point to there:
//   drop      nothing
//   wrap      the point at the other end of the line, the plane, the grid
//   clamp     the nearest point of the grid; it then has several coefficients, which add up
//   constant  nothing, and the points at the edge hold a constant: each unknown there has an
//             equation of its own, whose one coefficient is on the diagonal
inline constexpr char kBoundaryWords[] = "drop,wrap,clamp,constant";

// A grid of NX x NY (x NZ) points, x fastest, that couples every point to its neighbours: those one
// step along an axis (5 and 7 points with itself) or also the diagonal ones (9 and 27). A point has
// `dof` unknowns, numbered one after the other, and every coupling is a dense dof x dof block.
Pattern make_stencil2d(const Specification& spec);
Pattern make_stencil3d(const Specification& spec);

}  // namespace spmv
