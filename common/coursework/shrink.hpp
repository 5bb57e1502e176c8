// From a matrix on which a kernel fails to a small one on which it still does.
#pragma once

#include <functional>

#include "sparse/matrix.hpp"

namespace spmv::coursework {

// Takes rows, columns and nonzeros away from `matrix`, for which fails() holds, as long as it still
// does, and returns what is left: nothing more can be taken away alone, unless `attempts` calls of
// fails() were not enough to find out.
Coo<double> shrink(Coo<double> matrix, const std::function<bool(const Coo<double>&)>& fails,
                   int attempts = 400);

}  // namespace spmv::coursework
