// Step 02 for the harness.
#include "csr_scalar.cuh"
#include "device/block_threads.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"

namespace spmv {
namespace {

template <typename T>
class CsrScalar final : public Spmv<T> {
 public:
  explicit CsrScalar(const Problem<T>& problem) : a_(problem.csr) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    const int threads = device::block_threads(256);
    const int blocks = device::divide_up(a_.rows, threads);
    device::launch(csr_scalar_kernel<T>, {dim3(blocks), dim3(threads), 0, stream}, a_.rows,
                   a_.row_offsets.data(), a_.column_indices.data(), a_.values.data(), alpha, x,
                   beta, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }

 private:
  const device::DeviceCsr<T>& a_;
};

[[maybe_unused]] const bool registered =
    add_kernel({.step = 2,
                .name = "csr_scalar",
                .format = "CSR",
                .idea = "one thread per row",
                .source = "CSR-scalar: Bell and Garland 2009; He and Gao 2016, section 1",
                .in_ladder = true},
               [](const auto& problem) { return make<CsrScalar>(problem); });

}  // namespace
}  // namespace spmv
