#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "report.hpp"
#include "sparse/row_source.hpp"
#include "vectors.hpp"

namespace spmv::multigpu {
namespace {

constexpr int kBusySteps = 20;

using Run = std::function<double(int)>;  // that many steps; milliseconds

// Milliseconds per step. The first run warms up.
Quartiles time_steps(const Run& run, int steps) {
  std::vector<double> times;
  run(steps);
  for (int sample = 0; sample < kSamples; ++sample) times.push_back(run(steps) / steps);
  return quartiles(std::move(times));
}

// One matrix, on which one way after the other is measured.
template <typename T>
class Measurement {
 public:
  // Throws InputError where `spec` is no matrix. The other two must outlive this.
  Measurement(const Options& options, const CommandArguments& arguments, const std::string& spec)
      : options_(options),
        arguments_(arguments),
        measures_(arguments.environment.backend == "cuda" && arguments.run.measure),
        rows_(open_rows<T>(spec, arguments.load, false)),
        x_(first_x<T>(rows_->cols(), arguments.run.seed)),
        nonzeros_{0} {
    for (const Index length : rows_->lengths(0, rows_->rows())) {
      nonzeros_.push_back(nonzeros_.back() + length);
    }
  }

  MatrixFacts matrix() const {
    return {rows_->source(), rows_->rows(), rows_->cols(), nonzeros_.back(), arguments_.precision};
  }

  Outcome measure(const Way& way) {
    const Exchange exchange = kExchanges.at(way.exchange);
    const bool iterates = exchange != Exchange::kNone;
    if (iterates) {
      require_square(fmt::format("--exchange {}: {}", way.exchange, rows_->source().name),
                     rows_->rows(), rows_->cols());
    }
    cut_into(way);
    Outcome outcome;
    const std::vector<Part<T>> parts = prepare(slices_, cuts_, exchange);
    for (const Part<T>& part : parts) outcome.parts.push_back(shape_of(part));
    std::unique_ptr<Machine<T>> machine;
    try {
      machine = std::make_unique<Machine<T>>(
          parts, *way.kernel, Setup{exchange, !options_.no_peer_access, options_.share_gpus});
    } catch (const Unsuitable& reason) {
      outcome.status = Outcome::Status::kLeftOut;
      outcome.notes.push_back(fmt::format("left out: {}", reason.what()));
      return outcome;
    }
    outcome.measured = measures_;
    outcome.devices = machine->devices();
    outcome.peer_access = machine->remark().empty();
    if (!outcome.peer_access) outcome.notes.push_back(machine->remark());
    if (outcome.devices < way.gpus) {
      const bool one = outcome.devices == 1;
      outcome.notes.push_back(
          fmt::format("{} parts on {} GPU{}: right, but {} times say nothing about scaling",
                      way.gpus, outcome.devices, one ? "" : "s", one ? "its" : "their"));
    }

    // One step from the x that all share; then as many as are asked for, by each drive.
    machine->start(x_);
    machine->run(1, Drive::kLoop);
    if (!is_right(*machine, way, 1, outcome)) return outcome;
    const std::vector<T> y = machine->x_of(1);
    if (options_.norm == "first" && iterates) {
      machine->start(x_);
      machine->run(kFirstSteps, Drive::kLoop);
      machine->keep_factor(machine->factor_of(kFirstSteps - 1));
    }
    if (!time_drives(way, *machine, parts, outcome)) return outcome;
    if (measures_) {
      outcome.busy_ms = machine->time_each(kBusySteps);
      machine->start(x_);
      machine->run(way.steps, Drive::kLoop);
      if (!is_right(*machine, way, way.steps, outcome)) return outcome;
    }
    outcome.checksum = checksum_of(machine->x_of(way.steps), 0);

    const std::pair key(way.kernel->info.name, iterates);
    if (way.gpus == 1) {
      on_one_gpu_.insert_or_assign(key, OnOneGpu{outcome.best_step_ms(), y});
    } else if (const auto one = on_one_gpu_.find(key); one != on_one_gpu_.end()) {
      outcome.difference = compare_bits(one->second.y, y);
      if (measures_) outcome.one_gpu_step_ms = one->second.step_ms;
    }
    return outcome;
  }

 private:
  // Of one kernel on one GPU, which the others are compared with. There nothing is exchanged, in
  // whatever way.
  struct OnOneGpu {
    double step_ms = 0;
    std::vector<T> y;
  };

  void cut_into(const Way& way) {
    const std::pair wanted(way.gpus, way.partition);
    if (cut_for_ == wanted) return;
    cut_for_ = wanted;
    cuts_ = cut(kPartitions.at(way.partition), nonzeros_, way.gpus);
    slices_.clear();
    for (int p = 0; p < way.gpus; ++p) {
      slices_.push_back(rows_->read(cuts_[p], cuts_[p + 1], nonzeros_[cuts_[p]]));
    }
  }

