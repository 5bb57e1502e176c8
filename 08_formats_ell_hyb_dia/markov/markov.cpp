#include "markov.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#ifdef HAVE_EIGEN
#include <Eigen/Dense>
#endif

#include "harness/run.hpp"
#include "markov_vectors.hpp"

namespace spmv {
namespace {

template <typename T>
constexpr double kEpsilon = static_cast<double>(std::numeric_limits<T>::epsilon());

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// A kernel set up for P'.
template <typename T>
std::unique_ptr<Spmv<T>> set_up(const Kernel& kernel, const Problem<T>& problem,
                                MarkovRun<T>& run) {
  if (kernel.info.runs_on == RunsOn::kHost) {
    throw Unsuitable("it runs on the host, and an iteration stays on the device");
  }
  Prepared<T> prepared = prepare(kernel, problem, device::Stream());
  run.setup_ms = prepared.setup_ms;
  run.preprocess_ms = prepared.preprocess_ms;
  run.choice = prepared.spmv->choice();
  return std::move(prepared.spmv);
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

template <typename T>
std::vector<double> in_double(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// The first thing wrong with a distribution whose sum may be off by `bound`.
std::string fault_of(const std::vector<double>& x, double sum_error, double bound) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] >= 0)) return fmt::format("state {} has probability {}", i, x[i]);
  }
  if (!(sum_error <= bound)) {
    return fmt::format("the probabilities' sum is off by {:.2e}, and {:.2e} could be rounding",
                       sum_error, bound);
  }
  return {};
}

void compare(MarkovVerdict& verdict, double bound) {
  if (verdict.failure.empty() && !(verdict.distance <= bound)) {
    verdict.failure = fmt::format("differs from the dense solution by {:.2e}; {:.2e} is allowed",
                                  verdict.distance, bound);
  }
}

#ifdef HAVE_EIGEN
template <typename T>
Eigen::MatrixXd dense(const Csr<T>& a) {
  Eigen::MatrixXd result = Eigen::MatrixXd::Zero(a.rows, a.cols);
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      result(row, a.column_indices[k]) = static_cast<double>(a.values[k]);
    }
  }
  return result;
}

double distance(const std::vector<double>& x, const Eigen::VectorXd& y) {
  return (Eigen::Map<const Eigen::VectorXd>(x.data(), y.size()) - y).lpNorm<1>();
}
#endif

}  // namespace

template <typename T>
Chain<T>::Chain(Matrix<T> its_rates, double padding_limit)
    : rates(std::move(its_rates)), problem{matrix, csr, padding_limit} {
  const Csr<T>& q = rates.csr;
  const std::string& name = rates.source.name;
  if (q.rows != q.cols || q.rows == 0) {
    throw InputError(
        fmt::format("{}: {} rows and {} columns are no Markov chain", name, q.rows, q.cols));
  }
  std::vector<double> sums(q.cols, 0), sizes(q.cols, 0);
  std::vector<Index> lengths(q.cols, 0);
  Index longest_row = 0;
  for (Index row = 0; row < q.rows; ++row) {
    longest_row = std::max(longest_row, q.row_length(row));
    for (Index k = q.row_offsets[row]; k < q.row_offsets[row + 1]; ++k) {
      const Index column = q.column_indices[k];
      const auto value = static_cast<double>(q.values[k]);
      if (column == row ? !(value <= 0) : !(value >= 0)) {
        throw InputError(fmt::format(
            "{}: entry ({}, {}) is {}; of the transpose of a chain's rates those off the diagonal "
            "are positive and those on it negative",
            name, row + 1, column + 1, value));
      }
      if (column == row) rate = std::max(rate, -value);
      sums[column] += value;
      sizes[column] += std::abs(value);
      ++lengths[column];
    }
  }
  for (Index column = 0; column < q.cols; ++column) {
    const double rounding = (lengths[column] + 2) * kEpsilon<T> * sizes[column];
    if (!(std::abs(sums[column]) <= rounding)) {
      throw InputError(fmt::format(
          "{}: column {} adds up to {:g}; those of the transpose of a chain's rates add up to 0",
          name, column + 1, sums[column]));
    }
    error = std::max(error, std::abs(sums[column]));
  }
  rate = rate > 0 ? 1.01 * rate : 1;
  // Rounding of a step: longest_row + 1 operations per sum, and one per entry of P'.
  error = error / rate + (longest_row + 2) * kEpsilon<T>;

  Csr<T>& p = matrix.csr;
  p.rows = p.cols = q.rows;
  p.row_offsets.reserve(q.row_offsets.size());
  p.column_indices.reserve(q.column_indices.size());
  p.values.reserve(q.values.size());
  for (Index row = 0; row < q.rows; ++row) {
    bool has_diagonal = false;
    const auto add = [&](Index column, double value) {
      has_diagonal |= column == row;
      p.column_indices.push_back(column);
      p.values.push_back(static_cast<T>(value / rate + (column == row ? 1 : 0)));
    };
    for (Index k = q.row_offsets[row]; k < q.row_offsets[row + 1]; ++k) {
      // A state that is never left may have no entry on the diagonal.
      if (!has_diagonal && q.column_indices[k] > row) add(row, 0);
      add(q.column_indices[k], static_cast<double>(q.values[k]));
    }
    if (!has_diagonal) add(row, 0);
    if (p.values.size() > static_cast<std::size_t>(kMaxNonzeros)) {
      throw InputError(name + ": with a full diagonal it has too many nonzeros for 32-bit indices");
    }
    p.row_offsets.push_back(static_cast<Index>(p.values.size()));
  }
  matrix.source = rates.source;
  csr = device::DeviceCsr<T>(p);
}

