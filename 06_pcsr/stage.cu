// Step 06 for the harness.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "csr_adaptive.cuh"
#include "csr_adaptive_blocks.cuh"
#include "device/launch.hpp"
#include "device/texture.hpp"
#include "harness/kernel.hpp"
#include "one_pass.cuh"
#include "one_pass_shares.cuh"
#include "pcsr_products.cuh"
#include "pcsr_sums.cuh"

namespace spmv {
namespace {

// --- PCSR ---------------------------------------------------------------------------------------

enum class ReadX { kThroughTexture, kPlainly };

template <typename T>
class Pcsr final : public Spmv<T> {
 public:
  Pcsr(const Problem<T>& problem, ReadX read_x) : a_(problem.csr), read_x_(read_x) {
    if (read_x == ReadX::kThroughTexture) {
      const std::size_t limit = device::LinearTexture<T>::max_elements();
      if (static_cast<std::size_t>(a_.cols) > limit) {
        throw Unsuitable("x has " + std::to_string(a_.cols) + " elements; a texture has at most " +
                         std::to_string(limit));
      }
    }
    middle_ = device::Buffer<T>("middle", a_.nnz);
    // Kernel 1 needs no more blocks than the device holds at once: each thread goes on.
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
  // The middle array is written, and read again.
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
    // The first product with an x makes the texture. It is kept: an iteration has few vectors, and
    // a texture must outlive the kernels that read it.
    auto texture = textures_.find(x);
    if (texture == textures_.end()) {
      texture = textures_.emplace(x, device::LinearTexture<T>(x, a_.cols)).first;
    }
    device::launch(pcsr_products_texture_kernel<T>, shape, a_.nnz, a_.column_indices.data(),
                   a_.values.data(), texture->second.get(), middle_.data());
  }

  const device::DeviceCsr<T>& a_;
  ReadX read_x_;
  device::Buffer<T> middle_;
  int product_blocks_ = 0;
  std::map<const T*, device::LinearTexture<T>> textures_;
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
  device::Buffer<T> partial_sums_;          // one a block
};

// --- One pass -----------------------------------------------------------------------------------

template <typename T>
class PcsrOnePass final : public Spmv<T> {
 public:
  explicit PcsrOnePass(const Problem<T>& problem) : a_(problem.csr) {
    // One share for each warp that the device holds at once; more where they would be so long that
    // all of the matrix is read at the same time, each part of it far from the next; fewer where
    // they would be too small.
    const long long positions = 1LL * a_.rows + a_.nnz;
    const std::size_t block_bytes = kMostWarps * sizeof(OnePassShared<T>);
    const int resident =
        device::resident_blocks(pcsr_one_pass_kernel<T>, kOnePassThreads, block_bytes);
    const int blocks = std::max(
        std::min(resident, kOnePassBlocks * device::attribute(cudaDevAttrMultiProcessorCount)), 1);
    // The more of x stays in the L1 cache, the better.
    device::limit_shared_memory(pcsr_one_pass_kernel<T>, kOnePassBlocks, block_bytes);
    const long long warps = 1LL * blocks * kMostWarps;
    const bool x_fits =
        a_.cols * sizeof(T) <= static_cast<std::size_t>(device::attribute(cudaDevAttrL2CacheSize));
    const long long longest = x_fits ? kOnePassWindow : kOnePassWindowFarX;
    const long long rounds = device::divide_up(positions, warps * longest);
    const long long shares = warps * std::max(rounds, 1LL);
    window_ = static_cast<unsigned>(std::max(device::divide_up(positions, shares), least_window()));
    share_count_ = static_cast<int>(device::divide_up(positions, static_cast<long long>(window_)));
    // Fewer shares make smaller blocks, not fewer of them.
    warps_ = std::clamp(device::divide_up(share_count_, blocks), 1, kMostWarps);
    shares_ = device::Buffer<Share>("shares", share_count_ + 1);
    parts_ = device::Buffer<Part<T>>("parts", 2 * static_cast<std::size_t>(share_count_));
    arrivals_ = device::Buffer<unsigned>("arrivals", share_count_);
  }

  void preprocess(cudaStream_t stream) override {
    if (share_count_ == 0) return;
    constexpr int kThreads = 128;  // a warp for each border between shares
    const int blocks = device::divide_up(share_count_ + 1, kThreads / 32);
    device::launch(find_shares_kernel<T>, {dim3(blocks), dim3(kThreads), 0, stream}, share_count_,
                   window_, kOnePassOverhang, a_.rows, a_.nnz, a_.row_offsets.data(),
                   shares_.data(), parts_.data(), arrivals_.data());
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::launch(pcsr_one_pass_kernel<T>,
                   {dim3(device::divide_up(share_count_, warps_)), dim3(32 * warps_),
                    warps_ * sizeof(OnePassShared<T>), stream},
                   share_count_, window_, shares_.data(), a_.row_offsets.data(),
                   a_.column_indices.data(), a_.values.data(), alpha, x, beta, y, parts_.data(),
                   arrivals_.data());
  }
  std::size_t matrix_bytes() const override { return a_.bytes() + shares_.bytes(); }

 private:
  static constexpr int kMostWarps = kOnePassThreads / 32;  // of a block

  // A share may begin up to 8 nonzeros before its window and end a row behind it: three quarters of
  // a step leave room for that, so that one step does. And what is remembered of shares is to be no
  // more than 2% of the matrix.
  long long least_window() const {
    const double positions = 1.0 * a_.rows + a_.nnz;
    const double of_a_share = sizeof(Share) + 2 * sizeof(Part<T>) + sizeof(unsigned);
    const double two_percent = std::ceil(of_a_share / 0.02 * positions / a_.bytes());
    return std::max(3LL * kOnePassStep / 4, static_cast<long long>(two_percent));
  }

  const device::DeviceCsr<T>& a_;
  unsigned window_ = 0;
  int share_count_ = 0;
  int warps_ = 1;                      // of a block
  device::Buffer<Share> shares_;       // share_count + 1
  device::Buffer<Part<T>> parts_;      // two a share: of the row it ends, of the row it begins
  device::Buffer<unsigned> arrivals_;  // share_count
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
                     .idea = "products stay in shared memory; equal shares, a segmented scan",
                     .source = "this repository, from He and Gao 2016"},
                    [](const auto& problem) { return make<PcsrOnePass>(problem); });
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
