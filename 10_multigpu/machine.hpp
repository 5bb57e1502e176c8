// Step 10: all GPUs of one host, and the three ways to keep them busy.
#pragma once

#include <array>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/buffer.hpp"
#include "device/devices.hpp"
#include "gpus.hpp"
#include "harness/kernel.hpp"
#include "nccl.hpp"
#include "part.hpp"

namespace spmv::multigpu {

template <typename T>
class Gpu;

// Who asks the GPUs for their work, step after step.
enum class Drive {
  kLoop,     // one thread of the host, GPU after GPU
  kThreads,  // a thread of the host for each GPU
  kGraph     // nobody: the work of several steps is a CUDA graph, which is launched as one
};

struct Setup {
  Exchange exchange = Exchange::kNone;
  bool peer_access = true;  // false: as if no GPU could use another one's memory
  int devices = 0;          // that the parts share; 0: one for each part, or all there are
};

// A thread for each GPU, which wait for work between two runs.
class Crew {
 public:
  explicit Crew(const std::vector<int>& devices);
  ~Crew();
  // Each thread p does work(p), with its device the current one. Rethrows what one of them throws;
  // work must reach every meet() all the same.
  void run(const std::function<void(int)>& work);
  // Waits for all threads; called by each.
  void meet() { meeting_.arrive_and_wait(); }

 private:
  std::barrier<> start_, end_, meeting_;
  std::function<void(int)> work_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

// One step is a product without communication (Exchange::kNone), or one of an iteration: x is
// exchanged, multiplied, and the product, scaled, is the next x.
template <typename T>
class Machine {
 public:
  // Part p goes to device p % devices. Throws Unsuitable when the exchange needs what the GPUs have
  // not.
  Machine(std::vector<Part<T>> parts, const Kernel& kernel, const Setup& setup);
  ~Machine();

  int size() const { return static_cast<int>(cuts_.size()) - 1; }
  int devices() const { return devices_; }
  // "" or why some copies go through the host.
  const std::string& remark() const { return remark_; }

  // The next run begins with this x.
  void start(const std::vector<T>& x);
  // Does `steps` steps from start()'s x, and waits for them. Captures the graphs of kGraph before,
  // so that they can be kept out of a measurement: prepare(steps).
  void run(int steps, Drive drive);
  void prepare(int steps);
  // Milliseconds that each GPU was busy with its share of each of `steps` steps, on average: in an
  // iteration, from having its own x to having the squares of its product added up.
  std::vector<double> time_each(int steps);
  // Every step's product is multiplied by `factor`, and no norm is computed; 0: by the power of two
  // next to its norm, as at first.
  void keep_factor(double factor);

  // After run(steps): the x of step k, or its product y for k = steps; k is steps or steps - 1.
  std::vector<T> x_of(int k);
  // The squares of the entries of step k's product, before it was scaled, added up, for k = steps -
  // 1 or steps - 2; and what it was then multiplied by.
  double squares_of(int k);
  double factor_of(int k);

 private:
  // Remote entries on their way from one GPU to another.
  struct Transfer {
    int owner = 0, receiver = 0;
    Index count = 0, ghost = 0;
    bool packed = false;
    Index offset = 0;         // in the owner's x, or in what it has packed
    device::Pinned<T> stage;  // where the two cannot reach each other
  };
  enum Phase { kAnnounce, kFetch, kMultiply, kFinish, kPhases };

  int device_of(int p) const { return p % devices_; }
  void connect_stores();
  const T* source(const Transfer& transfer, int k);
  void connect(bool allow_peers);
  void do_phase(int phase, int p, int k);
  void announce(int p, int k);
  void fetch(int p, int k);
  void multiply(int p, int k);
  void finish(int p, int k);
  void run_loop(int first, int steps);
  void run_threads(int steps);
  cudaGraphExec_t capture(const std::function<void()>& work);
  void wait();
  double* sums(int p, int k) { return sums_of_[p] + (k % 2) * size(); }

  Exchange exchange_;
  double factor_ = 0;
  int devices_;
  Index rows_ = 0;
  std::vector<Index> cuts_;
  std::vector<std::vector<bool>> reaches_;  // [p][q]: whether p may use q's memory
  std::string remark_;
  std::vector<std::unique_ptr<Gpu<T>>> gpus_;
  std::vector<Transfer> transfers_;
  std::vector<std::vector<std::pair<int, Index>>> pushed_;  // of each owner: receiver, place there
  // Each GPU's copy of all GPUs' sums of squares, for two steps; or one for all on the host.
  std::vector<device::Buffer<double>> sums_;
  device::Pinned<double> sums_on_host_;
  std::vector<double*> sums_of_;
  std::unique_ptr<Nccl> nccl_;
  std::unique_ptr<Crew> crew_;
  // Of each GPU: its x may be read; its boundary rows are done; its squares are summed.
  std::vector<device::Event> ready_, fetched_, summed_;
  std::vector<device::Event> fork_, join_;  // where a graph begins and ends
  cudaGraphExec_t graph_ = nullptr, rest_ = nullptr;
  int graph_steps_ = 0, rest_steps_ = 0;
};

extern template class Machine<float>;
extern template class Machine<double>;

}  // namespace spmv::multigpu
