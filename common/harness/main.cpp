// The main program of every step, and of all of them together.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "device/block_threads.hpp"
#include "harness/command.hpp"
#include "harness/kernel.hpp"
#include "harness/options.hpp"
#include "harness/output.hpp"
#include "harness/records.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/time_model.hpp"
#include "harness/trace.hpp"
#include "harness/turn.hpp"
#include "sparse/generators.hpp"
#include "sparse/load.hpp"
#include "sparse/order.hpp"
#include "sparse/statistics.hpp"

#ifndef SPMV_CUDA
#include "simt/cache_model.hpp"
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#endif

namespace spmv {
namespace {

constexpr int kExitWrong = 1;
constexpr int kExitBadInput = 2;

#ifdef SPMV_CUDA
constexpr bool kGpu = true;
#else
constexpr bool kGpu = false;
#endif

// A regular stencil, a power-law graph with a few huge rows and some empty ones, and blocks of a
// finite element mesh: the matrices on which the steps differ most. Large enough to fill the
// machine that runs them.
const std::vector<std::string> kDefaultMatrices =
    kGpu ? std::vector<std::string>{"stencil2d:2000x2000", "powerlaw:1000000x1000000,nnz=12000000",
                                    "fem:100000,block=3"}
         : std::vector<std::string>{"stencil2d:300x300", "powerlaw:60000x60000,nnz=400000",
                                    "fem:5000,block=3"};
// Of the ladder: rows that are alike beside rows that differ much. On the CPU backend smaller ones,
// so that it takes seconds.
const std::vector<std::string> kLadderMatrices =
    kGpu ? std::vector<std::string>{kDefaultMatrices[2], kDefaultMatrices[1]}
         : std::vector<std::string>{"fem:1200,block=3", "powerlaw:16000x16000,nnz=105000"};

// Below the ladder: what limits the kernels there, and why each step is faster than the one before
// or which other question it answers.
const char* const kLadderLimits =
    "L1 lines: cache lines that requests touch. longest row: the busiest warp has more than twice\n"
    "the average's work. launches: the matrix is so small that nothing else takes as long.\n";
const char* const kLadderReading =
    "Why (fem is a mesh, its rows are alike; powerlaw is a graph with a few very long rows):\n"
    "03 after 02  lanes share a row and read neighbouring nonzeros: fewer sectors and lines.\n"
    "04 after 03  equal nonzeros per thread: on the graph no warp waits for a long row. On the\n"
    "             mesh nothing was unequal, and a second launch and atomics only cost.\n"
    "05 after 04  no atomics, so every run gives the same bits.\n"
    "06 after 05  one launch: lanes per row on the mesh, a scan on the graph.\n"
    "07           another way to balance: a warp that is done fetches rows by an atomic.\n"
    "08, 09       other storage, for rows of equal length and for grids. Try it on a grid:\n"
    "             make run MATRIX=stencil3d:30x30x30\n";

struct Options : CommandArguments {
  std::string turn;
  std::string complex_part = "refuse";
  std::string order = "none";
  double trace_limit_mb = 64;
  unsigned workers = 0;
  bool ladder = false;
  bool wide = false;
  bool list = false;
  bool environment_only = false;
  int machine_code = 0;
  bool verify_only = false;
  std::string block_threads;
  // info
  std::string info_matrix;
  bool sizes = false;
  bool info_json = false;
};

void print_list() {
  for (const Kernel& kernel : kernels()) {
    const KernelInfo& k = kernel.info;
    fmt::print("{}  {:<24} {:<6} {:<11} {}\n{:48}{}\n",
               k.step ? fmt::format("{:02}", k.step) : "--", k.name, k.format, name_of(k.bits),
               k.idea, "", k.source);
  }
}

void print_notes(const std::string& name, Index duplicates, Index zeros, Index non_finite) {
  if (duplicates) fmt::print("{}: {} duplicate entries were added to others\n", name, duplicates);
  if (zeros) fmt::print("{}: {} stored entries are zero; they are kept\n", name, zeros);
  if (non_finite) fmt::print("{}: {} entries are NaN or infinite\n", name, non_finite);
}

std::vector<const Kernel*> chosen_kernels(const Options& options) {
  const std::vector<const Kernel*> ladder = ladder_kernels();
  const bool chosen = options.kernels != "*";
  return options.ladder && !chosen && !ladder.empty() ? ladder : find_kernels(options.kernels);
}

// Creates the CUDA context and initializes libraries. That takes about as long as measuring a small
// matrix, and no kernel runs meanwhile, so a process does it before it waits for its turn. (On an
// H100 12 matrices, each measured by three processes, took 49 s instead of 77 s, and the median
// ratio of their times was 0.996.)
void open_libraries(const std::vector<const Kernel*>& kernels) {
  device::check(cudaFree(nullptr), "creating the CUDA context");
  for (const Kernel* kernel : kernels) {
    try {
      if (kernel->info.open) kernel->info.open();
    } catch (const device::DeviceError&) {  // again when the kernel is prepared, which reports it
    }
  }
}

// Puts matrix and task into another order; milliseconds that finding and applying it took. The name
// of the matrix says the order, since its products are other measurements.
template <typename T>
double reorder(Matrix<T>& matrix, Task<T>& task, const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  Numbering order = order_of(matrix.csr, name);
  matrix.csr = reordered(matrix.csr, order);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  matrix.coo = {};
  matrix.source.name += ",order=" + name;
  task.renumber(std::move(order));
  return taken.count();
}

template <typename T>
MatrixReport run_matrix(const std::string& spec, const std::vector<const Kernel*>& kernels,
                        const Options& options, Progress& progress) {
  progress.show("loading " + spec);
  LoadOptions load = options.load;
  for (const Kernel* kernel : kernels) load.keep_coo |= kernel->info.needs_triplets;
  Matrix<T> matrix = load_matrix<T>(spec, load);
  print_notes(matrix.source.name, matrix.duplicates, matrix.explicit_zeros, matrix.non_finite);
  Task<T> task(matrix.csr, options.run);
  MatrixReport report;
  if (options.order != "none") {
    progress.show("renumbering " + spec);
    report.order_ms = reorder(matrix, task, options.order);
  }
  if (!options.turn.empty()) open_libraries(kernels);
  // So far nothing ran on the GPU, on which another process may be measuring.
  Turn turn(options.turn);
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr, options.padding_limit};
  const Bench<T> bench(problem, options.run, std::move(task));

