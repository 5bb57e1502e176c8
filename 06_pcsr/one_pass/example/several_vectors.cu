// The product with 2, 4 and 8 vectors, timed beside as many products with one and cuSPARSE's SpMM.
//
//   nvcc -O2 -std=c++17 -arch=native -o several_vectors several_vectors.cu -lcusparse
//   ./several_vectors                  the 5-point stencil on a 1000 x 1000 grid
//   ./several_vectors matrix.mtx       a symmetric matrix (Matrix Market)
//
// Microseconds per call in a row of 200, caches warm; cuSPARSE's best of its CSR algorithms 2 and 3
// after its preprocess. All three are compared before they are timed.
#include <cuda_runtime.h>
#include <cusparse.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include "../one_pass.cuh"
#include "matrix.hpp"

static void check(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  std::fprintf(stderr, "error: %s: %s\n", what, cusparseGetErrorString(status));
  std::exit(1);
}

static std::vector<double> host(const double* data, std::size_t count) {
  std::vector<double> copy(count);
  check(cudaMemcpy(copy.data(), data, count * sizeof(double), cudaMemcpyDeviceToHost), "copy");
  return copy;
}

static double microseconds(const std::function<void()>& call) {
  constexpr int kCalls = 200;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> times;
  for (int batch = 0; batch < 8; ++batch) {  // the first warms up
    check(cudaEventRecord(begin), "event");
    for (int i = 0; i < kCalls; ++i) call();
    check(cudaEventRecord(end), "event");
    check(cudaEventSynchronize(end), "calls");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    if (batch > 0) times.push_back(1000.0 * milliseconds / kCalls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int argc, char** argv) {
  constexpr int kMost = 8;
  const Csr a = argc > 1 ? read_symmetric(argv[1]) : stencil(1000);
  const int n = a.rows;
  const int nnz = static_cast<int>(a.values.size());
  int* offsets = device(a.offsets);
  int* columns = device(a.columns);
  double* values = device(a.values);
  std::vector<double> random(std::size_t{kMost} * n);
  for (std::size_t i = 0; i < random.size(); ++i) random[i] = std::sin(1.0 + i);
  double* x = device(random);
  double* y = device(random);

  spmv::OnePassOptions options;
  options.most_vectors = kMost;
  spmv::OnePassPlan<double> plan;
  check(plan.create({n, n, nnz, offsets, columns}, options), "plan");
  check(plan.prepare(nullptr), "prepare");

  cusparseHandle_t library = nullptr;
  cusparseSpMatDescr_t matrix = nullptr;
  check(cusparseCreate(&library), "cuSPARSE");
  check(cusparseCreateCsr(&matrix, n, n, nnz, offsets, columns, values, CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
        "matrix");
  std::printf("%d rows, %d nonzeros\nvectors   one by one   several   cuSPARSE\n", n, nnz);
  for (const int vectors : {2, 4, 8}) {
    const std::size_t count = static_cast<std::size_t>(n) * vectors;
    const auto several = [&] {
      check(plan.multiply_several(vectors, 1, values, x, 0, y, nullptr), "product");
    };
    const auto one_by_one = [&] {  // each vector dense, which costs least
      for (int v = 0; v < vectors; ++v) {
        check(plan.multiply(1, values, x + 1LL * v * n, 0, y + 1LL * v * n, nullptr), "product");
      }
    };
    several();
    const std::vector<double> ours = host(y, count);
    const auto compare = [&](const std::vector<double>& theirs, const char* whose) {
      for (int row = 0; row < n; ++row) {
        double bound = 0;  // of sums of up to 1: |x| is
        for (int k = a.offsets[row]; k < a.offsets[row + 1]; ++k) bound += std::fabs(a.values[k]);
        bound *= (a.offsets[row + 1] - a.offsets[row] + 8) * std::numeric_limits<double>::epsilon();
        for (int v = 0; v < vectors; ++v) {
          const std::size_t at = static_cast<std::size_t>(row) * vectors + v;
          if (std::fabs(ours[at] - theirs[at]) <= bound) continue;
          std::fprintf(stderr, "error: row %d, vector %d: %g, %s %g\n", row, v, ours[at], whose,
                       theirs[at]);
          std::exit(1);
        }
      }
    };
    std::vector<double> host_products(count);  // of vector v, which lies in x with a stride
    for (int row = 0; row < n; ++row) {
      for (int v = 0; v < vectors; ++v) {
        double& sum = host_products[static_cast<std::size_t>(row) * vectors + v];
        for (int k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
          sum += a.values[k] * random[static_cast<std::size_t>(a.columns[k]) * vectors + v];
        }
      }
    }
    compare(host_products, "the host");

    double best = std::numeric_limits<double>::infinity();
    cusparseDnMatDescr_t x_matrix = nullptr;
    cusparseDnMatDescr_t y_matrix = nullptr;
    check(cusparseCreateDnMat(&x_matrix, n, vectors, vectors, x, CUDA_R_64F, CUSPARSE_ORDER_ROW),
          "X");
    check(cusparseCreateDnMat(&y_matrix, n, vectors, vectors, y, CUDA_R_64F, CUSPARSE_ORDER_ROW),
          "Y");
    for (const cusparseSpMMAlg_t algorithm : {CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3}) {
      const double one = 1;
      const double zero = 0;
      const auto with = [&](const auto& function, auto* last) {
        return function(library, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        &one, matrix, x_matrix, &zero, y_matrix, CUDA_R_64F, algorithm, last);
      };
      std::size_t bytes = 0;
      void* workspace = nullptr;
      check(with(cusparseSpMM_bufferSize, &bytes), "SpMM");
      check(cudaMalloc(&workspace, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
      check(with(cusparseSpMM_preprocess, workspace), "SpMM");
      const auto multiply = [&] { check(with(cusparseSpMM, workspace), "SpMM"); };
      multiply();
      compare(host(y, count), "cuSPARSE");
      best = std::min(best, microseconds(multiply));
      check(cudaFree(workspace), "cudaFree");
    }
    std::printf("%7d %12.2f %9.2f %10.2f\n", vectors, microseconds(one_by_one),
                microseconds(several), best);
  }
}
