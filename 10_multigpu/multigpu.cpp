// Step 10's own program: spmv multigpu --gpus 1,2,4 --exchange packed --iterate 100 --matrix ...
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "device/error.hpp"
#include "harness/command.hpp"
#include "harness/measure.hpp"
#include "harness/records.hpp"
#include "harness/verify.hpp"
#include "machine.hpp"
#include "partition.hpp"
#include "persistent.hpp"
#include "sparse/row_source.hpp"
#include "vectors.hpp"

namespace spmv::multigpu {
namespace {

const std::map<std::string, Partition> kPartitions{{"rows", Partition::kRows},
                                                   {"nonzeros", Partition::kNonzeros}};
const std::map<std::string, Exchange> kExchanges{
    {"none", Exchange::kNone},   {"parts", Exchange::kParts},   {"packed", Exchange::kPacked},
    {"loads", Exchange::kLoads}, {"stores", Exchange::kStores}, {"nccl", Exchange::kNccl}};
const std::map<std::string, Drive> kDrives{
    {"loop", Drive::kLoop}, {"threads", Drive::kThreads}, {"graph", Drive::kGraph}};
// Drives of a kernel of their own; with stores only. "persistent" is the fastest on all matrices.
const std::map<std::string, PersistentKernel> kPersistent{
    {"persistent", PersistentKernel::kFlags},
    {"persistent-simple", PersistentKernel::kSimple},
    {"persistent-flags", PersistentKernel::kFlags},
    {"persistent-words", PersistentKernel::kWords}};

// What a part is, for the table.
struct Shape {
  Index rows = 0, boundary_rows = 0;
  long long nnz = 0;
  Index remote_cols = 0, fetched = 0;

  template <typename T>
  explicit Shape(const Part<T>& part)
      : rows(part.rows()),
        boundary_rows(part.boundary.rows),
        nnz(part.nnz()),
        remote_cols(part.remote_cols) {
    for (const Need& need : part.needs) fetched += need.count;
  }
};

constexpr int kSamples = 5;
constexpr int kFirstSteps = 4;
constexpr int kSingleSamples = 25;
constexpr int kBusySteps = 20;

struct Options {
  std::vector<int> gpus{2};
  std::vector<std::string> partitions{"nonzeros"};
  std::vector<std::string> exchanges{"none"};
  std::vector<std::string> drives{"loop", "threads", "graph", "persistent"};
  int steps = 0;
  std::string norm = "each";
  bool no_peer_access = false;
  int share_gpus = 0;
};

// --- One matrix, and what has been found out about it -------------------------------------------

// Of one kernel and exchange on one GPU, which the others are compared with.
template <typename T>
struct OnOneGpu {
  double step_ms = 0;
  std::vector<T> y;
};

template <typename T>
class Study {
 public:
  Study(const Options& options, const CommandArguments& arguments, const std::string& spec)
      : options_(options),
        arguments_(arguments),
        measures_(arguments.environment.backend == "cuda" && arguments.run.measure),
        rows_(open_rows<T>(spec, arguments.load, false)),
        x_(first_x<T>(rows_->cols(), arguments.run.seed)) {
    nonzeros_.push_back(0);
    for (const Index length : rows_->lengths(0, rows_->rows())) {
      nonzeros_.push_back(nonzeros_.back() + length);
    }
    fmt::print("\n{} ({}): {} rows, {} columns, {} nonzeros, {}\n", rows_->source().name,
               to_string(rows_->source().origin), rows_->rows(), rows_->cols(), nonzeros_.back(),
               arguments.precision);
    if (rows_->source().origin == MatrixSource::Origin::kStandIn) {
      fmt::print("  a stand-in, generated as {}, since the file is not here\n",
                 rows_->source().detail);
    }
  }

  bool run() {
    for (const int gpus : options_.gpus) {
      for (const std::string& partition : options_.partitions) {
        if (gpus == 1 && partition != options_.partitions.front()) continue;  // all the same
        cut_into(gpus, partition);
        bool iterated = false;
        for (const std::string& exchange : options_.exchanges) {
          if (gpus == 1 && exchange != "none" && std::exchange(iterated, true)) continue;
          for (const Kernel* kernel : find_kernels(arguments_.kernels)) {
            one(gpus, partition, exchange, *kernel);
          }
        }
      }
    }
    return all_right_;
  }

