// Step 10: what does the steps of an iteration on the GPUs of this process. A step is a product
// without communication (Exchange::kNone: y = A x again and again), or y = factor A x, where y is
// the x of the next step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/kernel.hpp"
#include "part.hpp"

namespace spmv::multigpu {

// Who asks the GPUs for their work, step after step.
enum class Drive {
  kLoop,       // one thread of the host, GPU after GPU
  kGraph,      // no thread: the work of several steps is a CUDA graph, which is launched as one
  kPersistent  // the GPUs: one kernel each does all steps, and they wait for each other
};

struct Setup {
  Exchange exchange = Exchange::kNone;
  bool peer_access = true;  // false: as if no GPU could use another one's memory
  int devices = 0;          // that the parts here share; 0: one for each part, or all there are
};

// Where there are several processes, they make, run and destroy their machines together.
template <typename T>
class Machine {
 public:
  virtual ~Machine() = default;

  // How many GPUs the parts of this process are on.
  int devices() const { return devices_; }
  // "", or a line on how the steps are done.
  const std::string& remark() const { return remark_; }
  // Whether entries of x go through the host's memory.
  bool uses_host() const { return uses_host_; }

  // Every product is multiplied by it, from the next run on. It is 1 at first.
  virtual void keep_factor(double factor) { factor_ = factor; }
  // Before every run: step 0 multiplies this x.
  virtual void start(const std::vector<T>& x) = 0;
  // Does `steps` steps, and waits for them; milliseconds. Throws DeviceError when a GPU fails, or
  // has waited too long for another one.
  virtual double run(int steps, Drive drive) = 0;
  // Milliseconds that each GPU was busy with its part of each of `steps` steps, on average: from
  // having its own x to the end of its product. Empty: not known (kPersistent, several processes).
  virtual std::vector<double> time_each(int /*steps*/) { return {}; }
  // After run(steps): the x of step k, or its product y for k = steps, in all processes; k is
  // steps or steps - 1.
  std::vector<T> x_of(int k);

 protected:
  // The i-th part of this process is on device first_device() + i % devices(). `processes` outlives
  // this.
  Machine(const std::vector<Part<T>>& parts, const Setup& setup, const Processes& processes);
  int parts() const { return static_cast<int>(layouts_.size()); }
  int device_of(int part) const;
  // The part's own vector of step k, in its order.
  virtual std::vector<T> own_x(int part, int k) = 0;

  const Processes& processes_;
  std::vector<int> here_;        // the parts of this process
  std::vector<Layout> layouts_;  // of each part; empty where it is another process's
  std::vector<Index> cuts_;
  int devices_ = 1;
  double factor_ = 1;
  std::string remark_;
  bool uses_host_ = false;
};

// Which of them suits the setup: kStores is for the persistent kernels, which have their own
// product; `kernel` is the product of the others. Throws Unsuitable when the exchange needs what
// the GPUs have not.
template <typename T>
std::unique_ptr<Machine<T>> make_machine(const std::vector<Part<T>>& parts, const Kernel& kernel,
                                         const Setup& setup,
                                         const Processes& processes = kOneProcess);

}  // namespace spmv::multigpu
