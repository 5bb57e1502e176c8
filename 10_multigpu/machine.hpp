// Step 10: what does the steps of an iteration on the GPUs of this process. A step is a product
// without communication (Exchange::kNone: y = A x again and again), or y = factor A x, where y is
// the x of the next step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel.hpp"
#include "part.hpp"

namespace spmv::multigpu {

// Where there are several processes, they make, run and destroy their machines together.
class Machine {
 public:
  virtual ~Machine() = default;

  // How many GPUs the parts of this process are on.
  int devices() const { return devices_; }
  // "", or a line on how the steps are done.
  const std::string& remark() const { return remark_; }
  // Who launches, as records name it: "graph", all steps at once; "loop", the host step after step;
  // "persistent", the GPUs.
  virtual const char* drive() const = 0;

  // Every product is multiplied by it, from the next run on. It is 1 at first.
  virtual void keep_factor(double factor) { factor_ = factor; }
  // Before every run: step 0 multiplies this x.
  virtual void start(const std::vector<double>& x) = 0;
  // Does `steps` steps, and waits for them; milliseconds. Throws DeviceError when a GPU fails, or
  // has waited too long for another one.
  virtual double run(int steps) = 0;
  // Milliseconds that each GPU was busy with its part of each of `steps` steps, on average: from
  // having its own x to the end of its product. Empty: not known.
  virtual std::vector<double> time_each(int /*steps*/) { return {}; }
  // After run(steps): the x of step k, or its product y for k = steps, in all processes; k is
  // steps or steps - 1.
  std::vector<double> x_of(int k);

 protected:
  // The i-th part of this process is on device first_device + i % devices(). `processes` outlives
  // this.
  Machine(std::vector<Part> parts, const Processes& processes);
  int device_of(int part) const;
  // Of each part of this process, its device being the current one.
  void each(const std::function<void(int part)>& work) const;
  // The part's own vector of step k, in its order.
  virtual std::vector<double> own_x(int part, int k) = 0;

  const Processes& processes_;
  std::vector<int> here_;    // the parts of this process
  std::vector<Part> parts_;  // empty where it is another process's
  std::vector<Index> cuts_;
  int devices_ = 1;
  double factor_ = 1;
  std::string remark_;
};

// With kStores persistent kernels, which have their own product; `kernel` is that of the others. In
// one process those are launched as a CUDA graph, unless `as_graph` is false. Throws InputError
// where kStores needs what the GPUs have not.
std::unique_ptr<Machine> make_machine(std::vector<Part> parts, const Kernel& kernel,
                                      Exchange exchange, const Processes& processes = kOneProcess,
                                      bool as_graph = true);

// --- Persistent kernels --------------------------------------------------------------------------

// persistent_part.cuh: the arguments of a kernel.
template <typename T>
struct PartsHere;

// What tests choose; the machine does else.
struct PersistentOptions {
  // A power of two up to 32, or 0: tiles, as many rows and nonzeros per warp. kBest: lanes where
  // the rows of all parts suit them.
  static constexpr int kBest = -1;
  int lanes_per_row = kBest;
  int blocks = 0;                                            // of each part
  unsigned most_polls = 1 << 22;                             // of a wait before it is given up
  void (*function)(PartsHere<double>, int steps) = nullptr;  // in the place of the kernel
};

// The parts are those of prepare(..., Exchange::kStores, processes), all in one process. remark()
// is what the machine has chosen: "persistent: 2 lanes per row", "persistent: tiles". Throws
// InputError where two GPUs cannot reach each other's memory.
std::unique_ptr<Machine> make_persistent(std::vector<Part> parts,
                                         const Processes& processes = kOneProcess,
                                         const PersistentOptions& options = {});

}  // namespace spmv::multigpu