  report.matrix = facts_of(matrix.csr, matrix.source);
  report.options = options.run;
  for (const Kernel* kernel : kernels) {
    progress.show(matrix.source.name + ": " + kernel->info.name);
    report.records.push_back(bench.run(*kernel));
    Record& record = report.records.back();
    if (record.trace.empty()) continue;
    append_lines(options.trace, trace_line(record, matrix, options.run, options.precision));
    record.trace.clear();
  }
  if (kGpu && options.run.measure) {
    progress.show(matrix.source.name + ": row-free baseline");
    report.copy_gb_per_s = copy_bandwidth();
    if (report.order_ms > 0) {
      report.permute_ms = time_permutation<T>(bench.order().rows, bench.order().columns).median;
    }
    const BaselineRun<T> baseline = run_baseline(problem, bench.x());
    turn.end();
    verify_baseline(matrix.csr, bench.x(), baseline);
    report.baseline = baseline.times;
  }
  return report;
}

// Those whose caches the CPU backend has a model of.
std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
#ifndef SPMV_CUDA
  for (const simt::Gpu& gpu : simt::kGpus) names.emplace_back(gpu.name);
#endif
  return names;
}

void set_up_backend([[maybe_unused]] const Options& options) {
#ifndef SPMV_CUDA
  for (const auto& [is_asked, option] :
       {std::pair(options.run.profile, "--profile"), std::pair(!options.trace.empty(), "--trace"),
        std::pair(options.run.schedule == "lockstep", "--schedule lockstep")}) {
    if (!is_asked || simt::is_instrumented()) continue;
    throw InputError(fmt::format(
        "{}: this program does not count; build it with COUNT=1, as make does", option));
  }
  simt::set_quiet_reports(true);  // they are part of the errors that are printed in the end
  simt::settings().workers = options.workers;
  if (options.run.schedule == "reverse") simt::settings().schedule = simt::Schedule::kReverse;
  if (options.run.schedule == "turns") simt::settings().schedule = simt::Schedule::kTurns;
  if (options.run.schedule == "random") simt::settings().schedule = simt::Schedule::kRandom;
  if (options.run.schedule == "lockstep") simt::settings().schedule = simt::Schedule::kLockstep;
  simt::settings().seed = options.run.seed;
#endif
}

