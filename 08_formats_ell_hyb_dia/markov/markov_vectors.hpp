// The vectors of an iteration x -> P' x, in device memory or, for a kernel of the host, in its own.
#pragma once

#include <memory>
#include <vector>

#include "harness/kernel.hpp"

namespace spmv {

template <typename T>
class MarkovVectors {
 public:
  virtual ~MarkovVectors() = default;

  // x, and a total of zero.
  virtual void start(const std::vector<T>& x) = 0;
  // x = A x; asynchronous on a device, as are the next two.
  virtual void step(Spmv<T>& a) = 0;
  virtual void rescale(T factor) = 0;       // x = factor x
  virtual void add_to_total(T weight) = 0;  // total += weight x
  // The sum of |x - x before the last step|, and that of x. Waits.
  struct Change {
    double change = 0, sum = 0;
  };
  virtual Change change() = 0;
  virtual void wait() = 0;
  virtual std::vector<T> x() = 0;
  virtual std::vector<T> total() = 0;
};

// Of `n` elements each, for a kernel that runs there.
template <typename T>
std::unique_ptr<MarkovVectors<T>> make_markov_vectors(RunsOn where, Index n);

}  // namespace spmv