 private:
  void cut_into(int gpus, const std::string& partition) {
    cuts_ = cut(kPartitions.at(partition), nonzeros_, gpus);
    slices_.clear();
    for (int p = 0; p < gpus; ++p) {
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
  bool verify_last(AnyMachine& machine, Exchange exchange, int steps) {
    const bool keeps_x = exchange == Exchange::kNone;
    const std::vector<T> y = machine.x_of(steps);
    Verdict verdict;
    if (keeps_x || steps == 1) {
      // All these have the same x: the reference is made once, for a factor of 1.
      if (!first_) first_ = reference_of(T{1}, x_);
      std::vector<T> unscaled = y;
      const T factor = static_cast<T>(machine.factor_of(0));
      for (T& value : unscaled) value /= factor;  // a power of two: no bit is lost
      verdict = verify(unscaled, *first_);
    } else {
      const T factor = static_cast<T>(machine.factor_of(steps - 1));
      verdict = verify(y, reference_of(factor, machine.x_of(steps - 1)));
    }
    if (!verdict.ok) {
      fmt::print("WRONG: {}\n", verdict.describe());
      all_right_ = false;
    }
    return verdict.ok;
  }

  void one(int gpus, const std::string& partition, const std::string& exchange_name,
           const Kernel& kernel);

  const Options& options_;
  const CommandArguments& arguments_;
  bool measures_;
  std::unique_ptr<RowSource<T>> rows_;
  std::vector<T> x_;
  std::vector<long long> nonzeros_;  // before each row
  std::vector<Index> cuts_;
  std::vector<Csr<T>> slices_;
  std::optional<Reference> first_;  // of x_
  std::map<std::pair<std::string, bool>, OnOneGpu<T>>
      on_one_;  // by kernel, and whether it iterates
  bool all_right_ = true;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += std::pow(value - mean_of(values), 2);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

void print_parts(const std::vector<Shape>& parts, const std::vector<double>& busy_ms) {
  fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", "GPU", "rows", "nonzeros", "boundary rows",
             "remote columns", "fetched", busy_ms.empty() ? "" : "     busy us");
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Shape& part = parts[p];
    fmt::print("{:>5}{:>12}{:>14}{:>15}{:>16}{:>12}{}\n", p, part.rows, part.nnz,
               part.boundary_rows, part.remote_cols, part.fetched,
               busy_ms.empty() ? "" : fmt::format("{:>12.1f}", 1e3 * busy_ms[p]));
  }
}

// Milliseconds a step, by the clock of the host, from before the first to when the last is done.
// (Every run begins with step 0's x, or what earlier runs have left there: it makes no difference
// to the time.)
template <typename T>
Quartiles time_steps(Machine<T>& machine, int steps, int samples, Drive drive) {
  std::vector<double> times;
  if (drive == Drive::kGraph) machine.prepare(steps);
  for (int sample = -1; sample < samples; ++sample) {
    const auto before = std::chrono::steady_clock::now();
    machine.run(steps, drive);
    const std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - before;
    if (sample >= 0) times.push_back(time.count() / steps);  // the first warms up
  }
  return quartiles(std::move(times));
}

// A driver may refuse to make a graph of something: then the other ways are measured all the same.
template <typename T>
bool can_capture(Machine<T>& machine, int steps) {
  try {
    machine.prepare(steps);
    return true;
  } catch (const device::DeviceError& error) {
    fmt::print("  graph: left out: {}\n", error.what());
    return false;
  }
}

template <typename T>
void Study<T>::one(int gpus, const std::string& partition, const std::string& exchange_name,
                   const Kernel& kernel) {
  const Exchange exchange = kExchanges.at(exchange_name);
  if (exchange != Exchange::kNone && rows_->rows() != rows_->cols()) {
    throw InputError(fmt::format(
        "--exchange {}: {} has {} rows and {} columns; only of a square matrix y can be the next x",
        exchange_name, rows_->source().name, rows_->rows(), rows_->cols()));
  }
  const int steps = options_.steps;
  fmt::print(
      "\n{} GPU{}, {} (PCSR-{}), {}, {}\n", gpus, gpus == 1 ? "" : "s",
      partition == "rows" ? "equal rows" : "equal nonzeros", partition == "rows" ? "I" : "II",
      exchange == Exchange::kNone ? "no exchange: products of one x"
                                  : fmt::format("exchange {}, {} steps", exchange_name, steps),
      kernel.info.name);

  std::vector<Part<T>> parts = prepare(slices_, cuts_, exchange);
  const std::vector<Shape> shapes(parts.begin(), parts.end());
  std::unique_ptr<Machine<T>> machine;
  std::unique_ptr<PersistentMachine<T>> persistent;
  const auto is_persistent = [](const std::string& name) { return kPersistent.contains(name); };
  try {
    if (exchange == Exchange::kStores && !options_.no_peer_access &&
        std::any_of(options_.drives.begin(), options_.drives.end(), is_persistent)) {
      persistent =
          std::make_unique<PersistentMachine<T>>(parts, PersistentSetup{options_.share_gpus});
      persistent->start(x_);
    }
    machine = std::make_unique<Machine<T>>(
        std::move(parts), kernel, Setup{exchange, !options_.no_peer_access, options_.share_gpus});
  } catch (const Unsuitable& reason) {
    fmt::print("  left out: {}\n", reason.what());
    return;
  }
  if (!machine->remark().empty()) fmt::print("  {}\n", machine->remark());
  const bool shares = machine->devices() < gpus;
  if (shares) {
    fmt::print("  {} parts on {} GPU{}: right, but {} times say nothing about scaling\n", gpus,
               machine->devices(), machine->devices() == 1 ? "" : "s",
               machine->devices() == 1 ? "its" : "their");
  }

  // One step from the x that all share; then as many as are asked for, in each way.
  machine->start(x_);
  machine->run(1, Drive::kLoop);
  if (!verify_last(*machine, exchange, 1)) return;
  const std::vector<T> y = machine->x_of(1);
  if (options_.norm == "first" && exchange != Exchange::kNone) {
    // By a few steps with the norm x has forgotten where it came from.
    machine->start(x_);
    machine->run(kFirstSteps, Drive::kLoop);
    const double factor = machine->factor_of(kFirstSteps - 1);
    machine->keep_factor(factor);
    if (persistent) persistent->keep_factor(factor);
  }
  nlohmann::ordered_json steps_ms, single_ms;
  double best_ms = std::numeric_limits<double>::infinity();
  std::vector<std::string> lines;
  for (const std::string& name : options_.drives) {
    if (is_persistent(name)) {
      if (!persistent) continue;
      const PersistentKernel which = kPersistent.at(name);
      if (which == PersistentKernel::kSimple && options_.norm == "each") {
        fmt::print("  {}: left out: it has no norm; use --norm first\n", name);
        continue;
      }
      std::vector<double> times;
      for (int sample = measures_ ? -1 : 0; sample < (measures_ ? kSamples : 1); ++sample) {
        const double ms = persistent->run(steps, which) / steps;
        if (sample >= 0) times.push_back(ms);  // the first warms up
      }
      if (!verify_last(*persistent, exchange, steps)) return;
      if (!measures_) continue;
      const Quartiles step = quartiles(std::move(times));
      best_ms = std::min(best_ms, step.median);
      lines.push_back(fmt::format("{}: {:.2f} us a step ({:.2f}-{:.2f})", name, 1e3 * step.median,
                                  1e3 * step.lower, 1e3 * step.upper));
      steps_ms[name] = to_json(step);
      continue;
    }
    const Drive drive = kDrives.at(name);
    if (measures_) {
      if (drive == Drive::kGraph && !can_capture(*machine, steps)) continue;
      const Quartiles step = time_steps(*machine, steps, kSamples, drive);
      if (!verify_last(*machine, exchange, steps)) return;
      const Quartiles single = time_steps(*machine, 1, kSingleSamples, drive);
      best_ms = std::min(best_ms, step.median);
      lines.push_back(fmt::format("{}: {:.1f} us a step ({:.1f}-{:.1f}); one step alone {:.1f} us",
                                  name, 1e3 * step.median, 1e3 * step.lower, 1e3 * step.upper,
                                  1e3 * single.median));
      steps_ms[name] = to_json(step);
      single_ms[name] = to_json(single);
    } else {
      machine->start(x_);
      machine->run(steps, drive);
      if (!verify_last(*machine, exchange, steps)) return;
    }
  }
  std::vector<double> busy_ms;
  if (measures_) {
    if (can_capture(*machine, 1)) busy_ms = machine->time_each(kBusySteps);
    machine->start(x_);
    machine->run(steps, Drive::kLoop);
    if (!verify_last(*machine, exchange, steps)) return;
  }

  print_parts(shapes, busy_ms);
  for (const std::string& line : lines) fmt::print("  {}\n", line);
  // On one GPU nothing is exchanged, by whatever way.
  const auto key = std::pair(kernel.info.name, exchange != Exchange::kNone);
  if (gpus == 1) on_one_.insert_or_assign(key, OnOneGpu<T>{best_ms, y});
  const auto one = on_one_.find(key);
  const bool compares = one != on_one_.end() && gpus > 1;
  if (compares && measures_ && !shares) {
    fmt::print("  parallel efficiency {:.1f}%, of one GPU's {:.1f} us; ",
               100 * one->second.step_ms / (gpus * best_ms), 1e3 * one->second.step_ms);
  }
  if (measures_)
    fmt::print("  standard deviation of the busy times {:.4f} ms\n", deviation_of(busy_ms));
  fmt::print(
      "  verified: the first step, and the last of each drive; checksum of the result "
      "{:016x}\n",
      checksum_of(machine->x_of(steps), 0));
  Difference difference;
  if (compares) {
    difference = compare_bits(one->second.y, y);
    fmt::print("  bits of the first step: {}\n",
               difference.rows == 0
                   ? "those of one GPU"
                   : fmt::format("not those of one GPU in {} rows, by up to {} ulp",
                                 difference.rows, difference.max_ulps));
  }
  if (arguments_.json.empty() || (shares && measures_)) return;

  KernelInfo info = kernel.info;
  info.step = 10;
  Records records(arguments_.environment);
  nlohmann::ordered_json& line = records.add("multigpu", info, "", rows_->source(), rows_->rows(),
                                             rows_->cols(), nonzeros_.back(), arguments_.precision);
  line["gpus"] = gpus;
  line["partition"] = partition;
  line["exchange"] = exchange_name;
  line["steps"] = steps;
  if (exchange != Exchange::kNone) line["norm"] = options_.norm;
  line["peer_access"] = machine->remark().empty();
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    line["parts"].push_back({{"rows", shapes[p].rows},
                             {"nnz", shapes[p].nnz},
                             {"boundary_rows", shapes[p].boundary_rows},
                             {"remote_cols", shapes[p].remote_cols},
                             {"fetched", shapes[p].fetched}});
    if (!busy_ms.empty()) line["parts"].back()["busy_ms"] = busy_ms[p];
  }
  if (measures_) {
    line["step_ms"] = steps_ms;
    line["single_step_ms"] = single_ms;
    if (compares) line["one_gpu_step_ms"] = one->second.step_ms;
  }
  if (compares) {
    line["difference_from_one"] = {{"rows", difference.rows}, {"max_ulps", difference.max_ulps}};
  }
  records.append_to(arguments_.json);
}

// --- The command --------------------------------------------------------------------------------

const std::vector<std::string> kGpuMatrices{"stencil3d:256x256x256,points=27"};
const std::vector<std::string> kCpuMatrices{"stencil2d:120x100", "powerlaw:8000x8000,nnz=60000"};

template <typename T>
bool study(const Options& options, const CommandArguments& arguments, const std::string& matrix) {
  return Study<T>(options, arguments, matrix).run();
}

int run(Options options, CommandArguments arguments) {
  if (options.steps == 0) options.steps = arguments.environment.backend == "cuda" ? 100 : 10;
  print_environment(std::cout, arguments.environment);
  if (arguments.kernels == "*") arguments.kernels = "pcsr_one_pass";
  for (const Kernel* kernel : find_kernels(arguments.kernels)) {
    if (kernel->info.format != "CSR" || kernel->info.runs_on != RunsOn::kDevice) {
      throw InputError("--kernel " + kernel->info.name +
                       ": a part is a CSR matrix on a GPU; use pcsr or pcsr_one_pass");
    }
  }
  if (arguments.matrices.empty()) {
    arguments.matrices = arguments.environment.backend == "cuda" ? kGpuMatrices : kCpuMatrices;
  }
  bool all_right = true;
  for (const std::string& matrix : arguments.matrices) {
    all_right &= arguments.precision == "f32" ? study<float>(options, arguments, matrix)
                                              : study<double>(options, arguments, matrix);
  }
  return all_right ? 0 : 1;
}

template <typename Map>
std::vector<std::string> words(const Map& map) {
  std::vector<std::string> words;
  for (const auto& [word, value] : map) words.push_back(word);
  return words;
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
          ->check(CLI::IsMember(words(kPartitions)));
      app.add_option("--exchange", own->exchanges,
                     "how entries of x come to a GPU that needs them: none (it has all), parts, "
                     "packed, loads, stores, nccl")
          ->delimiter(',')
          ->check(CLI::IsMember(words(kExchanges)));
      std::vector<std::string> drives = words(kDrives);
      for (const std::string& name : words(kPersistent)) drives.push_back(name);
      app.add_option("--drive", own->drives,
                     "who launches: loop, threads, graph; or, with --exchange stores, persistent: "
                     "one kernel per GPU for all steps (-words, -flags: how ghost entries come; "
                     "-simple: the lesson's)")
          ->delimiter(',')
          ->check(CLI::IsMember(drives));
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
