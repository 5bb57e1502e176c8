// Step 10 past one machine: mpirun -np N spmv_mpi --matrix ... --iterate 100
//
// A rank has a GPU and a part of the rows: it makes or reads these only. Of the others it knows how
// many nonzeros each row has. On one machine whose GPUs reach each other's memory, persistent
// kernels store what other ranks need of x into their memory. Elsewhere it is packed, and travels
// by NCCL from GPU to GPU, or by MPI from host to host. Local offsets are 32-bit, as everywhere;
// what counts the matrix as a whole is 64-bit, so that it may have more than 2^31 nonzeros as long
// as no part has.
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../gpus.hpp"
#include "../machine.hpp"
#include "../part.hpp"
#include "../persistent.hpp"
#include "../report.hpp"
#include "../vectors.hpp"
#include "device/devices.hpp"
#include "harness/options.hpp"
#include "harness/output.hpp"
#include "harness/records.hpp"
#include "harness/verify.hpp"
#include "ranks.hpp"
#include "sparse/memory.hpp"
#include "sparse/row_source.hpp"

namespace spmv::multigpu {
namespace {

struct Options {
  std::string matrix;
  std::string precision = "f64";
  std::string drive;     // empty: persistent where it can be, and neither of the next two is given
  std::string kernel;    // of loop
  std::string exchange;  // of loop
  std::string partition = "nonzeros";
  std::string norm = "each";
  std::string json;
  int steps = 10;
  bool no_peer_access = false;
  int share_gpus = 0;
  std::uint64_t seed = 1;
  std::size_t memory_limit = 0;  // bytes per rank; 0: default_memory_limit()
};

template <typename... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  if (g_rank == 0) fmt::print(text, std::forward<Arguments>(arguments)...);
}

// --- What ranks know of each other --------------------------------------------------------------

// Each part's elements of `whole`, begin[p] to begin[p + 1], from its rank to all.
template <typename T>
void gather_in_place(std::vector<T>& whole, const std::vector<Index>& begins, MPI_Datatype type) {
  std::vector<int> counts(g_ranks);
  for (int p = 0; p < g_ranks; ++p) counts[p] = begins[p + 1] - begins[p];
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole.data(), counts.data(), begins.data(),
                 type, MPI_COMM_WORLD);
}

// How many nonzeros there are before each row; each rank asks `source` for the lengths of as many
// rows.
template <typename T>
std::vector<long long> nonzeros_before_rows(const RowSource<T>& source) {
  const long long rows = source.rows();
  std::vector<Index> begins;
  for (int p = 0; p <= g_ranks; ++p) begins.push_back(static_cast<Index>(rows * p / g_ranks));
  std::vector<Index> lengths;
  together([&] {
    lengths.resize(rows);
    const std::vector<Index> own = source.lengths(begins[g_rank], begins[g_rank + 1]);
    std::copy(own.begin(), own.end(), lengths.begin() + begins[g_rank]);
  });
  gather_in_place(lengths, begins, MPI_INT);
  std::vector<long long> before(lengths.size() + 1, 0);
  std::inclusive_scan(lengths.begin(), lengths.end(), before.begin() + 1, std::plus<>(), 0LL);
  return before;
}

// Refuses a part of so many nonzeros of a square matrix, with x and what is known of every row,
// before it is made.
template <typename T>
void require_memory(const Options& options, Index rows, long long nonzeros) {
  const double needed = static_cast<double>(nonzeros) * (sizeof(Index) + sizeof(T)) +
                        static_cast<double>(rows) * (sizeof(Index) + sizeof(long long) + sizeof(T));
  const std::size_t limit = options.memory_limit ? options.memory_limit : default_memory_limit();
  if (needed <= static_cast<double>(limit)) return;
  throw InputError(fmt::format("{}: the part of rank {} {}", options.matrix, g_rank,
                               more_than_limit(needed, static_cast<double>(limit))));
}

// --- The program --------------------------------------------------------------------------------

