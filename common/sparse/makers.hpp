// The generators that are no grids (grid.hpp) and no chains of wireless nodes (wlan.hpp). What each
// makes of its keys, stands in the table in generators.cpp.
#pragma once

#include "sparse/specification.hpp"

namespace spmv {

Pattern make_lattice(const Specification& spec);   // lattice.cpp
Pattern make_triangle(const Specification& spec);  // lattice.cpp
Pattern make_random(const Specification& spec);    // simple.cpp
Pattern make_banded(const Specification& spec);    // simple.cpp
Pattern make_dense(const Specification& spec);     // simple.cpp
Pattern make_diagonal(const Specification& spec);  // simple.cpp
Pattern make_powerlaw(const Specification& spec);
Pattern make_rmat(const Specification& spec);
Pattern make_fem(const Specification& spec);
Pattern make_kkt(const Specification& spec);
Pattern make_mesh(const Specification& spec);
Pattern make_graph(const Specification& spec);

}  // namespace spmv