int run(Options& options) {
  print_environment(std::cout, options.environment);
  const bool first_screen = options.ladder && options.matrices.empty() && options.kernels == "*";
  if (options.matrices.empty()) {
    options.matrices = options.ladder ? kLadderMatrices : kDefaultMatrices;
  }
  if (options.ladder && options.matrices.size() > 2) options.matrices.resize(2);

  const std::vector<const Kernel*> kernels = chosen_kernels(options);
  std::vector<MatrixReport> reports;
  int exit_code = 0;
  for (const std::string& spec : options.matrices) {
    {
      Progress progress;
      reports.push_back(options.precision == "f32"
                            ? run_matrix<float>(spec, kernels, options, progress)
                            : run_matrix<double>(spec, kernels, options, progress));
    }
    if (options.ladder && reports.size() < options.matrices.size()) continue;
    options.ladder ? print_ladder(std::cout, reports, kGpu)
                   : print_report(std::cout, reports.back(), kGpu, options.wide);
    check_output();  // before records are written of what was not printed
    for (const MatrixReport& report :
         std::span(reports).last(options.ladder ? reports.size() : 1)) {
      if (!options.json.empty()) append_records(options.json, report, options.environment);
      for (const Record& record : report.records) {
        if (!record.verified && !record.unsuitable) exit_code = kExitWrong;
        if (!record.trace_is_cut) continue;
        fmt::print(stderr,
                   "{}: the trace of {} on {} is cut: its events have more than {:g} MB; take a "
                   "smaller matrix, or --trace-limit\n",
                   options.trace, record.kernel.name, report.matrix.source.name,
                   options.trace_limit_mb);
      }
    }
  }
  if (reports.size() > 1 && !options.ladder) print_summary(std::cout, reports, kGpu);
  if (first_screen) {
    std::cout << (kGpu ? "" : kLadderLimits);
    print_fastest(std::cout, reports, kGpu);
    std::cout << kLadderReading;
  }
  print_verdict(std::cout, reports);
  return exit_code;
}

int info(const Options& options) {
  Matrix<double> matrix = load_matrix<double>(options.info_matrix, options.load);
  if (options.order != "none") {
    matrix.csr = reordered(matrix.csr, order_of(matrix.csr, options.order));
    matrix.source.name += ",order=" + options.order;
  }
  if (options.sizes) {
    fmt::print("{}\t{}\t{}\n", matrix.csr.rows, matrix.csr.cols, matrix.csr.nnz());
  } else if (options.info_json) {
    std::cout << info_as_json(matrix) << '\n';
  } else {
    print_info(std::cout, matrix);
  }
  return 0;
}

