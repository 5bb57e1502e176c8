// Step 10 with a process per GPU: mpirun -np N spmv_mpi --matrix ... --iterate 100
//
// A rank has a GPU and a part of the rows: it makes or reads these only. Of the others it knows how
// many nonzeros each row has. Entries of x that other ranks need are packed, and travel by MPI from
// host to host, or by NCCL from GPU to GPU. Local offsets are 32-bit, as everywhere; what counts
// the matrix as a whole is 64-bit, so that it may have more than 2^31 nonzeros as long as no part
// has.
#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <iostream>
#include <new>
#include <optional>
#include <stdexcept>

#include "../measure.hpp"
#include "../step_on_gpu.hpp"
#include "device/devices.hpp"
#include "harness/options.hpp"
#include "harness/output.hpp"

#ifdef HAVE_NCCL
#include <nccl.h>
#endif

namespace spmv::multigpu {
namespace {

// --- What moves entries of x from process to process ---------------------------------------------

// What others need is packed and copied to the host, travels while the interior is multiplied, and
// is copied to the receiver's GPU. Ghost entries of all owners stand one after the other.
class MpiTransport final : public Transport {
 public:
  void send(StepOnGpu& gpu, int k) override {
    const Part& part = gpu.part;
    if (outbox_.size() < part.packed.size()) outbox_ = device::Pinned<double>(part.packed.size());
    gpu.pack(k);
    copy_entries(outbox_.data(), gpu.packed.data(), outbox_.size(), gpu.main);
  }
  void receive(StepOnGpu&, int) override {}
  void complete(StepOnGpu& gpu, int k) override {
    const std::vector<Halo>& halos = gpu.part.halos;
    const Index begin = halos.empty() ? gpu.part.local_cols : halos.front().ghost_begin;
    const std::size_t count = gpu.part.local_cols - begin;
    if (inbox_.size() < count) inbox_ = device::Pinned<double>(count);
    gpu.comm.synchronize();  // the outbox is full, the inbox has been read
    std::vector<MPI_Request> requests;
    for (const Send& send : gpu.part.sends) {
      MPI_Isend(outbox_.data() + send.begin, send.count(), MPI_DOUBLE, send.receiver, 0,
                MPI_COMM_WORLD, &requests.emplace_back());
    }
    double* ghost = inbox_.data();
    for (const Halo& halo : halos) {
      MPI_Irecv(ghost, halo.count(), MPI_DOUBLE, halo.owner, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
      ghost += halo.count();
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    copy_entries(gpu.x(k) + begin, inbox_.data(), count, gpu.comm);
  }

 private:
  device::Pinned<double> outbox_, inbox_;
};

#ifdef HAVE_NCCL
void check(ncclResult_t result) {
  if (result != ncclSuccess) throw device::DeviceError(ncclGetErrorString(result));
}

// The same packed entries, from GPU to GPU.
class NcclTransport final : public Transport {
 public:
  // Called within together(): whatever fails here fails on all ranks.
  explicit NcclTransport(const Processes& ranks) {
    ncclUniqueId id{};
    if (ranks.number == 0) check(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    const device::OnDevice on(ranks.first_device);
    ncclComm_t own = nullptr;
    check(ncclCommInitRank(&own, ranks.count, id, ranks.number));
    communicator_ = {own, ncclCommDestroy};
  }
  void send(StepOnGpu& gpu, int k) override { gpu.pack(k); }
  void receive(StepOnGpu& gpu, int k) override {
    check(ncclGroupStart());
    for (const Send& send : gpu.part.sends) {
      check(ncclSend(gpu.source(send, k), send.count(), ncclFloat64, send.receiver,
                     communicator_.get(), gpu.comm.get()));
    }
    for (const Halo& halo : gpu.part.halos) {
      check(ncclRecv(gpu.x(k) + halo.ghost_begin, halo.count(), ncclFloat64, halo.owner,
                     communicator_.get(), gpu.comm.get()));
    }
    check(ncclGroupEnd());
  }

 private:
  std::shared_ptr<ncclComm> communicator_;
};
#endif

// --- The processes -------------------------------------------------------------------------------

// What went wrong on one of the ranks, as all of them know it, and what they end with.
struct Failure : std::runtime_error {
  Failure(int ends_with, const std::string& text) : std::runtime_error(text), status(ends_with) {}
  int status;
};

// A process for each part, whose number is the rank in MPI_COMM_WORLD.
class Ranks final : public Processes {
 public:
  Ranks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
  }

  // Every rank does its `work`. If it fails on one, all ranks throw that one's Failure: no rank
  // waits for a rank that has given up.
  void together(const std::function<void()>& work) const override {
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
    int first = status ? number : count;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == count) return;
    MPI_Bcast(&status, 1, MPI_INT, first, MPI_COMM_WORLD);
    auto length = static_cast<int>(text.size());
    MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
    text.resize(static_cast<std::size_t>(length));
    MPI_Bcast(text.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
    throw Failure(status, text);
  }

  Lists tell(Lists lists) const override {
    std::vector<int> sent(count), sent_begins(count), received(count), received_begins(count);
    std::vector<Index> out;
    for (int q = 0; q < count; ++q) {
      const std::vector<Index>& list = lists[number][q];
      sent[q] = static_cast<int>(list.size());
      sent_begins[q] = static_cast<int>(out.size());
      out.insert(out.end(), list.begin(), list.end());
    }
    MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(received.begin(), received.end(), received_begins.begin(), 0);
    std::vector<Index> in(static_cast<std::size_t>(received_begins.back()) + received.back());
    MPI_Alltoallv(out.data(), sent.data(), sent_begins.data(), MPI_INT, in.data(), received.data(),
                  received_begins.data(), MPI_INT, MPI_COMM_WORLD);
    for (int q = 0; q < count; ++q) {
      lists[number][q].assign(in.begin() + received_begins[q],
                              in.begin() + received_begins[q] + received[q]);
    }
    return lists;
  }

  std::shared_ptr<Transport> make_transport() const override {
#ifdef HAVE_NCCL
    if (uses_nccl) return std::make_shared<NcclTransport>(*this);
#endif
    return std::make_shared<MpiTransport>();
  }

  bool uses_nccl = false;

 private:
  void gather_bytes(void* whole, std::size_t bytes,
                    const std::vector<Index>& begins) const override {
    MPI_Datatype element;
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &element);
    MPI_Type_commit(&element);
    std::vector<int> counts;
    for (int p = 0; p < count; ++p) counts.push_back(begins[p + 1] - begins[p]);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole, counts.data(), begins.data(), element,
                   MPI_COMM_WORLD);
    MPI_Type_free(&element);
  }
};

// --- The program ---------------------------------------------------------------------------------

void main_program(int argc, char** argv, Ranks& ranks) {
  Options options;
  options.gpus = {ranks.count};
  options.exchanges = {"mpi"};
  options.steps = 10;
  CommandArguments arguments;
  arguments.matrices = {""};
  CommandLine line("spmv_mpi",
                   "y = A x, x = factor y, on as many ranks as mpirun starts, a GPU each.");
  line.add("-m,--matrix", arguments.matrices[0], "a file, a generator or a name of the papers",
           {required()});
  line.add("-k,--kernel", arguments.kernels, "of the product on each GPU (pcsr_one_pass)");
  line.add("--exchange", options.exchanges[0],
           "mpi (from host to host) or nccl (from GPU to GPU; each rank has a GPU of its own)",
           {one_of({"mpi", "nccl"})});
  line.add("--iterate", options.steps, "", {between(1, 1000000)});
  line.add("--memory-limit", arguments.load.memory_limit_bytes,
           "most memory that a rank's part of the matrix may take, such as 500M or 8G; 0: a "
           "quarter of what is available",
           {size_in_bytes()});
  line.add("--json", arguments.json, "append a record to this file (JSON Lines)");
  std::optional<std::string> help;
  ranks.together([&] { help = line.parse(argc, argv); });
  if (help) return fmt::print("{}", *help);
  ranks.uses_nccl = options.exchanges[0] == "nccl";
  // The ranks of one machine share its GPUs out.
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks.number, MPI_INFO_NULL, &here);
  int rank_here = 0, ranks_here = 1;
  MPI_Comm_rank(here, &rank_here);
  MPI_Comm_size(here, &ranks_here);
  bool share_gpus = false;
  ranks.together([&] {
    const int devices_here = device::available_devices(ranks_here);
    share_gpus = devices_here < ranks_here;
    ranks.first_device = rank_here % devices_here;
    device::check(cudaSetDevice(ranks.first_device), "choosing a device");
    arguments.environment = describe_environment(argc, argv);
#ifndef HAVE_NCCL
    if (ranks.uses_nccl) throw InputError("--exchange nccl: built without NCCL; use mpi");
#endif
    if (ranks.uses_nccl && share_gpus) {
      throw InputError("--exchange nccl: ranks share GPUs; use --exchange mpi");
    }
  });
  MPI_Allreduce(MPI_IN_PLACE, &share_gpus, 1, MPI_CXX_BOOL, MPI_LOR, MPI_COMM_WORLD);
  print_environment(std::cout, arguments.environment);
  if (share_gpus) fmt::print("ranks share GPUs: right, but no times of theirs are recorded\n");
  if (share_gpus || ranks.number > 0) arguments.json.clear();
  measure(options, arguments, ranks);
}

}  // namespace
}  // namespace spmv::multigpu

int main(int argc, char** argv) {
  using namespace spmv::multigpu;
  spmv::prepare_output();
  MPI_Init(&argc, &argv);
  int status = 0;
  Ranks ranks;
  try {
    ranks.together([&] {  // the first alone says something
      if (ranks.number == 0 || std::freopen("/dev/null", "w", stdout)) return;
      throw std::runtime_error("/dev/null cannot be opened");
    });
    main_program(argc, argv, ranks);
    ranks.together(spmv::check_output);
  } catch (const Failure& failure) {
    if (ranks.number == 0) fmt::print(stderr, "error: {}\n", failure.what());
    status = failure.status;
  } catch (const std::exception& error) {
    // Outside together(): the other ranks do not know, and may be waiting.
    fmt::print(stderr, "error: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
