// Step 04 for the harness.
#include <algorithm>
#include <string>

#include "atomic_coo.cuh"
#include "atomic_coo_sorted.cuh"
#include "atomic_coo_warp.cuh"
#include "device/block_threads.hpp"
#include "device/coo.hpp"
#include "device/launch.hpp"
#include "device/scale.cuh"
#include "harness/kernel.hpp"
#include "sparse/convert.hpp"

namespace spmv {
namespace {

constexpr int kThreads = 256;

// What the three kernels have in common: triplets on the device, beta y first, then y += alpha A x.
template <typename T>
class AtomicSpmv : public Spmv<T> {
 public:
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    // Between two launches of a stream all blocks wait for each other, within one they cannot.
    device::launch(scale_rows_kernel<T>,
                   {dim3(device::divide_up(a_.rows, kThreads)), dim3(kThreads), 0, stream}, a_.rows,
                   static_cast<const int*>(nullptr), static_cast<const T*>(nullptr), alpha, beta,
                   y);
    const int threads = device::divide_up(a_.nnz, static_cast<Index>(kItemsPerThread));
    const int per_block = device::block_threads(kThreads);
    device::launch(kernel_,
                   {dim3(device::divide_up(threads, per_block)), dim3(per_block), 0, stream},
                   static_cast<unsigned>(a_.nnz), a_.row_indices.data(), a_.column_indices.data(),
                   a_.values.data(), alpha, x, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }

 protected:
  using Kernel = void (*)(unsigned nnz, const int* row_indices, const int* column_indices,
                          const T* values, T alpha, const T* x, T* y);
  AtomicSpmv(Kernel kernel, const Coo<T>& triplets) : kernel_(kernel), a_(triplets) {}

 private:
  Kernel kernel_;
  device::DeviceCoo<T> a_;
};

template <typename T>
class AtomicCoo final : public AtomicSpmv<T> {
 public:
  explicit AtomicCoo(const Problem<T>& problem)
      : AtomicSpmv<T>(atomic_coo_kernel<T>, triplets_of(problem.host)),
        from_file_(problem.host.source.origin == MatrixSource::Origin::kFile),
        merged_(problem.host.duplicates > 0) {}
  std::string choice() const override {
    if (!from_file_) return "";
    return merged_ ? "by row, duplicates merged" : "in the file's order";
  }

 private:
  bool from_file_, merged_;
};

// The triplets in the order in which atomic_coo_sorted_kernel<32> reads them: thread t has a run of
// neighbours in `sorted`, and the i-th of its run stands 32 i behind the first. The last warp's
// runs differ by one in length when what is left for it does not divide by 32.
template <typename T>
Coo<T> dealt_out(const Coo<T>& sorted) {
  constexpr Index kOfWarp = 32 * static_cast<Index>(kItemsPerThread);
  Coo<T> interleaved = sorted;
  for (Index begin = 0; begin < sorted.nnz();) {
    const Index count = std::min(kOfWarp, sorted.nnz() - begin);
    Index from = begin;
    for (Index lane = 0; lane < 32; ++lane) {
      for (Index k = lane; k < count; k += 32, ++from) {
        interleaved.row_indices[begin + k] = sorted.row_indices[from];
        interleaved.column_indices[begin + k] = sorted.column_indices[from];
        interleaved.values[begin + k] = sorted.values[from];
      }
    }
    begin += count;
  }
  return interleaved;
}

template <typename T>
class AtomicCooSorted final : public AtomicSpmv<T> {
 public:
  explicit AtomicCooSorted(const Problem<T>& problem)
      : AtomicSpmv<T>(atomic_coo_sorted_kernel<32, T>, dealt_out(to_coo(problem.host.csr))) {}
};

template <typename T>
class AtomicCooSortedRuns final : public AtomicSpmv<T> {
 public:
  explicit AtomicCooSortedRuns(const Problem<T>& problem)
      : AtomicSpmv<T>(atomic_coo_sorted_kernel<1, T>, to_coo(problem.host.csr)) {}
};

template <typename T>
class AtomicCooWarp final : public AtomicSpmv<T> {
 public:
  explicit AtomicCooWarp(const Problem<T>& problem)
      : AtomicSpmv<T>(atomic_coo_warp_kernel<T>, to_coo(problem.host.csr)) {}
};

[[maybe_unused]] const bool registered =
    add_kernel({.step = 4,
                .name = "atomic_coo",
                .format = "COO",
                .idea = "triplets in any order, one atomic per product",
                .source = "Emmanuel and Vorobyev, section 3",
                .needs_triplets = true,
                .bits = RunToRun::kMayDiffer},
               [](const auto& problem) { return make<AtomicCoo>(problem); }) &&
    add_kernel({.step = 4,
                .name = "atomic_coo_sorted_runs",
                .format = "COO",
                .idea = "sorted by row, one sum per thread, one atomic per row in it",
                .source = "this repository, after Emmanuel and Vorobyev, section 3",
                .bits = RunToRun::kMayDiffer},
               [](const auto& problem) { return make<AtomicCooSortedRuns>(problem); }) &&
    add_kernel({.step = 4,
                .name = "atomic_coo_sorted",
                .format = "COO",
                .idea = "the same, laid out for coalesced reads",
                .source = "this repository, after Emmanuel and Vorobyev, section 3",
                .bits = RunToRun::kMayDiffer},
               [](const auto& problem) { return make<AtomicCooSorted>(problem); }) &&
    add_kernel({.step = 4,
                .name = "atomic_coo_warp",
                .format = "COO",
                .idea = "lanes add up, then one atomic",
                .source = "this repository, after Emmanuel and Vorobyev, section 3",
                .in_ladder = true,
                .bits = RunToRun::kMayDiffer},
               [](const auto& problem) { return make<AtomicCooWarp>(problem); });

}  // namespace
}  // namespace spmv
