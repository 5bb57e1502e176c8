// The vectors of an iteration x -> P' x, in device memory.
#pragma once

#include <vector>

#include "harness/kernel.hpp"

namespace spmv {

template <typename T>
class MarkovVectors {
 public:
  explicit MarkovVectors(Index n);  // elements of each

  // x, and a total of zero.
  void start(const std::vector<T>& x);
  // x = A x; asynchronous, as are the next two.
  void step(Spmv<T>& a);
  void rescale(T factor);       // x = factor x
  void add_to_total(T weight);  // total += weight x
  // The sum of |x - x before the last step|, and that of x. Waits.
  struct Change {
    double change = 0, sum = 0;
  };
  Change change();
  void wait() { stream_.synchronize(); }
  std::vector<T> x();
  std::vector<T> total();

 private:
  Index n_;
  device::Buffer<T> before_, x_, total_;
  device::Buffer<double> parts_, sums_;
  device::Stream stream_;
};

}  // namespace spmv
