// Step 10 past one machine: a rank, which has one GPU and one part of the rows.
#pragma once

#include <memory>
#include <vector>

#include "../part.hpp"
#include "harness/kernel.hpp"

namespace spmv::multigpu {

// All calls are made by all ranks together.
template <typename T>
class Rank {
 public:
  // `part` is prepare_alone()'s. Throws Failure on all ranks when it fails on one.
  Rank(int device, Part<T> part, const Kernel& kernel, bool through_nccl);
  ~Rank();

  // The next run begins with this x, of which each rank takes its part.
  void start(const std::vector<T>& x);
  // `steps` times x is exchanged, multiplied, and the product, scaled, is the next x. A rank that
  // fails in here ends the program on all of them.
  void run(int steps);

  // This rank's rows of step k's x, in their order; k is run()'s steps or one less.
  std::vector<T> x_of(int k, Index first_row);
  // What step k's product was multiplied by.
  double factor_of(int k);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class Rank<float>;
extern template class Rank<double>;

}  // namespace spmv::multigpu
