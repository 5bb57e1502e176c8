// Step 10: the host's side of the persistent kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/ipc.hpp"
#include "part.hpp"

namespace spmv::multigpu {

enum class PersistentKernel {
  kSimple,  // persistent.cuh: no norm
  kFast,    // persistent_fast.cuh: kRows where the rows of all parts suit it, else kShares
  kRows,
  kShares
};

// persistent_part.cuh: the arguments of a kernel.
template <typename T>
struct PartsHere;

struct PersistentSetup {
  PersistentKernel kernel = PersistentKernel::kFast;
  int devices = 0;                // that the parts here share; 0: one for each, or all there are
  int lanes_per_row = 0;          // a power of two up to 32; 0: by the lengths of the rows
  int blocks = 0;                 // of each part; 0: as many as are resident, or as are of use
  unsigned most_polls = 1 << 22;  // of a wait before it is given up: seconds
  int first_device = 0;           // the parts here are on this one and those that follow
};

// Parts as prepare(..., Exchange::kStores, processes) makes them. The i-th part of this process is
// on device first_device + i % devices. Several processes are on one machine, each with a GPU of
// its own; they share memory by CUDA IPC, and make, run and destroy their machines together.
template <typename T>
class PersistentMachine {
 public:
  // Throws Unsuitable where two GPUs cannot reach each other's memory. `processes` outlives this.
  PersistentMachine(const std::vector<Part<T>>& parts, const PersistentSetup& setup,
                    const Processes& processes = kOneProcess);
  ~PersistentMachine();

  int devices() const { return devices_; }
  // What the machine has chosen: "2 lanes per row", "equal shares".
  std::string choice() const;

  // Every run begins with this x.
  void start(const std::vector<T>& x) { first_x_ = x; }
  // Every step's product is multiplied by `factor`; 0: by that of the norm, a power of two.
  void keep_factor(double factor) { factor_ = factor; }
  // Does `steps` steps; milliseconds from the first launch until all are done. Throws DeviceError
  // when a part has timed out waiting for another one, or has more blocks than can be resident.
  double run(int steps) { return run(steps, function_); }
  // The same for any kernel that takes its kernel's place.
  using Function = void (*)(PartsHere<T>, int);
  double run(int steps, Function function);

  // As Machine's: entries of other processes' parts are 0. With the norm the entries in memory are
  // those before they are scaled: the factor is part of the next step's.
  std::vector<T> x_of(int k);
  double factor_of(int k) { return factor_before(k + 1); }

 private:
  struct Known;   // what all processes know of a part
  struct OnGpu;   // a part of this process, and what is in its GPU's memory
  struct Device;  // of this process's parts

  int parts() const { return static_cast<int>(known_.size()); }
  // On the device of each part that is here.
  template <typename Work>
  void each(const Work& work);
  void gather() { processes_.gather(known_.data(), sizeof(Known)); }
  void place(const std::vector<Part<T>>& parts, const PersistentSetup& setup);
  void choose_kernel();
  int most_threads() const;  // of a block
  void find_resident_blocks();
  void choose_grid(int wanted_blocks);
  void divide(int p, OnGpu& mine);
  void allocate(int p, OnGpu& mine);
  void open_memory();
  void describe(int p, OnGpu& mine);
  void reset();
  double factor_before(int k);

  const Processes& processes_;
  PersistentKernel kernel_;
  Function function_ = nullptr;
  int devices_ = 1, lanes_ = 0, blocks_ = 0, threads_ = 0;
  std::size_t warp_bytes_ = 0;   // of shared memory
  std::size_t x_distance_ = 32;  // between a part's two buffers of x
  double factor_ = 0;
  Index rows_ = 0;
  std::vector<T> first_x_;
  std::vector<Known> known_;
  std::vector<std::unique_ptr<OnGpu>> on_gpu_;  // of each part; null where it is another process's
  std::vector<std::unique_ptr<Device>> here_;
  std::vector<device::Imported> imported_;
};

}  // namespace spmv::multigpu
