#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
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
#include "vectors.hpp"

namespace spmv::multigpu {
namespace {

constexpr int kSamples = 5;     // runs of many steps, after one that warms up
constexpr int kFirstSteps = 4;  // after which x has forgotten where it came from
constexpr int kBusySteps = 20;

// One way to multiply by one matrix.
struct Way {
  int gpus = 1;  // or ranks: the number of parts
  std::string partition, exchange;
  const Kernel* kernel = nullptr;
};

struct DriveTime {
  std::string name;
  Quartiles step;  // milliseconds per step
};

// What was found out about it. Times are measured on GPUs only.
struct Outcome {
  std::vector<std::string> notes;
  bool left_out = false;
  int devices = 0;  // fewer than parts: these share them
  bool peer_access = true;
  std::vector<PartShape> parts;
  std::set<std::string> functions;  // that a step launches
  std::vector<DriveTime> drives;
  std::vector<double> busy_ms;  // of each GPU; empty: not measured
  std::uint64_t checksum = 0;
  // Where the same was done on one GPU before: its time of a step, and how far the first product is
  // from its bits.
  std::optional<double> one_gpu_step_ms;
  std::optional<Difference> difference;

  double best_step_ms() const {
    double best = std::numeric_limits<double>::infinity();
    for (const DriveTime& drive : drives) best = std::min(best, drive.step.median);
    return best;
  }
};

Exchange exchange_of(const Way& way) {
  const auto found = kExchanges.find(way.exchange);
  return found == kExchanges.end() ? Exchange::kPacked : found->second;
}

// Persistent kernels store entries, and nothing else does.
std::vector<std::string> drives_of(const Options& options, const std::string& exchange) {
  std::vector<std::string> drives;
  for (const std::string& drive : options.drives) {
    if ((drive == "persistent") == (exchange == "stores")) drives.push_back(drive);
  }
  if (!drives.empty()) return drives;
  throw InputError(fmt::format("--exchange {} needs --drive {}", exchange,
                               exchange == "stores" ? "persistent" : "loop or graph"));
}

// What --kernel names, and pcsr_one_pass if it was not given.
std::vector<const Kernel*> kernels_of(const Options& options, const std::string& patterns) {
  std::vector<const Kernel*> kernels = find_kernels(patterns == "*" ? "pcsr_one_pass" : patterns);
  for (const Kernel* kernel : kernels) {
    if (kernel->info.format != "CSR" || kernel->info.runs_on != RunsOn::kDevice) {
      throw InputError(
          fmt::format("--kernel {}: a part is a CSR matrix on a GPU; use pcsr or pcsr_one_pass",
                      kernel->info.name));
    }
    if (kernel->info.name != "pcsr_one_pass" &&
        std::count(options.exchanges.begin(), options.exchanges.end(), "stores")) {
      throw InputError(fmt::format(
          "--kernel {}: persistent kernels, which --exchange stores stands for, are those of "
          "pcsr_one_pass",
          kernel->info.name));
    }
  }
  return kernels;
}

// Every number of GPUs, partition, exchange and kernel. On one GPU all partitions are the same, and
// so are all ways to exchange.
std::vector<Way> all_ways(const Options& options, const std::vector<const Kernel*>& kernels) {
  std::vector<Way> ways;
  for (const int gpus : options.gpus) {
    for (const std::string& partition : options.partitions) {
      if (gpus == 1 && partition != options.partitions.front()) continue;
      bool iterated = false;
      for (const std::string& exchange : options.exchanges) {
        if (gpus == 1 && exchange != "none" && std::exchange(iterated, true)) continue;
        for (const Kernel* kernel : kernels) ways.push_back({gpus, partition, exchange, kernel});
      }
    }
  }
  return ways;
}

// One matrix, on which one way after the other is measured.
template <typename T>
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
      rows_.emplace(spec, arguments.load, processes_.count() > 1);
      require_memory(0);
    });
    nonzeros_ = nonzeros_before_rows();
    if (processes_.number() != 0) return;
    print_matrix(std::cout, rows_->source(), rows_->rows(), rows_->cols(), nonzeros_.back(),
                 arguments_.precision);
  }

  void measure(const Way& way) {
    say("{}{} {}{}, equal {} (PCSR-{}), {}, {}\n", processes_.count() > 1 ? "" : "\n", way.gpus,
        has_part(), way.gpus == 1 ? "" : "s", way.partition, way.partition == "rows" ? "I" : "II",
        way.exchange == "none" ? "no exchange: products of one x"
                               : fmt::format("exchange {}, {} steps", way.exchange, options_.steps),
        way.kernel->info.name);
    const Outcome outcome = outcome_of(way);
    if (processes_.number() != 0) return;
    print(way, outcome);
    // Times of parts that share a GPU are no record.
    const bool shares = outcome.devices < way.gpus;
    if (arguments_.json.empty() || outcome.left_out || (shares && measures_)) return;
    record(way, outcome);
  }

 private:
  // Of one kernel on one GPU, which the others are compared with. There nothing is exchanged, in
  // whatever way.
  struct OnOneGpu {
    double step_ms = 0;
    std::vector<T> y;
  };

  template <typename... Arguments>
  void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    if (processes_.number() == 0) fmt::print(text, std::forward<Arguments>(arguments)...);
  }
  const char* has_part() const { return processes_.count() > 1 ? "rank" : "GPU"; }

  // Refuses a part of so many nonzeros of a square matrix, with x and what is known of every row,
  // before a rank makes it. (In one process the matrix has been loaded.)
  void require_memory(long long nonzeros) const {
    if (processes_.count() == 1) return;
    const double needed =
        static_cast<double>(nonzeros) * (sizeof(Index) + sizeof(T)) +
        static_cast<double>(rows_->rows()) * (sizeof(Index) + sizeof(long long) + sizeof(T));
    const std::size_t given = arguments_.load.memory_limit_bytes;
    const auto limit = static_cast<double>(given ? given : default_memory_limit());
    if (needed <= limit) return;
    throw InputError(fmt::format("{}: the part of rank {} {}", rows_->source().name,
                                 processes_.number(), more_than_limit(needed, limit)));
  }

  // Each process asks for the lengths of as many rows.
  std::vector<long long> nonzeros_before_rows() const {
    const long long rows = rows_->rows();
    std::vector<Index> begins;
    for (int p = 0; p <= processes_.count(); ++p) {
      begins.push_back(static_cast<Index>(rows * p / processes_.count()));
    }
    std::vector<Index> lengths;
    processes_.together([&] {
      lengths.resize(rows);
      const Index first = begins[processes_.number()];
      const std::vector<Index> own = rows_->lengths(first, begins[processes_.number() + 1]);
      std::copy(own.begin(), own.end(), lengths.begin() + first);
    });
    processes_.gather(lengths, begins);
    std::vector<long long> before(lengths.size() + 1, 0);
    std::inclusive_scan(lengths.begin(), lengths.end(), before.begin() + 1, std::plus<>(), 0LL);
    return before;
  }

  void cut_into(const Way& way) {
    const std::pair wanted(way.gpus, way.partition);
    if (cut_for_ == wanted) return;
    cut_for_ = wanted;
    cuts_ = cut(kPartitions.at(way.partition), nonzeros_, way.gpus);
    here_ = processes_.here(static_cast<std::size_t>(way.gpus));
    slices_.assign(static_cast<std::size_t>(way.gpus), {});
    processes_.together([&] {
      for (const int p : here_) {
        require_memory(nonzeros_[cuts_[p + 1]] - nonzeros_[cuts_[p]]);
        slices_[p] = rows_->read(cuts_[p], cuts_[p + 1], nonzeros_[cuts_[p]]);
      }
      if (x_.empty()) x_ = first_x<T>(rows_->cols(), arguments_.run.seed);
    });
  }

  Outcome outcome_of(const Way& way) {
    const Exchange exchange = exchange_of(way);
    const bool iterates = exchange != Exchange::kNone;
    processes_.together([&] {
      const std::string what = "--exchange " + way.exchange + ": " + rows_->source().name;
      if (iterates) require_square(what, rows_->rows(), rows_->cols());
    });
    cut_into(way);
    std::vector<Part<T>> parts = prepare(slices_, cuts_, exchange, processes_);
    Outcome outcome;
    outcome.parts.resize(parts.size());
    for (const int p : here_) outcome.parts[p] = shape_of(parts[p]);
    processes_.gather(outcome.parts);
    std::unique_ptr<Machine<T>> machine;
    try {
      machine = make_machine(parts, *way.kernel, {exchange, !options_.no_peer_access}, processes_);
    } catch (const Unsuitable& reason) {
      outcome.left_out = true;
      outcome.notes.push_back(fmt::format("left out: {}", reason.what()));
      return outcome;
    }
    parts.clear();
    outcome.peer_access = way.exchange != "mpi" && !machine->uses_host();
    if (!machine->remark().empty()) outcome.notes.push_back(machine->remark());
    outcome.devices = processes_.count() > 1 ? way.gpus : machine->devices();
    if (outcome.devices < way.gpus) {
      const bool one = outcome.devices == 1;
      outcome.notes.push_back(
          fmt::format("{} parts on {} GPU{}: right, but {} times say nothing about scaling",
                      way.gpus, outcome.devices, one ? "" : "s", one ? "its" : "their"));
    }

    // One step; then as many as are asked for, by each drive.
    const std::vector<std::string> drives = drives_of(options_, way.exchange);
    const Drive first = kDrives.at(drives.front());
    machine->start(x_);
    {
      const LaunchLog log;
      machine->run(1, first);
      outcome.functions = log.functions();
    }
    const std::vector<T> y = machine->x_of(1);
    verify_own_rows(y, 1, x_);
    const double factor = iterates ? find_factor(*machine, first) : 1;
    machine->keep_factor(factor);
    if (measures_) outcome.busy_ms = machine->time_each(kBusySteps);
    std::vector<T> last;
    for (const std::string& name : drives) {
      const auto run = [&] {
        machine->start(x_);
        const double time = machine->run(options_.steps, kDrives.at(name));
        return processes_.slowest(time) / options_.steps;
      };
      run();
      std::vector<double> times;
      while (measures_ && times.size() < kSamples) times.push_back(run());
      if (measures_) outcome.drives.push_back({name, quartiles(times)});
      last = machine->x_of(options_.steps);
      const bool is_first = !iterates || options_.steps == 1;
      verify_own_rows(last, factor, is_first ? x_ : machine->x_of(options_.steps - 1));
    }
    processes_.together([&] { require_range(y, last); });
    outcome.checksum = checksum_of(last);

    const std::pair key(way.kernel->info.name, iterates);
    if (way.gpus == 1) {
      on_one_gpu_.insert_or_assign(key, OnOneGpu{outcome.best_step_ms(), y});
    } else if (const auto one = on_one_gpu_.find(key); one != on_one_gpu_.end()) {
      outcome.difference = compare_bits(one->second.y, y);
      if (measures_) outcome.one_gpu_step_ms = one->second.step_ms;
    }
    return outcome;
  }

  // A power of two, so that it changes no bit but those of exponents, by which every product is
  // multiplied: powers of A would grow or vanish.
  double find_factor(Machine<T>& machine, Drive drive) const {
    std::vector<T> x = x_;
    double factor = 1;
    for (int k = 0; k < kFirstSteps; ++k) {
      machine.start(x);
      machine.run(1, drive);
      x = machine.x_of(1);
      factor = 1 / power_of_norm(x);
      for (T& value : x) value *= static_cast<T>(factor);
    }
    return factor;
  }

  void require_range(const std::vector<T>& y, const std::vector<T>& last) const {
    const auto is_finite = [](T value) { return std::isfinite(value); };
    if (std::all_of(last.begin(), last.end(), is_finite) ||
        !std::all_of(y.begin(), y.end(), is_finite)) {
      return;
    }
    throw InputError(
        fmt::format("after {} steps entries of x are beyond the range of {}: use fewer "
                    "(--iterate)",
                    options_.steps, arguments_.precision));
  }

  // The rows of the parts that this process has.
  Reference make_own_reference(T factor, const std::vector<T>& x) const {
    Reference all;
    for (const int p : here_) {
      const Reference part = make_reference(slices_[p], factor, x, T{0}, {});
      all.y.insert(all.y.end(), part.y.begin(), part.y.end());
      all.bound.insert(all.bound.end(), part.bound.begin(), part.bound.end());
      all.lengths.insert(all.lengths.end(), part.lengths.begin(), part.lengths.end());
    }
    return all;
  }

  // Throws unless y = factor A x.
  void verify_own_rows(const std::vector<T>& y, double factor, const std::vector<T>& x) {
    processes_.together([&] {
      const Index begin = cuts_[here_.front()], end = cuts_[here_.back() + 1];
      const std::vector<T> own(y.begin() + begin, y.begin() + end);
      const bool is_first = factor == 1 && &x == &x_;  // it is made once
      if (is_first && !first_) first_ = make_own_reference(T{1}, x_);
      const Verdict verdict = is_first ? verify(own, *first_)
                                       : verify(own, make_own_reference(static_cast<T>(factor), x));
      if (verdict.ok) return;
      const std::string whose =
          fmt::format("rank {}, which has the rows from {} on: ", processes_.number(), begin);
      throw std::runtime_error(
          fmt::format("WRONG: {}{}", processes_.count() > 1 ? whose : "", verdict.describe()));
    });
  }

  // --- Results ----------------------------------------------------------------------------------

  void print(const Way& way, const Outcome& outcome) const {
    for (const std::string& note : outcome.notes) fmt::print("  {}\n", note);
    if (outcome.left_out) return;
    const bool has_busy = !outcome.busy_ms.empty();
    fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", has_part(), "rows", "nonzeros",
               "boundary rows", "ghosts needed", "fetched", has_busy ? "     busy us" : "");
    for (std::size_t p = 0; p < outcome.parts.size(); ++p) {
      const PartShape& part = outcome.parts[p];
      fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", p, part.rows, part.nnz,
                 part.boundary_rows, part.remote_cols, part.fetched,
                 has_busy ? fmt::format("{:>12.1f}", 1e3 * outcome.busy_ms[p]) : "");
    }
    for (const DriveTime& drive : outcome.drives) {
      fmt::print("  {}: {:.2f} us per step ({:.2f}-{:.2f})\n", drive.name, 1e3 * drive.step.median,
                 1e3 * drive.step.lower, 1e3 * drive.step.upper);
    }
    if (outcome.one_gpu_step_ms && outcome.devices == way.gpus) {
      fmt::print("  parallel efficiency {:.1f}%, of one GPU's {:.1f} us\n",
                 100 * *outcome.one_gpu_step_ms / (way.gpus * outcome.best_step_ms()),
                 1e3 * *outcome.one_gpu_step_ms);
    }
    fmt::print(
        "  verified: the first step, and the last of each drive; checksum of the result {:016x}\n",
        outcome.checksum);
    if (!outcome.difference) return;
    const Difference& difference = *outcome.difference;
    fmt::print("  bits of the first step: {}\n",
               difference.rows == 0
                   ? "those of one GPU"
                   : fmt::format("not those of one GPU in {} rows, by up to {} ulp",
                                 difference.rows, difference.max_ulps));
  }

  void record(const Way& way, const Outcome& outcome) const {
    const bool of_gpus = processes_.count() == 1;
    Records records(arguments_.environment);
    KernelInfo info = way.kernel->info;
    info.step = 10;
    nlohmann::ordered_json& line =
        records.add(of_gpus ? "multigpu" : "multigpu_mpi", info, "", rows_->source(), rows_->rows(),
                    rows_->cols(), nonzeros_.back(), arguments_.precision);
    line[of_gpus ? "gpus" : "ranks"] = way.gpus;
    line["partition"] = way.partition;
    line["exchange"] = way.exchange;
    line["steps"] = options_.steps;
    for (std::size_t p = 0; p < outcome.parts.size(); ++p) {
      const PartShape& part = outcome.parts[p];
      line["parts"].push_back({{"rows", part.rows},
                               {"nnz", part.nnz},
                               {"boundary_rows", part.boundary_rows},
                               {"remote_cols", part.remote_cols},
                               {"fetched", part.fetched}});
      if (!outcome.busy_ms.empty()) line["parts"].back()["busy_ms"] = outcome.busy_ms[p];
    }
    if (way.exchange != "none") line["norm"] = "first";  // older records have one of each step
    line["peer_access"] = outcome.peer_access;
    for (const DriveTime& drive : outcome.drives) line["step_ms"][drive.name] = to_json(drive.step);
    if (outcome.one_gpu_step_ms) line["one_gpu_step_ms"] = *outcome.one_gpu_step_ms;
    if (measures_) records.add_code(outcome.functions);
    records.append_to(arguments_.json);
  }

  const Options& options_;
  const CommandArguments& arguments_;
  const Processes& processes_;
  bool measures_;
  std::optional<RowSource<T>> rows_;
  std::vector<T> x_;
  std::vector<long long> nonzeros_;      // before each row
  std::pair<int, std::string> cut_for_;  // number of parts and partition of:
  std::vector<Index> cuts_;
  std::vector<int> here_;
  std::vector<Csr<T>> slices_;
  std::optional<Reference> first_;                               // of x_
  std::map<std::pair<std::string, bool>, OnOneGpu> on_one_gpu_;  // by kernel; whether it iterates
};

}  // namespace

void measure(const Options& options, const CommandArguments& arguments,
             const Processes& processes) {
  std::vector<const Kernel*> kernels;
  processes.together([&] {
    kernels = kernels_of(options, arguments.kernels);
    for (const std::string& exchange : options.exchanges) drives_of(options, exchange);
  });
  const auto measure_as = [&](auto measurement) {
    for (const Way& way : all_ways(options, kernels)) measurement.measure(way);
  };
  for (const std::string& matrix : arguments.matrices) {
    if (arguments.precision == "f32") {
      measure_as(Measurement<float>(options, arguments, processes, matrix));
    } else {
      measure_as(Measurement<double>(options, arguments, processes, matrix));
    }
  }
}

}  // namespace spmv::multigpu
