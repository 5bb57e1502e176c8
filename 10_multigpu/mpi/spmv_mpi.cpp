// Step 10 past one machine: mpirun -np N spmv_mpi --matrix ... --iterate 100
//
// A rank has a GPU and a part of the rows, and never more of the matrix than that: it makes or
// reads its own rows only. What other ranks need of its x is packed, and travels by NCCL from GPU
// to GPU, or by MPI from host to host. Local offsets are 32-bit, as everywhere; what counts the
// matrix as a whole is 64-bit, so that it may have more than 2^31 nonzeros as long as no part has.
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../nccl.hpp"
#include "../part.hpp"
#include "../partition.hpp"
#include "../vectors.hpp"
#include "device/devices.hpp"
#include "harness/options.hpp"
#include "harness/output.hpp"
#include "harness/records.hpp"
#include "harness/verify.hpp"
#include "rank.hpp"
#include "sparse/memory.hpp"
#include "sparse/row_source.hpp"
#include "together.hpp"

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

// --- Cuts ---------------------------------------------------------------------------------------

struct Cuts {
  std::vector<Index> rows;          // where each rank's rows begin, and the end
  std::vector<long long> nonzeros;  // how many there are before each of these
};

// What cut() does, by ranks that know the lengths of some rows each.
Cuts cut_together(Partition partition, Index rows, Index first, const std::vector<Index>& lengths) {
  std::vector<long long> before{0};  // each of this rank's borders between rows
  for (const Index length : lengths) before.push_back(before.back() + length);
  const long long own = before.back();
  long long base = 0, total = 0;
  MPI_Exscan(&own, &base, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (g_rank == 0) base = 0;
  MPI_Allreduce(&own, &total, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (long long& nonzeros : before) nonzeros += base;

  Cuts cuts;
  cuts.rows.assign(static_cast<std::size_t>(g_ranks) + 1, 0);
  for (int p = 1; p < g_ranks; ++p) {
    if (partition == Partition::kRows) {
      cuts.rows[p] = static_cast<Index>(1LL * rows * p / g_ranks);
      continue;
    }
    // Of the ranks that have a border at or behind the place wanted, the first has the nearest.
    const long long wanted = total / g_ranks * p + total % g_ranks * p / g_ranks;
    const auto after = std::lower_bound(before.begin(), before.end(), wanted);
    Index nearest = std::numeric_limits<Index>::max();
    if (after != before.end()) {
      const auto k = after - before.begin();
      const bool before_is_nearer = k > 0 && wanted - before[k - 1] < before[k] - wanted;
      nearest = first + static_cast<Index>(k - before_is_nearer);
    }
    MPI_Allreduce(&nearest, &cuts.rows[p], 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  cuts.rows[g_ranks] = rows;

  cuts.nonzeros.assign(cuts.rows.size(), 0);
  for (std::size_t p = 0; p < cuts.rows.size(); ++p) {
    const long long k = cuts.rows[p] - first;
    if (k >= 0 && k < static_cast<long long>(before.size())) cuts.nonzeros[p] = before[k];
  }
  MPI_Allreduce(MPI_IN_PLACE, cuts.nonzeros.data(), g_ranks + 1, MPI_LONG_LONG, MPI_MAX,
                MPI_COMM_WORLD);
  return cuts;
}

// Refuses a part of the matrix, with the x and row lengths that come with it, before it is made.
template <typename T>
void require_memory(const Options& options, const Cuts& cuts, Index cols) {
  const double nonzeros = static_cast<double>(cuts.nonzeros[g_rank + 1] - cuts.nonzeros[g_rank]);
  const double needed = nonzeros * (sizeof(Index) + sizeof(T)) +
                        4.0 * (cuts.rows[g_rank + 1] - cuts.rows[g_rank]) + 1.0 * cols * sizeof(T);
  const std::size_t limit = options.memory_limit ? options.memory_limit : default_memory_limit();
  if (needed <= static_cast<double>(limit)) return;
  throw InputError(fmt::format("{}: the part of rank {} {}", options.matrix, g_rank,
                               more_than_limit(needed, static_cast<double>(limit))));
}

// --- The program --------------------------------------------------------------------------------

// All ranks' parts of a vector, one after the other.
template <typename T>
std::vector<T> gather_all(const std::vector<T>& own, const std::vector<Index>& cuts) {
  std::vector<int> counts(g_ranks);
  for (int p = 0; p < g_ranks; ++p) counts[p] = cuts[p + 1] - cuts[p];
  std::vector<T> whole(cuts.back());
  MPI_Allgatherv(own.data(), static_cast<int>(own.size()), mpi_type<T>(), whole.data(),
                 counts.data(), cuts.data(), mpi_type<T>(), MPI_COMM_WORLD);
  return whole;
}

template <typename T>
int run(const Options& options, int device, const Environment& environment) {
  const Kernel& kernel = *find_kernels(options.kernel)[0];
  const auto partition = options.partition == "rows" ? Partition::kRows : Partition::kNonzeros;
  std::unique_ptr<RowSource<T>> source;
  std::vector<Index> lengths;
  Index first = 0;
  together([&] {
    LoadOptions load;
    load.memory_limit_bytes = options.memory_limit;
    source = open_rows<T>(options.matrix, load, true);
    if (source->rows() != source->cols()) {
      throw InputError(
          fmt::format("{}: has {} rows and {} columns; only of a square matrix y can "
                      "be the next x",
                      options.matrix, source->rows(), source->cols()));
    }
    const long long rows = source->rows();
    first = static_cast<Index>(rows * g_rank / g_ranks);
    lengths = source->lengths(first, static_cast<Index>(rows * (g_rank + 1) / g_ranks));
  });
  const Cuts cuts = cut_together(partition, source->rows(), first, lengths);
  Csr<T> slice;
  Part<T> part;
  std::vector<T> x;
  together([&] {
    require_memory<T>(options, cuts, source->cols());
    slice = source->read(cuts.rows[g_rank], cuts.rows[g_rank + 1], cuts.nonzeros[g_rank]);
    part = prepare_alone(slice, cuts.rows, g_rank);
    x = first_x<T>(source->cols(), options.seed);
  });

  const long long numbers[4] = {part.rows(), part.nnz(), part.boundary.rows, part.remote_cols};
  std::vector<long long> of_all(4 * static_cast<std::size_t>(g_ranks));
  MPI_Gather(numbers, 4, MPI_LONG_LONG, of_all.data(), 4, MPI_LONG_LONG, 0, MPI_COMM_WORLD);

  Rank<T> rank(device, std::move(part), kernel, options.exchange == "nccl");
  const auto is_right = [&](int k, const std::vector<T>& before) {
    Verdict verdict;
    together([&] {
      const T factor = static_cast<T>(rank.factor_of(k));
      const Reference reference = make_reference(slice, factor, before, T{0}, {});
      verdict = verify(rank.x_of(k + 1, cuts.rows[g_rank]), reference);
      if (!verdict.ok) {
        throw std::runtime_error(fmt::format("rank {}, which has the rows from {} on: {}", g_rank,
                                             cuts.rows[g_rank], verdict.describe()));
      }
    });
  };
  rank.start(x);
  rank.run(1);
  is_right(0, x);
  rank.start(x);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  rank.run(options.steps);
  MPI_Barrier(MPI_COMM_WORLD);
  const double step_ms = 1e3 * (MPI_Wtime() - begin) / options.steps;
  const int last = options.steps - 1;
  is_right(last, gather_all(rank.x_of(last, cuts.rows[g_rank]), cuts.rows));

  std::uint64_t checksum =
      checksum_of(rank.x_of(options.steps, cuts.rows[g_rank]), cuts.rows[g_rank]);
  MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (g_rank != 0) return 0;

  fmt::print("\n{} ({}): {} rows, {} columns, {} nonzeros, {}\n", source->source().name,
             to_string(source->source().origin), source->rows(), source->cols(),
             cuts.nonzeros.back(), options.precision);
  fmt::print("{} rank{}, equal {} (PCSR-{}), exchange {}, {} steps, {}\n", g_ranks,
             g_ranks == 1 ? "" : "s", options.partition, options.partition == "rows" ? "I" : "II",
             options.exchange, options.steps, kernel.info.name);
  fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}\n", "rank", "rows", "nonzeros", "boundary rows",
             "remote columns");
  nlohmann::ordered_json parts;
  for (int p = 0; p < g_ranks; ++p) {
    const long long* of = &of_all[4 * static_cast<std::size_t>(p)];
    fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}\n", p, of[0], of[1], of[2], of[3]);
    parts.push_back(
        {{"rows", of[0]}, {"nnz", of[1]}, {"boundary_rows", of[2]}, {"remote_cols", of[3]}});
  }
  const bool measures = environment.backend == "cuda";
  if (measures) fmt::print("  {:.1f} us a step\n", 1e3 * step_ms);
  fmt::print("  verified: the first step, and the last; checksum of the result {:016x}\n",
             checksum);
  if (options.json.empty()) return 0;
  KernelInfo info = kernel.info;
  info.step = 10;
  Records records(environment);
  nlohmann::ordered_json& line =
      records.add("multigpu_mpi", info, "", source->source(), source->rows(), source->cols(),
                  cuts.nonzeros.back(), options.precision);
  line["ranks"] = g_ranks;
  line["partition"] = options.partition;
  line["exchange"] = options.exchange;
  line["steps"] = options.steps;
  line["parts"] = parts;
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
        ->check(CLI::IsMember({"rows", "nonzeros"}));
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
    const Kernel& kernel = *find_kernels(options.kernel)[0];
    if (kernel.info.format != "CSR" || kernel.info.runs_on != RunsOn::kDevice) {
      throw InputError("--kernel " + options.kernel + ": use pcsr or pcsr_one_pass");
    }
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
    try {
      spmv::check_output();
    } catch (const spmv::InputError& error) {
      fmt::print(stderr, "error: rank {}: {}\n", g_rank, error.what());
      status = 2;
    }
  } catch (const Failure& failure) {
    if (g_rank == 0) fmt::print(stderr, "error: {}\n", failure.text);
    status = failure.status;
  } catch (const std::exception& error) {
    // Outside together(): the other ranks do not know, and may be waiting.
    fmt::print(stderr, "error: rank {}: {}\n", g_rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
