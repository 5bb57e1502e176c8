// Step 05 (c), with CUB, the layer below Thrust: the same reduction, but the memory it works in is
// allocated once and the launches wait for nothing. CUB is for GPUs alone.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>

#include "device/buffer.hpp"
#include "device/coo.hpp"
#include "device/scale.cuh"

namespace spmv {

template <typename T>
struct DeviceProduct {
  const int* column_indices;
  const T* values;
  const T* x;
  __device__ T operator()(int k) const { return values[k] * x[column_indices[k]]; }
};

// sums[rows_with_nonzeros[i]] = the sum of the i-th row that has nonzeros. With workspace ==
// nullptr only says in `workspace_bytes` how much it needs.
template <typename T>
void sum_rows_with_cub(void* workspace, std::size_t& workspace_bytes, const device::DeviceCoo<T>& a,
                       const int* rows_with_nonzeros, const T* x, T* sums, int* row_count,
                       cudaStream_t stream) {
  const auto products = thrust::make_transform_iterator(
      thrust::counting_iterator<int>(0),
      DeviceProduct<T>{a.column_indices.data(), a.values.data(), x});
  device::check(
      cub::DeviceReduce::ReduceByKey(workspace, workspace_bytes, a.row_indices.data(),
                                     thrust::make_discard_iterator(), products,
                                     thrust::make_permutation_iterator(sums, rows_with_nonzeros),
                                     row_count, cuda::std::plus<>{}, a.nnz, stream),
      "CUB's ReduceByKey");
}

}  // namespace spmv
