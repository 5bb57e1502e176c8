// Markov chains in continuous time: the distribution over the states after a time, and in the end.
//
// A chain is given by Q', the transpose of its transition rates: off the diagonal no entry is
// negative, and every column adds up to 0. Uniformization looks at it at random moments, `rate` of
// them per unit of time, at which it may also stay where it is: P = I + Q / rate is a matrix of
// probabilities, and moving a distribution by one moment is one product with P'.
#pragma once

#include <string>
#include <vector>

#include "harness/kernel.hpp"
#include "sparse/load.hpp"

namespace spmv {

// P(first), P(first + 1), ... of the Poisson distribution, normalised to a sum of 1 after the
// tails, of less than `tolerance` together, were cut off. Computed from the mode outwards (Fox and
// Glynn 1988), since e^-mean underflows.
struct PoissonWeights {
  long long first = 0;
  std::vector<double> weights;
};
PoissonWeights poisson_weights(double mean, double tolerance);

// The iteration of one kernel and its result.
template <typename T>
struct MarkovRun {
  std::vector<T> distribution;
  long long steps = 0;
  bool converged = true;
  double change = 0;  // of the last step: the sum of |P' x - x|
  double setup_ms = 0, preprocess_ms = 0;
  double milliseconds = 0;  // of the iteration, with its checks
  std::string choice;
};

struct MarkovOptions {
  double tolerance = 1e-10;
  long long max_steps = 1'000'000;
  int check_every = 50;  // steps
};

// The check of a result.
struct MarkovVerdict {
  std::string failure;   // empty: none
  double sum_error = 0;  // |sum - 1|
  double residual = 0;   // the sum of |Q' x|, over the rate
  double distance = -1;  // from the dense solution: the sum of differences; -1: too many states
};

// A chain on the device, and what is asked of it, with kernels that run there: of others it throws
// Unsuitable.
template <typename T>
struct Chain {
  // Throws InputError, naming the column, if `its_rates` is not a chain.
  explicit Chain(Matrix<T> its_rates, double padding_limit = 3);
  Chain(const Chain&) = delete;

  // The stationary distribution: iterates from the uniform distribution until a step changes it by
  // no more than the tolerance.
  MarkovRun<T> stationary(const Kernel& kernel) const;
  // The distribution after `time`, from state `start`. Throws InputError when that takes more than
  // options.max_steps.
  MarkovRun<T> transient(const Kernel& kernel, double time, Index start) const;

  // Checks of these, computed by the host in double precision. No bound is tuned: each follows from
  // the tolerance and from the rounding errors of that many steps.
  MarkovVerdict judge_stationary(const MarkovRun<T>& run) const;
  MarkovVerdict judge_transient(const MarkovRun<T>& run, double time, Index start) const;

  Matrix<T> rates;   // Q'
  Matrix<T> matrix;  // P', with the name and source of Q'
  double rate = 0;   // a little more than the largest rate out of a state: P has a full diagonal
  double error = 0;  // what rounding may add to or take from a distribution's sum in a step
  device::DeviceCsr<T> csr;  // P'
  Problem<T> problem;
  MarkovOptions options;
};

// The largest chain that is also solved as a dense matrix.
inline constexpr Index kDenseStates = 300;

}  // namespace spmv
