// Step 10's own program: spmv multigpu --gpus 1,2,4 --exchange packed --iterate 100 --matrix ...
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <utility>

#include "gpus.hpp"
#include "harness/command.hpp"
#include "measure.hpp"
#include "report.hpp"

namespace spmv::multigpu {
namespace {

const std::vector<std::string> kGpuMatrices{"stencil3d:256x256x256,points=27"};
const std::vector<std::string> kCpuMatrices{"stencil2d:120x100", "powerlaw:8000x8000,nnz=60000"};

// Every number of GPUs, partition, exchange and kernel. On one GPU all partitions are the same, and
// so are all ways to exchange.
std::vector<Way> all_ways(const Options& options, const std::string& kernels) {
  std::vector<Way> ways;
  for (const int gpus : options.gpus) {
    for (const std::string& partition : options.partitions) {
      if (gpus == 1 && partition != options.partitions.front()) continue;
      bool iterated = false;
      for (const std::string& exchange : options.exchanges) {
        if (gpus == 1 && exchange != "none" && std::exchange(iterated, true)) continue;
        for (const Kernel* kernel : find_kernels(kernels)) {
          ways.push_back({gpus, partition, exchange, kernel, options.steps});
        }
      }
    }
  }
  return ways;
}

// Whether all results are right.
template <typename T>
bool run(const Options& options, const CommandArguments& arguments, const std::string& spec) {
  Measurement<T> measurement(options, arguments, spec);
  const MatrixFacts matrix = measurement.matrix();
  print_matrix(matrix);
  bool all_right = true;
  for (const Way& way : all_ways(options, arguments.kernels)) {
    fmt::print("\n");
    print_heading(way, "GPU");
    const Outcome outcome = measurement.measure(way);
    print_outcome(way, outcome);
    all_right &= outcome.status != Outcome::Status::kWrong;
    // Times of parts that share a GPU are no record.
    const bool shares = outcome.devices < way.gpus;
    if (arguments.json.empty() || outcome.status != Outcome::Status::kRight ||
        (shares && outcome.measured)) {
      continue;
    }
    record_outcome(matrix, way, options.norm, outcome, arguments.environment, arguments.json);
  }
  return all_right;
}

int run(Options options, CommandArguments arguments) {
  const bool on_gpus = arguments.environment.backend == "cuda";
  if (!arguments.trace.empty()) {
    throw InputError("multigpu: --trace is not for this command; use spmv steps --trace FILE");
  }
  if (options.steps == 0) options.steps = on_gpus ? 100 : 10;
  print_environment(std::cout, arguments.environment);
  if (arguments.kernels == "*") arguments.kernels = "pcsr_one_pass";
  for (const Kernel* kernel : find_kernels(arguments.kernels)) {
    if (kernel->info.format != "CSR" || kernel->info.runs_on != RunsOn::kDevice) {
      throw InputError("--kernel " + kernel->info.name +
                       ": a part is a CSR matrix on a GPU; use pcsr or pcsr_one_pass");
    }
  }
  if (arguments.matrices.empty()) arguments.matrices = on_gpus ? kGpuMatrices : kCpuMatrices;
  bool all_right = true;
  for (const std::string& matrix : arguments.matrices) {
    all_right &= arguments.precision == "f32" ? run<float>(options, arguments, matrix)
                                              : run<double>(options, arguments, matrix);
  }
  return all_right ? 0 : 1;
}

[[maybe_unused]] const bool registered =
    add_command("multigpu", "products on several GPUs, and iterations of them", [](CLI::App& app) {
      auto own = std::make_shared<Options>();
      app.add_option("--gpus", own->gpus, "how many, one count after the other: 1,2,4")
          ->delimiter(',')
          ->check(CLI::Range(1, kMaxGpus));
      app.add_option("--partition", own->partitions,
                     "what each GPU gets as much of: rows (PCSR-I), nonzeros (PCSR-II)")
          ->delimiter(',')
          ->check(CLI::IsMember(kPartitions));
      app.add_option("--exchange", own->exchanges,
                     "how entries of x come to a GPU that needs them: none (it has all), parts, "
                     "packed, stores")
          ->delimiter(',')
          ->check(CLI::IsMember(kExchanges));
      app.add_option(
             "--drive", own->drives,
             "who launches: loop, graph; or, with --exchange stores, persistent: one kernel "
             "per GPU for all steps (persistent-simple: the lesson's)")
          ->delimiter(',')
          ->check(CLI::IsMember(kDrives));
      app.add_option(
             "--iterate", own->steps,
             "steps of the iteration y = A x, x = y / norm; 0: 100 on GPUs, 10 on the CPU backend")
          ->check(CLI::Range(0, 1000000));
      app.add_option("--norm", own->norm,
                     "each: every step divides by the power of two next to its norm; first: no "
                     "norm, all steps divide by the same number")
          ->check(CLI::IsMember({"each", "first"}));
      app.add_flag("--no-peer-access", own->no_peer_access,
                   "as if no GPU could reach another one's memory");
      app.add_option("--share-gpus", own->share_gpus,
                     "how many GPUs the parts share; 0: one for each part, or all where there are "
                     "fewer")
          ->check(CLI::Range(0, kMaxGpus));
      return [own](const CommandArguments& arguments) { return run(*own, arguments); };
    });

}  // namespace
}  // namespace spmv::multigpu
