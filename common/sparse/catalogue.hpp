// Every matrix in the tables of the papers that the steps reproduce (catalogue.tsv), and what
// stands in for it on a machine that has no copy of its file. Behind them, large matrices by public
// definitions, which are exact: a generator makes them, or SciPy (plots/measure/large_matrices.py).
//
// Sizes are those of the file in the SuiteSparse collection when it is read as SpMV uses it: both
// triangles, entries that are stored as zero included. A paper may print other numbers: one
// triangle (the Markov paper's meshes, finan512), or no stored zeros (af_shell9, kkt_power). The
// poster's copy of rail4284 lacks the 4284 slack columns; the collection's qcd5_4 is complex.
//
// A stand-in is a generator's matrix of the same kind, whose keys were fitted on real files of that
// kind (plots/README.md). It has the file's rows and columns exactly and its nonzeros within
// 1 % (graphs, dense: exactly). A mesh has two dimensions where nodes have few neighbours and three
// where they have many, and no row longer than the file's longest. Where the spread of the row
// lengths is not known, it is a third of what the longest row has above the mean. The Markov
// paper's own chains are wlan's, which has their rows and nonzeros exactly; it prints neither their
// rates nor their order of states. The CDS paper names no matrices: its structured grids are
// stencil2d and stencil3d, with dof= and boundary=.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

struct CatalogueEntry {
  std::string name;             // as the papers call it
  std::string group;            // in the collection; "-" or "scipy" when the matrix is not there
  std::string collection_name;  // there
  Index rows, cols, nnz;
  std::string source;  // the generator's full specification; "-" when SciPy makes the matrix

  // Whether anyone can fetch it. If not, `source` is the matrix itself and no stand-in.
  bool in_collection() const { return group != "-" && !is_made_by_scipy(); }
  // Whether `make data ARGS=large` makes its file.
  bool is_made_by_scipy() const { return group == "scipy"; }
};

// In the order of the papers' tables.
const std::vector<CatalogueEntry>& catalogue();

// Null when there is none of that name. The collection's own name is found as well.
const CatalogueEntry* find_in_catalogue(std::string_view name);

}  // namespace spmv
