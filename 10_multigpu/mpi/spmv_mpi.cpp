// Step 10 past one machine: mpirun -np N spmv_mpi --matrix ... --iterate 100
//
// A rank has a GPU and a part of the rows: it makes or reads these only. Of the others it knows how
// many nonzeros each row has. What other ranks need of x is packed, and travels by NCCL from GPU to
// GPU, or by MPI from host to host. Local offsets are 32-bit, as everywhere;
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

// Reads the command line into the two, the exchange as the only one of options.exchanges; returns
// the help, if it asks for that.
std::optional<std::string> parse(int argc, char** argv, Options& options,
                                 CommandArguments& arguments) {
  CommandLine line("spmv_mpi",
                   "y = A x, x = factor y, on as many ranks as mpirun starts, a GPU each.");
  arguments.matrices = {""};
  line.add("-m,--matrix", arguments.matrices[0], "a file, a generator or a name of the papers",
           {required()});
  line.add("-p,--precision", arguments.precision, "", {one_of({"f32", "f64"})});
  line.add("-k,--kernel", arguments.kernels, "of the product on each GPU (pcsr_one_pass)");
  line.add("--partition", options.partitions[0], "rows (PCSR-I) or nonzeros (PCSR-II)",
           {key_of(kPartitions)});
  line.add("--exchange", options.exchanges[0],
           "mpi, or nccl, the default if the build has found it", {one_of({"mpi", "nccl"})});
  line.add("--iterate", options.steps, "", {between(1, 1000000)});
  line.add("--seed", arguments.run.seed, "of the first x");
  line.add("--memory-limit", arguments.load.memory_limit_bytes,
           "most memory that a rank's part of the matrix may take, such as 500M or 8G; 0: a "
           "quarter of what is available",
           {size_in_bytes()});
  line.add("--json", arguments.json, "append a record to this file (JSON Lines)");
  if (const auto help = line.parse(argc, argv)) return help;
  if (options.exchanges[0] == "nccl" && !kHaveNccl) {
    throw InputError("--exchange nccl: this program was built without NCCL; use mpi");
  }
  return {};
}

void main_program(int argc, char** argv, Ranks& ranks) {
  Options options;
  options.gpus = {ranks.count()};
  options.steps = 10;
  options.exchanges = {kHaveNccl ? "nccl" : "mpi"};
  options.drives = {"loop"};
  CommandArguments arguments;
  std::optional<std::string> help;
  ranks.together([&] { help = parse(argc, argv, options, arguments); });
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
  if (share_gpus) {
    say("ranks share GPUs: right, but their times say nothing about scaling, and are not "
        "recorded\n");
    if (options.exchanges[0] == "nccl") say("exchange mpi: NCCL needs a GPU for each rank\n");
    options.exchanges = {"mpi"};
    arguments.json.clear();
  }
  ranks.use_nccl(options.exchanges[0] == "nccl");
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
