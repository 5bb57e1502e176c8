// Step 08's workload: distributions of Markov chains, against closed forms and dense solutions.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel.hpp"
#include "markov.hpp"
#include "sparse/convert.hpp"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"
#include "tests/scratch.hpp"

namespace {

using namespace spmv;

// Q' from rates: entry (to, from).
struct Rate {
  Index from, to;
  double rate;
};
template <typename T>
Matrix<T> chain_of(Index states, const std::vector<Rate>& rates) {
  Coo<T> coo;
  coo.rows = coo.cols = states;
  for (const Rate& r : rates) {
    coo.add(r.to, r.from, static_cast<T>(r.rate));
    coo.add(r.from, r.from, static_cast<T>(-r.rate));
  }
  Matrix<T> matrix;
  matrix.csr = to_csr(coo);
  matrix.source.name = "a chain";
  return matrix;
}

// Customers that come at rate `arrival` and are served at `service`, one at a time; up to states
// - 1.
template <typename T>
Matrix<T> queue(Index states, double arrival, double service) {
  std::vector<Rate> rates;
  for (Index i = 0; i + 1 < states; ++i) {
    rates.push_back({i, i + 1, arrival});
    rates.push_back({i + 1, i, service});
  }
  return chain_of<T>(states, rates);
}

// A chain whose distributions are computed to a tolerance for this precision.
template <typename T>
struct Subject : Chain<T> {
  explicit Subject(Matrix<T> q) : Chain<T>(std::move(q)) {
    this->options.tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
    this->options.check_every = 20;
  }
};

const Kernel& kernel_named(const std::string& name) {
  return *find_kernels(name).front();
}

std::string error_of(const Matrix<double>& matrix) {
  return test::error_of([&] { Chain<double>{matrix}; });
}

}  // namespace

TEST_CASE("Poisson weights add up, and leave out no more than they may", "[08][markov]") {
  for (const double mean : {0.0, 1e-9, 0.3, 1.0, 7.5, 40.0, 1000.0, 123456.7, 3e7}) {
    for (const double tolerance : {1e-3, 1e-10, 1e-14}) {
      CAPTURE(mean, tolerance);
      const PoissonWeights poisson = poisson_weights(mean, tolerance);
      double sum = 0, within = 0, worst = 0;
      for (std::size_t i = 0; i < poisson.weights.size(); ++i) {
        const double k = static_cast<double>(poisson.first) + static_cast<double>(i);
        const double exact =
            mean == 0 ? (k == 0 ? 1 : 0) : std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
        sum += poisson.weights[i];
        within += exact;
        worst = std::max(worst, std::abs(poisson.weights[i] - exact));
      }
      const double rounding = 1e-15 * (10 + mean * std::log(mean + 2));  // of the formula here
      CHECK(std::abs(sum - 1) <= 1e-12);
      CHECK(within >= 1 - tolerance - rounding);
      CHECK(worst <= tolerance + rounding);
      // Not many more than needed: some standard deviations to each side.
      CHECK(static_cast<double>(poisson.weights.size()) <= 20 * std::sqrt(mean) + 30);
    }
  }
}

TEST_CASE("what is no chain is refused with the reason", "[08][markov]") {
  const std::string name = "a chain: ";
  Matrix<double> wide = chain_of<double>(2, {{0, 1, 1}});
  wide.csr.cols = 3;
  CHECK(error_of(wide) == name + "2 rows and 3 columns are no Markov chain");
  CHECK(error_of(chain_of<double>(0, {})) == name + "0 rows and 0 columns are no Markov chain");
  CHECK(error_of(chain_of<double>(2, {{0, 1, -1}})).find("entry (1, 1) is 1;") !=
        std::string::npos);
  Matrix<double> leaks = queue<double>(4, 1, 2);
  leaks.csr.values[leaks.csr.row_offsets[1]] = 0.5;  // the move from 0 to 1
  CHECK(error_of(leaks) ==
        name + "column 1 adds up to -0.5; those of the transpose of a chain's rates add up to 0");
  leaks.csr.values[0] = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_of(leaks).find("entry (1, 1) is nan") != std::string::npos);
}

TEST_CASE("probabilities of moves: no column loses any, states may have no way out",
          "[08][markov]") {
  // State 2 has no entry at all in its column.
  const Chain<double> u(chain_of<double>(3, {{0, 1, 3}, {1, 2, 0.5}}));
  CHECK(u.rate == Approx(3.03));
  CHECK(u.matrix.csr.nnz() == 5);
  std::vector<double> sums(3, 0);
  for (Index k = 0; k < u.matrix.csr.nnz(); ++k) {
    CHECK(u.matrix.csr.values[k] > 0);
    sums[u.matrix.csr.column_indices[k]] += u.matrix.csr.values[k];
  }
  for (const double sum : sums) CHECK(sum == Approx(1).epsilon(1e-15));
}

