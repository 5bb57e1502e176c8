// Step 05 for the harness. What calls Thrust and CUB is in thrust.cu and cub.cu.
#include "device/launch.hpp"
#include "device/scale.cuh"
#include "harness/kernel.hpp"
#include "segscan_block.cuh"
#include "segscan_shuffle.cuh"
#include "sorted_triplets.hpp"

namespace spmv {
namespace {

constexpr int kThreads = 256;

template <typename T>
void multiply_empty_rows(const SortedTriplets<T>& triplets, T alpha, T beta, T* y,
                         cudaStream_t stream) {
  const int count = static_cast<int>(triplets.empty_rows.size());
  const int blocks = device::divide_up(count, kThreads);
  device::launch(scale_rows_kernel<T>, {dim3(blocks), dim3(kThreads), 0, stream}, count,
                 triplets.empty_rows.data(), static_cast<const T*>(nullptr), alpha, beta, y);
}

template <typename T>
class SegscanBlock final : public Spmv<T> {
 public:
  explicit SegscanBlock(const Problem<T>& problem)
      : triplets_(problem.host.csr),
        chunks_(device::divide_up(triplets_.a.nnz, kChunk)),
        chunk_begins_("chunk_begins", static_cast<std::size_t>(chunks_) + 1) {}

  void preprocess(cudaStream_t stream) override {
    const int blocks = device::divide_up(chunks_ + 1, kThreads);
    device::launch(move_chunks_kernel, {dim3(blocks), dim3(kThreads), 0, stream}, triplets_.a.nnz,
                   chunks_, triplets_.a.row_indices.data(), chunk_begins_.data());
  }
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    const device::DeviceCoo<T>& a = triplets_.a;
    device::launch(segscan_block_kernel<T>, {dim3(chunks_), dim3(kBlockThreads), 0, stream},
                   chunk_begins_.data(), a.row_indices.data(), a.column_indices.data(),
                   a.values.data(), alpha, x, beta, y);
    multiply_empty_rows(triplets_, alpha, beta, y, stream);
  }
  std::size_t matrix_bytes() const override { return triplets_.bytes() + chunk_begins_.bytes(); }

 private:
  SortedTriplets<T> triplets_;
  int chunks_;
  device::Buffer<Index> chunk_begins_;
};

template <typename T>
class SegscanShuffle final : public Spmv<T> {
 public:
  explicit SegscanShuffle(const Problem<T>& problem)
      : triplets_(problem.host.csr),
        tiles_(device::divide_up(triplets_.a.nnz, kTile)),
        carries_("carries", tiles_) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    const device::DeviceCoo<T>& a = triplets_.a;
    device::launch(segscan_shuffle_kernel<T>, {dim3(tiles_), dim3(32 * kWarps), 0, stream},
                   static_cast<unsigned>(a.nnz), a.row_indices.data(), a.column_indices.data(),
                   a.values.data(), alpha, x, beta, y, carries_.data());
    const int blocks = device::divide_up(tiles_, kThreads / 32);
    device::launch(add_carries_kernel<T>, {dim3(blocks), dim3(kThreads), 0, stream}, a.nnz, tiles_,
                   a.row_indices.data(), carries_.data(), alpha, y);
    multiply_empty_rows(triplets_, alpha, beta, y, stream);
  }
  std::size_t matrix_bytes() const override { return triplets_.bytes(); }

 private:
  SortedTriplets<T> triplets_;
  int tiles_;
  device::Buffer<T> carries_;
};

[[maybe_unused]] const bool registered =
    add_kernel({.step = 5,
                .name = "segscan_block",
                .format = "COO",
                .idea = "scan in shared memory, no row in two blocks",
                .source = "Emmanuel and Vorobyev, section 4.2"},
               [](const auto& problem) { return make<SegscanBlock>(problem); }) &&
    add_kernel({.step = 5,
                .name = "segscan_shuffle",
                .format = "COO",
                .idea = "scan by shuffles, and carries",
                .source = "after Sengupta and others 2007 and Bell and Garland 2009 (COO)",
                .in_ladder = true},
               [](const auto& problem) { return make<SegscanShuffle>(problem); });

}  // namespace
}  // namespace spmv
