// Step 10, persistent kernels: what one knows of its part of the matrix and of its neighbours.
//
// A *neighbour* is a part that needs entries of this one's x, or owns entries that this one needs.
// The rows, and the entries of x, stand boundary first: a boundary row needs an entry of a
// neighbour, or a neighbour needs its own. The rest are interior rows. Behind them are the ghost
// entries.
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

#include "../06_pcsr/one_pass/spmv/agent.cuh"
#include "part.hpp"

namespace spmv::multigpu {

using namespace detail;  // of one pass

// Counters are monotone: they only grow, from 0 at the beginning of a run.
struct Neighbour {
  int number;
  unsigned* arrivals_there;    // this part's counter in the neighbour's memory
  unsigned* arrivals_here;     // the neighbour's counter in this part's memory
  unsigned arrivals_per_step;  // that the neighbour makes
};

// The entries of rows [begin, end), which a neighbour needs, are side by side in its ghost entries.
template <typename T>
struct Run {
  int begin, end;
  T* ghosts;  // of row `begin`, for even steps
};

template <typename T>
struct PersistentPart {
  int rows, boundary_rows;
  const int* row_offsets;  // boundary rows first
  const int* column_indices;
  const T* values;
  T* x[2];               // own entries, boundary rows' first; then ghost entries
  long long x_distance;  // x[1] - x[0], the same for all parts
  int own_part;          // this part's number
  int neighbours;
  const Neighbour* neighbour;
  int runs;  // of boundary rows, in the order of `begin`; of different neighbours they overlap
  const Run<T>* run;
  OnePassArguments<T> product;  // of persistent_tiles_kernel, as step 06 describes it
  int boundary_warps;           // warps of the part, from 0 on, that have boundary rows
  unsigned* arrivals;           // of this part's own blocks
};

// The parts of one GPU: the blocks [p * blocks, (p + 1) * blocks) of the grid work for part[p].
template <typename T>
struct PartsHere {
  PersistentPart<T> part[kMaxGpus];
  int blocks;
  unsigned most_polls;  // before a wait is given up
  unsigned* stuck;      // [4] the wait that timed out: 1, part, step, part awaited
  T factor;             // of every step's product
  bool read_once;       // the parts are too large for the L2 cache: it keeps x, not the matrix
};

// Waits until a counter in this part's memory has reached `wanted`. False: not in time, because a
// GPU or a process has failed, or a flag was forgotten.
template <cuda::thread_scope scope = cuda::thread_scope_system>
__device__ __forceinline__ bool wait_until(unsigned* counter, unsigned wanted,
                                           unsigned most_polls) {
  const cuda::atomic_ref<unsigned, scope> flag(*counter);
  for (unsigned polls = 0; polls < most_polls; ++polls) {
    if (flag.load(cuda::memory_order_acquire) >= wanted) return true;
  }
  return false;
}

// Ends the kernels of this GPU; those that wait for it time out in their turn. The host reports who
// waited for whom.
template <typename T>
__device__ void give_up(const PartsHere<T>& here, const PersistentPart<T>& part, int step,
                        unsigned awaited) {
  if (atomicCAS(&here.stuck[0], 0u, 1u) != 0) return;
  here.stuck[1] = part.own_part;
  here.stuck[2] = step;
  here.stuck[3] = awaited;
}

}  // namespace spmv::multigpu
