// `spmv stationary` and `spmv transient`: the workload of step 08, with every kernel asked for.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "harness/command.hpp"
#include "harness/records.hpp"
#include "harness/table.hpp"
#include "markov.hpp"

namespace spmv {
namespace {

#ifdef SPMV_CUDA
constexpr bool kGpu = true;
constexpr const char* kDefaultChain = "m_3.7M";
#else
constexpr bool kGpu = false;
constexpr const char* kDefaultChain = "wlan:C=4,m=2,W=4";
#endif

constexpr Index kStart = 0;  // the state at time 0: of wlan: an empty system

struct ChainOptions : MarkovOptions {
  ChainOptions() { tolerance = 0; }  // 0: by the precision
  double time = 10;
};

// One kernel's result on one chain.
template <typename T>
struct Outcome {
  KernelInfo kernel;
  MarkovRun<T> run;
  MarkovVerdict verdict;
  std::string unsuitable;
  std::optional<std::set<std::string>> functions;  // of its product (Record)
  double step_bytes = 0;  // the product's: P' and x read once, the new x written once

  bool good() const { return unsuitable.empty() && verdict.failure.empty(); }
};

template <typename T>
class Workload {
 public:
  Workload(const std::string& name, const ChainOptions& own, const CommandArguments& arguments,
           const std::string& spec)
      : name_(name),
        time_(own.time),
        arguments_(arguments),
        chain_(load_matrix<T>(spec, arguments.load), arguments.padding_limit) {
    chain_.options = own;
    if (chain_.options.tolerance == 0) chain_.options.tolerance = sizeof(T) == 4 ? 1e-5 : 1e-10;
    const double least = 4 * static_cast<double>(std::numeric_limits<T>::epsilon());
    if (chain_.options.tolerance < least) {
      throw InputError(fmt::format("--tolerance {:g}: {} cannot tell less than {:.1e}",
                                   chain_.options.tolerance, arguments.precision, least));
    }
  }

  // 0 or 1, as main() does.
  int run() {
    RunOptions verify_only = arguments_.run;
    verify_only.alpha = 1;
    verify_only.beta = 0;
    verify_only.measure = false;
    const Bench<T> bench(chain_.problem, verify_only);
    std::vector<Outcome<T>> outcomes;
    {
      Progress progress;
      for (const Kernel* kernel : find_kernels(arguments_.kernels)) {
        outcomes.push_back(run(*kernel, bench, progress));
      }
    }
    print(outcomes);
    if (!arguments_.json.empty()) append(outcomes);
    for (const Outcome<T>& outcome : outcomes) {
      if (outcome.unsuitable.empty() && !outcome.good()) return 1;
    }
    return 0;
  }

 private:
  bool is_stationary() const { return name_ == "stationary"; }

  Outcome<T> run(const Kernel& kernel, const Bench<T>& bench, Progress& progress) {
    Outcome<T> outcome;
    outcome.kernel = kernel.info;
    chain_.options.progress = [&](long long steps, double change) {
      progress.show(fmt::format("{} of {}: {}: step {}{}", name_, chain_.rates.source.name,
                                kernel.info.name, steps,
                                is_stationary() ? fmt::format(", change {:.1e}", change) : ""));
    };
    try {
      const Record product = bench.run(kernel);  // no iteration with a product that is wrong
      if (product.unsuitable) outcome.unsuitable = product.failure;
      if (!product.verified) {
        outcome.verdict.failure = product.failure;
        return outcome;
      }
      outcome.step_bytes = product.compulsory_bytes;
      outcome.functions = product.functions;
      if (is_stationary()) {
        outcome.run = chain_.stationary(kernel);
        outcome.verdict = chain_.judge_stationary(outcome.run);
      } else {
        outcome.run = chain_.transient(kernel, time_, kStart);
        outcome.verdict = chain_.judge_transient(outcome.run, time_, kStart);
      }
    } catch (const device::DeviceError& error) {
      outcome.verdict.failure = error.what();
    }
    return outcome;
  }

