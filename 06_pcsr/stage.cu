// Step 06 for the harness.
#include <algorithm>
#include <string>

#include "csr_adaptive.cuh"
#include "csr_adaptive_blocks.cuh"
#include "device/launch.hpp"
#include "device/texture.hpp"
#include "harness/kernel.hpp"
#include "one_pass/spmv/one_pass.cuh"
#include "pcsr_products.cuh"
#include "pcsr_sums.cuh"

namespace spmv {
namespace {

// --- PCSR ---------------------------------------------------------------------------------------

enum class ReadX { kThroughTexture, kPlainly };

template <typename T>
class Pcsr final : public Spmv<T> {
 public:
  Pcsr(const Problem<T>& problem, ReadX read_x)
      : a_(problem.csr), read_x_(read_x), textures_(a_.cols) {
    if (read_x == ReadX::kThroughTexture && !textures_.possible()) {
      throw Unsuitable("x has " + std::to_string(a_.cols) + " elements; a texture has at most " +
                       std::to_string(device::LinearTexture<T>::max_elements()));
    }
    middle_ = device::Buffer<T>("middle", a_.nnz);
    // Kernel 1 needs no more blocks than are resident at once: its loop strides over the rest.
    const int resident =
        read_x == ReadX::kThroughTexture
            ? device::resident_blocks(pcsr_products_texture_kernel<T>, kProductThreads)
            : device::resident_blocks(pcsr_products_kernel<T>, kProductThreads);
    product_blocks_ = std::min(device::divide_up(a_.nnz, kProductThreads), std::max(resident, 1));
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    if (a_.nnz > 0) launch_products(x, stream);
    device::launch(pcsr_sums_kernel<kSumThreads, T>,
                   {dim3(device::divide_up(a_.rows, kSumThreads)), dim3(kSumThreads),
                    kPieceSize * sizeof(T), stream},
                   a_.rows, a_.row_offsets.data(), middle_.data(), kPieceSize, alpha, beta, y);
  }
  // The middle array is stored once and loaded once.
  std::size_t matrix_bytes() const override { return a_.bytes() + 2 * middle_.bytes(); }

 private:
  static constexpr int kProductThreads = 256;
  static constexpr int kSumThreads = 128;
  // 8 KB in double precision: as many blocks fit on a multiprocessor of today as it has threads
  // for.
  static constexpr int kPieceSize = 1024;

  void launch_products(const T* x, cudaStream_t stream) {
    const device::Shape shape{dim3(product_blocks_), dim3(kProductThreads), 0, stream};
    if (read_x_ == ReadX::kPlainly) {
      device::launch(pcsr_products_kernel<T>, shape, a_.nnz, a_.column_indices.data(),
                     a_.values.data(), x, middle_.data());
      return;
    }
    device::launch(pcsr_products_texture_kernel<T>, shape, a_.nnz, a_.column_indices.data(),
                   a_.values.data(), textures_.of(x), middle_.data());
  }

  const device::DeviceCsr<T>& a_;
  ReadX read_x_;
  device::Textures<T> textures_;
  device::Buffer<T> middle_;
  int product_blocks_ = 0;
};

// --- CSR-Adaptive -------------------------------------------------------------------------------

template <typename T>
class CsrAdaptive final : public Spmv<T> {
 public:
  explicit CsrAdaptive(const Problem<T>& problem)
      : a_(problem.csr),
        blocks_(static_cast<int>((1LL * a_.rows + a_.nnz + kRowBlock - 1) / kRowBlock)),
        block_rows_("block_rows", blocks_ + 1),
        shared_rows_("shared_rows", a_.nnz / shared_row(kRowBlock)),
        shared_row_counter_("shared_row_counter", 1),
        partial_sums_("partial_sums", blocks_) {}

