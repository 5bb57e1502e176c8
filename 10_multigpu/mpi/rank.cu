#include "rank.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "../gpu.cuh"
#include "../nccl.hpp"
#include "together.hpp"

namespace spmv::multigpu {
namespace {

// What this rank packs for each other rank, one rank after the other.
struct Sends {
  std::vector<int> counts, begins;
  std::vector<Index> places;  // in this rank's x
};

// Tells each owner which of its columns are needed, as `needs` says, and hears what it has to send.
Sends exchange_needs(const std::vector<Need>& needs, const std::vector<Index>& order) {
  std::vector<int> wants(g_ranks, 0), want_begins(g_ranks, 0);
  std::vector<Index> wanted;
  for (const Need& need : needs) {
    wants[need.owner] = need.count;
    want_begins[need.owner] = static_cast<int>(wanted.size());
    wanted.insert(wanted.end(), need.places.begin(), need.places.end());
  }
  Sends sends;
  sends.counts.resize(g_ranks);
  sends.begins.assign(g_ranks, 0);
  MPI_Alltoall(wants.data(), 1, MPI_INT, sends.counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::exclusive_scan(sends.counts.begin(), sends.counts.end(), sends.begins.begin(), 0);
  sends.places.resize(static_cast<std::size_t>(sends.begins.back()) + sends.counts.back());
  MPI_Alltoallv(wanted.data(), wants.data(), want_begins.data(), MPI_INT, sends.places.data(),
                sends.counts.data(), sends.begins.data(), MPI_INT, MPI_COMM_WORLD);

  std::vector<Index> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<Index>(i);
  for (Index& place : sends.places) place = position[place];
  return sends;
}

}  // namespace

template <typename T>
struct Rank<T>::State {
  State(int device, Part<T> part, const Kernel& kernel, bool through_nccl)
      : needs_(part.needs), sends_(exchange_needs(part.needs, part.order)) {
    together([&] {
      device::check(cudaSetDevice(device), "choosing a device");
      gpu_ = std::make_unique<Gpu<T>>(device, std::move(part), sends_.places, kernel,
                                      Exchange::kPacked);
      ready_ = std::make_unique<device::Event>();
      fetched_ = std::make_unique<device::Event>();
      sums_ = device::Pinned<double>(2 * static_cast<std::size_t>(g_ranks));
      std::fill_n(sums_.data(), sums_.size(), 0.0);
      Index fetched = 0;
      for (const Need& need : needs_) fetched += need.count;
      if (through_nccl) {
        sums_on_device_ = device::Buffer<double>("sums", std::vector<double>(sums_.size(), 0));
      } else {
        outbox_ = device::Pinned<T>(sends_.places.size());
        inbox_ = device::Pinned<T>(fetched);
      }
    });
    if (!through_nccl) return;
    auto id = Nccl::make_id();  // every rank's, but only rank 0's is used
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    together([&] { nccl_ = std::make_unique<Nccl>(g_ranks, g_rank, id); });
  }

  void start(const std::vector<T>& x) {
    together([&] { gpu_->set_x(x, false); });
  }