  void print(const std::vector<Outcome<T>>& outcomes) const {
    const Csr<T>& q = chain_.rates.csr;
    fmt::print("\n{} ({}): {} states, {} nonzeros, {}\n", chain_.rates.source.name,
               to_string(chain_.rates.source.origin), q.rows, q.nnz(), arguments_.precision);
    if (is_stationary()) {
      fmt::print(
          "Stationary distribution: x = P' x with P = I + Q / {:.4g}, until a step changes "
          "x by no more than {:.1g},\nlooked at every {} steps.\n",
          chain_.rate, chain_.options.tolerance, chain_.options.check_every);
    } else {
      fmt::print(
          "Distribution at time {:g}, from state {}: {:.1f} moments of P = I + Q / {:.4g} on "
          "average, tails below {:.1g} cut off.\n",
          time_, kStart, time_ * chain_.rate, chain_.rate, chain_.options.tolerance);
    }
    double slowest = 0;
    for (const Outcome<T>& o : outcomes) {
      if (o.good() && timed(o)) slowest = std::max(slowest, o.run.milliseconds);
    }
    std::vector<std::string> legend{
        kGpu ? "step: a product and what goes with it, checks included."
             : fmt::format("MB per step: P' and x read once, the new x written once{}",
                           slowest > 0 ? "; ms: of this CPU." : ".")};
    if (is_stationary()) {
      legend.push_back(fmt::format("residual: the sum of |Q' x| over {:.4g}.", chain_.rate));
    }
    if (q.rows <= kDenseStates) {
      legend.emplace_back("off: the sum of differences from a dense solution.");
    }
    fmt::print("{}\n", fmt::join(legend, "\n"));

    std::vector<std::string> header{"step", "kernel", "steps"};
    const std::vector<std::string> per_step =
        kGpu ? std::vector<std::string>{"setup ms", "us per step"}
             : std::vector<std::string>{"MB per step", "MB in all"};
    header.insert(header.end(), per_step.begin(), per_step.end());
    if (slowest > 0) header.insert(header.end(), {"ms", "times as fast"});
    if (is_stationary()) header.emplace_back("residual");
    header.emplace_back("sum - 1");
    if (q.rows <= kDenseStates) header.emplace_back("off");
    Table table(header);
    for (const Outcome<T>& o : outcomes) {
      std::vector<std::string> row{o.kernel.step ? fmt::format("{:02}", o.kernel.step) : "--",
                                   o.run.choice.empty()
                                       ? o.kernel.name
                                       : fmt::format("{} ({})", o.kernel.name, o.run.choice)};
      if (o.good()) {
        const auto steps = static_cast<double>(o.run.steps);
        row.push_back(std::to_string(o.run.steps));
        row.push_back(number(kGpu ? o.run.setup_ms + o.run.preprocess_ms : o.step_bytes / 1e6));
        row.push_back(number(kGpu ? 1e3 * o.run.milliseconds / std::max(steps, 1.0)
                                  : steps * o.step_bytes / 1e6));
        if (slowest > 0) {
          row.push_back(timed(o) ? number(o.run.milliseconds) : "");
          row.push_back(timed(o) ? fmt::format("{:.2f}", slowest / o.run.milliseconds) : "");
        }
        if (is_stationary()) row.push_back(fmt::format("{:.0e}", o.verdict.residual));
        row.push_back(fmt::format("{:.0e}", o.verdict.sum_error));
        row.push_back(o.verdict.distance < 0 ? "" : fmt::format("{:.0e}", o.verdict.distance));
      } else {
        row.push_back(o.unsuitable.empty() ? "WRONG" : "unsuitable");
      }
      row.resize(header.size());
      table.add(std::move(row));
    }
    table.print(std::cout, 2);
    std::cout.flush();
    for (const Outcome<T>& o : outcomes) {
      if (o.good()) continue;
      fmt::print("{} {}: {}\n", o.kernel.name,
                 o.unsuitable.empty() ? "FAILED" : "does not suit this matrix",
                 o.unsuitable.empty() ? o.verdict.failure : o.unsuitable);
    }
    print_likeliest(outcomes);
  }