template <typename T>
int run(const Options& options, int device, const Environment& environment) {
  const bool is_persistent = options.drive == "persistent";
  const Way way{g_ranks,
                options.partition,
                is_persistent ? "stores" : options.exchange,
                find_kernels(options.kernel)[0],
                options.steps,
                "rank"};
  std::unique_ptr<RowSource<T>> source;
  together([&] {
    device::check(cudaSetDevice(device), "choosing a device");
    LoadOptions load;
    load.memory_limit_bytes = options.memory_limit;
    source = open_rows<T>(options.matrix, load, true);
    require_square(options.matrix, source->rows(), source->cols());
    require_memory<T>(options, source->rows(), 0);
  });
  const std::vector<long long> nonzeros = nonzeros_before_rows(*source);
  const std::vector<Index> cuts = cut(kPartitions.at(options.partition), nonzeros, g_ranks);
  const Index first = cuts[g_rank], end = cuts[g_rank + 1];
  std::vector<Csr<T>> slices(g_ranks);
  const Csr<T>& slice = slices[g_rank];
  std::vector<T> x;
  together([&] {
    require_memory<T>(options, source->rows(), nonzeros[end] - nonzeros[first]);
    slices[g_rank] = source->read(first, end, nonzeros[first]);
    x = first_x<T>(source->cols(), options.seed);
  });
  std::vector<Part<T>> parts =
      prepare(slices, cuts, is_persistent ? Exchange::kStores : Exchange::kPacked, kRanks);
  Outcome outcome;
  outcome.measured = environment.backend == "cuda";
  outcome.devices = g_ranks;
  outcome.peer_access = way.exchange != "mpi";
  outcome.parts.resize(g_ranks);
  outcome.parts[g_rank] = shape_of(parts[g_rank]);
  kRanks.gather(outcome.parts.data(), sizeof(PartShape));

  const auto own_rows = [&](const std::vector<T>& whole) {
    return std::vector<T>(whole.begin() + first, whole.begin() + end);
  };
  const auto iterate = [&](auto& machine, auto... how) {
    // Step k multiplied `before`.
    const auto verify_step = [&](int k, const std::vector<T>& before) {
      together([&] {
        const T factor = static_cast<T>(machine.factor_of(k));
        const Verdict verdict =
            verify(own_rows(machine.x_of(k + 1)), make_reference(slice, factor, before, T{0}, {}));
        if (verdict.ok) return;
        throw std::runtime_error(fmt::format("rank {}, which has the rows from {} on: {}", g_rank,
                                             first, verdict.describe()));
      });
    };
    // Milliseconds per step, of the slowest rank.
    const auto run = [&](int steps) {
      together([&] { machine.start(x); });
      double time = machine.run(steps, how...);
      MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      return time / steps;
    };
    run(1);
    verify_step(0, x);
    if (options.norm == "first") {
      run(kFirstSteps);
      machine.keep_factor(machine.factor_of(kFirstSteps - 1));
    }
    std::vector<double> times;
    run(options.steps);
    while (outcome.measured && times.size() < kSamples) times.push_back(run(options.steps));
    if (outcome.measured) outcome.drives.push_back({options.drive, quartiles(times)});
    std::vector<T> before = machine.x_of(options.steps - 1);
    gather_in_place(before, cuts, mpi_type<T>());
    verify_step(options.steps - 1, before);
    outcome.checksum =
        checksum_of(own_rows(machine.x_of(options.steps)), static_cast<std::uint64_t>(first));
    MPI_Allreduce(MPI_IN_PLACE, &outcome.checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  };
  if (is_persistent) {
    PersistentSetup setup;
    setup.first_device = device;
    PersistentMachine<T> machine(parts, setup, kRanks);
    parts.clear();
    outcome.notes.push_back(fmt::format("persistent: {}", machine.choice()));
    iterate(machine);
  } else {
    Setup setup{Exchange::kPacked};
    setup.first_device = device;
    Machine<T> machine(parts, *way.kernel, setup, kRanks,
                       transport_between_ranks<T>(options.exchange == "nccl", device));
    parts.clear();
    iterate(machine, Drive::kLoop);
  }
  if (g_rank != 0) return 0;

  const MatrixFacts matrix{source->source(), source->rows(), source->cols(), nonzeros.back(),
                           options.precision};
  print_matrix(matrix);
  print_heading(way);
  print_outcome(way, outcome);
  if (!options.json.empty()) {
    record_outcome(matrix, way, options.norm, outcome, environment, options.json);
  }
  return 0;
}

// Throws InputError, which says why, where persistent kernels cannot run on these ranks.
void require_persistent(const Options& options, bool ranks_share_gpus, int ranks_here, int device) {
  if (g_ranks > kMaxGpus) throw InputError(fmt::format("there are more than {} ranks", kMaxGpus));
  if (ranks_here < g_ranks) throw InputError("the ranks are on several machines");
  if (ranks_share_gpus) {
    throw InputError("ranks share GPUs, which run the kernels of one process at a time");
  }
  for (int peer = 0; peer < ranks_here; ++peer) {
    if (peer == device || (!options.no_peer_access && device::can_access_peer(device, peer))) {
      continue;
    }
    throw InputError("the GPUs have no access to each other's memory, which stores need");
  }
}

int main_program(int argc, char** argv) {
  Options options;
  std::string help;
  together([&] {
    CLI::App app{"y = A x, x = y / norm, on as many ranks as mpirun starts, a GPU each."};
    app.name("spmv_mpi");
    app.option_defaults()->always_capture_default();
    app.add_option("-m,--matrix", options.matrix, "a file, a generator or a name of the papers")
        ->required();
    app.add_option("-p,--precision", options.precision)->check(CLI::IsMember({"f32", "f64"}));
    app.add_option("--drive", options.drive,
                   "who launches: persistent (one kernel per GPU for all steps, and stores into "
                   "the memory of other GPUs), or loop (each rank its own steps). The default is "
                   "persistent where all ranks are on one machine, each with a GPU that reaches "
                   "the others' memory, unless --exchange or --kernel is given")
        ->check(CLI::IsMember({"loop", "persistent"}));
    app.add_option("-k,--kernel", options.kernel,
                   "of the product on each GPU, with --drive loop (pcsr_one_pass)");
    app.add_option("--partition", options.partition, "rows (PCSR-I) or nonzeros (PCSR-II)")
        ->check(CLI::IsMember(kPartitions));
    app.add_option("--exchange", options.exchange,
                   "with --drive loop: mpi, or nccl, the default if the build has found it")
        ->check(CLI::IsMember({"mpi", "nccl"}));
    app.add_option("--iterate", options.steps)->check(CLI::Range(1, 1000000));
    app.add_option("--norm", options.norm,
                   "each: every step divides by the power of two next to its norm; first: no "
                   "norm, all steps divide by the same number")
        ->check(CLI::IsMember({"each", "first"}));
    app.add_flag("--no-peer-access", options.no_peer_access,
                 "as if no GPU could reach another one's memory");
    app.add_option("--share-gpus", options.share_gpus,
                   "how many GPUs the ranks of a machine share; 0: one for each rank, or all "
                   "where there are fewer")
        ->check(CLI::Range(0, kMaxGpus));
    app.add_option("--seed", options.seed, "of the first x");
    app.add_option(
           "--memory-limit", options.memory_limit,
           "most memory that a rank's part of the matrix may take, such as 500M or 8G; 0: a "
           "quarter of what is available")
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--json", options.json, "append a record to this file (JSON Lines)");
    help = parse_options(app, argc, argv).value_or("");
    if (options.exchange == "nccl" && !kHaveNccl) {
      throw InputError("--exchange nccl: this program was built without NCCL; use mpi");
    }
    const bool is_loop = !options.exchange.empty() || !options.kernel.empty();
    if (options.drive == "persistent" && is_loop) {
      throw InputError(
          "--drive persistent has its own kernels, which store entries of x: leave "
          "out --exchange and --kernel, or use --drive loop");
    }
    if (is_loop) options.drive = "loop";
    if (options.kernel.empty()) options.kernel = "pcsr_one_pass";
    if (options.exchange.empty()) options.exchange = kHaveNccl ? "nccl" : "mpi";
    find_part_kernels(options.kernel);  // complains before a long load
  });
  if (!help.empty()) {
    say("{}", help);
    return 0;
  }
  // The ranks of one machine share its GPUs out.
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, g_rank, MPI_INFO_NULL, &here);
  int rank_here = 0, ranks_here = 1, devices_here = 1;
  MPI_Comm_rank(here, &rank_here);
  MPI_Comm_size(here, &ranks_here);
  Environment environment;
  together([&] {
    devices_here = device::available_devices(
        options.share_gpus > 0 ? std::min(options.share_gpus, ranks_here) : ranks_here);
    environment = describe_environment(argc, argv);
  });
  int shares = devices_here < ranks_here;
  MPI_Allreduce(MPI_IN_PLACE, &shares, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (g_rank == 0) print_environment(std::cout, environment);
  const int device = rank_here % devices_here;
  if (options.drive != "loop") {
    try {
      together([&] { require_persistent(options, shares, ranks_here, device); });
      options.drive = "persistent";
    } catch (const Failure& why) {
      if (options.drive == "persistent") {
        throw Failure{2, "--drive persistent: " + why.text + "; use --drive loop"};
      }
      say("drive loop: {}\n", why.text);
      options.drive = "loop";
    }
  }
  if (shares) {
    say("ranks share GPUs: right, but their times say nothing about scaling, and are not "
        "recorded\n");
    if (options.exchange == "nccl") say("exchange mpi: NCCL needs a GPU for each rank\n");
    options.exchange = "mpi";
    options.json.clear();
  }
  return options.precision == "f32" ? run<float>(options, device, environment)
                                    : run<double>(options, device, environment);
}

}  // namespace
}  // namespace spmv::multigpu

int main(int argc, char** argv) {
  using namespace spmv::multigpu;
  spmv::prepare_output();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
  int status = 0;
  try {
    status = main_program(argc, argv);
    spmv::check_output();
  } catch (const Failure& failure) {
    if (g_rank == 0) fmt::print(stderr, "error: {}\n", failure.text);
    status = failure.status;
  } catch (const spmv::InputError& error) {  // of rank 0, which is the last to end: its output
    fmt::print(stderr, "error: rank {}: {}\n", g_rank, error.what());
    status = 2;
  } catch (const std::exception& error) {
    // Outside together(): the other ranks do not know, and may be waiting.
    fmt::print(stderr, "error: rank {}: {}\n", g_rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
