// oneMKL's product of a CSR matrix by its inspector-executor interface, on all cores: the vendor's
// library for CPUs. It is there after `make mkl`, or with an oneMKL that the compiler finds
// (common/build/setup.sh).
#ifdef HAVE_MKL
#include <mkl_spblas.h>
#include <mkl_version.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "harness/kernel.hpp"

namespace spmv {
namespace {

void check(sparse_status_t status, const std::string& call) {
  if (status == SPARSE_STATUS_SUCCESS) return;
  throw std::runtime_error("oneMKL: " + call.substr(0, call.find('(')) + " ended with status " +
                           std::to_string(static_cast<int>(status)) +
                           " (sparse_status_t of mkl_spblas.h)");
}
#define CHECK(...) check(__VA_ARGS__, #__VA_ARGS__)

constexpr matrix_descr kGeneral{SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_LOWER,
                                SPARSE_DIAG_NON_UNIT};

// Owns a handle that refers to the arrays of `a`, which must outlive it. oneMKL refuses matrices
// without rows, columns or nonzeros: for those the handle stays null.
template <typename T>
class MklHandle {
 public:
  explicit MklHandle(const Csr<T>& a) {
    static_assert(sizeof(MKL_INT) == sizeof(Index), "the LP64 interface is needed");
    if (a.nnz() == 0) return;
    // The library only reads them.
    const auto offsets = const_cast<Index*>(a.row_offsets.data());
    const auto columns = const_cast<Index*>(a.column_indices.data());
    const auto values = const_cast<T*>(a.values.data());
    if constexpr (sizeof(T) == 4) {
      CHECK(mkl_sparse_s_create_csr(&handle_, SPARSE_INDEX_BASE_ZERO, a.rows, a.cols, offsets,
                                    offsets + 1, columns, values));
    } else {
      CHECK(mkl_sparse_d_create_csr(&handle_, SPARSE_INDEX_BASE_ZERO, a.rows, a.cols, offsets,
                                    offsets + 1, columns, values));
    }
  }
  ~MklHandle() {
    if (handle_) mkl_sparse_destroy(handle_);
  }
  MklHandle(const MklHandle&) = delete;
  MklHandle& operator=(const MklHandle&) = delete;

  sparse_matrix_t get() const { return handle_; }

 private:
  sparse_matrix_t handle_ = nullptr;
};

template <typename T>
class MklCsr final : public Spmv<T> {
 public:
  explicit MklCsr(const Problem<T>& problem) : a_(problem.host.csr), handle_(a_) {}

  // The inspector: oneMKL looks at the rows and may store the matrix in a format of its own. It is
  // told of as many products as a solver makes.
  void preprocess(cudaStream_t) override {
    if (!handle_.get()) return;
    CHECK(mkl_sparse_set_mv_hint(handle_.get(), SPARSE_OPERATION_NON_TRANSPOSE, kGeneral, 1000));
    CHECK(mkl_sparse_optimize(handle_.get()));
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t) override {
    if (!handle_.get()) {
      std::for_each(y, y + a_.rows,
                    [beta](T& entry) { entry = beta == T{0} ? T{0} : beta * entry; });
    } else if constexpr (sizeof(T) == 4) {
      CHECK(mkl_sparse_s_mv(SPARSE_OPERATION_NON_TRANSPOSE, alpha, handle_.get(), kGeneral, x, beta,
                            y));
    } else {
      CHECK(mkl_sparse_d_mv(SPARSE_OPERATION_NON_TRANSPOSE, alpha, handle_.get(), kGeneral, x, beta,
                            y));
    }
  }

  // Those of CSR: which format the inspector chooses, the library does not say.
  std::size_t matrix_bytes() const override { return csr_bytes(a_); }

 private:
  const Csr<T>& a_;
  MklHandle<T> handle_;
};

// The first call looks for the processor's instructions and starts the threads.
void open_mkl() {
  const Csr<double> one{1, 1, {0, 1}, {0}, {1}};
  const MklHandle<double> handle(one);
  const double x = 1;
  double y = 0;
  CHECK(mkl_sparse_d_mv(SPARSE_OPERATION_NON_TRANSPOSE, 1, handle.get(), kGeneral, &x, 0, &y));
}

[[maybe_unused]] const bool registered = add_kernel(
    {.step = 0,
     .name = "mkl_csr",
     .format = "CSR",
     .idea = "oneMKL on all cores",
     .source = "Intel's library oneMKL, version " + std::to_string(INTEL_MKL_VERSION / 10000) +
               "." + std::to_string(INTEL_MKL_VERSION / 100 % 100) + "." +
               std::to_string(INTEL_MKL_VERSION % 100) + ", inspector-executor",
     .runs_on = RunsOn::kHost,
     .open = open_mkl},
    [](const auto& problem) { return make<MklCsr>(problem); });

}  // namespace
}  // namespace spmv
#endif
