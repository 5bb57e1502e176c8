// Step 05 for the harness: what calls CUB. On the CPU backend this file is left out (see
// common/build/build.mk): CUB is for GPUs alone.
#include <algorithm>

#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "segscan_cub.cuh"
#include "sorted_triplets.hpp"

namespace spmv {
namespace {

std::vector<Index> unique_rows(std::vector<Index> sorted_rows) {
  sorted_rows.erase(std::unique(sorted_rows.begin(), sorted_rows.end()), sorted_rows.end());
  return sorted_rows;
}

template <typename T>
class SegscanCub final : public Spmv<T> {
 public:
  explicit SegscanCub(const Problem<T>& problem) : SegscanCub(to_coo(problem.host.csr)) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    std::size_t bytes = workspace_.bytes();
    if (a_.nnz > 0) sum_rows(workspace_.data(), bytes, x, stream);
    constexpr int kThreads = 256;
    device::launch(scale_rows_kernel<T>,
                   {dim3(device::divide_up(a_.rows, kThreads)), dim3(kThreads), 0, stream}, a_.rows,
                   static_cast<const int*>(nullptr), sums_.data(), alpha, beta, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes() + rows_with_nonzeros_.bytes(); }

 private:
  explicit SegscanCub(const Coo<T>& sorted)
      : a_(sorted),
        rows_with_nonzeros_("rows_with_nonzeros", unique_rows(sorted.row_indices)),
        sums_("sums", std::vector<T>(sorted.rows)),
        row_count_("row_count", 1) {
    if (a_.nnz == 0) return;
    std::size_t bytes = 0;
    sum_rows(nullptr, bytes, nullptr, nullptr);
    workspace_ = device::Buffer<char>("workspace", std::max<std::size_t>(bytes, 1));
  }
  void sum_rows(void* workspace, std::size_t& bytes, const T* x, cudaStream_t stream) {
    sum_rows_with_cub(workspace, bytes, a_, rows_with_nonzeros_.data(), x, sums_.data(),
                      row_count_.data(), stream);
  }

  device::DeviceCoo<T> a_;
  device::Buffer<Index> rows_with_nonzeros_;
  device::Buffer<T> sums_;  // one per row; those of rows without nonzeros stay 0
  device::Buffer<int> row_count_;
  device::Buffer<char> workspace_;
};

[[maybe_unused]] const bool registered =
    add_kernel({.step = 5,
                .name = "segscan_cub",
                .format = "COO",
                .idea = "CUB's ReduceByKey, workspace kept",
                .source = "the library CUB"},
               [](const auto& problem) { return make<SegscanCub>(problem); });

}  // namespace
}  // namespace spmv
