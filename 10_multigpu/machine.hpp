// Step 10: the GPUs of one process, which the host asks for their work.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "device/buffer.hpp"
#include "harness/kernel.hpp"
#include "part.hpp"
#include "transport.hpp"

namespace spmv::multigpu {

// Who asks the GPUs for their work, step after step.
enum class Drive {
  kLoop,  // one thread of the host, GPU after GPU
  kGraph  // no thread: the work of several steps is a CUDA graph, which is launched as one
};

struct Setup {
  Exchange exchange = Exchange::kNone;
  bool peer_access = true;  // false: as if no GPU could use another one's memory
  int devices = 0;          // that the parts here share; 0: one for each part, or all there are
  int first_device = 0;     // the parts here are on this one and those that follow
};

struct DestroyGraph {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

// One step is a product without communication (Exchange::kNone), or one of an iteration: x is
// exchanged, multiplied, and the product, scaled, is the next x.
template <typename T>
class Machine {
 public:
  // The i-th part of this process is on device first_device + i % devices. Where there are other
  // processes, which make their machines together, `make` makes what reaches them, and only
  // Drive::kLoop runs. Throws Unsuitable when the exchange needs what the GPUs have not.
  using MakeTransport =
      std::function<std::unique_ptr<Transport<T>>(AllGpus<T>&, std::vector<Transfer>)>;
  Machine(const std::vector<Part<T>>& parts, const Kernel& kernel, const Setup& setup,
          const Processes& processes = kOneProcess, const MakeTransport& make = {});
  ~Machine();

  int size() const { return static_cast<int>(gpus_.size()); }
  int devices() const { return devices_; }
  // "" or why some copies go through the host.
  const std::string& remark() const { return remark_; }

  // The next run begins with this x.
  void start(const std::vector<T>& x);
  // Does `steps` steps from start()'s x, and waits for them; milliseconds. The graphs of kGraph are
  // captured before, or in prepare(steps).
  double run(int steps, Drive drive);
  void prepare(int steps);
  // Milliseconds that each GPU was busy with its share of each of `steps` steps, on average: in an
  // iteration, from having its own x to having the squares of its product added up.
  std::vector<double> time_each(int steps);
  // Every step's product is multiplied by `factor`, and no norm is computed; 0: by the power of two
  // next to its norm, as at first.
  void keep_factor(double factor);

  // After run(steps): the x of step k, or its product y for k = steps; k is steps or steps - 1.
  // Rows of other processes' parts are 0.
  std::vector<T> x_of(int k);
  // What step k's product was multiplied by, for k = steps - 1 or steps - 2.
  double factor_of(int k);

 private:
  using OnEach = std::function<void(StepOnGpu<T>&)>;

  std::unique_ptr<Transport<T>> transport_within(bool allow_peers, std::vector<Transfer> transfers);
  void each(const OnEach& work);
  // begin, end: queued around the product of step k and the exchange before it.
  void queue_step(int k, const OnEach& begin = {}, const OnEach& end = {});
  Graph capture(const std::function<void()>& work);
  void wait();

  Exchange exchange_;
  double factor_ = 0;
  int devices_ = 1;
  Index rows_ = 0;  // of all parts
  std::string remark_;
  AllGpus<T> gpus_;
  std::unique_ptr<Transport<T>> transport_;  // null for kNone
  std::map<int, Graph> graphs_;              // by their number of steps
};

}  // namespace spmv::multigpu