void declare(CommandLine& line, Options& options) {
  line.footer(
      "MATRIX is a file of Matrix Market (.mtx, .mtx.gz) or SciPy (.npz), a name of the catalogue, "
      "or a generator:\n" +
      generator_help() +
      "\nExit status: 0 all verified, 1 a kernel is wrong, 2 the input cannot be used "
      "or the output not be written.");
  line.add("-m,--matrix", options.matrices, "what to multiply; may be given several times");
  line.add("-p,--precision", options.precision, "f32 or f64", {one_of({"f32", "f64"})});
  line.add("-k,--kernel", options.kernels, "names or patterns, with commas: 'csr_*,eigen_csr'");
  line.add("--alpha", options.run.alpha, "factor of A x");
  line.add("--beta", options.run.beta, "factor of y");
  line.add("--seed", options.run.seed, "of x and of the schedules random and lockstep");
  line.add("--warm-up", options.run.warm_up, "GPU: launches before those that are timed",
           {above_zero()});
  line.add("--stop-by-spread", options.run.stop_by_spread,
           "GPU: end before 25 samples when their quartiles differ by no more than this share of "
           "the median; 0: never. Not shown harmless yet",
           {between(0.0, 1.0)});
  line.add("--padding-limit", options.padding_limit,
           "most entries that a padded format may store for each nonzero", {above_zero()});
  line.add(
      "--json", options.json,
      "append what is measured to this file (JSON Lines: plots/README.md); after --list, without "
      "a file: answer in JSON",
      {may_be_empty()});
  line.add("--turn", options.turn,
           "use the GPU only while no other process has this file locked; matrices are prepared "
           "before");
  line.add("--complex", options.complex_part,
           "what to take of a complex matrix: real, its real parts; or refuse it",
           {one_of({"refuse", "real"})});
  line.add("--order", options.order,
           "renumber before the product: columns, by how often they are used; degree or rcm "
           "(reverse Cuthill-McKee), rows and columns alike. y is verified in the original order",
           {one_of(kOrderNames)});
  line.add("--ladder", options.ladder,
           "one kernel per step, on one matrix as bars, on two side by side; with --kernel those; "
           "nothing beside --profile");
  line.add("--wide", options.wide,
           "on a GPU: setup, preprocess, quartiles, GB/s and break-even in the table, too");
  line.add("--memory-limit", options.load.memory_limit_bytes,
           "most memory that a matrix may take, such as 500M or 8G; 0: a quarter of what is "
           "available",
           {size_in_bytes()});
  line.add("--verify-only", options.verify_only, "measure and count nothing");
  if (kGpu) {
    for (const std::string option :
         {"--profile", "--schedule", "--late-streams", "--trace", "--block-threads"}) {
      line.refuse(option, option + " is an option of the CPU backend: make run BACKEND=cpu");
    }
    line.add("--machine-code", options.machine_code,
             "list the CUDA functions for a compute capability (90 for 9.0), with a hash of each "
             "one's instructions, in JSON");
  } else {
    line.add("--profile", options.run.profile, "show what each source line asks of memory");
    line.add("--gpu", options.run.gpu, "whose times are estimated, and caches modelled",
             {one_of(gpu_names())});
    line.add("--schedule", options.run.schedule,
             "order of blocks, warps and lanes: forward, reverse, random; turns: forward, but "
             "warps of a block take turns at warp operations; lockstep: forward, but lanes of a "
             "warp advance together from one access to memory to the next",
             {one_of({"forward", "reverse", "random", "turns", "lockstep"})});
    line.add("--late-streams", options.run.late_streams,
             "do what streams are asked for as late as waits and events allow");
    line.add("--block-threads", options.block_threads,
             "threads per block, of the kernels of steps 02, 03, 04 and 08 that take any number",
             {one_of({"32", "64", "128", "256", "512", "1024"})});
    line.add("--trace", options.trace,
             "record the first product of each kernel in this file (JSON Lines)");
    line.add("--trace-limit", options.trace_limit_mb, "most MB of events for each kernel",
             {above_zero()});
    line.add("--workers", options.workers, "threads of the host; 0: one per core",
             {between(0, 4096)});
  }
  line.add("-l,--list", options.list, "list the kernels and the papers they come from");
  line.add("--environment", options.environment_only,
           "say in JSON what machine and software this is");
}