PoissonWeights poisson_weights(double mean, double tolerance) {
  // Weights relative to the mode's, which is 1. Outwards they fall faster than a geometric series
  // of the last two, which bounds what is still to come.
  const auto mode = static_cast<long long>(std::floor(mean));
  double sum = 1;
  // Those on one side of the mode. ratio(i): of the i-th of them and the one before it.
  const auto outwards = [&](const auto& ratio) {
    std::vector<double> weights;
    double last = 1;
    for (double r = ratio(0); r > 0; r = ratio(std::ssize(weights))) {
      if (r < 1 && last * r / (1 - r) < 0.5 * tolerance * sum) break;
      weights.push_back(last *= r);
      sum += last;
    }
    return weights;
  };
  const std::vector<double> below =
      outwards([&](long long i) { return static_cast<double>(mode - i) / mean; });
  const std::vector<double> above =
      outwards([&](long long i) { return mean / static_cast<double>(mode + 1 + i); });
  PoissonWeights result{mode - std::ssize(below), {below.rbegin(), below.rend()}};
  result.weights.push_back(1);
  result.weights.insert(result.weights.end(), above.begin(), above.end());
  // Added up from both ends, the small ones first.
  const double total = std::accumulate(below.rbegin(), below.rend(), 0.0) +
                       std::accumulate(above.rbegin(), above.rend(), 0.0) + 1;
  for (double& weight : result.weights) weight /= total;
  return result;
}

template <typename T>
MarkovRun<T> Chain<T>::stationary(const Kernel& kernel) const {
  const Index n = rates.csr.rows;
  MarkovRun<T> run;
  const auto product = set_up(kernel, problem, run);
  MarkovVectors<T> x(n);
  const std::vector<T> alike(n, static_cast<T>(1.0 / n));
  x.start(alike);
  x.step(*product);  // a kernel's first launch costs more than the others
  x.change();
  x.start(alike);
  x.wait();

  const auto start = std::chrono::steady_clock::now();
  for (run.converged = false; !run.converged && run.steps < options.max_steps;) {
    // The host waits for the device only here, once in so many steps.
    const long long steps = std::min<long long>(options.check_every, options.max_steps - run.steps);
    for (long long i = 0; i < steps; ++i) x.step(*product);
    run.steps += steps;
    const auto [change, sum] = x.change();
    run.change = change;
    run.converged = change <= options.tolerance;
    if (!(sum > 0.5 && sum < 2)) break;  // no distribution, or NaN
    if (!run.converged) x.rescale(static_cast<T>(1 / sum));
  }
  run.distribution = x.x();
  run.milliseconds = milliseconds_since(start);
  return run;
}

