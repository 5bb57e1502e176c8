// Step 10: the host's side of the persistent kernels.
#pragma once

#include <memory>
#include <vector>

#include "machine.hpp"

namespace spmv::multigpu {

enum class PersistentKernel {
  kBest,  // kRows where the rows of all parts suit it, else kTiles
  kRows,  // a fixed number of lanes per row
  kTiles  // as many rows and nonzeros per warp
};

// persistent_part.cuh: the arguments of a kernel.
template <typename T>
struct PartsHere;

// What tests choose; the machine does else.
template <typename T>
struct PersistentOptions {
  PersistentKernel kernel = PersistentKernel::kBest;
  int lanes_per_row = 0;                                // a power of two up to 32
  int blocks = 0;                                       // of each part
  unsigned most_polls = 1 << 22;                        // of a wait before it is given up: seconds
  void (*function)(PartsHere<T>, int steps) = nullptr;  // in the place of the kernel
};

// The parts are those of prepare(..., Exchange::kStores, processes). Several processes are on one
// machine, each with a GPU of its own. remark() is what the machine has chosen: "persistent: 2
// lanes per row", "persistent: tiles". Throws Unsuitable where two GPUs cannot reach each other's
// memory.
template <typename T>
std::unique_ptr<Machine<T>> make_persistent(const std::vector<Part<T>>& parts, const Setup& setup,
                                            const Processes& processes = kOneProcess,
                                            const PersistentOptions<T>& options = {});

}  // namespace spmv::multigpu
