// Kernels that are wrong, each in its own way. Linked with the common main into a program of their
// own, which must find them out (cli_test.sh).
#include <string>

#include "device/launch.hpp"
#include "harness/kernel.hpp"

namespace spmv {
namespace {

enum Mistake { kNone, kLastRowMissing, kLastNonzeroMissing, kReadsPastTheEnd, kNeverMeets };

__device__ inline int mistaken_end(Mistake mistake, int row_begin, int row_end) {
  return mistake == kLastNonzeroMissing && row_end > row_begin ? row_end - 1 : row_end;
}

template <typename T>
__global__ void broken_kernel(Mistake mistake, int rows, const int* row_offsets,
                              const int* column_indices, const T* values, T alpha, const T* x,
                              T* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (mistake == kNeverMeets && threadIdx.x % 32 < 16) __syncwarp(0xffffffffu);
  if (mistake == kNeverMeets && threadIdx.x % 32 >= 16) __syncthreads();
  if (row >= rows) return;
  if (mistake == kLastRowMissing && row == rows - 1) return;
  T sum = 0;
  const int row_end = mistaken_end(mistake, row_offsets[row], row_offsets[row + 1]);
  for (int k = row_offsets[row]; k < row_end; ++k) sum += values[k] * x[column_indices[k]];
  if (mistake == kReadsPastTheEnd && row == rows - 1) sum += 0 * values[row_end];
  y[row] = alpha * sum;
}

template <typename T>
class Broken final : public Spmv<T> {
 public:
  Broken(const Problem<T>& problem, Mistake mistake) : a_(problem.csr), mistake_(mistake) {}
  void multiply(T alpha, const T* x, T, T* y, cudaStream_t stream) override {
    device::launch(broken_kernel<T>, {dim3(device::divide_up(a_.rows, 64)), dim3(64), 0, stream},
                   mistake_, a_.rows, a_.row_offsets.data(), a_.column_indices.data(),
                   a_.values.data(), alpha, x, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }

 private:
  const device::DeviceCsr<T>& a_;
  Mistake mistake_;
};

bool add(const std::string& name, Mistake mistake) {
  return add_kernel({.step = 0, .name = name, .format = "CSR", .idea = "wrong", .source = "nobody"},
                    [mistake](const auto& problem) { return make<Broken>(problem, mistake); });
}

[[maybe_unused]] const bool registered =
    add("right", kNone) && add("last_row_missing", kLastRowMissing) &&
    add("last_nonzero_missing", kLastNonzeroMissing) && add("past_the_end", kReadsPastTheEnd) &&
    add("never_meets", kNeverMeets);

}  // namespace
}  // namespace spmv
