// Step 05 (c): the segmented scan as a library has it, with Thrust.
//
// What (a) and (b) do by hand is a reduction by key: add up neighbours of equal row. Thrust has it,
// on GPUs and, through OpenMP, on CPUs; what remains to be said is what to add up and where to put
// it. Products are never stored: a transform iterator computes each when it is read.
#pragma once

#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include "sparse/matrix.hpp"

namespace spmv {

template <typename T>
struct Product {
  const int* column_indices;
  const T* values;
  const T* x;
  __host__ __device__ T operator()(int k) const { return values[k] * x[column_indices[k]]; }
};

template <typename T>
struct Scale {
  T alpha, beta;
  __host__ __device__ T operator()(T sum, T y) const {
    return beta == T{0} ? alpha * sum : alpha * sum + beta * y;
  }
};

template <typename T>
struct ThrustSegscan {
  thrust::device_vector<int> row_indices, column_indices;
  thrust::device_vector<T> values;
  thrust::device_vector<int> rows_with_nonzeros;
  thrust::device_vector<T> sums;  // one per row; those of rows without nonzeros stay 0

  // Of triplets in any order.
  explicit ThrustSegscan(const Coo<T>& coo)
      : row_indices(coo.row_indices),
        column_indices(coo.column_indices),
        values(coo.values),
        rows_with_nonzeros(values.size()),
        sums(coo.rows) {
    thrust::device_vector<int> rows = row_indices;
    thrust::stable_sort_by_key(rows.begin(), rows.end(), column_indices.begin());
    thrust::stable_sort_by_key(row_indices.begin(), row_indices.end(), values.begin());
    rows_with_nonzeros.erase(
        thrust::unique_copy(row_indices.begin(), row_indices.end(), rows_with_nonzeros.begin()),
        rows_with_nonzeros.end());
  }

  template <typename Policy>
  void multiply(const Policy& policy, T alpha, const T* x, T beta, T* y) {
    const auto products =
        thrust::make_transform_iterator(thrust::counting_iterator<int>(0),
                                        Product<T>{thrust::raw_pointer_cast(column_indices.data()),
                                                   thrust::raw_pointer_cast(values.data()), x});
    thrust::reduce_by_key(
        policy, row_indices.begin(), row_indices.end(), products, thrust::make_discard_iterator(),
        thrust::make_permutation_iterator(sums.begin(), rows_with_nonzeros.begin()));
    thrust::transform(policy, sums.begin(), sums.end(), y, y, Scale<T>{alpha, beta});
  }
};

}  // namespace spmv
