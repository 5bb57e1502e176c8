// Step 10: one step of an iteration on one GPU: the order of its work.
//
//   main   [send]  interior rows -----------------------+--> sum of squares   (all meet)   scale
//            |                                          |
//   comm     +--> ghost entries arrive --> boundary rows
//
// Two buffers, x and y in turn: step k multiplies x[k % 2] and leaves the product in the other's
// first elements. They suffice because all parts meet (Transport::meet) before the next step: then
// no part still reads the entries that it overwrites.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/buffer.hpp"
#include "device/csr.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "norm.cuh"
#include "pack.cuh"
#include "part.hpp"
#include "push.cuh"
#include "sparse/row_source.hpp"
#include "transport.hpp"

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
    spmv_ = spmv::prepare(kernel, Problem<T>{host, *csr_}, device::Stream()).spmv;
  }
  // y = alpha A x
  void multiply(T alpha, const T* x, T* y, const device::Stream& stream) {
    if (rows_ > 0) spmv_->multiply(alpha, x, T{0}, y, stream.get());
  }

 private:
  Index rows_ = 0;
  std::unique_ptr<device::DeviceCsr<T>> csr_;
  std::unique_ptr<Spmv<T>> spmv_;
};

// Streams of the current device. What others wait for has precedence where there is a choice.
inline device::Stream urgent_stream() {
  int least = 0, greatest = 0;
  device::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
  return device::Stream(greatest);
}

// The calling thread has made device() the current one. The phases return at once (but for
// Transport::complete() between hosts): what they queue runs in the order of the two streams.
template <typename T>
class StepOnGpu {
 public:
  // packed: of the entries of its x that others need, in the order in which they are packed.
  StepOnGpu(int number, int device, const Part<T>& part, const std::vector<Index>& packed,
            const Kernel& kernel, Exchange exchange)
      : number_(number),
        device_(device),
        exchange_(exchange),
        layout_(part),
        rows_(part.rows()),
        comm_(urgent_stream()),
        packed_places_("packed_places", packed),
        packed_("packed", packed.size()),
        norm_blocks_(std::clamp(device::divide_up(rows_, 8 * kNormThreads), 1, 1024)),
        block_sums_("block_sums", norm_blocks_),
        arrivals_("arrivals", std::vector<unsigned>(1, 0)) {
    const bool keeps_x = exchange == Exchange::kNone;
    x_[0] = device::Buffer<T>("x", part.local_cols);
    x_[1] = device::Buffer<T>(keeps_x ? "y" : "x", keeps_x ? rows_ : part.local_cols);
    for (device::Buffer<T>& x : x_) x.upload(nans(x.size()));
    interior_ = Piece<T>(slice_of(part.matrix, part.boundary_rows, rows_), kernel);
    boundary_ = Piece<T>(slice_of(part.matrix, 0, part.boundary_rows), kernel);
    device::check(cudaDeviceSynchronize(), "setting up a GPU");
  }
  StepOnGpu(const StepOnGpu&) = delete;
  StepOnGpu& operator=(const StepOnGpu&) = delete;

  // --- One step: four phases, each of all parts before the next one -----------------------------

  // Entries of x that others need leave, or can be read from here on.
  void announce(Transport<T>& transport, int k) {
    transport.send(*this, k);
    ready_.record(main_);
  }

  // Ghost entries arrive. They overwrite those of step k - 2, for which step k - 1 has ended.
  void fetch(Transport<T>& transport, int k) {
    ready_.hold(comm_);
    transport.receive(*this, k);
  }

  // factor: of the product; 0: by its norm.
  void multiply(Transport<T>& transport, int k, double factor) {
    const T alpha = static_cast<T>(factor != 0 ? factor : 1);
    interior_.multiply(alpha, x(k), x(k + 1) + layout_.boundary_rows, main_);
    transport.complete(*this, k);
    boundary_.multiply(alpha, x(k), x(k + 1), comm_);
    fetched_.record(comm_);
    fetched_.hold(main_);
    if (factor == 0) {
      device::launch(sum_of_squares_kernel<T>,
                     {dim3(norm_blocks_), dim3(kNormThreads), 0, main_.get()}, rows_, x(k + 1),
                     block_sums_.data(), arrivals_.data(), transport.places_for_sum(number_, k));
    }
    summed_.record(main_);
  }

