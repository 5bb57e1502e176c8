// A product that came out wrong, for the eye.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::coursework {

// Takes rows, columns and nonzeros away from `matrix`, for which fails() holds, as long as it still
// does, and returns what is left: nothing more can be taken away alone, unless `attempts` calls of
// fails() were not enough to find out.
Coo<double> shrink(Coo<double> matrix, const std::function<bool(const Coo<double>&)>& fails,
                   int attempts = 400);

// The matrix, x, what y should be and what it is, side by side, with an arrow at each wrong row.
// Of large matrices only the first few wrong rows are shown, by their numbers of nonzeros. y0 is
// what y held before; empty: nothing that counts.
std::string draw(const Coo<double>& matrix, const std::vector<double>& x,
                 const std::vector<double>& y0, const std::vector<double>& expected,
                 const std::vector<double>& got, const std::vector<bool>& wrong);

// What a product that came out wrong looks like, if all wrong rows do: that beta y is missing, say,
// or the last nonzero of each row. Sentences, the most particular first.
struct WrongProduct {
  const Coo<double>& matrix;
  const std::vector<double>& x;
  const std::vector<double>& y0;  // what counts only if beta is not 0
  double alpha, beta;
  const std::vector<double>& expected;
  const std::vector<double>& bound;  // of the error, by row
  const std::vector<double>& got;
  const std::vector<bool>& wrong;  // by row
  bool single;                     // precision
};
std::vector<std::string> diagnose(const WrongProduct& product);

}  // namespace spmv::coursework
