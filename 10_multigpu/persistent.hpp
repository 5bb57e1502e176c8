// Step 10: the host's side of the persistent kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "part.hpp"

namespace spmv::multigpu {

enum class PersistentKernel {
  kSimple,  // persistent.cuh: no norm
  kFlags,   // persistent_fast.cuh
  kWords
};

// persistent_part.cuh: the arguments of a kernel.
template <typename T>
struct PartsHere;

struct PersistentSetup {
  int devices = 0;        // that the parts share; 0: one for each part, or all there are
  int lanes_per_row = 0;  // a power of two up to 32; 0: by the mean length of all rows
  int blocks = 0;         // of each part; 0: as many as are resident at once, or as are of use
  unsigned most_polls = 1 << 22;  // of a wait before it is given up: seconds
};

// Parts as prepare(..., Exchange::kStores) makes them, part p on device p % devices.
template <typename T>
class PersistentMachine {
 public:
  // Throws Unsuitable where two GPUs that exchange entries cannot reach each other's memory.
  PersistentMachine(const std::vector<Part<T>>& parts, const PersistentSetup& setup);
  ~PersistentMachine();

  // Every run begins with this x.
  void start(const std::vector<T>& x);
  // Every step's product is multiplied by `factor`; 0: by that of the norm, a power of two.
  void keep_factor(double factor);
  // Does `steps` steps; milliseconds from the first launch until all are done. Throws DeviceError
  // when a part has waited too long for another one, or has more blocks than can be resident.
  double run(int steps, PersistentKernel kernel);
  // The same for any kernel of that kind.
  double run(int steps, void (*kernel)(PartsHere<T>, int));

  // As Machine's. With the norm the entries in memory are those before they are scaled: the factor
  // is part of the next step's.
  std::vector<T> x_of(int k);
  double factor_of(int k);

  int devices() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class PersistentMachine<float>;
extern template class PersistentMachine<double>;

}  // namespace spmv::multigpu
