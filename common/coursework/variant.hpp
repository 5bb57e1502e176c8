// A kernel that takes x with an increment, as BLAS has it, for callers whose x has none
// (variants.py).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "device/buffer.hpp"
#include "harness/kernel.hpp"

namespace spmv {

template <typename T>
class WithIncrement final : public Spmv<T> {
 public:
  // `spmv` reads element i of x at x[increment * i].
  WithIncrement(const Problem<T>& problem, std::size_t increment, std::unique_ptr<Spmv<T>> spmv)
      : cols_(problem.csr.cols),
        pitch_(increment * sizeof(T)),
        spmv_(std::move(spmv)),
        x_("x", increment * cols_) {
    // All bits set are NaN.
    if (cols_) device::check(cudaMemset(x_.data(), 0xff, x_.bytes()), "filling x with NaN");
  }

  void preprocess(cudaStream_t stream) override { spmv_->preprocess(stream); }
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    if (cols_) {
      device::check(cudaMemcpy2DAsync(x_.data(), pitch_, x, sizeof(T), sizeof(T), cols_,
                                      cudaMemcpyDeviceToDevice, stream),
                    "copying x");
    }
    spmv_->multiply(alpha, x_.data(), beta, y, stream);
  }
  std::size_t matrix_bytes() const override { return spmv_->matrix_bytes(); }
  std::string choice() const override { return spmv_->choice(); }

 private:
  std::size_t cols_, pitch_;
  std::unique_ptr<Spmv<T>> spmv_;
  device::Buffer<T> x_;
};

}  // namespace spmv