// What follows from the options as they were given.
void complete(Options& options) {
  if (options.precision == "f32") {
    for (const auto& [name, factor] :
         {std::pair("--alpha", options.run.alpha), std::pair("--beta", options.run.beta)}) {
      if (std::isfinite(static_cast<float>(factor))) continue;
      throw InputError(fmt::format("{}: {:g} is beyond f32; use --precision f64", name, factor));
    }
  }
  options.load.real_part = options.complex_part == "real";
  if (options.run.profile) options.ladder = false;
  options.run.measure = !options.verify_only;
  if (!options.block_threads.empty()) {
    if (!options.json.empty()) {
      throw InputError("--block-threads: a record does not name it; leave out --json");
    }
    device::given_block_threads = std::stoi(options.block_threads);
  }
  if (!options.trace.empty()) {
    options.run.trace_limit = static_cast<std::size_t>(1e6 * options.trace_limit_mb);
  }
}

int main_program(int argc, char** argv) {
  Options options;
  CommandLine line("spmv",
                   "Sparse matrix-vector products y = alpha A x + beta y, step by step, verified.");
  declare(line, options);
  CommandLine info_line = line.command("info", "describe a matrix");
  info_line.add("MATRIX", options.info_matrix, "a file, a generator or a name", {required()});
  info_line.add("--sizes", options.sizes, "only rows, columns and nonzeros");
  info_line.add("--json", options.info_json, "a line of JSON, for the plots");
#ifndef SPMV_CUDA
  CommandLine terms_line = line.command(
      "terms", "what the time model multiplies: reads counts, for plots/measure/time_model.py");
#endif
  std::vector<std::pair<CommandLine, CommandBody>> programs;  // the steps' own
  for (const auto& [name, command] : commands()) {
    CommandLine program = line.command(name, command.summary);
    CommandBody body = command.declare(program);
    programs.emplace_back(program, std::move(body));
  }
  if (const std::optional<std::string> help = line.parse(argc, argv)) {
    fmt::print("{}", *help);
    return 0;
  }
  complete(options);
  const bool in_json = line.has("--json") && options.json.empty();
  if (options.list) {
    if (in_json) {
      std::cout << kernels_as_json() << '\n';
    } else {
      print_list();
    }
    return 0;
  }
  if (options.machine_code) {
    std::cout << machine_code_as_json(options.machine_code) << '\n';
    return 0;
  }
  if (info_line.is_given()) return info(options);
#ifndef SPMV_CUDA
  if (terms_line.is_given()) {
    write_terms(std::cin, std::cout, *simt::find_gpu(options.run.gpu));
    return 0;
  }
#endif
  if (in_json && !options.environment_only) {
    throw InputError("--json: which file? --json records.jsonl");
  }
  set_up_backend(options);
  if (!options.trace.empty() && !std::ofstream(options.trace)) {
    throw InputError(options.trace + ": cannot be written; give another --trace");
  }
  options.environment = describe_environment(argc, argv);
  if (options.environment_only) {
    std::cout << environment_as_json(options.environment) << '\n';
    return 0;
  }
  for (const auto& [program, body] : programs) {
    if (!program.is_given()) continue;
    if (options.order != "none")
      throw InputError("--order: a step's program multiplies in one order");
    return body(options);
  }
  return run(options);
}

}  // namespace
}  // namespace spmv

int main(int argc, char** argv) {
  // Otherwise CUDA loads each kernel when it is first launched, and setup and preprocess would be
  // charged with it. The variable has to be set before the first CUDA call.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  spmv::prepare_output();
  try {
    const int status = spmv::main_program(argc, argv);
    spmv::check_output();
    return status;
  } catch (const std::exception& error) {
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error);
    const bool bad_input = no_memory || dynamic_cast<const spmv::InputError*>(&error) ||
                           dynamic_cast<const std::system_error*>(&error);  // of fmt::print()
    std::cout.flush();
    fmt::print(stderr, "error: {}\n",
               no_memory ? "out of memory; use a smaller matrix" : error.what());
    return bad_input ? spmv::kExitBadInput : spmv::kExitWrong;
  }
}
