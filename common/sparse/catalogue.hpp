// Every matrix in the tables of the papers that the steps reproduce, and what stands in for it on a
// machine that has no copy of its file.
//
// Sizes are those of the file in the SuiteSparse collection when it is read as SpMV uses it: both
// triangles, entries that are stored as zero included. The collection's index leaves the zeros out;
// `explicit_zeros` is the difference. Where a paper prints another number, `note` says why.
//
// A stand-in is a generator's matrix of the same kind, made by a recipe (stand_in.hpp) from the
// numbers here, or by a specification where the paper's problem has a structure of its own. It has
// the file's rows and columns exactly and its nonzeros within 1 % (graphs, dense: exactly); where
// the standard deviation of the row length or its maximum is known, it comes within a factor of 1.5
// of both, and no row of a mesh is longer than that maximum. common/tests/catalogue_test.cpp holds
// every stand-in of up to 3 million nonzeros to that. The Markov paper's own chains are wlan's,
// which has their rows and nonzeros exactly. The CDS paper names no matrices: its structured grids
// are stencil2d and stencil3d, with dof= and boundary=.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// The tables in which a matrix appears.
enum Paper : unsigned {
  kPcsr = 1,       // He and Gao 2016, table 2
  kMarkov = 2,     // Bylina, Bylina and Karwacki 2011, tables 2 and 3
  kLightSpmv = 4,  // Liu, Gonzalez-Dominguez and Schmidt, poster P5267
};

struct CatalogueEntry {
  const char* name;             // as the papers call it
  const char* group;            // in the collection; "" when the matrix is not there
  const char* collection_name;  // there, where it differs from `name`; else ""
  Index rows;
  Index cols;
  Index nnz;
  Index explicit_zeros;
  unsigned papers;       // a sum of Paper
  double row_stddev;     // of the row length, from the poster; -1 where it is not given
  Index max_row;         // longest row, rounded; -1 where it is not known
  const char* kind;      // in words
  const char* stand_in;  // kind of the recipe (stand_in.hpp) that makes `source`; else ""
  Index unknowns;        // at each node, for a mesh
  std::string source;    // the generator's specification
  bool exact;            // `source` is the matrix itself and no stand-in
  const char* note;      // where a paper's figures differ; else ""

  const char* file_stem() const { return *collection_name ? collection_name : name; }
};

// In the order of the papers' tables.
const std::vector<CatalogueEntry>& catalogue();

// Null when there is none of that name. The collection's own name is found as well.
const CatalogueEntry* find_in_catalogue(std::string_view name);

// The downloadable ones, a line each, tab-separated: name, group, the collection's name, rows,
// columns, nonzeros. common/data.sh reads this.
void print_catalogue(std::ostream& out);

}  // namespace spmv
