// Step 10 past one machine: mpirun -np N spmv_mpi --matrix ... --iterate 100
//
// A rank has a GPU and a part of the rows: it makes or reads these only. Of the others it knows how
// many nonzeros each row has. What other ranks need of its x is packed, and travels by NCCL from
// GPU to GPU, or by MPI from host to host. Local offsets are 32-bit, as everywhere; what counts the
// matrix as a whole is 64-bit, so that it may have more than 2^31 nonzeros as long as no part has.
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "../machine.hpp"
#include "../part.hpp"
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
  std::string kernel = "pcsr_one_pass";
  std::string partition = "nonzeros";
  std::string exchange = kHaveNccl ? "nccl" : "mpi";
  std::string json;
  int steps = 10;
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

std::vector<PartShape> gather_shapes(const PartShape& own) {
  static_assert(sizeof(PartShape) == 5 * sizeof(long long));
  std::vector<PartShape> all(g_ranks);
  MPI_Allgather(&own, 5, MPI_LONG_LONG, all.data(), 5, MPI_LONG_LONG, MPI_COMM_WORLD);
  return all;
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
  const Kernel& kernel = *find_kernels(options.kernel)[0];
  std::unique_ptr<RowSource<T>> source;
  together([&] {
    LoadOptions load;
    load.memory_limit_bytes = options.memory_limit;
    source = open_rows<T>(options.matrix, load, true);
    require_square(options.matrix, source->rows(), source->cols());
    require_memory<T>(options, source->rows(), 0);
  });
  const std::vector<long long> nonzeros = nonzeros_before_rows(*source);
  const std::vector<Index> cuts = cut(kPartitions.at(options.partition), nonzeros, g_ranks);
  const Index first = cuts[g_rank], end = cuts[g_rank + 1];
  Csr<T> slice;
  Part<T> part;
  std::vector<T> x;
  together([&] {
    require_memory<T>(options, source->rows(), nonzeros[end] - nonzeros[first]);
    slice = source->read(first, end, nonzeros[first]);
    part = prepare_alone(slice, cuts, g_rank);
    x = first_x<T>(source->cols(), options.seed);
  });
  const std::vector<PartShape> shapes = gather_shapes(shape_of(part));
  const Transfers transfers = plan_between_ranks(part);
  const auto make = transport_between_ranks<T>(transfers, options.exchange == "nccl", device);
  std::unique_ptr<Machine<T>> machine;
  together([&] {
    device::check(cudaSetDevice(device), "choosing a device");
    machine = std::make_unique<Machine<T>>(part, g_rank, cuts, device, transfers, kernel, make);
    part = {};
    machine->start(x);
  });

  const auto own_rows = [&](const std::vector<T>& whole) {
    return std::vector<T>(whole.begin() + first, whole.begin() + end);
  };
  // Step k multiplied `before`.
  const auto verify_step = [&](int k, const std::vector<T>& before) {
    together([&] {
      const T factor = static_cast<T>(machine->factor_of(k));
      const Verdict verdict =
          verify(own_rows(machine->x_of(k + 1)), make_reference(slice, factor, before, T{0}, {}));
      if (verdict.ok) return;
      throw std::runtime_error(fmt::format("rank {}, which has the rows from {} on: {}", g_rank,
                                           first, verdict.describe()));
    });
  };
  machine->run(1, Drive::kLoop);
  verify_step(0, x);
  together([&] { machine->start(x); });
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  machine->run(options.steps, Drive::kLoop);
  MPI_Barrier(MPI_COMM_WORLD);
  const double step_ms = 1e3 * (MPI_Wtime() - begin) / options.steps;
  std::vector<T> before = machine->x_of(options.steps - 1);
  gather_in_place(before, cuts, mpi_type<T>());
  verify_step(options.steps - 1, before);

  std::uint64_t checksum =
      checksum_of(own_rows(machine->x_of(options.steps)), static_cast<std::uint64_t>(first));
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (g_rank != 0) return 0;

  const bool measures = environment.backend == "cuda";
  const MatrixFacts matrix{source->source(), source->rows(), source->cols(), nonzeros.back(),
                           options.precision};
  const Way way{g_ranks, options.partition, options.exchange, &kernel, options.steps};
  print_matrix(matrix);
  print_heading(way, "rank");
  print_parts(shapes, "rank", {});
  if (measures) fmt::print("  {:.1f} us per step\n", 1e3 * step_ms);
  fmt::print("  verified: the first step, and the last; checksum of the result {:016x}\n",
             checksum);
  if (options.json.empty()) return 0;
  Records records(environment);
  auto& line = add_record(records, "multigpu_mpi", matrix, way, shapes, {});
  if (measures) line["step_ms"] = step_ms;
  records.append_to(options.json);
  return 0;
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
    app.add_option("-k,--kernel", options.kernel, "of the product on each GPU");
    app.add_option("--partition", options.partition, "rows (PCSR-I) or nonzeros (PCSR-II)")
        ->check(CLI::IsMember(kPartitions));
    app.add_option("--exchange", options.exchange, "mpi, or nccl if the build has found it")
        ->check(CLI::IsMember({"mpi", "nccl"}));
    app.add_option("--iterate", options.steps)->check(CLI::Range(1, 1000000));
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
    devices_here = device::available_devices(ranks_here);
    environment = describe_environment(argc, argv);
  });
  int shares = devices_here < ranks_here;
  MPI_Allreduce(MPI_IN_PLACE, &shares, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (g_rank == 0) print_environment(std::cout, environment);
  if (shares) {
    say("ranks share GPUs: right, but their times say nothing about scaling, and are not "
        "recorded\n");
    if (options.exchange == "nccl") say("exchange mpi: NCCL needs a GPU for each rank\n");
    options.exchange = "mpi";
    options.json.clear();
  }
  const int device = rank_here % devices_here;
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