  // A rank that fails in here takes all with it at once: the others are waiting for it.
  void run(int steps) {
    try {
      for (int k = 0; k < steps; ++k) step(k);
      gpu_->main().synchronize();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "error: rank %d: %s\n", g_rank, error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }

  // This rank's rows of step k's x, in their order.
  std::vector<T> x_of(int k, Index first_row) {
    std::vector<T> whole(static_cast<std::size_t>(first_row) + gpu_->rows());
    gpu_->get_x(k, whole);
    return {whole.begin() + first_row, whole.end()};
  }
  double factor_of(int k) {
    std::vector<double> sums(g_ranks);
    device::check(
        cudaMemcpy(sums.data(), sums_of(k), sums.size() * sizeof(double), cudaMemcpyDefault),
        "copying sums");
    return 1 / power_of_norm(std::accumulate(sums.begin(), sums.end(), 0.0));
  }

  double* sums_of(int k) {
    return (nccl_ ? sums_on_device_.data() : sums_.data()) + k % 2 * g_ranks;
  }

  void step(int k) {
    gpu_->pack(k);
    if (!nccl_ && outbox_.size() > 0) {
      device::check(cudaMemcpyAsync(outbox_.data(), gpu_->packed(), outbox_.size() * sizeof(T),
                                    cudaMemcpyDeviceToHost, gpu_->main().get()),
                    "copying entries of x to the host");
    }
    ready_->record(gpu_->main());
    gpu_->multiply_interior(T{1}, k);
    ready_->hold(gpu_->comm());
    if (nccl_) {
      exchange_by_nccl(k);
    } else {
      exchange_by_mpi(k);
    }
    gpu_->multiply_boundary(T{1}, k);
    fetched_->record(gpu_->comm());
    fetched_->hold(gpu_->main());

    SumPlaces places{};
    places.count = 1;
    places.place[0] = sums_of(k) + g_rank;
    gpu_->sum_squares(k, places);
    if (nccl_) {
      nccl_->all_gather(sums_of(k) + g_rank, sums_of(k), gpu_->main().get());
    } else {
      gpu_->main().synchronize();
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sums_of(k), 1, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    gpu_->scale(k, g_ranks, sums_of(k));
  }

  void exchange_by_nccl(int k) {
    Nccl::begin();
    for (int rank = 0; rank < g_ranks; ++rank) {
      if (sends_.counts[rank] == 0) continue;
      nccl_->send(0, rank, gpu_->packed() + sends_.begins[rank], sends_.counts[rank],
                  gpu_->comm().get());
    }
    for (const Need& need : needs_) {
      nccl_->receive(0, need.owner, gpu_->x(k) + need.ghost, need.count, gpu_->comm().get());
    }
    Nccl::end();
  }

  // While the GPU multiplies the interior.
  void exchange_by_mpi(int k) {
    ready_->synchronize();
    std::vector<MPI_Request> requests;
    Index at = 0;
    for (const Need& need : needs_) {
      MPI_Irecv(inbox_.data() + at, need.count, mpi_type<T>(), need.owner, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
      at += need.count;
    }
    for (int rank = 0; rank < g_ranks; ++rank) {
      if (sends_.counts[rank] == 0) continue;
      MPI_Isend(outbox_.data() + sends_.begins[rank], sends_.counts[rank], mpi_type<T>(), rank, 0,
                MPI_COMM_WORLD, &requests.emplace_back());
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    if (needs_.empty()) return;
    // What comes from all owners lies side by side, here as there.
    device::check(cudaMemcpyAsync(gpu_->x(k) + needs_.front().ghost, inbox_.data(), at * sizeof(T),
                                  cudaMemcpyHostToDevice, gpu_->comm().get()),
                  "copying entries of x to the device");
  }

  std::vector<Need> needs_;
  Sends sends_;
  std::unique_ptr<Gpu<T>> gpu_;
  std::unique_ptr<device::Event> ready_, fetched_;
  device::Pinned<double> sums_;
  device::Buffer<double> sums_on_device_;
  device::Pinned<T> outbox_, inbox_;
  std::unique_ptr<Nccl> nccl_;
};

template <typename T>
Rank<T>::Rank(int device, Part<T> part, const Kernel& kernel, bool through_nccl)
    : state_(std::make_unique<State>(device, std::move(part), kernel, through_nccl)) {}
template <typename T>
Rank<T>::~Rank() = default;
template <typename T>
void Rank<T>::start(const std::vector<T>& x) {
  state_->start(x);
}
template <typename T>
void Rank<T>::run(int steps) {
  state_->run(steps);
}
template <typename T>
std::vector<T> Rank<T>::x_of(int k, Index first_row) {
  return state_->x_of(k, first_row);
}
template <typename T>
double Rank<T>::factor_of(int k) {
  return state_->factor_of(k);
}

template class Rank<float>;
template class Rank<double>;

}  // namespace spmv::multigpu
