// Step 10: one GPU, with its part of the matrix and of x.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../06_pcsr/pcsr_sums.cuh"
#include "device/buffer.hpp"
#include "device/csr.hpp"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "norm.cuh"
#include "pack.cuh"
#include "part.hpp"
#include "peer_products.cuh"
#include "push.cuh"

namespace spmv::multigpu {

// A CSR matrix on the current device, and a kernel of another step set up for it.
template <typename T>
class Piece {
 public:
  Piece() = default;
  Piece(Csr<T> csr, const Kernel& kernel) : rows_(csr.rows) {
    if (rows_ == 0) return;
    Matrix<T> host;
    host.csr = std::move(csr);
    csr_ = std::make_unique<device::DeviceCsr<T>>(host.csr);
    spmv_ = kernel.set_up(Problem<T>{host, *csr_});
    const device::Stream stream;
    spmv_->preprocess(stream.get());
    stream.synchronize();
  }
  // y = alpha A x
  void multiply(T alpha, const T* x, T* y, cudaStream_t stream) {
    if (rows_ > 0) spmv_->multiply(alpha, x, T{0}, y, stream);
  }

 private:
  Index rows_ = 0;
  std::unique_ptr<device::DeviceCsr<T>> csr_;
  std::unique_ptr<Spmv<T>> spmv_;
};

// The same with x in parts on several GPUs: the published PCSR, which loads them from there.
template <typename T>
class PeerPiece {
 public:
  PeerPiece() = default;
  explicit PeerPiece(const Csr<T>& csr) : csr_(csr), middle_("middle", csr.nnz()) {
    const int resident = device::resident_blocks(peer_products_kernel<T>, kProductThreads);
    product_blocks_ = std::min(device::divide_up(csr_.nnz, kProductThreads), std::max(resident, 1));
  }
  void multiply(T alpha, const XInParts<T>& x, T* y, cudaStream_t stream) {
    device::launch(peer_products_kernel<T>,
                   {dim3(product_blocks_), dim3(kProductThreads), 0, stream}, csr_.nnz,
                   csr_.column_indices.data(), csr_.values.data(), x, middle_.data());
    device::launch(pcsr_sums_kernel<kSumThreads, T>,
                   {dim3(device::divide_up(csr_.rows, kSumThreads)), dim3(kSumThreads),
                    kPieceSize * sizeof(T), stream},
                   csr_.rows, csr_.row_offsets.data(), middle_.data(), kPieceSize, alpha, T{0}, y);
  }

 private:
  static constexpr int kProductThreads = 256;
  static constexpr int kSumThreads = 128;
  static constexpr int kPieceSize = 1024;

