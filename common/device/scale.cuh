// The last line of every kernel here: y = alpha (A x) + beta y for one row.
#pragma once

#include <cuda_runtime.h>

namespace spmv {

// alpha sum + beta y. y is not read when beta is 0: it may hold NaN, and 0 NaN is NaN.
template <typename T>
__device__ __forceinline__ T scale(T alpha, T sum, T beta, const T* y) {
  return beta == T{0} ? alpha * sum : alpha * sum + beta * *y;
}

}  // namespace spmv
