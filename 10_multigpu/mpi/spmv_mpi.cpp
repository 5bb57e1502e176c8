// Step 10 past one machine: mpirun -np N spmv_mpi --matrix ... --iterate 100
//
// A rank has a GPU and a part of the rows: it makes or reads these only. Of the others it knows how
// many nonzeros each row has. On one machine whose GPUs reach each other's memory, persistent
// kernels store what other ranks need of x into their memory. Elsewhere it is packed, and travels
// by NCCL from GPU to GPU, or by MPI from host to host. Local offsets are 32-bit, as everywhere;
// what counts the matrix as a whole is 64-bit, so that it may have more than 2^31 nonzeros as long
// as no part has.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "../measure.hpp"
#include "device/devices.hpp"
#include "harness/options.hpp"
#include "harness/output.hpp"
#include "ranks.hpp"

namespace spmv::multigpu {
namespace {

struct MpiOptions {
  std::string drive;     // empty: persistent where it can be, and neither of the next two is given
  std::string kernel;    // of loop
  std::string exchange;  // of loop
};

// Reads the command line into the three; returns the help, if it asks for that.
std::optional<std::string> parse(int argc, char** argv, MpiOptions& own, Options& options,
                                 CommandArguments& arguments) {
  CommandLine line("spmv_mpi",
                   "y = A x, x = factor y, on as many ranks as mpirun starts, a GPU each.");
  std::string matrix;
  line.add("-m,--matrix", matrix, "a file, a generator or a name of the papers", {required()});
  line.add("-p,--precision", arguments.precision, "", {one_of({"f32", "f64"})});
  line.add("--drive", own.drive,
           "who launches: persistent (one kernel per GPU for all steps, and stores into the memory "
           "of other GPUs), or loop (each rank its own steps). The default is persistent where all "
           "ranks are on one machine, each with a GPU that reaches the others' memory, unless "
           "--exchange or --kernel is given",
           {one_of({"loop", "persistent"})});
  line.add("-k,--kernel", own.kernel,
           "of the product on each GPU, with --drive loop (pcsr_one_pass)");
  line.add("--partition", options.partitions[0], "rows (PCSR-I) or nonzeros (PCSR-II)",
           {key_of(kPartitions)});
  line.add("--exchange", own.exchange,
           "with --drive loop: mpi, or nccl, the default if the build has found it",
           {one_of({"mpi", "nccl"})});
  line.add("--iterate", options.steps, "", {between(1, 1000000)});
  line.add("--no-peer-access", options.no_peer_access,
           "as if no GPU could reach another one's memory");
  line.add("--seed", arguments.run.seed, "of the first x");
  line.add("--memory-limit", arguments.load.memory_limit_bytes,
           "most memory that a rank's part of the matrix may take, such as 500M or 8G; 0: a "
           "quarter of what is available",
           {size_in_bytes()});
  line.add("--json", arguments.json, "append a record to this file (JSON Lines)");
  if (const auto help = line.parse(argc, argv)) return help;
  arguments.matrices = {matrix};
  if (own.exchange == "nccl" && !kHaveNccl) {
    throw InputError("--exchange nccl: this program was built without NCCL; use mpi");
  }
  const bool is_loop = !own.exchange.empty() || !own.kernel.empty();
  if (own.drive == "persistent" && is_loop) {
    throw InputError(
        "--drive persistent has its own kernels, which store entries of x: leave "
        "out --exchange and --kernel, or use --drive loop");
  }
  if (is_loop) own.drive = "loop";
  if (own.exchange.empty()) own.exchange = kHaveNccl ? "nccl" : "mpi";
  arguments.kernels = own.kernel.empty() ? "*" : own.kernel;
  return {};
}

// Throws InputError, which says why, where persistent kernels cannot run on these ranks.
void require_persistent(const Options& options, const Ranks& ranks, bool share_gpus,
                        int ranks_here) {
  if (ranks.count() > kMaxGpus) {
    throw InputError(fmt::format("there are more than {} ranks", kMaxGpus));
  }
  if (ranks_here < ranks.count()) throw InputError("the ranks are on several machines");
  if (share_gpus) {
    throw InputError("ranks share GPUs, which run the kernels of one process at a time");
  }
  const int device = ranks.first_device();
  for (int peer = 0; peer < ranks_here; ++peer) {
    if (peer == device || (!options.no_peer_access && device::can_access_peer(device, peer))) {
      continue;
    }
    throw InputError("the GPUs have no access to each other's memory, which stores need");
  }
}

void main_program(int argc, char** argv, Ranks& ranks) {
  MpiOptions own;
  Options options;
  options.gpus = {ranks.count()};
  options.steps = 10;
  CommandArguments arguments;
  std::optional<std::string> help;
  ranks.together([&] { help = parse(argc, argv, own, options, arguments); });
  const auto say = [&](const std::string& text) {
    if (ranks.number() == 0) fmt::print("{}", text);
  };
  if (help) return say(*help);
  // The ranks of one machine share its GPUs out.
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks.number(), MPI_INFO_NULL, &here);
  int rank_here = 0, ranks_here = 1, devices_here = 1;
  MPI_Comm_rank(here, &rank_here);
  MPI_Comm_size(here, &ranks_here);
  ranks.together([&] {
    devices_here = device::available_devices(ranks_here);
    ranks.use_device(rank_here % devices_here);
    device::check(cudaSetDevice(ranks.first_device()), "choosing a device");
    arguments.environment = describe_environment(argc, argv);
  });
  std::vector<int> shares(ranks.count());
  shares[ranks.number()] = devices_here < ranks_here;
  ranks.gather(shares);
  const bool share_gpus = std::count(shares.begin(), shares.end(), 1) > 0;
  if (ranks.number() == 0) print_environment(std::cout, arguments.environment);
  if (own.drive != "loop") {
    try {
      ranks.together([&] { require_persistent(options, ranks, share_gpus, ranks_here); });
      own.drive = "persistent", own.exchange = "stores";
    } catch (const Failure& why) {
      if (own.drive == "persistent") {
        throw Failure(2, fmt::format("--drive persistent: {}; use --drive loop", why.what()));
      }
      say(fmt::format("drive loop: {}\n", why.what()));
      own.drive = "loop";
    }
  }
  if (share_gpus) {
    say("ranks share GPUs: right, but their times say nothing about scaling, and are not "
        "recorded\n");
    if (own.exchange == "nccl") say("exchange mpi: NCCL needs a GPU for each rank\n");
    own.exchange = "mpi";
    arguments.json.clear();
  }
  ranks.use_nccl(own.exchange == "nccl");
  options.exchanges = {own.exchange};
  options.drives = {own.drive};
  options.no_peer_access = false;  // it has been decided
  measure(options, arguments, ranks);
}

}  // namespace
}  // namespace spmv::multigpu

int main(int argc, char** argv) {
  using namespace spmv::multigpu;
  spmv::prepare_output();
  MPI_Init(&argc, &argv);
  int status = 0;
  try {
    Ranks ranks;
    main_program(argc, argv, ranks);
    spmv::check_output();
  } catch (const Failure& failure) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fmt::print(stderr, "error: {}\n", failure.what());
    status = failure.status;
  } catch (const spmv::InputError& error) {  // of rank 0, which is the last to end: its output
    fmt::print(stderr, "error: {}\n", error.what());
    status = 2;
  } catch (const std::exception& error) {
    // Outside together(): the other ranks do not know, and may be waiting.
    fmt::print(stderr, "error: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
