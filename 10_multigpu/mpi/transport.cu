#include <mpi.h>

#ifdef HAVE_NCCL
#include <nccl.h>
#endif

#include <numeric>
#include <string>
#include <utility>

#include "../transports.cuh"
#include "ranks.hpp"

namespace spmv::multigpu {
namespace {

// What others need is packed and copied to the host, travels while the interior is multiplied, and
// is copied to the receiver's GPU. Ghost entries of all owners stand one after the other.
template <typename T>
class MpiTransport final : public Transport<T> {
 public:
  MpiTransport(AllGpus<T>& gpus, std::vector<Transfer> transfers)
      : Transport<T>(gpus, std::move(transfers), Transport<T>::SumsOn::kHost) {
    Index out = 0, in = 0;
    for (const Transfer& transfer : transfers_) {
      if (transfer.receiver == g_rank && in == 0) first_ghost_ = transfer.ghost_begin;
      (transfer.owner == g_rank ? out : in) += transfer.count;
    }
    outbox_ = device::Pinned<T>(out);
    inbox_ = device::Pinned<T>(in);
  }

  void send(StepOnGpu<T>& gpu, int k) override {
    gpu.pack(k);
    copy_entries(outbox_.data(), gpu.packed(), outbox_.size(), gpu.main());
  }
  void receive(StepOnGpu<T>&, int) override {}
  void complete(StepOnGpu<T>& gpu, int k) override {
    gpu.ready().synchronize();
    std::vector<MPI_Request> requests;
    for (const Transfer& transfer : transfers_) {
      if (transfer.owner == g_rank) {
        MPI_Isend(outbox_.data() + transfer.begin, transfer.count, mpi_type<T>(), transfer.receiver,
                  0, MPI_COMM_WORLD, &requests.emplace_back());
      } else {
        MPI_Irecv(inbox_.data() + (transfer.ghost_begin - first_ghost_), transfer.count,
                  mpi_type<T>(), transfer.owner, 0, MPI_COMM_WORLD, &requests.emplace_back());
      }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    copy_entries(gpu.x(k) + first_ghost_, inbox_.data(), inbox_.size(), gpu.comm());
  }
  void meet(StepOnGpu<T>& gpu, int k) override {
    gpu.main().synchronize();
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, this->sums(g_rank, k), 1, MPI_DOUBLE,
                  MPI_COMM_WORLD);
  }

 private:
  using Transport<T>::transfers_;
  Index first_ghost_ = 0;
  device::Pinned<T> outbox_, inbox_;
};

#ifdef HAVE_NCCL
void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw device::DeviceError(std::string(what) + ": NCCL: " + ncclGetErrorString(result));
}

using Communicator = std::shared_ptr<ncclComm>;

// The same packed entries, from GPU to GPU.
template <typename T>
class NcclTransport final : public Transport<T> {
 public:
  NcclTransport(AllGpus<T>& gpus, std::vector<Transfer> transfers, Communicator communicator)
      : Transport<T>(gpus, std::move(transfers), Transport<T>::SumsOn::kDevices),
        communicator_(std::move(communicator)) {}

  void send(StepOnGpu<T>& gpu, int k) override { gpu.pack(k); }
  void receive(StepOnGpu<T>& gpu, int k) override {
    constexpr ncclDataType_t kType = sizeof(T) == 4 ? ncclFloat32 : ncclFloat64;
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (const Transfer& transfer : transfers_) {
      if (transfer.owner == g_rank) {
        check_nccl(ncclSend(gpu.source(transfer, k), transfer.count, kType, transfer.receiver,
                            communicator_.get(), gpu.comm().get()),
                   "ncclSend");
      } else {
        check_nccl(ncclRecv(gpu.x(k) + transfer.ghost_begin, transfer.count, kType, transfer.owner,
                            communicator_.get(), gpu.comm().get()),
                   "ncclRecv");
      }
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  }
  void meet(StepOnGpu<T>& gpu, int k) override {
    double* const sums = this->sums(g_rank, k);
    check_nccl(
        ncclAllGather(sums + g_rank, sums, 1, ncclFloat64, communicator_.get(), gpu.main().get()),
        "ncclAllGather");
  }

 private:
  using Transport<T>::transfers_;
  Communicator communicator_;
};

Communicator communicator_of_ranks(int device) {
  ncclUniqueId id{};
  together([&] {
    if (g_rank == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  });
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  Communicator communicator;
  together([&] {
    const device::OnDevice on(device);
    ncclComm_t own = nullptr;
    check_nccl(ncclCommInitRank(&own, g_ranks, id, g_rank), "ncclCommInitRank");
    communicator = {own, ncclCommDestroy};
  });
  return communicator;
}
#endif

}  // namespace

Lists Ranks::tell(Lists lists) const {
  std::vector<int> sent(g_ranks), sent_begins(g_ranks), told(g_ranks), told_begins(g_ranks);
  std::vector<Index> out;
  for (int q = 0; q < g_ranks; ++q) {
    const std::vector<Index>& list = lists[g_rank][q];
    sent[q] = static_cast<int>(list.size());
    sent_begins[q] = static_cast<int>(out.size());
    out.insert(out.end(), list.begin(), list.end());
  }
  MPI_Alltoall(sent.data(), 1, MPI_INT, told.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::exclusive_scan(told.begin(), told.end(), told_begins.begin(), 0);
  std::vector<Index> in(static_cast<std::size_t>(told_begins.back()) + told.back());
  MPI_Alltoallv(out.data(), sent.data(), sent_begins.data(), MPI_INT, in.data(), told.data(),
                told_begins.data(), MPI_INT, MPI_COMM_WORLD);
  for (int q = 0; q < g_ranks; ++q) {
    lists[g_rank][q].assign(in.begin() + told_begins[q], in.begin() + told_begins[q] + told[q]);
  }
  return lists;
}

template <typename T>
typename Machine<T>::MakeTransport transport_between_ranks(bool through_nccl, int device) {
#ifdef HAVE_NCCL
  if (through_nccl) {
    return [communicator = communicator_of_ranks(device)](AllGpus<T>& gpus,
                                                          std::vector<Transfer> transfers) {
      return std::make_unique<NcclTransport<T>>(gpus, std::move(transfers), communicator);
    };
  }
#else
  (void)through_nccl, (void)device;  // refused by main()
#endif
  return [](AllGpus<T>& gpus, std::vector<Transfer> transfers) {
    return std::make_unique<MpiTransport<T>>(gpus, std::move(transfers));
  };
}

template Machine<float>::MakeTransport transport_between_ranks<float>(bool, int);
template Machine<double>::MakeTransport transport_between_ranks<double>(bool, int);

}  // namespace spmv::multigpu
