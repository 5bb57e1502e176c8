// Products with 2, 4 and 8 vectors and with the transpose, timed beside what cuSPARSE has for them.
//
//   make build BACKEND=cuda && build/cuda/beside_cusparse f64 MATRIX     (or f32)
//
// Microseconds per call, back to back, caches warm; cuSPARSE's best of its CSR algorithms, after
// its preprocess. Every result is verified before it is timed. The rows of the matrix are scaled,
// so that it is not its own transpose.
#include <cusparse.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../spmv/one_pass.cuh"
#include "device/csr.hpp"
#include "harness/measure.hpp"
#include "harness/verify.hpp"
#include "sparse/convert.hpp"
#include "sparse/load.hpp"

namespace spmv {
namespace {

using device::Buffer;
using device::check;

void check(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw device::DeviceError(std::string(what) + ": " + cusparseGetErrorString(status));
}

// Throws unless Y = A X. The vectors are the columns of X and Y, which are row-major.
template <typename T>
void verify_columns(const Csr<T>& a, int vectors, const std::vector<T>& x, const Buffer<T>& y,
                    const std::string& whose) {
  const std::vector<T> got = y.download();
  for (int v = 0; v < vectors; ++v) {
    const auto column = [&](const std::vector<T>& all, Index count) {
      std::vector<T> one(count);
      for (Index i = 0; i < count; ++i) one[i] = all[static_cast<std::size_t>(i) * vectors + v];
      return one;
    };
    const Reference reference = make_reference(a, T{1}, column(x, a.cols), T{0}, {});
    const Verdict verdict = verify(column(got, a.rows), reference);
    if (!verdict.ok) throw std::runtime_error(whose + ": " + verdict.describe());
  }
}

double microseconds(const device::Stream& stream, const Launch& launch) {
  return 1e3 * time_warm(stream, launch).median;
}

// The same, after one product, of which verify_result(name) throws if it is wrong.
template <typename Verify>
double microseconds(const device::Stream& stream, const char* name, const Verify& verify_result,
                    const Launch& launch) {
  launch(stream.get());
  stream.synchronize();
  verify_result(name);
  return microseconds(stream, launch);
}

// The best time of cuSPARSE's algorithms; call(function, algorithm, last): calls one of the three
// functions, which have the same parameters but for the last.
template <typename Algorithm, typename Verify, typename Call, typename BytesOf, typename Function>
double best_of_cusparse(const device::Stream& stream, const std::vector<Algorithm>& algorithms,
                        const Verify& verify_result, const Call& call, BytesOf bytes_of,
                        Function prepare, Function multiply) {
  double best = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : algorithms) {
    std::size_t bytes = 0;
    check(call(bytes_of, algorithm, &bytes), "cuSPARSE");
    Buffer<char> workspace("workspace", bytes);
    check(call(prepare, algorithm, workspace.data()), "cuSPARSE");
    const double time = microseconds(stream, "cuSPARSE", verify_result, [&](cudaStream_t) {
      check(call(multiply, algorithm, workspace.data()), "cuSPARSE");
    });
    best = std::min(best, time);
  }
  return best;
}

template <typename T>
void measure(const std::string& spec) {
  constexpr int kMost = 8;
  constexpr cudaDataType kType = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
  Csr<T> a = load_matrix<T>(spec).csr;
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) a.values[k] *= 1 + row % 7;
  }
  Coo<T> triplets = to_coo(a);
  std::swap(triplets.rows, triplets.cols);
  std::swap(triplets.row_indices, triplets.column_indices);
  const Csr<T> a_transposed = to_csr(triplets);
  const device::DeviceCsr<T> on_device(a);
  const T* const values = on_device.values.data();
  const std::size_t elements = std::size_t{kMost} * std::max(a.rows, a.cols);
  const std::vector<T> x_host = test_vector<T>(elements, 1);
  Buffer<T> x("x", x_host);
  Buffer<T> y("y", elements);
  const device::Stream stream;
  const T one = 1;
  const T zero = 0;

  OnePassOptions options;
  options.most_vectors = kMost;
  OnePassPlan<T> plan;
  const CsrPattern pattern{a.rows, a.cols, a.nnz(), on_device.row_offsets.data(),
                           on_device.column_indices.data()};
  check(plan.create(pattern, options), "plan");
  check(plan.prepare(stream.get()), "prepare");
  cusparseHandle_t library = nullptr;
  cusparseSpMatDescr_t matrix = nullptr;
  check(cusparseCreate(&library), "cuSPARSE");
  check(cusparseSetStream(library, stream.get()), "cuSPARSE");
  check(cusparseCreateCsr(&matrix, a.rows, a.cols, a.nnz(), const_cast<Index*>(pattern.row_offsets),
                          const_cast<Index*>(pattern.column_indices), const_cast<T*>(values),
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, kType),
        "matrix");
  std::printf("%d rows, %d nonzeros, %s\nvectors   one by one   several   cuSPARSE\n", a.rows,
              a.nnz(), sizeof(T) == 4 ? "f32" : "f64");
  for (const int vectors : {2, 4, 8}) {
    const auto verify_several = [&](const char* whose) {
      verify_columns(a, vectors, x_host, y, whose);
    };
    const double several =
        microseconds(stream, "several", verify_several, [&](cudaStream_t its_stream) {
          check(plan.multiply_several(vectors, one, values, x.data(), zero, y.data(), its_stream),
                "product");
        });
    const double one_by_one = microseconds(stream, [&](cudaStream_t its_stream) {
      for (int v = 0; v < vectors; ++v) {  // each vector dense, which costs least
        check(plan.multiply(one, values, x.data() + std::size_t{1} * v * a.cols, zero,
                            y.data() + std::size_t{1} * v * a.rows, its_stream),
              "product");
      }
    });
    cusparseDnMatDescr_t x_matrix = nullptr;
    cusparseDnMatDescr_t y_matrix = nullptr;
    constexpr auto kOrder = CUSPARSE_ORDER_ROW;
    check(cusparseCreateDnMat(&x_matrix, a.cols, vectors, vectors, x.data(), kType, kOrder), "X");
    check(cusparseCreateDnMat(&y_matrix, a.rows, vectors, vectors, y.data(), kType, kOrder), "Y");
    const double theirs = best_of_cusparse(
        stream, std::vector{CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3}, verify_several,
        [&](auto function, cusparseSpMMAlg_t algorithm, auto* last) {
          return function(library, CUSPARSE_OPERATION_NON_TRANSPOSE,
                          CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x_matrix, &zero, y_matrix,
                          kType, algorithm, last);
        },
        cusparseSpMM_bufferSize, cusparseSpMM_preprocess, cusparseSpMM);
    std::printf("%7d %12.2f %9.2f %10.2f\n", vectors, one_by_one, several, theirs);
  }

  const auto verify_transposed = [&](const char* whose) {
    verify_columns(a_transposed, 1, x_host, y, whose);
  };
  const double atomics =
      microseconds(stream, "atomics", verify_transposed, [&](cudaStream_t its_stream) {
        check(plan.multiply_transposed(one, values, x.data(), zero, y.data(), its_stream),
              "product");
      });
  Buffer<T> transposed_values("transposed values", a.values.size());
  OnePassTranspose transpose;
  OnePassPlan<T> plan_of_transpose;
  double built = 0;
  for (int time = 0; time < 2; ++time) {  // the first loads kernels
    const auto begin = std::chrono::steady_clock::now();
    check(transpose.create(pattern, stream.get()), "transpose");
    check(transpose.gather(values, transposed_values.data(), stream.get()), "gather");
    check(plan_of_transpose.create(transpose.pattern()), "plan");
    check(plan_of_transpose.prepare(stream.get()), "prepare");  // waits
    built =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  const double by_transpose =
      microseconds(stream, "by the transpose", verify_transposed, [&](cudaStream_t its_stream) {
        check(plan_of_transpose.multiply(one, transposed_values.data(), x.data(), zero, y.data(),
                                         its_stream),
              "product");
      });
  cusparseDnVecDescr_t x_vector = nullptr;
  cusparseDnVecDescr_t y_vector = nullptr;
  check(cusparseCreateDnVec(&x_vector, a.rows, x.data(), kType), "x");
  check(cusparseCreateDnVec(&y_vector, a.cols, y.data(), kType), "y");
  const double theirs = best_of_cusparse(
      stream, std::vector{CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2}, verify_transposed,
      [&](auto function, cusparseSpMVAlg_t algorithm, auto* last) {
        return function(library, CUSPARSE_OPERATION_TRANSPOSE, &one, matrix, x_vector, &zero,
                        y_vector, kType, algorithm, last);
      },
      cusparseSpMV_bufferSize, cusparseSpMV_preprocess, cusparseSpMV);
  std::printf("transposed: atomics %.2f, by its transpose %.2f (built in %.0f), cuSPARSE %.2f\n",
              atomics, by_transpose, built, theirs);
}

}  // namespace
}  // namespace spmv

int main(int argc, char** argv) try {
  const std::string precision = argc == 3 ? argv[1] : "";
  if (precision != "f32" && precision != "f64") {
    std::fprintf(stderr, "usage: beside_cusparse f32|f64 MATRIX\n");
    return 2;
  }
  precision == "f32" ? spmv::measure<float>(argv[2]) : spmv::measure<double>(argv[2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 2;
}
