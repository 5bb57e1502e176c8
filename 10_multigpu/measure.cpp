#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/machine_code.hpp"
#include "harness/records.hpp"
#include "harness/verify.hpp"
#include "sparse/memory.hpp"
#include "sparse/row_source.hpp"

namespace spmv::multigpu {
namespace {

constexpr int kSamples = 5;  // runs of many steps, after one that warms up
constexpr int kBusySteps = 20;

using Vector = std::vector<double>;

struct PartShape {
  long long rows = 0, nnz = 0, boundary_rows = 0, remote_cols = 0;
  long long fetched = 0;  // ghost entries, of every step
};

// One way to multiply by one matrix; then what was found out. Times are measured on GPUs only.
struct Way {
  int gpus = 1;  // or ranks: the number of parts
  std::string partition, exchange;
  const Kernel* kernel = nullptr;

  std::vector<PartShape> parts = {};
  std::unique_ptr<Machine> machine = {};
  bool shares_gpus = false;                 // has fewer than parts
  std::set<std::string> functions = {};     // that a step launches
  std::optional<Quartiles> step = {};       // milliseconds
  std::optional<double> one_gpu_step = {};  // of the same kernel
  Vector busy_ms = {};                      // of each GPU; empty: not measured
  std::string checksum = {};                // of the bits of the result

