// A product that came out wrong, for the eye.
#pragma once

#include <string>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::coursework {

// The matrix, x, what y should be and what it is, side by side, with an arrow at each wrong row.
// Large matrices are cut down to the first few wrong rows, and those to the nonzeros at their ends
// and around the border of a warp's or block's share. y0 is what y held before; empty: nothing
// that counts.
std::string draw(const Coo<double>& matrix, const std::vector<double>& x,
                 const std::vector<double>& y0, const std::vector<double>& expected,
                 const std::vector<double>& got, const std::vector<bool>& wrong);

}  // namespace spmv::coursework
