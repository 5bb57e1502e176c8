// Products with 2, 4 and 8 vectors and with the transpose, timed beside what cuSPARSE has for them.
//
//   nvcc -O2 -std=c++17 -arch=native -o beside_cusparse beside_cusparse.cu -lcusparse
//   ./beside_cusparse [f32 | f64]                the 5-point stencil on a 1000 x 1000 grid
//   ./beside_cusparse [f32 | f64] matrix.mtx     a symmetric matrix (Matrix Market)
//
// Microseconds per call in a row of 200, caches warm; cuSPARSE's best of its CSR algorithms, after
// its preprocess. Every result is compared with the host's before it is timed. The rows of the
// matrix are scaled, so that it is not its own transpose.
#include <cuda_runtime.h>
#include <cusparse.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "../spmv/one_pass.cuh"
#include "matrix.hpp"

static void check(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  std::fprintf(stderr, "error: %s: %s\n", what, cusparseGetErrorString(status));
  std::exit(1);
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

// y = A X on the host with the sum of each row's absolute products, of which rounding is a part.
// `vectors` columns of X lie side by side; with `transposed`, y = A^T x.
struct HostProduct {
  std::vector<double> y, bound;
};
template <typename T>
static HostProduct host_product(const Csr& a, const std::vector<T>& x, int vectors,
                                bool transposed) {
  const std::size_t count = static_cast<std::size_t>(a.rows) * vectors;
  HostProduct product{std::vector<double>(count), std::vector<double>(count)};
  for (int row = 0; row < a.rows; ++row) {
    for (int k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
      const std::size_t to = transposed ? a.columns[k] : row;
      const std::size_t from = transposed ? row : a.columns[k];
      for (int v = 0; v < vectors; ++v) {
        const double term = double{static_cast<T>(a.values[k])} * x[from * vectors + v];
        product.y[to * vectors + v] += term;
        product.bound[to * vectors + v] += std::fabs(term);
      }
    }
  }
  return product;
}

template <typename T>
static void compare(const T* y, const HostProduct& expected, const char* whose) {
  std::vector<T> ours(expected.y.size());
  check(cudaMemcpy(ours.data(), y, ours.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy");
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double most = 100 * std::numeric_limits<T>::epsilon() * expected.bound[i];
    if (std::fabs(ours[i] - expected.y[i]) <= most) continue;
    std::fprintf(stderr, "error: %s: y[%zu] is %g, not %g\n", whose, i, double{ours[i]},
                 expected.y[i]);
    std::exit(1);
  }
}

// The best time of cuSPARSE's algorithms; call(stage, argument): asks for bytes, prepares,
// multiplies.
enum class Stage { kBytes, kPrepare, kMultiply };
template <typename T, typename Algorithm, typename Call>
static double best_of_cusparse(const T* y, const HostProduct& expected,
                               const std::vector<Algorithm>& algorithms, const Call& call) {
  double best = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : algorithms) {
    std::size_t bytes = 0;
    void* workspace = nullptr;
    check(call(algorithm, Stage::kBytes, &bytes), "cuSPARSE");
    check(cudaMalloc(&workspace, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
    check(call(algorithm, Stage::kPrepare, workspace), "cuSPARSE");
    const auto multiply = [&] { check(call(algorithm, Stage::kMultiply, workspace), "cuSPARSE"); };
    multiply();
    compare(y, expected, "cuSPARSE");
    best = std::min(best, microseconds(multiply));
    check(cudaFree(workspace), "cudaFree");
  }
  return best;
}

template <typename T>
static void measure(const Csr& a) {
  constexpr int kMost = 8;
  constexpr cudaDataType kType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_64F;
  const int n = a.rows;
  const int nnz = static_cast<int>(a.values.size());
  int* offsets = device(a.offsets);
  int* columns = device(a.columns);
  T* values = device(std::vector<T>(a.values.begin(), a.values.end()));
  std::vector<T> random(std::size_t{kMost} * n);
  for (std::size_t i = 0; i < random.size(); ++i) random[i] = static_cast<T>(std::sin(1.0 + i));
  T* x = device(random);
  T* y = device(random);
  const T one = 1;
  const T zero = 0;

  spmv::OnePassOptions options;
  options.most_vectors = kMost;
  spmv::OnePassPlan<T> plan;
  const spmv::CsrPattern pattern = {n, n, nnz, offsets, columns};
  check(plan.create(pattern, options), "plan");
  check(plan.prepare(nullptr), "prepare");

  cusparseHandle_t library = nullptr;
  cusparseSpMatDescr_t matrix = nullptr;
  check(cusparseCreate(&library), "cuSPARSE");
  check(cusparseCreateCsr(&matrix, n, n, nnz, offsets, columns, values, CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, kType),
        "matrix");
  std::printf("%d rows, %d nonzeros, %s\nvectors   one by one   several   cuSPARSE\n", n, nnz,
              kType == CUDA_R_32F ? "f32" : "f64");
  for (const int vectors : {2, 4, 8}) {
    const HostProduct expected = host_product(a, random, vectors, false);
    const auto several = [&] {
      check(plan.multiply_several(vectors, one, values, x, zero, y, nullptr), "product");
    };
    const auto one_by_one = [&] {  // each vector dense, which costs least
      for (int v = 0; v < vectors; ++v) {
        check(plan.multiply(one, values, x + 1LL * v * n, zero, y + 1LL * v * n, nullptr),
              "product");
      }
    };
    several();
    compare(y, expected, "several");
    cusparseDnMatDescr_t x_matrix = nullptr;
    cusparseDnMatDescr_t y_matrix = nullptr;
    check(cusparseCreateDnMat(&x_matrix, n, vectors, vectors, x, kType, CUSPARSE_ORDER_ROW), "X");
    check(cusparseCreateDnMat(&y_matrix, n, vectors, vectors, y, kType, CUSPARSE_ORDER_ROW), "Y");
    const std::vector<cusparseSpMMAlg_t> algorithms = {CUSPARSE_SPMM_CSR_ALG2,
                                                       CUSPARSE_SPMM_CSR_ALG3};
    const double theirs = best_of_cusparse(
        y, expected, algorithms, [&](cusparseSpMMAlg_t algorithm, Stage stage, void* argument) {
          const auto with = [&](const auto& function, auto* last) {
            return function(library, CUSPARSE_OPERATION_NON_TRANSPOSE,
                            CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x_matrix, &zero,
                            y_matrix, kType, algorithm, last);
          };
          if (stage == Stage::kBytes)
            return with(cusparseSpMM_bufferSize, static_cast<std::size_t*>(argument));
          return with(stage == Stage::kPrepare ? cusparseSpMM_preprocess : cusparseSpMM, argument);
        });
    std::printf("%7d %12.2f %9.2f %10.2f\n", vectors, microseconds(one_by_one),
                microseconds(several), theirs);
  }

  const HostProduct expected = host_product(a, random, 1, true);
  const auto atomics = [&] {
    check(plan.multiply_transposed(one, values, x, zero, y, nullptr), "transposed product");
  };
  atomics();
  compare(y, expected, "transposed");

  T* transposed_values = device(std::vector<T>(nnz));
  spmv::OnePassTranspose transpose;
  spmv::OnePassPlan<T> plan_of_transpose;
  double built = 0;
  for (int time = 0; time < 2; ++time) {  // the first loads kernels
    check(cudaDeviceSynchronize(), "wait");
    const auto begin = std::chrono::steady_clock::now();
    check(transpose.create(pattern, nullptr), "transpose");
    check(transpose.gather(values, transposed_values, nullptr), "gather");
    check(plan_of_transpose.create(transpose.pattern()), "plan");
    check(plan_of_transpose.prepare(nullptr), "prepare");
    check(cudaDeviceSynchronize(), "wait");
    built =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  const auto by_transpose = [&] {
    check(plan_of_transpose.multiply(one, transposed_values, x, zero, y, nullptr), "product");
  };
  by_transpose();
  compare(y, expected, "by the transpose");

  cusparseDnVecDescr_t x_vector = nullptr;
  cusparseDnVecDescr_t y_vector = nullptr;
  check(cusparseCreateDnVec(&x_vector, n, x, kType), "x");
  check(cusparseCreateDnVec(&y_vector, n, y, kType), "y");
  const std::vector<cusparseSpMVAlg_t> algorithms = {CUSPARSE_SPMV_CSR_ALG1,
                                                     CUSPARSE_SPMV_CSR_ALG2};
  const double theirs = best_of_cusparse(
      y, expected, algorithms, [&](cusparseSpMVAlg_t algorithm, Stage stage, void* argument) {
        const auto with = [&](const auto& function, auto* last) {
          return function(library, CUSPARSE_OPERATION_TRANSPOSE, &one, matrix, x_vector, &zero,
                          y_vector, kType, algorithm, last);
        };
        if (stage == Stage::kBytes)
          return with(cusparseSpMV_bufferSize, static_cast<std::size_t*>(argument));
        return with(stage == Stage::kPrepare ? cusparseSpMV_preprocess : cusparseSpMV, argument);
      });
  std::printf("transposed: atomics %.2f, by its transpose %.2f (built in %.0f), cuSPARSE %.2f\n",
              microseconds(atomics), microseconds(by_transpose), built, theirs);
}

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool single = !arguments.empty() && arguments[0] == "f32";
  if (single || (!arguments.empty() && arguments[0] == "f64")) arguments.erase(arguments.begin());
  Csr a = arguments.empty() ? stencil(1000) : read_symmetric(arguments[0]);
  for (int row = 0; row < a.rows; ++row) {
    for (int k = a.offsets[row]; k < a.offsets[row + 1]; ++k) a.values[k] *= 1 + row % 7;
  }
  single ? measure<float>(a) : measure<double>(a);
}
