// Step 04, before any product is added: y becomes beta y.
//
// The kernels of this step add to y in many places and in any order, so that beta y has to be there
// first, in a launch of its own: between two launches of a stream all blocks wait for each other,
// within one they cannot.
//
//   thread   owns one row
#pragma once

#include <cuda_runtime.h>

namespace spmv {

// y is not read when beta is 0: it may hold NaN, and 0 NaN is NaN.
template <typename T>
__global__ void scale_y_kernel(int rows, T beta, T* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) y[row] = beta == T{0} ? T{0} : beta * y[row];
}

}  // namespace spmv