  // From here on all parts have done step k: what it has read may be overwritten.
  void finish(Transport<T>& transport, int k, double factor) {
    transport.meet(*this, k);
    if (factor != 0) return;
    device::launch(scale_kernel<T>, shape_for(rows_), rows_, x(k + 1), transport.parts(),
                   transport.sums(number_, k));
  }

  // A product of an x that all GPUs have (kNone): no phases.
  void multiply_alone() { interior_.multiply(T{1}, x(0), x(1), main_); }

  // --- What a transport uses --------------------------------------------------------------------

  int number() const { return number_; }  // of the part
  int device() const { return device_; }
  T* x(int k) { return x_[k % 2].data(); }
  const device::Stream& main() const { return main_; }
  const device::Stream& comm() const { return comm_; }
  // Events of the step last queued: its x can be read; its squares are summed.
  const device::Event& ready() const { return ready_; }
  const device::Event& summed() const { return summed_; }

  // What a Transfer takes to its receiver, if this is its owner.
  const T* source(const Transfer& transfer, int k) {
    return (transfer.packed ? packed() : x(k)) + transfer.begin;
  }
  const T* packed() const { return packed_.data(); }
  void pack(int k) {
    const int count = static_cast<int>(packed_.size());
    device::launch(pack_kernel<T>, shape_for(count), count, packed_places_.data(), x(k),
                   packed_.data());
  }
  // Where the packed entries go at the GPUs that need them, in even and in odd steps.
  void set_ghosts(const std::vector<T*>& even, const std::vector<T*>& odd) {
    ghosts_[0] = device::Buffer<T*>("ghosts", even);
    ghosts_[1] = device::Buffer<T*>("ghosts", odd);
  }
  void push(int k) {
    const int count = static_cast<int>(ghosts_[k % 2].size());
    device::launch(push_kernel<T>, shape_for(count), count, packed_places_.data(), x(k),
                   ghosts_[k % 2].data());
  }

  // --- Before and after -------------------------------------------------------------------------

  // Step 0's x: of all columns if the GPU has all of x, else the part's own. All else is NaN, so
  // that a transfer that is missing or late shows.
  void set_x(const std::vector<T>& whole) {
    if (exchange_ == Exchange::kNone) {
      x_[0].upload(whole);
    } else {
      std::vector<T> x = nans(x_[0].size());
      layout_.take(whole, x);
      x_[0].upload(x);
    }
    x_[1].upload(nans(x_[1].size()));
  }
  // The part's own entries of step k's x, into their places in `whole`. Its work must be done.
  void get_x(int k, std::vector<T>& whole) {
    layout_.put_back(x_[exchange_ == Exchange::kNone ? 1 : k % 2].download().data(), whole);
  }

 private:
  static std::vector<T> nans(std::size_t count) {
    return std::vector<T>(count, std::numeric_limits<T>::quiet_NaN());
  }
  device::Shape shape_for(int count) const {
    return {dim3(device::divide_up(count, kNormThreads)), dim3(kNormThreads), 0, main_.get()};
  }

  int number_, device_;
  Exchange exchange_;
  Layout layout_;
  Index rows_;
  device::Stream main_, comm_;
  device::Event ready_ = device::Event::untimed(), fetched_ = device::Event::untimed(),
                summed_ = device::Event::untimed();
  device::Buffer<Index> packed_places_;
  device::Buffer<T> packed_;
  device::Buffer<T*> ghosts_[2];
  device::Buffer<T> x_[2];
  int norm_blocks_;
  device::Buffer<double> block_sums_;
  device::Buffer<unsigned> arrivals_;
  Piece<T> interior_, boundary_;
};

}  // namespace spmv::multigpu
