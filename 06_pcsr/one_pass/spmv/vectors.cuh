// Step 06, one pass: how the kernels read x, and what they do with the sum of a row.
//
// An *epilogue* is a function of a row: epilogue(row, sum, old) returns the row's element of z,
// where sum is that of A x and old that of y (0 if there is no y). It is a class with a const
// operator() of this form, copied to the device, which may hold pointers to device memory and do
// more than return a number: one thread calls it, once per row, in any order of the rows. What it
// reads must not be written by the same product, but for y, which may be z.
#pragma once

#include <cuda_runtime.h>

namespace spmv {
inline namespace one_pass_2 {

// alpha A x + beta y. y is not needed if beta is 0: give none then, since it may hold NaN.
template <typename T>
struct Scaled {
  T alpha;
  T beta;
  __device__ __forceinline__ T operator()(int, T sum, T old) const {
    return alpha * sum + beta * old;
  }
};

// The same with alpha and beta in device memory, where a kernel before the product may have written
// them. y is read; what it holds does not count where beta is 0.
template <typename T>
struct ScaledOnDevice {
  const T* alpha;
  const T* beta;
  __device__ __forceinline__ T operator()(int, T sum, T old) const {
    const T scale = *beta;
    return scale != T{0} ? *alpha * sum + scale * old : *alpha * sum;
  }
};

namespace detail {

// Vectors in device memory. Step 10 has vectors of its own, which are in the memory of several
// GPUs.
template <typename T, typename Epilogue = Scaled<T>>
struct PlainVectors {
  const T* x;
  const T* y;  // or null
  T* z;        // may be y
  Epilogue epilogue;
  __device__ __forceinline__ T element(int column) const { return x[column]; }
  __device__ __forceinline__ void store(int row, T sum) const {
    z[row] = epilogue(row, sum, y ? y[row] : T{0});
  }
};

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
