// Step 10: steps of an iteration that are recorded (steps.cpp).
#pragma once

#include <functional>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::multigpu {

// Where rows and entries of x are on a GPU, for those who read the trace.
struct PlacesOnGpu {
  std::vector<Index> rows;     // of the matrix, in the order in which they are stored
  Index boundary_rows;         // which are the first
  std::vector<Index> columns;  // of each entry of the local x; -1: it has none
};

struct Iteration {
  std::vector<PlacesOnGpu> parts;
  std::function<void()> run;
  std::function<std::vector<double>(int k)> x_of;  // as Machine's
};

// By minimal.cu.
Iteration iteration_of_minimal(int gpus, int steps, const Csr<double>& a,
                               const std::vector<double>& x);

}  // namespace spmv::multigpu