  void preprocess(cudaStream_t stream) override {
    device::check(cudaMemsetAsync(shared_row_counter_.data(), 0, sizeof(int), stream), "zero");
    device::launch(row_blocks_kernel<kRowBlock>,
                   {dim3(device::divide_up(blocks_ + 1, kThreads)), dim3(kThreads), 0, stream},
                   a_.rows, blocks_, a_.row_offsets.data(), block_rows_.data(), shared_rows_.data(),
                   shared_row_counter_.data());
    device::check(cudaStreamSynchronize(stream), "finding the row blocks");
    shared_row_count_ = shared_row_counter_.download()[0];
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::launch(csr_adaptive_kernel<kRowBlock, kThreads, T>,
                   {dim3(blocks_), dim3(kThreads), 0, stream}, block_rows_.data(),
                   a_.row_offsets.data(), a_.column_indices.data(), a_.values.data(), alpha, x,
                   beta, y, partial_sums_.data());
    device::launch(csr_adaptive_shared_rows_kernel<kRowBlock, T>,
                   {dim3(shared_row_count_), dim3(32), 0, stream}, shared_rows_.data(),
                   a_.row_offsets.data(), partial_sums_.data(), alpha, beta, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes() + block_rows_.bytes(); }

 private:
  static constexpr int kRowBlock = 1024;
  static constexpr int kThreads = 256;

  const device::DeviceCsr<T>& a_;
  int blocks_;
  int shared_row_count_ = 0;
  device::Buffer<int> block_rows_;          // blocks + 1
  device::Buffer<int> shared_rows_;         // shared_row_count of them are set
  device::Buffer<int> shared_row_counter_;  // 1
  device::Buffer<T> partial_sums_;          // one per block
};

// --- One pass -----------------------------------------------------------------------------------

template <typename T>
class PcsrOnePass final : public Spmv<T> {
 public:
  explicit PcsrOnePass(const Problem<T>& problem) : a_(problem.csr) { create(); }

  void preprocess(cudaStream_t stream) override {
    device::check(plan_.prepare(stream), "dividing the matrix into tiles");
  }
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::check(plan_.multiply(alpha, a_.values.data(), x, beta, y, stream),
                  "launching a product");
  }
  bool overlap(bool on) override {
    plan_.overlap(on);
    return plan_.overlaps();
  }
  std::size_t matrix_bytes() const override {
    if (plan_.lanes_per_row() > 0) return a_.bytes();
    return a_.bytes() + (plan_.shape().tile_count + 1) * sizeof(detail::Tile);
  }
  std::string choice() const override {
    if (const int lanes = plan_.lanes_per_row())
      return std::to_string(lanes) + (lanes == 1 ? " lane per row" : " lanes per row");
    const detail::OnePassShape& shape = plan_.shape();
    if (plan_.block_tiles()) {
      return "tiles of " + std::to_string(shape.tile_items * shape.warps_per_block) + " per block";
    }
    return "tiles of " + std::to_string(shape.tile_items);
  }

 private:
  void create() {
    const CsrPattern pattern{a_.rows, a_.cols, a_.nnz, a_.row_offsets.data(),
                             a_.column_indices.data()};
    std::size_t bytes = 0;
    device::check(OnePassPlan<T>::workspace_bytes(pattern, &bytes), "sizes of a plan");
    workspace_ = device::Buffer<char>("workspace", bytes);
    device::check(plan_.create(pattern, {}, workspace_.data()), "making a plan");
  }

  const device::DeviceCsr<T>& a_;
  device::Buffer<char> workspace_;
  OnePassPlan<T> plan_;
};

// --- All of them --------------------------------------------------------------------------------

bool register_all() {
  add_kernel({.step = 6,
              .name = "pcsr_texture",
              .format = "CSR",
              .idea = "products, then sums, in two kernels; x through a texture",
              .source = "He and Gao 2016, algorithms 2 and 3, equations 3 and 4"},
             [](const auto& problem) { return make<Pcsr>(problem, ReadX::kThroughTexture); });
  add_kernel({.step = 6,
              .name = "pcsr",
              .format = "CSR",
              .idea = "products, then sums, in two kernels",
              .source = "He and Gao 2016, algorithms 2 and 3"},
             [](const auto& problem) { return make<Pcsr>(problem, ReadX::kPlainly); });
  add_kernel({.step = 6,
              .name = "csr_adaptive",
              .format = "CSR",
              .idea = "blocks of as many rows as fit in shared memory; long rows apart",
              .source = "Greathouse and Daga 2014; Daga and Greathouse 2015"},
             [](const auto& problem) { return make<CsrAdaptive>(problem); });
  return add_kernel({.step = 6,
                     .name = "pcsr_one_pass",
                     .format = "CSR",
                     .idea = "lanes per row, or a scan",
                     .source = "this repository, from He and Gao 2016",
                     .in_ladder = true},
                    [](const auto& problem) { return make<PcsrOnePass>(problem); });
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
