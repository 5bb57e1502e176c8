// Step 10: the transports within a process.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "step_on_gpu.cuh"
#include "transport.hpp"

namespace spmv::multigpu {

template <typename T>
Transport<T>::Transport(AllGpus<T>& gpus, std::vector<Transfer> transfers, SumsOn where)
    : gpus_(gpus), transfers_(std::move(transfers)), sums_(gpus.size()) {
  const std::size_t count = 2 * gpus.size();
  if (where == SumsOn::kHost) {
    on_host_ = device::Pinned<double>(count);
    std::fill_n(on_host_.data(), count, 0.0);
  }
  for (std::size_t p = 0; p < gpus.size(); ++p) {
    if (!gpus[p]) continue;
    sums_[p] = on_host_.data();
    if (where == SumsOn::kHost) continue;
    const device::OnDevice on(gpus[p]->device());
    on_devices_.emplace_back("sums", std::vector<double>(count, 0));
    sums_[p] = on_devices_.back().data();
  }
}

template <typename T>
void Transport<T>::meet(StepOnGpu<T>& gpu, int) {
  for (const auto& other : gpus_) {
    if (other) other->summed().hold(gpu.main());
  }
}

template <typename T>
SumPlaces Transport<T>::places_for_sum(int p, int k) {
  SumPlaces places{};
  for (int q = 0; q < parts(); ++q) {
    if (!sums_[q] || (on_host_.size() > 0 && places.count == 1)) continue;
    places.place[places.count++] = sums(q, k) + p;
  }
  return places;
}

// Between any two memories: cudaMemcpyDefault tells them by their addresses.
template <typename T>
void copy_entries(T* to, const T* from, std::size_t count, const device::Stream& stream) {
  if (count == 0) return;
  device::check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream.get()),
                "copying entries of x");
}

// Each receiver copies the entries that it needs from their owner's memory, or, where the two GPUs
// cannot reach each other, the owner copies them to pinned memory of the host first.
template <typename T>
class Copies final : public Transport<T> {
 public:
  // reaches: [p][q], whether part p's GPU can use the memory of part q's.
  Copies(AllGpus<T>& gpus, std::vector<Transfer> transfers, typename Transport<T>::SumsOn where,
         const std::vector<std::vector<bool>>& reaches)
      : Transport<T>(gpus, std::move(transfers), where) {
    for (const Transfer& transfer : transfers_) {
      stages_.emplace_back(reaches[transfer.receiver][transfer.owner] ? 0 : transfer.count);
    }
  }
  void send(StepOnGpu<T>& gpu, int k) override {
    gpu.pack(k);
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      if (transfers_[t].owner != gpu.number() || stages_[t].size() == 0) continue;
      copy_entries(stages_[t].data(), gpu.source(transfers_[t], k), transfers_[t].count,
                   gpu.main());
    }
  }
  void receive(StepOnGpu<T>& gpu, int k) override {
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      const Transfer& transfer = transfers_[t];
      if (transfer.receiver != gpu.number()) continue;
      StepOnGpu<T>& owner = *gpus_[transfer.owner];
      owner.ready().hold(gpu.comm());
      copy_entries(gpu.x(k) + transfer.ghost_begin,
                   stages_[t].size() > 0 ? stages_[t].data() : owner.source(transfer, k),
                   transfer.count, gpu.comm());
    }
  }

 private:
  using Transport<T>::gpus_, Transport<T>::transfers_;
  std::vector<device::Pinned<T>> stages_;  // of each transfer; empty: from GPU to GPU
};

// Owners store entries straight into the ghost entries of those that need them.
template <typename T>
class Stores final : public Transport<T> {
 public:
  Stores(AllGpus<T>& gpus, std::vector<Transfer> transfers)
      : Transport<T>(gpus, std::move(transfers), Transport<T>::SumsOn::kDevices) {
    for (const auto& owner : gpus) {
      std::vector<T*> ghosts[2];
      for (int k = 0; k < 2; ++k) {
        for (const Transfer& transfer : transfers_) {
          for (Index i = 0; transfer.owner == owner->number() && i < transfer.count; ++i) {
            ghosts[k].push_back(gpus[transfer.receiver]->x(k) + transfer.ghost_begin + i);
          }
        }
      }
      const device::OnDevice on(owner->device());
      owner->set_ghosts(ghosts[0], ghosts[1]);
    }
  }
  void send(StepOnGpu<T>& gpu, int k) override { gpu.push(k); }
  void receive(StepOnGpu<T>& gpu, int) override {
    for (const Transfer& transfer : transfers_) {
      if (transfer.receiver != gpu.number()) continue;
      gpus_[transfer.owner]->ready().hold(gpu.comm());
    }
  }

 private:
  using Transport<T>::gpus_, Transport<T>::transfers_;
};

}  // namespace spmv::multigpu