template <typename T>
MarkovRun<T> Chain<T>::transient(const Kernel& kernel, double time, Index start) const {
  const double mean = time * rate;  // moments
  const auto too_long = [&](double steps) {
    return InputError(fmt::format("--time: {:.0f} steps are needed; --max-steps allows {}", steps,
                                  options.max_steps));
  };
  if (mean > static_cast<double>(options.max_steps)) throw too_long(mean);
  const PoissonWeights poisson = poisson_weights(mean, options.tolerance);
  const long long end = poisson.first + static_cast<long long>(poisson.weights.size());
  if (end - 1 > options.max_steps) throw too_long(static_cast<double>(end - 1));

  MarkovRun<T> run;
  const auto product = set_up(kernel, problem, run);
  MarkovVectors<T> x(rates.csr.rows);
  std::vector<T> first(rates.csr.rows, T{0});
  first[start] = 1;
  x.start(first);
  x.step(*product);
  x.add_to_total(T{1});
  x.start(first);
  x.wait();

  const auto begin = std::chrono::steady_clock::now();
  for (long long moment = 0; moment < end; ++moment) {
    if (moment > 0) x.step(*product);
    if (moment >= poisson.first) {
      x.add_to_total(static_cast<T>(poisson.weights[moment - poisson.first]));
    }
  }
  run.steps = end - 1;
  run.distribution = x.total();
  run.milliseconds = milliseconds_since(begin);
  return run;
}

template <typename T>
MarkovVerdict Chain<T>::judge_stationary(const MarkovRun<T>& run) const {
  const Csr<T>& q = rates.csr;
  const std::vector<double> x = in_double(run.distribution);
  MarkovVerdict verdict;
  verdict.sum_error = std::abs(sum_of(x) - 1);
  for (Index row = 0; row < q.rows; ++row) {
    double sum = 0;
    for (Index k = q.row_offsets[row]; k < q.row_offsets[row + 1]; ++k) {
      sum += static_cast<double>(q.values[k]) * x[q.column_indices[k]];
    }
    verdict.residual += std::abs(sum) / rate;
  }
  verdict.failure = fault_of(x, verdict.sum_error, (options.check_every + 2) * error);
  if (verdict.failure.empty() && !run.converged) {
    verdict.failure =
        fmt::format("no answer after {} steps: the last one changed {:.2e}", run.steps, run.change);
  }
  // The last step's change was that of the x before it.
  const double allowed = options.tolerance + 4 * error;
  if (verdict.failure.empty() && !(verdict.residual <= allowed)) {
    verdict.failure =
        fmt::format("the residual is {:.2e}; {:.2e} is allowed", verdict.residual, allowed);
  }
#ifdef HAVE_EIGEN
  if (q.rows <= kDenseStates) {
    // The last equation follows from the others; that the sum is 1 takes its place.
    Eigen::MatrixXd a = dense(q);
    a.row(q.rows - 1).setOnes();
    const Eigen::MatrixXd inverse = a.inverse();
    verdict.distance = distance(x, inverse.col(q.rows - 1));
    const double norm = inverse.cwiseAbs().colwise().sum().maxCoeff();
    const double off = rate * verdict.residual + verdict.sum_error;
    const double rounding = 100 * kEpsilon<double> * norm * (rate + q.rows);
    // Where the chain has several ends, the equations have many solutions, and x is one of them.
    const bool unique = norm * rate < 1e12;
    if (!unique) verdict.distance = -1;
    if (unique) compare(verdict, 1.01 * norm * off + rounding);
  }
#endif
  return verdict;
}

template <typename T>
MarkovVerdict Chain<T>::judge_transient(const MarkovRun<T>& run, [[maybe_unused]] double time,
                                        [[maybe_unused]] Index start) const {
  const std::vector<double> x = in_double(run.distribution);
  MarkovVerdict verdict;
  verdict.sum_error = std::abs(sum_of(x) - 1);
  const double rounding = static_cast<double>(run.steps + 2) * (error + 2 * kEpsilon<T>);
  verdict.failure = fault_of(x, verdict.sum_error, rounding);
#ifdef HAVE_EIGEN
  const Index n = rates.csr.rows;
  if (n <= kDenseStates) {
    // e^(Q' t) by its series for a small time, squared until the time is t. With P' in the place of
    // Q' no term is negative.
    const double mean = time * rate;
    const auto squarings = static_cast<int>(std::max(0.0, std::ceil(std::log2(mean)) + 1));
    const double small = std::ldexp(mean, -squarings);
    const Eigen::MatrixXd p = Eigen::MatrixXd::Identity(n, n) + dense(rates.csr) / rate;
    Eigen::MatrixXd power = Eigen::MatrixXd::Identity(n, n) * std::exp(-small), e = power;
    for (int k = 1; k <= 18; ++k) e += power = p * power * (small / k);
    for (int k = 0; k < squarings; ++k) e = e * e;
    verdict.distance = distance(x, e.col(start));
    compare(verdict, options.tolerance + rounding +
                         std::ldexp(2.0 * (n + 20) * kEpsilon<double>, squarings));
  }
#endif
  return verdict;
}

template struct Chain<float>;
template struct Chain<double>;

}  // namespace spmv
