// Eigen's product of a row-major sparse matrix, on all cores: the CPU library to compare with.
#ifdef HAVE_EIGEN
#include <Eigen/SparseCore>

#include "harness/kernel.hpp"

namespace spmv {
namespace {

template <typename T>
class EigenCsr final : public Spmv<T> {
 public:
  explicit EigenCsr(const Problem<T>& problem) : a_(problem.host.csr) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t) override {
    const Eigen::Map<const Eigen::SparseMatrix<T, Eigen::RowMajor, Index>> a(
        a_.rows, a_.cols, a_.nnz(), a_.row_offsets.data(), a_.column_indices.data(),
        a_.values.data());
    const Eigen::Map<const Eigen::Vector<T, Eigen::Dynamic>> x_vector(x, a_.cols);
    Eigen::Map<Eigen::Vector<T, Eigen::Dynamic>> y_vector(y, a_.rows);
    if (beta == T{0}) {
      y_vector.setZero();
    } else {
      y_vector *= beta;
    }
    y_vector.noalias() += alpha * (a * x_vector);
  }
  std::size_t matrix_bytes() const override { return csr_bytes(a_); }

 private:
  const Csr<T>& a_;
};

[[maybe_unused]] const bool registered = add_kernel(
    {.step = 0,
     .name = "eigen_csr",
     .format = "CSR",
     .idea = "Eigen on all cores",
     .source = "the library Eigen 3, version " + std::to_string(EIGEN_WORLD_VERSION) + "." +
               std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION),
     .runs_on = RunsOn::kHost},
    [](const auto& problem) { return make<EigenCsr>(problem); });

}  // namespace
}  // namespace spmv
#endif