  bool iterates() const { return exchange != "none"; }
};

// What --kernel names, and pcsr_one_pass if it was not given.
std::vector<const Kernel*> kernels_of(const Options& options, const std::string& patterns) {
  const auto& exchanges = options.exchanges;
  const bool stores = std::count(exchanges.begin(), exchanges.end(), "stores") > 0;
  std::vector<const Kernel*> kernels = find_kernels(patterns == "*" ? "pcsr_one_pass" : patterns);
  for (const Kernel* kernel : kernels) {
    const std::string& name = kernel->info.name;
    if (name == "pcsr_one_pass" || (name == "pcsr" && !stores)) continue;
    throw InputError(fmt::format("--kernel {}: parts are multiplied by pcsr or pcsr_one_pass{}",
                                 name,
                                 stores ? ", with --exchange stores by pcsr_one_pass alone" : ""));
  }
  return kernels;
}

double norm_of(const Vector& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// One matrix, on which one way after the other is measured.
class Measurement {
 public:
  // Throws InputError where `spec` is no matrix. The other three must outlive this.
  Measurement(const Options& options, const CommandArguments& arguments, const Processes& processes,
              const std::string& spec)
      : options_(options),
        arguments_(arguments),
        processes_(processes),
        measures_(arguments.environment.backend == "cuda" && arguments.run.measure) {
    processes_.together([&] {
      rows_.emplace(spec, arguments.load, is_of_ranks());
      const std::vector<Index> lengths = rows_->lengths(0, rows_->rows());
      std::inclusive_scan(lengths.begin(), lengths.end(),
                          nonzeros_.insert(nonzeros_.end(), lengths.size(), 0), std::plus<>(), 0LL);
      x_ = first_x(rows_->cols(), arguments_.run.seed);
    });
    print_matrix(std::cout, facts());
  }

  void measure_all(const std::vector<const Kernel*>& kernels) {
    for (const int gpus : options_.gpus) {
      for (const std::string& partition : options_.partitions) {
        // On one GPU all partitions are the same, and so are all ways to exchange.
        if (gpus == 1 && partition != options_.partitions.front()) continue;
        read_parts(gpus, partition);
        bool has_iterated = false;
        for (const std::string& exchange : options_.exchanges) {
          if (gpus == 1 && exchange != "none" && std::exchange(has_iterated, true)) continue;
          for (const Kernel* kernel : kernels) measure({gpus, partition, exchange, kernel});
        }
      }
    }
  }

 private:
  MatrixFacts facts() const {
    return {rows_->source(), rows_->rows(), rows_->cols(), nonzeros_.back(), "f64"};
  }
  bool is_of_ranks() const { return processes_.count > 1; }
  const char* part_word() const { return is_of_ranks() ? "rank" : "GPU"; }

  void read_parts(int gpus, const std::string& partition) {
    cuts_ = cut(kPartitions.at(partition), nonzeros_, gpus);
    here_ = processes_.here(static_cast<std::size_t>(gpus));
    slices_.assign(static_cast<std::size_t>(gpus), {});
    processes_.together([&] {
      for (const int p : here_) {
        if (is_of_ranks()) require_memory(nonzeros_[cuts_[p + 1]] - nonzeros_[cuts_[p]]);
        slices_[p] = rows_->read(cuts_[p], cuts_[p + 1], nonzeros_[cuts_[p]]);
      }
    });
  }

  // Refuses a part of so many nonzeros, with x and what is known of every row, before a rank makes
  // it. (In one process the matrix has been loaded.)
  void require_memory(long long nonzeros) const {
    const double needed =
        static_cast<double>(nonzeros) * (sizeof(Index) + sizeof(double)) +
        static_cast<double>(rows_->rows()) * (sizeof(Index) + sizeof(long long) + sizeof(double));
    const auto limit = static_cast<double>(arguments_.load.memory_limit());
    if (needed <= limit) return;
    throw InputError(fmt::format("{}: the part of rank {} {}", rows_->source().name,
                                 processes_.number, more_than_limit(needed, limit)));
  }

  void measure(Way way) {
    fmt::print("{}{} {}{}, equal {} (PCSR-{}), {}, {}\n", is_of_ranks() ? "" : "\n", way.gpus,
               part_word(), way.gpus == 1 ? "" : "s", way.partition,
               way.partition == "rows" ? "I" : "II",
               way.iterates() ? fmt::format("exchange {}, {} steps", way.exchange, options_.steps)
                              : "no exchange: products of one x",
               way.kernel->info.name);
    run(way);
    print(way);
    // Times of parts that share a GPU are no record.
    if (!arguments_.json.empty() && !(way.shares_gpus && measures_)) record(way);
  }

  void run(Way& way) {
    const auto found = kExchanges.find(way.exchange);  // else that of processes
    const Exchange exchange = found == kExchanges.end() ? Exchange::kPacked : found->second;
    processes_.together([&] {
      const std::string what = "--exchange " + way.exchange + ": " + rows_->source().name;
      if (way.iterates()) require_square(what, rows_->rows(), rows_->cols());
    });
    std::vector<Part> parts = prepare(slices_, cuts_, exchange, processes_);
    for (const Part& part : parts) {
      PartShape& shape = way.parts.emplace_back(
          PartShape{part.rows(), part.matrix.nnz(), part.boundary_rows, part.remote_cols});
      for (const Halo& halo : part.halos) shape.fetched += halo.count();
    }
    processes_.gather(way.parts);
    way.machine = make_machine(std::move(parts), *way.kernel, exchange, processes_);
    Machine& machine = *way.machine;
    way.shares_gpus = !is_of_ranks() && machine.devices() < way.gpus;

    // One step; then as many as are asked for.
    machine.start(x_);
    {
      const LaunchLog log;
      machine.run(1);
      way.functions = log.functions();
    }
    verify_own_rows(machine.x_of(1), 1, x_);
    if (measures_) way.busy_ms = machine.time_each(kBusySteps);
    const double factor = way.iterates() ? find_factor(machine) : 1;
    machine.keep_factor(factor);
    Vector times;
    for (int sample = -1; sample < (measures_ ? kSamples : 0); ++sample) {
      machine.start(x_);
      Vector milliseconds(static_cast<std::size_t>(processes_.count));
      milliseconds[processes_.number] = machine.run(options_.steps);
      processes_.gather(milliseconds);
      if (sample < 0) continue;  // it warms up
      times.push_back(*std::max_element(milliseconds.begin(), milliseconds.end()) / options_.steps);
    }
    if (measures_) way.step = quartiles(times);
    const Vector last = machine.x_of(options_.steps);
    processes_.together([&] {
      if (!way.iterates() || std::isfinite(norm_of(last))) return;
      throw InputError(fmt::format(
          "after {} steps x is beyond the range of f64: use fewer (--iterate)", options_.steps));
    });
    verify_own_rows(last, factor, way.iterates() ? machine.x_of(options_.steps - 1) : x_);
    way.checksum =
        hash_of({reinterpret_cast<const char*>(last.data()), last.size() * sizeof(double)});

    std::optional<double>& one = one_gpu_step_[{way.kernel->info.name, way.iterates()}];
    if (way.gpus > 1) {
      way.one_gpu_step = one;
    } else if (measures_) {
      one = way.step->median;
    }
  }

  // Powers of A grow or vanish. So every product is divided by the power of two by which x grows in
  // the fourth step; that changes no bit but those of exponents.
  double find_factor(Machine& machine) const {
    Vector x = x_;
    double factor = 1;
    for (int k = 0; k < 4; ++k) {
      machine.start(x);
      machine.run(1);
      x = machine.x_of(1);
      const double norm = norm_of(x);
      factor = std::isnormal(norm) ? std::ldexp(1, -std::ilogb(norm)) : 1;
      for (double& value : x) value *= factor;
    }
    return factor;
  }

  // Throws unless y = factor A x.
  void verify_own_rows(const Vector& y, double factor, const Vector& x) {
    processes_.together([&] {
      for (const int p : here_) {
        const Verdict verdict = verify(Vector(y.begin() + cuts_[p], y.begin() + cuts_[p + 1]),
                                       make_reference(slices_[p], factor, x, 0.0, {}));
        if (verdict.ok) continue;
        throw std::runtime_error(fmt::format("WRONG: {} {}, whose row 0 is row {}: {}", part_word(),
                                             p, cuts_[p], verdict.describe()));
      }
    });
  }

  // --- Results ----------------------------------------------------------------------------------

  void print(const Way& way) const {
    if (!way.machine->remark().empty()) fmt::print("  {}\n", way.machine->remark());
    if (way.shares_gpus) {
      fmt::print("  {} parts on fewer GPUs ({}): right, but times say nothing about scaling\n",
                 way.gpus, way.machine->devices());
    }
    const bool has_busy = !way.busy_ms.empty();
    fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", part_word(), "rows", "nonzeros",
               "boundary rows", "ghosts needed", "fetched", has_busy ? "     busy us" : "");
    for (std::size_t p = 0; p < way.parts.size(); ++p) {
      const PartShape& part = way.parts[p];
      fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", p, part.rows, part.nnz,
                 part.boundary_rows, part.remote_cols, part.fetched,
                 has_busy ? fmt::format("{:>12.1f}", 1e3 * way.busy_ms[p]) : "");
    }
    if (way.step) {
      fmt::print("  {}: {:.2f} us per step ({:.2f}-{:.2f})\n", way.machine->drive(),
                 1e3 * way.step->median, 1e3 * way.step->lower, 1e3 * way.step->upper);
    }
    if (way.one_gpu_step && !way.shares_gpus) {
      fmt::print("  parallel efficiency {:.1f}%, of one GPU's {:.1f} us\n",
                 100 * *way.one_gpu_step / (way.gpus * way.step->median), 1e3 * *way.one_gpu_step);
    }
    fmt::print("  verified: the first step and the last; checksum of the result {}\n",
               way.checksum);
  }

