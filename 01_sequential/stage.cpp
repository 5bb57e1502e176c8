// Step 01 for the harness. Plain C++: nothing here runs on a device.
#include "harness/kernel.hpp"
#include "sequential.hpp"
#include "sparse/convert.hpp"

namespace spmv {
namespace {

template <typename T>
class CsrSequential final : public Spmv<T> {
 public:
  explicit CsrSequential(const Problem<T>& problem) : a_(problem.host.csr) {}
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t) override {
    csr_sequential(a_, alpha, x, beta, y);
  }
  std::size_t matrix_bytes() const override { return csr_bytes(a_); }

 private:
  const Csr<T>& a_;
};

template <typename T>
class CsrOpenMp final : public Spmv<T> {
 public:
  explicit CsrOpenMp(const Problem<T>& problem) : a_(problem.host.csr) {}
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t) override {
    csr_openmp(a_, alpha, x, beta, y);
  }
  std::size_t matrix_bytes() const override { return csr_bytes(a_); }

 private:
  const Csr<T>& a_;
};

template <typename T>
class CooSequential final : public Spmv<T> {
 public:
  explicit CooSequential(const Problem<T>& problem) : a_(to_coo(problem.host.csr)) {}
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t) override {
    coo_sequential(a_, alpha, x, beta, y);
  }
  std::size_t matrix_bytes() const override {
    return a_.values.size() * (2 * sizeof(Index) + sizeof(T));
  }

 private:
  Coo<T> a_;
};

[[maybe_unused]] const bool registered =
    add_kernel({.step = 1,
                .name = "csr_sequential",
                .format = "CSR",
                .idea = "one core, row by row",
                .source = "He and Gao 2016, algorithm 1",
                .runs_on = RunsOn::kHost,
                .in_ladder = true},
               [](const auto& problem) { return make<CsrSequential>(problem); }) &&
    add_kernel({.step = 1,
                .name = "coo_sequential",
                .format = "COO",
                .idea = "one core, nonzero by nonzero",
                .source = "Bylina, Bylina and Karwacki 2011, section 3.1",
                .runs_on = RunsOn::kHost},
               [](const auto& problem) { return make<CooSequential>(problem); }) &&
    add_kernel({.step = 1,
                .name = "csr_openmp",
                .format = "CSR",
                .idea = "all cores, rows shared out on demand",
                .source = "the CPU baseline; OpenMP",
                .runs_on = RunsOn::kHost},
               [](const auto& problem) { return make<CsrOpenMp>(problem); });

}  // namespace
}  // namespace spmv
