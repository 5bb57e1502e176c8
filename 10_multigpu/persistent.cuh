// Step 10: one kernel per GPU for all steps of an iteration. The GPUs wait for each other, not for
// the host.
//
// Who computes an entry of the next x that a neighbour needs stores it straight into the
// neighbour's ghost entries. Boundary rows come first, so their entries travel while the interior
// rows are multiplied. Then a flag in the neighbour's memory says that they have arrived.
//
//   row      is computed by lanes_per_row neighbouring threads, as in step 03
//   block    belongs to one part
//   grid     all blocks are resident: a cooperative launch
//
// Two buffers for x suffice. Step k reads x[k % 2] and writes the entries of step k + 1 into
// x[(k + 1) % 2], here and at the neighbours, over those of step k - 1. Nobody reads these any
// more:
// - own entries: all blocks of this part have passed the grid barrier at the end of step k - 1;
// - a neighbour's ghost entries: its flag k, which this part has waited for, was stored behind a
//   grid barrier after its boundary rows of step k - 1, the last to read them.
#pragma once

#include <cooperative_groups.h>

#include "persistent_part.cuh"

namespace spmv::multigpu {

// Steps 0 to steps - 1. A neighbour's flag counts the steps that it has done.
template <typename T>
__global__ void persistent_kernel(const __grid_constant__ PartsHere<T> here, int steps) {
  const PersistentPart<T>& part = here.part[blockIdx.x / here.blocks];
  const auto grid = cooperative_groups::this_grid();
  const int thread = blockIdx.x % here.blocks * blockDim.x + threadIdx.x;  // of the part
  const int lanes = here.lanes_per_row;
  const int threads = here.blocks * blockDim.x;
  const T factor = static_cast<T>(here.factor);

  for (int k = 0; k < steps; ++k) {
    const T* x = part.x[k % 2];
    T* y = part.x[(k + 1) % 2];
    const auto multiply = [&](int row_begin, int row_end) {
      for (int i = row_begin + thread / lanes; i < row_end; i += threads / lanes) {
        T sum = 0;
        for (int j = part.row_offsets[i] + thread % lanes; j < part.row_offsets[i + 1];
             j += lanes) {
          sum += part.values[j] * x[part.column_indices[j]];
        }
        const unsigned row_lanes = (lanes == 32 ? ~0u : (1u << lanes) - 1)
                                   << (threadIdx.x % 32 & ~(lanes - 1));
        for (int distance = lanes / 2; distance > 0; distance /= 2) {
          sum += __shfl_down_sync(row_lanes, sum, distance, lanes);
        }
        if (thread % lanes != 0) continue;
        y[i] = factor * sum;
        if (i >= part.boundary_rows) continue;
        for (int r = 0; r < part.runs && part.run[r].begin <= i; ++r) {
          const Run<T>& run = part.run[r];
          if (i < run.end) run.ghosts[i - run.begin + (k + 1) % 2 * part.x_distance] = factor * sum;
        }
      }
    };
    multiply(0, part.boundary_rows);
    grid.sync();  // all entries for the neighbours are stored
    if (thread < part.neighbours) {
      cuda::atomic_ref<unsigned> flag(*part.neighbour[thread].arrivals_there);
      flag.store(k + 1, cuda::memory_order_release);
    }
    multiply(part.boundary_rows, part.rows);
    if (thread < part.neighbours) {
      const Neighbour& neighbour = part.neighbour[thread];
      if (!wait_until(neighbour.arrivals_here, k + 1, here.most_polls)) {
        give_up(here, part, k, neighbour.number);
      }
    }
    grid.sync();  // own entries are stored, and those of the neighbours have arrived
    if (here.stuck[0]) return;
  }
}

}  // namespace spmv::multigpu