  void record(const Way& way) const {
    Records records(arguments_.environment);
    KernelInfo info = way.kernel->info;
    info.step = 10;
    nlohmann::ordered_json& line =
        records.add(is_of_ranks() ? "multigpu_mpi" : "multigpu", info, "", facts());
    line[is_of_ranks() ? "ranks" : "gpus"] = way.gpus;
    line["partition"] = way.partition;
    line["exchange"] = way.exchange;
    line["steps"] = options_.steps;
    for (std::size_t p = 0; p < way.parts.size(); ++p) {
      const PartShape& part = way.parts[p];
      line["parts"].push_back({{"rows", part.rows},
                               {"nnz", part.nnz},
                               {"boundary_rows", part.boundary_rows},
                               {"remote_cols", part.remote_cols},
                               {"fetched", part.fetched}});
      if (!way.busy_ms.empty()) line["parts"].back()["busy_ms"] = way.busy_ms[p];
    }
    if (way.iterates()) line["norm"] = "first";  // older records have one of each step
    if (way.step) line["step_ms"][way.machine->drive()] = to_json(*way.step);
    if (way.one_gpu_step) line["one_gpu_step_ms"] = *way.one_gpu_step;
    if (measures_) records.add_code(way.functions);
    records.append_to(arguments_.json);
  }

  const Options& options_;
  const CommandArguments& arguments_;
  const Processes& processes_;
  bool measures_;
  std::optional<RowSource<double>> rows_;
  std::vector<long long> nonzeros_{0};  // before each row
  Vector x_;
  std::vector<Index> cuts_;
  std::vector<int> here_;
  std::vector<Csr<double>> slices_;
  // By kernel; whether it iterates.
  std::map<std::pair<std::string, bool>, std::optional<double>> one_gpu_step_;
};

}  // namespace

void measure(const Options& options, const CommandArguments& arguments,
             const Processes& processes) {
  std::vector<const Kernel*> kernels;
  processes.together([&] { kernels = kernels_of(options, arguments.kernels); });
  for (const std::string& matrix : arguments.matrices) {
    Measurement(options, arguments, processes, matrix).measure_all(kernels);
  }
}

namespace {

int run(Options options, CommandArguments arguments) {
  const bool on_gpus = arguments.environment.backend == "cuda";
  if (!arguments.trace.empty()) {
    throw InputError("multigpu: --trace is not for this command; use spmv steps --trace FILE");
  }
  if (arguments.precision == "f32") {
    throw InputError("multigpu: it multiplies in double precision: leave out --precision f32");
  }
  if (options.steps == 0) options.steps = on_gpus ? 100 : 10;
  print_environment(std::cout, arguments.environment);
  if (arguments.matrices.empty()) {
    arguments.matrices = {"stencil3d:128x128x128,points=27"};
    if (!on_gpus) arguments.matrices = {"stencil2d:120x100", "powerlaw:8000x8000,nnz=60000"};
  }
  measure(options, arguments);
  return 0;
}

[[maybe_unused]] const bool registered = add_command(
    "multigpu", "products on several GPUs, and iterations of them", [](CommandLine& line) {
      auto own = std::make_shared<Options>();
      line.add("--gpus", own->gpus, "how many, one count after the other: 1,2,4",
               {comma_separated(), between(1, kMaxGpus)});
      line.add("--partition", own->partitions,
               "what each GPU gets as much of: rows (PCSR-I), nonzeros (PCSR-II)",
               {comma_separated(), key_of(kPartitions)});
      line.add(
          "--exchange", own->exchanges,
          "how entries of x come to a GPU that needs them: none (it has all), parts and packed "
          "(copies, in a CUDA graph), stores (of persistent kernels)",
          {comma_separated(), key_of(kExchanges)});
      line.add("--iterate", own->steps,
               "steps of the iteration y = A x, x = factor y; 0: 100 on GPUs, 10 on the CPU "
               "backend",
               {between(0, 1000000)});
      return [own](const CommandArguments& arguments) { return run(*own, arguments); };
    });

}  // namespace

}  // namespace spmv::multigpu
