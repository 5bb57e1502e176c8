// Step 10: one step of an iteration on one GPU, where the host asks for it: the order of its work,
// and the interface of what moves entries of x.
//
//   main   pack  interior rows ------------------------+--> (all meet) next step
//            |                                         |
//   comm     +--> ghost entries arrive --> boundary rows
//
// Two buffers, x and y in turn: step k multiplies x[k % 2] and leaves the product in the other's
// first elements. They suffice because a part that others copy from waits for them
// (Transport::meet) before the next step overwrites what they read.
#pragma once

#include <cuda_runtime.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "device/buffer.hpp"
#include "device/csr.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "part.hpp"
#include "sparse/row_source.hpp"

namespace spmv::multigpu {

// Packs the entries of x that other GPUs need, so that one copy per GPU moves them. A part of x
// travels whole in the paper (GPUDirect, section 4), but most matrices need few of another part's
// entries. A thread owns one entry.
template <typename T>
__global__ void pack_kernel(int count, const int* __restrict__ places, const T* __restrict__ x,
                            T* __restrict__ packed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) packed[i] = x[places[i]];
}

// What moves entries of x between parts: copies between GPUs or through the host
// (machine.cu), NCCL and MPI (mpi/ranks.cu). Each function queues work of step k on the GPU's
// streams.
template <typename T>
class Transport {
 public:
  virtual ~Transport() = default;
  // On main: packs the entries of x that others need. ready is recorded behind it.
  virtual void send(StepOnGpu<T>& gpu, int k) = 0;
  // On comm, which waits for the GPU's own ready: its ghost entries arrive.
  virtual void receive(StepOnGpu<T>& gpu, int k) = 0;
  // Between hosts: waits until they have arrived. The interior's product has been queued.
  virtual void complete(StepOnGpu<T>&, int) {}
  // On main: waits until no other part reads this one's x or packed entries any more.
  virtual void meet(StepOnGpu<T>&) {}
};

// A CSR matrix on the current device, and a kernel of another step set up for it.
template <typename T>
class Product {
 public:
  Product() = default;
  Product(Csr<T> csr, const Kernel& kernel) : rows_(csr.rows) {
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

template <typename T>
std::vector<T> nans(std::size_t count) {
  return std::vector<T>(count, std::numeric_limits<T>::quiet_NaN());
}

// Streams of the current device. What others wait for has precedence where there is a choice.
inline device::Stream urgent_stream() {
  int least = 0, greatest = 0;
  device::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
  return device::Stream(greatest);
}

// Between any two memories: cudaMemcpyDefault tells them by their addresses.
template <typename T>
void copy_entries(T* to, const T* from, std::size_t count, const device::Stream& stream) {
  if (count == 0) return;
  device::check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream.get()),
                "copying entries of x");
}

// The calling thread has made `device` the current one. What the functions queue runs in the order
// of the two streams.
template <typename T>
class StepOnGpu {
 public:
  // part_layout: the part's, which outlives this.
  StepOnGpu(int part_number, int on_device, const Part<T>& part, const Layout& part_layout,
            const Kernel& kernel, bool has_all_x)
      : number(part_number),
        device_number(on_device),
        layout(part_layout),
        comm(urgent_stream()),
        packed("packed", part.packed.size()),
        buffers{{"x", static_cast<std::size_t>(part.local_cols)},
                {has_all_x ? "y" : "x",
                 static_cast<std::size_t>(has_all_x ? part.rows() : part.local_cols)}},
        places_("packed_places", part.packed),
        interior_(slice_of(part.matrix, part.boundary_rows, part.rows()), kernel),
        boundary_(slice_of(part.matrix, 0, part.boundary_rows), kernel) {
    for (device::Buffer<T>& x : buffers) x.upload(nans<T>(x.size()));
    device::check(cudaDeviceSynchronize(), "setting up a GPU");
  }

  // --- One step: three phases and Transport::meet(), each of all parts before the next one ------

  // Entries of x that others need can be read from here on.
  void announce(Transport<T>& transport, int k) {
    transport.send(*this, k);
    ready.record(main);
  }
  // Ghost entries arrive. They overwrite those of step k - 2, for which step k - 1 has ended.
  void fetch(Transport<T>& transport, int k) {
    ready.hold(comm);
    transport.receive(*this, k);
  }
  void multiply(Transport<T>& transport, int k, T factor) {
    interior_.multiply(factor, x(k), x(k + 1) + layout.boundary_rows, main);
    transport.complete(*this, k);
    boundary_.multiply(factor, x(k), x(k + 1), comm);
    fetched_.record(comm);
    fetched_.hold(main);
    done.record(main);
  }

  // A product of an x that all GPUs have (kNone): no phases.
  void multiply_alone() { interior_.multiply(T{1}, x(0), x(1), main); }

  // --- What a transport uses --------------------------------------------------------------------

  T* x(int k) { return buffers[k % 2].data(); }
  // The entries of a send of this part.
  const T* source(const Send& send, int k) {
    return (send.is_packed ? packed.data() : x(k)) + send.begin;
  }
  void pack(int k) {
    constexpr int kThreads = 256;
    const int count = static_cast<int>(packed.size());
    device::launch(pack_kernel<T>,
                   {dim3(device::divide_up(count, kThreads)), dim3(kThreads), 0, main.get()}, count,
                   places_.data(), x(k), packed.data());
  }

  const int number, device_number;  // of the part; of its GPU
  const Layout& layout;
  device::Stream main, comm;
  // Events of the step last queued: its x can be read; it is done.
  device::Event ready = device::Event::untimed(), done = device::Event::untimed();
  device::Buffer<T> packed;
  device::Buffer<T> buffers[2];  // x in turn; with kNone all of x, and y

 private:
  device::Event fetched_ = device::Event::untimed();
  device::Buffer<Index> places_;
  Product<T> interior_, boundary_;
};

}  // namespace spmv::multigpu