  // A simulated GPU's time says nothing.
  static bool timed(const Outcome<T>& o) { return kGpu || o.kernel.runs_on == RunsOn::kHost; }

  void print_likeliest(const std::vector<Outcome<T>>& outcomes) const {
    for (const Outcome<T>& o : outcomes) {
      if (!o.good()) continue;
      const std::vector<T>& x = o.run.distribution;
      std::vector<Index> order(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) order[i] = static_cast<Index>(i);
      const std::size_t count = std::min<std::size_t>(3, x.size());
      std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                        order.end(), [&x](Index a, Index b) { return x[a] > x[b]; });
      fmt::print("Likeliest:");
      for (std::size_t i = 0; i < count; ++i) {
        fmt::print("{} state {} with {:.4f}", i ? "," : "", order[i],
                   static_cast<double>(x[order[i]]));
      }
      fmt::print("\n");
      return;
    }
  }

  void append(const std::vector<Outcome<T>>& outcomes) const {
    Records records(arguments_.environment);
    for (const Outcome<T>& o : outcomes) {
      if (!o.good()) continue;
      records.add(name_, o.kernel, o.run.choice, chain_.rates.source, chain_.rates.csr.rows,
                  chain_.rates.csr.cols, chain_.rates.csr.nnz(), arguments_.precision);
      if (o.functions && o.kernel.runs_on == RunsOn::kDevice) records.add_code(*o.functions);
      records.add_number("tolerance", chain_.options.tolerance);
      if (!is_stationary()) records.add_number("chain_time", time_);
      records.add_number("steps", static_cast<double>(o.run.steps));
      records.add_number("compulsory_bytes", o.step_bytes);
      if (timed(o)) {
        records.add_number("setup_ms", o.run.setup_ms);
        records.add_number("preprocess_ms", o.run.preprocess_ms);
        records.add_number("total_ms", o.run.milliseconds);
      }
    }
    records.append_to(arguments_.json);
  }

  std::string name_;
  double time_;
  const CommandArguments& arguments_;
  Chain<T> chain_;
};

CommandBody declare(CommandLine& line, const std::string& name) {
  auto own = std::make_shared<ChainOptions>();
  line.footer("--matrix is the transpose of a chain's rates; wlan: makes some.");
  line.add("--tolerance", own->tolerance,
           name == "stationary" ? "largest change in the last step; 0: 1e-10, in f32 1e-5"
                                : "probability that is cut off; 0: 1e-10, in f32 1e-5",
           {between(0.0, 0.1)});
  line.add("--max-steps", own->max_steps, "products after which to give up",
           {between(1LL, 1'000'000'000'000LL)});
  if (name == "transient") line.add("--time", own->time, "when", {between(0.0, 1e12)});
  return [own, name](const CommandArguments& arguments) {
    find_kernels(arguments.kernels);  // complain before a long load
    print_environment(std::cout, arguments.environment);
    std::vector<std::string> matrices = arguments.matrices;
    if (matrices.empty()) matrices.emplace_back(kDefaultChain);
    int status = 0;
    for (const std::string& spec : matrices) {
      status |= arguments.precision == "f32" ? Workload<float>(name, *own, arguments, spec).run()
                                             : Workload<double>(name, *own, arguments, spec).run();
    }
    return status;
  };
}

[[maybe_unused]] const bool registered =
    add_command("stationary", "where a Markov chain ends: its stationary distribution",
                [](CommandLine& line) { return declare(line, "stationary"); }) &&
    add_command("transient", "where a Markov chain is at a given time",
                [](CommandLine& line) { return declare(line, "transient"); });

}  // namespace
}  // namespace spmv