TEST_CASE("two states and a queue end where their formulas say", "[08][markov]") {
  const Subject<double> two(chain_of<double>(2, {{0, 1, 3}, {1, 0, 1}}));
  const MarkovRun<double> end = two.stationary(kernel_named("csr"));
  CHECK(two.judge_stationary(end).failure.empty());
  CHECK(std::abs(end.distribution[0] - 0.25) <= 1e-11);
  for (const double time : {0.0, 0.01, 0.4, 3.0}) {
    CAPTURE(time);
    const MarkovRun<double> run = two.transient(kernel_named("csr"), time, 0);
    CHECK(two.judge_transient(run, time, 0).failure.empty());
    CHECK(std::abs(run.distribution[1] - 0.75 * (1 - std::exp(-4 * time))) <= 2e-12);
  }

  const Subject<double> line(queue<double>(40, 1, 1.5));
  const MarkovRun<double> run = line.stationary(kernel_named("csr"));
  CHECK(line.judge_stationary(run).failure.empty());
  double sum = 0;
  for (int i = 0; i < 40; ++i) sum += std::pow(1 / 1.5, i);
  for (int i = 0; i < 40; ++i) {
    CHECK(std::abs(run.distribution[i] - std::pow(1 / 1.5, i) / sum) <= 1e-8);
  }
}

TEST_CASE("every format comes to the dense solution, in both precisions", "[08][markov]") {
  const auto check = [](auto type, const std::string& spec) {
    using T = decltype(type);
    const Subject<T> subject(load_matrix<T>(spec));
    for (const Kernel& kernel : kernels()) {
      if (kernel.info.step != 8) continue;
      CAPTURE(kernel.info.name, spec, sizeof(T));
      try {
        const MarkovVerdict end = subject.judge_stationary(subject.stationary(kernel));
        CHECK(end.failure == "");
        CHECK(end.distance >= 0);
        const MarkovVerdict soon =
            subject.judge_transient(subject.transient(kernel, 2.5, 1), 2.5, 1);
        CHECK(soon.failure == "");
        CHECK(soon.distance >= 0);
        CHECK(soon.distance <= (sizeof(T) == 4 ? 1e-4 : 1e-11));
      } catch (const Unsuitable&) {
        CHECK(kernel.info.name == "dia");
      }
    }
  };
  check(float{}, "wlan:C=2,m=1,W=2");
  check(double{}, "wlan:C=1,m=1,W=1,nodes=2,states=all");  // most of which nothing leads to
}

TEST_CASE("a kernel of the host is refused", "[08][markov]") {
  const Subject<double> subject(queue<double>(20, 1, 1.5));
  Kernel of_host = kernel_named("csr");
  of_host.info.runs_on = RunsOn::kHost;
  CHECK_THROWS_AS(subject.stationary(of_host), Unsuitable);
  CHECK_THROWS_AS(subject.transient(of_host, 1, 0), Unsuitable);
}

TEST_CASE("what is wrong with a distribution is found", "[08][markov]") {
  const Subject<double> subject(queue<double>(20, 1, 1.5));
  const MarkovRun<double> right = subject.stationary(kernel_named("csr"));
  REQUIRE(subject.judge_stationary(right).failure.empty());
  const auto failure_when = [&](auto&& spoil) {
    MarkovRun<double> run = right;
    spoil(run.distribution);
    return subject.judge_stationary(run).failure;
  };
  using X = std::vector<double>;
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(failure_when([](X& x) { x[3] = -1e-300; }), "state 3 has probability -1e-300"));
  CHECK(has(failure_when([](X& x) { x[7] = std::numeric_limits<double>::quiet_NaN(); }),
            "state 7 has probability nan"));
  CHECK(has(failure_when([](X& x) { x[0] += 1e-9; }), "sum is off"));
  CHECK(has(failure_when([](X& x) { std::swap(x[0], x[1]); }), "residual"));
  CHECK(has(failure_when([](X& x) { x.assign(20, 0.05); }), "residual"));

  MarkovRun<double> early = subject.transient(kernel_named("csr"), 1, 0);
  CHECK(subject.judge_transient(early, 1, 0).failure.empty());
  CHECK(has(subject.judge_transient(early, 1.001, 0).failure, "dense"));
  CHECK(has(subject.judge_transient(early, 1, 1).failure, "dense"));
  early.distribution[2] *= 2;
  CHECK(has(subject.judge_transient(early, 1, 0).failure, "sum is off"));
}

TEST_CASE("the limit on steps holds, and who meets it has no answer", "[08][markov]") {
  Subject<double> subject(queue<double>(60, 1, 1.01));
  subject.options.max_steps = 70;
  subject.options.check_every = 40;
  const MarkovRun<double> run = subject.stationary(kernel_named("csr"));
  CHECK(run.steps == 70);
  CHECK_FALSE(run.converged);
  CHECK(subject.judge_stationary(run).failure.find("no answer after 70 steps") == 0);
  CHECK_THROWS_AS(subject.transient(kernel_named("csr"), 1000, 0), InputError);
  CHECK_THROWS_AS(subject.transient(kernel_named("csr"), 1e300, 0), InputError);
  CHECK(subject.transient(kernel_named("csr"), 5, 0).steps <= 70);
}

TEST_CASE("an iteration gives the same bits in every run", "[08][markov]") {
  const Subject<float> subject(load_matrix<float>("wlan:C=3,m=2,W=3"));
  const std::vector<float> first = subject.stationary(kernel_named("dia_csr")).distribution;
  test::under_every_schedule(
      [&] { CHECK(subject.stationary(kernel_named("dia_csr")).distribution == first); });
}
