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

#include <memory>
#include <utility>

#include "device/buffer.hpp"
#include "device/csr.hpp"
#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "part.hpp"
#include "sparse/row_source.hpp"

namespace spmv::multigpu {

class StepOnGpu;

// A stream's priority, for what others wait for: the runtime takes the greatest that there is.
inline constexpr int kUrgent = -1000;

// What moves entries of x between parts: copies from GPU to GPU (machine.cu), NCCL and MPI
// (mpi/spmv_mpi.cpp). Each function queues work of step k on the GPU's streams.
class Transport {
 public:
  virtual ~Transport() = default;
  // On main: packs the entries of x that others need. ready is recorded after it.
  virtual void send(StepOnGpu& gpu, int k) = 0;
  // On comm, which waits for the GPU's own ready: its ghost entries arrive.
  virtual void receive(StepOnGpu& gpu, int k) = 0;
  // Between hosts: waits until they have arrived. The interior's product has been queued.
  virtual void complete(StepOnGpu&, int) {}
  // On main: waits until no other part reads this one's x or packed entries any more.
  virtual void meet(StepOnGpu&) {}
};

// A CSR matrix on the current device, and a kernel of another step set up for it.
class Product {
 public:
  Product(Csr<double> csr, const Kernel& kernel) : csr_(csr) {
    Matrix<double> host;
    host.csr = std::move(csr);
    spmv_ = spmv::prepare(kernel, Problem<double>{host, csr_}, device::Stream()).spmv;
  }
  // y = alpha A x
  void multiply(double alpha, const double* x, double* y, const device::Stream& stream) {
    spmv_->multiply(alpha, x, 0, y, stream.get());
  }

 private:
  device::DeviceCsr<double> csr_;
  std::unique_ptr<Spmv<double>> spmv_;
};

// Between any two memories: cudaMemcpyDefault tells them by their addresses, and takes the host's
// memory in between where one GPU cannot reach the other's.
inline void copy_entries(double* to, const double* from, std::size_t count,
                         const device::Stream& stream) {
  if (count == 0) return;
  device::check(cudaMemcpyAsync(to, from, count * sizeof(double), cudaMemcpyDefault, stream.get()),
                "copying entries of x");
}

// The calling thread has made `device_number` the current one. What the functions queue runs in the
// order of the two streams.
class StepOnGpu {
 public:
  StepOnGpu(int part_number, int on_device, const Part& its_part, const Kernel& kernel,
            bool has_all_x)
      : number(part_number),
        device_number(on_device),
        part(its_part),
        packed("packed", part.packed.size()),
        buffers{{"x", static_cast<std::size_t>(part.local_cols)},
                {has_all_x ? "y" : "x",
                 static_cast<std::size_t>(has_all_x ? part.rows() : part.local_cols)}},
        places_("packed_places", part.packed),
        interior_(slice_of(part.matrix, part.boundary_rows, part.rows()), kernel),
        boundary_(slice_of(part.matrix, 0, part.boundary_rows), kernel) {
    device::check(cudaDeviceSynchronize(), "setting up a GPU");
  }

  // --- One step: three phases and Transport::meet(), each of all parts before the next one ------

  // Entries of x that others need can be read from here on.
  void announce(Transport& transport, int k) {
    transport.send(*this, k);
    ready.record(main);
  }
  // Ghost entries arrive. They overwrite those of step k - 2, for which step k - 1 has ended.
  void fetch(Transport& transport, int k) {
    ready.hold(comm);
    transport.receive(*this, k);
  }
  void multiply(Transport& transport, int k, double factor) {
    interior_.multiply(factor, x(k), x(k + 1) + part.boundary_rows, main);
    transport.complete(*this, k);
    boundary_.multiply(factor, x(k), x(k + 1), comm);
    fetched_.record(comm);
    fetched_.hold(main);
    done.record(main);
  }

  // A product of an x that all GPUs have (kNone): no phases.
  void multiply_alone() { interior_.multiply(1, x(0), x(1), main); }

  // --- What a transport uses --------------------------------------------------------------------

  double* x(int k) { return buffers[k % 2].data(); }
  // The entries of a send of this part.
  const double* source(const Send& send, int k) {
    return (send.is_packed ? packed.data() : x(k)) + send.begin;
  }
  void pack(int k);  // on main

  const int number, device_number;  // of the part; of its GPU
  const Part& part;                 // whose matrix may go when this has been made
  device::Stream main, comm{kUrgent};
  // Events of the step last queued: its x can be read; it is done.
  device::Event ready = device::Event::untimed(), done = device::Event::untimed();
  device::Event began, ended;  // of the step that is timed
  device::Buffer<double> packed;
  device::Buffer<double> buffers[2];  // x in turn; with kNone all of x, and y

 private:
  device::Event fetched_ = device::Event::untimed();
  device::Buffer<Index> places_;
  Product interior_, boundary_;
};

}  // namespace spmv::multigpu
