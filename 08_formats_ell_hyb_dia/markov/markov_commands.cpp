// `spmv stationary` and `spmv transient`: the workload of step 08, with every kernel asked for.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>

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

// One kernel's result on one chain: that of a product, which must be right, then the iteration's.
template <typename T>
struct Outcome {
  Record product;
  MarkovRun<T> run;
  MarkovVerdict verdict;

  bool good() const { return product.verified && verdict.failure.empty(); }
  double steps() const { return static_cast<double>(run.steps); }
  // P' and x read once, the new x written once.
  double step_bytes() const { return product.compulsory_bytes; }
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
    bool right = true;
    for (const Kernel* kernel : find_kernels(arguments_.kernels)) {
      outcomes.push_back(run(*kernel, bench));
      right &= outcomes.back().good() || outcomes.back().product.unsuitable;
    }
    print(outcomes);
    if (!arguments_.json.empty()) append(outcomes);
    return right ? 0 : 1;
  }

 private:
  bool is_stationary() const { return name_ == "stationary"; }

  Outcome<T> run(const Kernel& kernel, const Bench<T>& bench) {
    Outcome<T> outcome;
    outcome.product.kernel = kernel.info;
    try {
      outcome.product = bench.run(kernel);  // no iteration with a product that is wrong
      outcome.verdict.failure = outcome.product.failure;
      if (!outcome.product.verified) return outcome;
      if (is_stationary()) {
        outcome.run = chain_.stationary(kernel);
        outcome.verdict = chain_.judge_stationary(outcome.run);
      } else {
        outcome.run = chain_.transient(kernel, time_, kStart);
        outcome.verdict = chain_.judge_transient(outcome.run, time_, kStart);
      }
    } catch (const Unsuitable& error) {
      outcome.product.unsuitable = true;
      outcome.verdict.failure = error.what();
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
      if (o.good()) slowest = std::max(slowest, o.run.milliseconds);
    }
    fmt::print("{}\n", kGpu ? "step: a product and what goes with it, checks included."
                            : "MB per step: P' and x read once, the new x written once.");
    if (is_stationary()) fmt::print("residual: the sum of |Q' x| over {:.4g}.\n", chain_.rate);
    const bool is_small = q.rows <= kDenseStates;
    if (is_small) fmt::print("off: the sum of differences from a dense solution.\n");

    // The columns' heads with what stands below them.
    const auto cells_of = [&](const Outcome<T>& o) {
      std::vector<std::pair<std::string, std::string>> cells{
          {"steps", std::to_string(o.run.steps)}};
      const auto add = [&](const char* head, std::string text) { cells.emplace_back(head, text); };
      if (kGpu) {
        add("setup ms", number(o.run.setup_ms + o.run.preprocess_ms));
        add("us per step", number(1e3 * o.run.milliseconds / std::max(o.steps(), 1.0)));
        add("ms", number(o.run.milliseconds));
        add("times as fast", fmt::format("{:.2f}", slowest / o.run.milliseconds));
      } else {
        add("MB per step", number(o.step_bytes() / 1e6));
        add("MB in all", number(o.steps() * o.step_bytes() / 1e6));
      }
      if (is_stationary()) add("residual", fmt::format("{:.0e}", o.verdict.residual));
      add("sum - 1", fmt::format("{:.0e}", o.verdict.sum_error));
      const bool has_distance = o.verdict.distance >= 0;
      if (is_small) add("off", has_distance ? fmt::format("{:.0e}", o.verdict.distance) : "");
      return cells;
    };
    std::vector<std::string> header{"step", "kernel"};
    for (const auto& [head, text] : cells_of(outcomes.front())) header.push_back(head);
    Table table(header);
    for (const Outcome<T>& o : outcomes) {
      const KernelInfo& kernel = o.product.kernel;
      std::vector<std::string> row{
          kernel.step ? fmt::format("{:02}", kernel.step) : "--",
          kernel.name + (o.run.choice.empty() ? "" : fmt::format(" ({})", o.run.choice))};
      for (const auto& [head, text] : cells_of(o)) row.push_back(o.good() ? text : "");
      if (!o.good()) row[2] = o.product.unsuitable ? "unsuitable" : "WRONG";
      table.add(std::move(row));
    }
    table.print(std::cout, 2);
    std::cout.flush();
    for (const Outcome<T>& o : outcomes) {
      if (o.good()) continue;
      fmt::print("{} {}: {}\n", o.product.kernel.name,
                 o.product.unsuitable ? "is unsuitable" : "FAILED", o.verdict.failure);
    }
    print_likeliest(outcomes);
  }

  void print_likeliest(const std::vector<Outcome<T>>& outcomes) const {
    const auto first = std::find_if(outcomes.begin(), outcomes.end(),
                                    [](const Outcome<T>& o) { return o.good(); });
    if (first == outcomes.end()) return;
    const std::vector<T>& x = first->run.distribution;
    std::vector<Index> order(x.size());
    std::iota(order.begin(), order.end(), Index{0});
    const auto shown = order.begin() + std::min<std::ptrdiff_t>(3, std::ssize(x));
    std::partial_sort(order.begin(), shown, order.end(),
                      [&x](Index a, Index b) { return x[a] > x[b]; });
    std::vector<std::string> texts;
    for (auto state = order.begin(); state != shown; ++state) {
      texts.push_back(fmt::format("state {} with {:.4f}", *state, x[*state]));
    }
    fmt::print("Likeliest: {}\n", fmt::join(texts, ", "));
  }

  void append(const std::vector<Outcome<T>>& outcomes) const {
    Records records(arguments_.environment);
    for (const Outcome<T>& o : outcomes) {
      if (!o.good()) continue;
      records.add(name_, o.product.kernel, o.run.choice,
                  facts_of(chain_.rates.csr, chain_.rates.source));
      if (o.product.functions) records.add_code(*o.product.functions);
      records.add_number("tolerance", chain_.options.tolerance);
      if (!is_stationary()) records.add_number("chain_time", time_);
      records.add_number("steps", o.steps());
      records.add_number("compulsory_bytes", o.step_bytes());
      if (kGpu) {  // a simulated GPU's time says nothing
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
