// A generated matrix in place of one whose file is not at hand, made from what is known of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// What the tables of papers and collections say of a matrix.
struct MatrixFacts {
  Index rows = 0;
  Index cols = 0;
  Index nnz = 0;
  std::string_view kind;   // one of stand_in_kinds()
  Index unknowns = 1;      // of a mesh: at each node, numbered one after the other
  Index max_row = -1;      // longest row; -1: not known
  double row_stddev = -1;  // of the row length; -1: not known
};

// The kinds that there are recipes for, each with a few words.
struct StandInKind {
  const char* name;
  const char* meaning;
};
const std::vector<StandInKind>& stand_in_kinds();

// The specification of a stand-in for a matrix of these facts: its kind's recipe. How near recipes
// come to real matrices of their kind, `make calibrate` measures. Throws InputError when the kind
// is not known.
std::string stand_in_for(const MatrixFacts& facts);

}  // namespace spmv