  Reference reference_of(T factor, const std::vector<T>& x) const {
    Reference all;
    for (const Csr<T>& slice : slices_) {
      const Reference part = make_reference(slice, factor, x, T{0}, {});
      all.y.insert(all.y.end(), part.y.begin(), part.y.end());
      all.bound.insert(all.bound.end(), part.bound.begin(), part.bound.end());
      all.lengths.insert(all.lengths.end(), part.lengths.begin(), part.lengths.end());
    }
    return all;
  }

  // Whether the last of `steps` steps has made the right product of the one before.
  template <typename AnyMachine>
  bool is_right(AnyMachine& machine, const Way& way, int steps, Outcome& outcome) {
    std::vector<T> y = machine.x_of(steps);
    Verdict verdict;
    if (way.exchange == "none" || steps == 1) {
      // All these have the same x: the reference is made once, for a factor of 1.
      if (!first_) first_ = reference_of(T{1}, x_);
      const T factor = static_cast<T>(machine.factor_of(0));
      for (T& value : y) value /= factor;  // a power of two: no bit is lost
      verdict = verify(y, *first_);
    } else {
      const T factor = static_cast<T>(machine.factor_of(steps - 1));
      verdict = verify(y, reference_of(factor, machine.x_of(steps - 1)));
    }
    if (verdict.ok) return true;
    outcome.status = Outcome::Status::kWrong;
    outcome.notes.push_back("WRONG: " + verdict.describe());
    return false;
  }

  // False: one of them is wrong.
  bool time_drives(const Way& way, Machine<T>& machine, const std::vector<Part<T>>& parts,
                   Outcome& outcome) {
    // False: wrong.
    const auto time_and_verify = [&](const std::string& name, auto& driven, const Run& run) {
      if (measures_) {
        outcome.drives.push_back({name, time_steps(run, way.steps)});
      } else {
        run(way.steps);
      }
      return is_right(driven, way, way.steps, outcome);
    };
    for (const std::string& name : options_.drives) {
      const AnyDrive& drive = kDrives.at(name);
      if (const auto* const kernel = std::get_if<PersistentKernel>(&drive)) {
        if (kExchanges.at(way.exchange) != Exchange::kStores) continue;
        if (*kernel == PersistentKernel::kSimple && options_.norm == "each") {
          outcome.notes.push_back(name + ": left out: it has no norm; use --norm first");
          continue;
        }
        PersistentMachine<T> persistent(parts, {*kernel, options_.share_gpus});
        persistent.keep_factor(options_.norm == "each" ? 0 : machine.factor_of(0));
        persistent.start(x_);
        outcome.notes.push_back(fmt::format("{}: {}", name, persistent.choice()));
        const Run run = [&](int steps) { return persistent.run(steps); };
        if (!time_and_verify(name, persistent, run)) return false;
        continue;
      }
      const Drive asks = std::get<Drive>(drive);
      if (asks == Drive::kGraph) machine.prepare(way.steps);
      machine.start(x_);
      // Later runs begin with what earlier ones have left, which makes no difference to the time.
      const Run run = [&](int steps) { return machine.run(steps, asks); };
      if (!time_and_verify(name, machine, run)) return false;
    }
    return true;
  }

  const Options& options_;
  const CommandArguments& arguments_;
  bool measures_;
  std::unique_ptr<RowSource<T>> rows_;
  std::vector<T> x_;
  std::vector<long long> nonzeros_;      // before each row
  std::pair<int, std::string> cut_for_;  // number of parts and partition of:
  std::vector<Index> cuts_;
  std::vector<Csr<T>> slices_;
  std::optional<Reference> first_;                               // of x_
  std::map<std::pair<std::string, bool>, OnOneGpu> on_one_gpu_;  // by kernel; whether it iterates
};

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
        for (const Kernel* kernel : kernels) {
          ways.push_back({gpus, partition, exchange, kernel, options.steps});
        }
      }
    }
  }
  return ways;
}

template <typename T>
bool measure_as(const Options& options, const CommandArguments& arguments,
                const std::vector<const Kernel*>& kernels, const std::string& spec) {
  Measurement<T> measurement(options, arguments, spec);
  const MatrixFacts matrix = measurement.matrix();
  print_matrix(matrix);
  bool all_right = true;
  for (const Way& way : all_ways(options, kernels)) {
    fmt::print("\n");
    print_heading(way);
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

}  // namespace

bool measure_all(const Options& options, const CommandArguments& arguments,
                 const std::vector<const Kernel*>& kernels, const std::string& spec) {
  return arguments.precision == "f32" ? measure_as<float>(options, arguments, kernels, spec)
                                      : measure_as<double>(options, arguments, kernels, spec);
}

}  // namespace spmv::multigpu
