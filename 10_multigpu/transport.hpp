// Step 10: what moves entries of x between parts: an interface, behind which are copies between
// GPUs, copies through the host, stores (transports.cuh), NCCL and MPI (mpi/transport.hpp).
#pragma once

#include <memory>
#include <vector>

#include "device/buffer.hpp"
#include "device/devices.hpp"
#include "part.hpp"

namespace spmv::multigpu {

struct SumPlaces;

template <typename T>
class StepOnGpu;

// Of each part; null where it is another process's.
template <typename T>
using AllGpus = std::vector<std::unique_ptr<StepOnGpu<T>>>;

template <typename T>
class Transport {
 public:
  // Where the parts of this process have the sums of squares of all parts, of two steps.
  enum class SumsOn { kDevices, kHost };

  // transfers: those that a part of this process sends or receives.
  Transport(AllGpus<T>& gpus, std::vector<Transfer> transfers, SumsOn where);
  virtual ~Transport() = default;

  int parts() const { return static_cast<int>(gpus_.size()); }

  // Each queues work of step k on the GPU's streams.
  // On main(): packs or stores the entries of x that others need. ready() is recorded behind it.
  virtual void send(StepOnGpu<T>&, int) {}
  // On comm(), which waits for the GPU's own ready(): its ghost entries arrive.
  virtual void receive(StepOnGpu<T>& gpu, int k) = 0;
  // Between hosts: waits until they have arrived. The interior's product has been queued.
  virtual void complete(StepOnGpu<T>&, int) {}
  // On main(): a barrier of all parts, behind which their sums of squares are here.
  virtual void meet(StepOnGpu<T>& gpu, int k);

  // All parts' sums of squares of step k, where part p reads them, and the places of its own.
  double* sums(int p, int k) { return sums_[p] + k % 2 * parts(); }
  SumPlaces places_for_sum(int p, int k);

 protected:
  AllGpus<T>& gpus_;
  std::vector<Transfer> transfers_;

 private:
  std::vector<device::Buffer<double>> on_devices_;
  device::Pinned<double> on_host_;
  std::vector<double*> sums_;  // of each part; null where it is another process's
};

}  // namespace spmv::multigpu