  device::DeviceCsr<T> csr_;
  device::Buffer<T> middle_;
  int product_blocks_ = 0;
};

// Streams of the current device. What others wait for has precedence where there is a choice.
inline device::Stream urgent_stream() {
  int least = 0, greatest = 0;
  device::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
  return device::Stream(greatest);
}

// Two buffers, x and y in turn: step k multiplies x[k % 2] and leaves the product in the other's
// first elements. All calls but the constructor return at once; what they ask for is done in the
// order of the two streams:
//
//   main   [pack]  interior -----------------+--> sum of squares   (all GPUs meet)   scale
//            |                               |
//   comm     +--> remote entries arrive --> boundary
//
// The calling thread must have made device() the current one.
template <typename T>
class Gpu {
 public:
  // packed_places: of the entries of its x that others need, in the order in which they shall be
  // packed.
  Gpu(int device, Part<T> part, const std::vector<Index>& packed_places, const Kernel& kernel,
      Exchange exchange)
      : device_(device),
        rows_(part.rows()),
        interior_rows_(part.interior.rows),
        first_row_(part.first_row),
        order_(std::move(part.order)),
        comm_(urgent_stream()),
        packed_places_("packed_places", packed_places),
        packed_("packed", packed_places.size()),
        norm_blocks_(std::clamp(device::divide_up(rows_, 8 * kNormThreads), 1, 1024)),
        block_sums_("block_sums", norm_blocks_),
        arrivals_("arrivals", std::vector<unsigned>(1, 0)) {
    const bool keeps_x = exchange == Exchange::kNone;
    x_[0] = device::Buffer<T>("x", part.local_cols);
    x_[1] = device::Buffer<T>(keeps_x ? "y" : "x", keeps_x ? rows_ : part.local_cols);
    poison();
    interior_ = Piece<T>(std::move(part.interior), kernel);
    if (exchange == Exchange::kLoads) {
      peer_boundary_ = PeerPiece<T>(part.boundary);
    } else {
      boundary_ = Piece<T>(std::move(part.boundary), kernel);
    }
    device::check(cudaDeviceSynchronize(), "setting up a GPU");
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int device() const { return device_; }
  Index rows() const { return rows_; }
  T* x(int k) { return x_[k % 2].data(); }
  const T* packed() const { return packed_.data(); }
  const device::Stream& main() const { return main_; }
  const device::Stream& comm() const { return comm_; }

  // Both buffers become NaN: what is not brought in time is found out.
  void poison() {
    for (device::Buffer<T>& x : x_) {
      if (x.size() == 0) continue;
      device::check(cudaMemsetAsync(x.data(), 0xff, x.bytes(), main_.get()), "poisoning x");
    }
    main_.synchronize();
  }
  // Step 0's x: of all columns if the GPU holds all of x, else the part's own.
  void set_x(const std::vector<T>& whole, bool holds_all) {
    poison();
    x_own_.resize(holds_all ? whole.size() : rows_);
    for (std::size_t i = 0; i < x_own_.size(); ++i) {
      x_own_[i] = whole[holds_all ? i : static_cast<std::size_t>(first_row_ + order_[i])];
    }
    if (x_own_.empty()) return;
    device::check(
        cudaMemcpy(x_[0].data(), x_own_.data(), x_own_.size() * sizeof(T), cudaMemcpyHostToDevice),
        "copying x");
    device::check(cudaStreamSynchronize(nullptr), "copying x");
  }
  // The part's own entries of step k's x, into their places in `whole`. Its work must be done.
  void get_x(int k, std::vector<T>& whole) {
    if (rows_ == 0) return;
    x_own_.resize(rows_);
    device::check(cudaMemcpy(x_own_.data(), x(k), rows_ * sizeof(T), cudaMemcpyDeviceToHost),
                  "copying x");
    for (Index i = 0; i < rows_; ++i) whole[first_row_ + order_[i]] = x_own_[i];
  }

  void pack(int k) {
    constexpr int kThreads = 256;
    const int count = static_cast<int>(packed_.size());
    device::launch(pack_kernel<T>,
                   {dim3(device::divide_up(count, kThreads)), dim3(kThreads), 0, main_.get()},
                   count, packed_places_.data(), x(k), packed_.data());
  }
  // Where the packed places' entries go at the GPUs that need them, in even and in odd steps.
  void set_ghosts(const std::vector<T*>& even, const std::vector<T*>& odd) {
    ghosts_[0] = device::Buffer<T*>("ghosts", even);
    ghosts_[1] = device::Buffer<T*>("ghosts", odd);
  }
  void push(int k) {
    constexpr int kThreads = 256;
    const int count = static_cast<int>(ghosts_[k % 2].size());
    device::launch(push_kernel<T>,
                   {dim3(device::divide_up(count, kThreads)), dim3(kThreads), 0, main_.get()},
                   count, packed_places_.data(), x(k), ghosts_[k % 2].data());
  }
  void multiply_interior(T alpha, int k) { interior_.multiply(alpha, x(k), x(k + 1), main_.get()); }
  void multiply_boundary(T alpha, int k) {
    boundary_.multiply(alpha, x(k), x(k + 1) + interior_rows_, comm_.get());
  }
  void multiply_boundary(T alpha, int k, const XInParts<T>& x_in_parts) {
    peer_boundary_.multiply(alpha, x_in_parts, x(k + 1) + interior_rows_, comm_.get());
  }
  void sum_squares(int k, const SumPlaces& places) {
    device::launch(sum_of_squares_kernel<T>,
                   {dim3(norm_blocks_), dim3(kNormThreads), 0, main_.get()}, rows_, x(k + 1),
                   block_sums_.data(), arrivals_.data(), places);
  }
  void scale(int k, int parts, const double* sums) {
    device::launch(
        scale_kernel<T>,
        {dim3(device::divide_up(rows_, kNormThreads)), dim3(kNormThreads), 0, main_.get()}, rows_,
        x(k + 1), parts, sums);
  }

 private:
  int device_;
  Index rows_, interior_rows_, first_row_;
  std::vector<Index> order_;
  device::Stream main_, comm_;
  device::Buffer<Index> packed_places_;
  device::Buffer<T> packed_;
  device::Buffer<T*> ghosts_[2];
  device::Buffer<T> x_[2];
  int norm_blocks_;
  device::Buffer<double> block_sums_;
  device::Buffer<unsigned> arrivals_;
  Piece<T> interior_, boundary_;
  PeerPiece<T> peer_boundary_;
  std::vector<T> x_own_;
};

}  // namespace spmv::multigpu
