// Step 03 for the harness.
#include <algorithm>
#include <string>

#include "csr_vector.cuh"
#include "csr_vector_shared.cuh"
#include "device/block_threads.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"

namespace spmv {
namespace {

// The greatest power of two of which each lane gets at least four nonzeros of a mean row. Fewer
// lanes read less together; with more, the shuffles and the start of each row cost more than that
// saves. Right for large matrices whose rows are alike: as many lanes as a mean row has nonzeros,
// as the library CUSP takes, is half as fast on an H200 on a 27-point stencil. Where rows differ
// much it is too few, as any choice is that looks at the mean alone.
int lanes_for(long long rows, long long nnz) {
  int lanes = 2;
  while (lanes < 32 && 4 * (2 * lanes) * std::max(rows, 1LL) <= nnz) lanes *= 2;
  return lanes;
}

template <typename T>
class CsrVector final : public Spmv<T> {
 public:
  // lanes_per_row: 2, 4, 8, 16 or 32; 0 chooses from the mean row length.
  CsrVector(const Problem<T>& problem, int lanes_per_row)
      : a_(problem.csr),
        chosen_(lanes_per_row == 0),
        lanes_per_row_(chosen_ ? lanes_for(a_.rows, a_.nnz) : lanes_per_row) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    switch (lanes_per_row_) {
      case 2:
        return multiply_with<2>(alpha, x, beta, y, stream);
      case 4:
        return multiply_with<4>(alpha, x, beta, y, stream);
      case 8:
        return multiply_with<8>(alpha, x, beta, y, stream);
      case 16:
        return multiply_with<16>(alpha, x, beta, y, stream);
      default:
        return multiply_with<32>(alpha, x, beta, y, stream);
    }
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override {
    return chosen_ ? std::to_string(lanes_per_row_) + " lanes per row" : "";
  }

 private:
  template <int lanes_per_row>
  void multiply_with(T alpha, const T* x, T beta, T* y, cudaStream_t stream) {
    const int threads = device::block_threads(256);
    const int blocks = device::divide_up(a_.rows, threads / lanes_per_row);
    device::launch(csr_vector_kernel<lanes_per_row, T>, {dim3(blocks), dim3(threads), 0, stream},
                   a_.rows, a_.row_offsets.data(), a_.column_indices.data(), a_.values.data(),
                   alpha, x, beta, y);
  }

  const device::DeviceCsr<T>& a_;
  bool chosen_;
  int lanes_per_row_;
};

template <typename T>
class CsrVectorShared final : public Spmv<T> {
 public:
  explicit CsrVectorShared(const Problem<T>& problem) : a_(problem.csr) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    const int blocks = device::divide_up(a_.rows, kSharedVectorThreads / 32);
    device::launch(
        csr_vector_shared_kernel<T>, {dim3(blocks), dim3(kSharedVectorThreads), 0, stream}, a_.rows,
        a_.row_offsets.data(), a_.column_indices.data(), a_.values.data(), alpha, x, beta, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }

 private:
  const device::DeviceCsr<T>& a_;
};

bool register_all() {
  add_kernel({.step = 3,
              .name = "csr_vector_shared",
              .format = "CSR",
              .idea = "one warp per row, sums in shared memory",
              .source = "Bylina, Bylina and Karwacki 2011, figure 9"},
             [](const auto& problem) { return make<CsrVectorShared>(problem); });
  for (const int lanes : {2, 4, 8, 16, 32}) {
    add_kernel({.step = 3,
                .name = "csr_vector_" + std::to_string(lanes),
                .format = "CSR",
                .idea = std::to_string(lanes) + " lanes per row, sums by shuffle",
                .source = "CSR-vector: Bell and Garland 2009; He and Gao 2016, section 1"},
               [lanes](const auto& problem) { return make<CsrVector>(problem, lanes); });
  }
  return add_kernel({.step = 3,
                     .name = "csr_vector",
                     .format = "CSR",
                     .idea = "2 to 32 lanes per row",
                     .source = "CSR-vector: Bell and Garland 2009; He and Gao 2016, section 1",
                     .in_ladder = true},
                    [](const auto& problem) { return make<CsrVector>(problem, 0); });
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
