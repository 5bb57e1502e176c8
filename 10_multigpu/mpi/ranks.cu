#include "ranks.hpp"

#ifdef HAVE_NCCL
#include <nccl.h>
#endif

#include <cstdio>
#include <new>
#include <utility>

#include "../step_on_gpu.cuh"
#include "device/devices.hpp"

namespace spmv::multigpu {
namespace {

constexpr double kPatienceSeconds = 5;

// What others need is packed and copied to the host, travels while the interior is multiplied, and
// is copied to the receiver's GPU. Ghost entries of all owners stand one after the other.
template <typename T>
class MpiTransport final : public Transport<T> {
 public:
  explicit MpiTransport(const Layout& layout) : outbox_(layout.packed.size()) {
    Index count = 0;
    for (const Halo& halo : layout.halos) count += halo.count();
    inbox_ = device::Pinned<T>(count);
  }
  void send(StepOnGpu<T>& gpu, int k) override {
    gpu.pack(k);
    copy_entries(outbox_.data(), gpu.packed.data(), outbox_.size(), gpu.main);
  }
  void receive(StepOnGpu<T>&, int) override {}
  void complete(StepOnGpu<T>& gpu, int k) override {
    const MPI_Datatype type = sizeof(T) == 4 ? MPI_FLOAT : MPI_DOUBLE;
    const std::vector<Halo>& halos = gpu.layout.halos;
    gpu.comm.synchronize();  // the outbox is full, the inbox has been read
    std::vector<MPI_Request> requests;
    for (const Send& send : gpu.layout.sends) {
      MPI_Isend(outbox_.data() + send.begin, send.count(), type, send.receiver, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
    }
    T* ghost = inbox_.data();
    for (const Halo& halo : halos) {
      MPI_Irecv(ghost, halo.count(), type, halo.owner, 0, MPI_COMM_WORLD, &requests.emplace_back());
      ghost += halo.count();
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    if (halos.empty()) return;
    copy_entries(gpu.x(k) + halos.front().ghost_begin, inbox_.data(), inbox_.size(), gpu.comm);
  }

 private:
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
  explicit NcclTransport(Communicator communicator) : communicator_(std::move(communicator)) {}

  void send(StepOnGpu<T>& gpu, int k) override { gpu.pack(k); }
  void receive(StepOnGpu<T>& gpu, int k) override {
    constexpr ncclDataType_t kType = sizeof(T) == 4 ? ncclFloat32 : ncclFloat64;
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (const Send& send : gpu.layout.sends) {
      check_nccl(ncclSend(gpu.source(send, k), send.count(), kType, send.receiver,
                          communicator_.get(), gpu.comm.get()),
                 "ncclSend");
    }
    for (const Halo& halo : gpu.layout.halos) {
      check_nccl(ncclRecv(gpu.x(k) + halo.ghost_begin, halo.count(), kType, halo.owner,
                          communicator_.get(), gpu.comm.get()),
                 "ncclRecv");
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  Communicator communicator_;
};

// Called within together(): whatever fails here fails on all ranks.
Communicator communicator_of(const Processes& ranks) {
  ncclUniqueId id{};
  if (ranks.number() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  const device::OnDevice on(ranks.first_device());
  ncclComm_t own = nullptr;
  check_nccl(ncclCommInitRank(&own, ranks.count(), id, ranks.number()), "ncclCommInitRank");
  return {own, ncclCommDestroy};
}
#endif

}  // namespace

Ranks::Ranks() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
}

void Ranks::together(const std::function<void()>& work) const {
  int status = 0;
  std::string text;
  try {
    work();
  } catch (const InputError& error) {
    status = 2, text = error.what();
  } catch (const std::bad_alloc&) {
    status = 2, text = "out of memory; use more ranks";
  } catch (const std::exception& error) {
    status = 1, text = error.what();
  }
  const int mine = status ? rank_ : count_;
  int first = count_, all_here = 0;
  MPI_Request request;
  MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  // A rank that has failed does not wait for one that hangs.
  const double end = MPI_Wtime() + kPatienceSeconds;
  while (status && !all_here && MPI_Wtime() < end) {
    MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
  }
  if (status && !all_here) {
    std::fprintf(stderr, "error: %s\n", text.c_str());
    MPI_Abort(MPI_COMM_WORLD, status);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (first == count_) return;
  MPI_Bcast(&status, 1, MPI_INT, first, MPI_COMM_WORLD);
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
  throw Failure(status, text);
}

void Ranks::gather_bytes(void* whole, std::size_t bytes, const std::vector<Index>& begins) const {
  MPI_Datatype element;
  MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &element);
  MPI_Type_commit(&element);
  std::vector<int> counts;
  for (int p = 0; p < count_; ++p) counts.push_back(begins[p + 1] - begins[p]);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole, counts.data(), begins.data(), element,
                 MPI_COMM_WORLD);
  MPI_Type_free(&element);
}

Lists Ranks::tell(Lists lists) const {
  std::vector<int> sent(count_), sent_begins(count_), told(count_), told_begins(count_);
  std::vector<Index> out;
  for (int q = 0; q < count_; ++q) {
    const std::vector<Index>& list = lists[rank_][q];
    sent[q] = static_cast<int>(list.size());
    sent_begins[q] = static_cast<int>(out.size());
    out.insert(out.end(), list.begin(), list.end());
  }
  MPI_Alltoall(sent.data(), 1, MPI_INT, told.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::exclusive_scan(told.begin(), told.end(), told_begins.begin(), 0);
  std::vector<Index> in(static_cast<std::size_t>(told_begins.back()) + told.back());
  MPI_Alltoallv(out.data(), sent.data(), sent_begins.data(), MPI_INT, in.data(), told.data(),
                told_begins.data(), MPI_INT, MPI_COMM_WORLD);
  for (int q = 0; q < count_; ++q) {
    lists[rank_][q].assign(in.begin() + told_begins[q], in.begin() + told_begins[q] + told[q]);
  }
  return lists;
}

template <typename T>
std::unique_ptr<Transport<T>> Ranks::make(const AllGpus<T>& gpus) const {
#ifdef HAVE_NCCL
  if (uses_nccl_) return std::make_unique<NcclTransport<T>>(communicator_of(*this));
#endif
  return std::make_unique<MpiTransport<T>>(gpus[rank_]->layout);
}

std::unique_ptr<Transport<float>> Ranks::make_transport(const AllGpus<float>& gpus) const {
  return make(gpus);
}
std::unique_ptr<Transport<double>> Ranks::make_transport(const AllGpus<double>& gpus) const {
  return make(gpus);
}

}  // namespace spmv::multigpu
