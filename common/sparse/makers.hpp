// The generators. What each makes of its keys, stands in the table in generators.cpp.
#pragma once

#include "sparse/specification.hpp"

namespace spmv {

inline constexpr char kBoundaryWords[] = "drop,wrap,clamp,constant";  // grid.cpp
inline constexpr char kWlanStates[] = "reachable,all";

Pattern make_stencil2d(const Specification& spec);  // grid.cpp
Pattern make_stencil3d(const Specification& spec);  // grid.cpp
Pattern make_lattice(const Specification& spec);    // lattice.cpp
Pattern make_triangle(const Specification& spec);   // lattice.cpp
Pattern make_random(const Specification& spec);     // simple.cpp
Pattern make_banded(const Specification& spec);     // simple.cpp
Pattern make_dense(const Specification& spec);      // simple.cpp
Pattern make_diagonal(const Specification& spec);   // simple.cpp
Pattern make_powerlaw(const Specification& spec);
Pattern make_rmat(const Specification& spec);
Pattern make_fem(const Specification& spec);
Pattern make_kkt(const Specification& spec);
Pattern make_mesh(const Specification& spec);
Pattern make_graph(const Specification& spec);
Pattern make_wlan(const Specification& spec);

}  // namespace spmv
