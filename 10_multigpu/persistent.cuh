// Step 10: the persistent kernels: step 06's two paths on each GPU's part, all steps in one launch.
//
// What minimal.cu's kernel does badly: two grid barriers per step; each thread is latency-bound,
// with one load in flight; a long row delays its warp. Here
// - each block adds its arrival to a counter of its own part, and waits once per step. Only blocks
//   that have boundary rows wait for neighbours; the warp that completes a block's boundary rows
//   adds the block's arrival to the neighbours' counters, while the others go on;
// - while a block waits, the first nonzeros of its next rows are prefetched;
// - rows of like lengths have a fixed number of lanes each (persistent_rows_kernel), others are
//   divided into tiles of as many rows and nonzeros per warp (persistent_tiles_kernel).
//
// Ghost entries are plain stores, and the block's arrival is a release behind them. Two buffers
// suffice, as in minimal.cu, with the arrivals of a neighbour's boundary blocks in the place of its
// flag. (Words that hold 32 bits of data and the step number, written atomically, need no fence,
// but were slower: each column has to be tested. NOTES.md.)
//
//   warp     owns tiles of rows and nonzeros, or rows, as in step 06
//   block    arrives, and waits
#pragma once

#include "../06_pcsr/one_pass/spmv/agent.cuh"
#include "../06_pcsr/one_pass/spmv/rows.cuh"
#include "persistent_part.cuh"

namespace spmv::multigpu {

// Of a block, at most; one block per multiprocessor. With more, registers are spilled, or too few
// for the loads in flight (NOTES.md).
inline constexpr int kPersistentTilesThreads = 640;
inline constexpr int kPersistentRowsThreads = 768;

// What both kernels do before and after the product of a step. All threads of a block call begin()
// and end().
template <typename T>
class PersistentBlock {
 public:
  // warps_done: of the block, in shared memory.
  __device__ __forceinline__ PersistentBlock(const PartsHere<T>& here,
                                             const PersistentPart<T>& part, int block,
                                             unsigned& warps_done)
      : here_(here),
        part_(part),
        boundary_warps_(min(part.boundary_warps - block * static_cast<int>(blockDim.x / 32),
                            static_cast<int>(blockDim.x / 32))),
        warps_done_(warps_done) {
    if (threadIdx.x == 0) warps_done_ = 0;  // begin() has a barrier
  }

  // Waits until x of step k is there. False: a wait has timed out somewhere.
  __device__ __forceinline__ bool begin(int k) const {
    const int lane = threadIdx.x % 32;
    bool arrived = true;
    if (threadIdx.x < 32 && k > 0) {
      // Lane 0 waits for this part's blocks, the next ones for the neighbours'. These time out
      // first, so that the message names them.
      unsigned awaited = part_.own_part;
      if (lane == 0) {
        arrived = wait_until<cuda::thread_scope_device>(
            part_.arrivals, static_cast<unsigned>(here_.blocks) * k, 2 * here_.most_polls);
      } else if (lane <= part_.neighbours && boundary_warps_ > 0) {
        const Neighbour& neighbour = part_.neighbour[lane - 1];
        awaited = neighbour.number;
        arrived =
            wait_until(neighbour.arrivals_here, neighbour.arrivals_per_step * k, here_.most_polls);
      }
      if (!arrived) give_up(here_, part_, k, awaited);
    }
    return !__syncthreads_or(!arrived);
  }

  // Called by each warp that has boundary rows, when it has stored them: and read all its ghost
  // entries. The last one tells the neighbours.
  __device__ __forceinline__ void boundary_done(int k) const {
    const int lane = threadIdx.x % 32;
    bool is_last = false;
    __syncwarp();
    if (lane == 0) {
      const cuda::atomic_ref<unsigned, cuda::thread_scope_block> warps_done(warps_done_);
      is_last = warps_done.fetch_add(1, cuda::memory_order_acq_rel) ==
                static_cast<unsigned>(boundary_warps_) * (k + 1) - 1;
    }
    is_last = __shfl_sync(kAll, is_last, 0);
    __syncwarp();
    if (!is_last || lane >= part_.neighbours) return;
    const cuda::atomic_ref<unsigned> arrivals(*part_.neighbour[lane].arrivals_there);
    arrivals.fetch_add(1, cuda::memory_order_release);
  }

  __device__ __forceinline__ void end() const {
    __syncthreads();  // the block has stored all its entries
    if (threadIdx.x != 0) return;
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> own_arrivals(*part_.arrivals);
    own_arrivals.fetch_add(1, cuda::memory_order_release);
  }

 private:
  static constexpr unsigned kAll = 0xffffffffu;

  const PartsHere<T>& here_;
  const PersistentPart<T>& part_;
  const int boundary_warps_;  // of this block; not positive: none
  unsigned& warps_done_;      // with their boundary rows, of all steps
};

// x and y of one step; see PlainVectors in vectors.cuh.
template <typename T>
struct PersistentVectors {
  const PersistentPart<T>& part;
  const T* x;
  T* y;
  T factor;
  int step;

  __device__ __forceinline__ T element(int column) { return x[column]; }

  // Stores the entry, here and in the ghost entries of the neighbours that need it.
  __device__ __forceinline__ void store(int row, T sum) {
    const T entry = factor * sum;
    y[row] = entry;
    if (row >= part.boundary_rows) return;
    for (int r = 0; r < part.runs && part.run[r].begin <= row; ++r) {
      const Run<T>& run = part.run[r];
      if (row < run.end) run.ghosts[row - run.begin + (step + 1) % 2 * part.x_distance] = entry;
    }
  }
};

// Steps 0 to steps - 1. one_part: the GPU has no other (registers are scarce). Dynamic shared
// memory: a OnePassShared for each warp.
template <bool one_part, typename T>
__global__ void __launch_bounds__(kPersistentTilesThreads, 1)
    persistent_tiles_kernel(const __grid_constant__ PartsHere<T> here, int steps) {
  extern __shared__ __align__(16) unsigned char one_pass_shared[];
  __shared__ unsigned warps_done;
  const PersistentPart<T>& part = here.part[one_part ? 0 : blockIdx.x / here.blocks];
  const int block = one_part ? blockIdx.x : blockIdx.x % here.blocks;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const int warps = blockDim.x / 32;
  OnePassShared<T>& shared = reinterpret_cast<OnePassShared<T>*>(one_pass_shared)[warp];
  const PersistentBlock<T> frame(here, part, block, warps_done);

  for (int k = 0; k < steps; ++k) {
    PersistentVectors<T> vectors{part, part.x[k % 2], part.x[(k + 1) % 2], here.factor, k};
    const OnePassArguments<T>& a = part.product;
    bool has_begun = false;
    for (int tile = block * warps + warp; tile < a.tile_count; tile += here.blocks * warps) {
      OnePassAgent<T, PersistentVectors<T>> agent(a, shared, tile, vectors);
      if (!agent.is_empty()) {
        agent.load_first_items();
        agent.load_row_ends();
      }
      if (!has_begun && !frame.begin(k)) return;
      has_begun = true;
      multiply_tile(agent);
    }
    if (!has_begun && !frame.begin(k)) return;
    if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);
    frame.end();
  }
}

// Steps 0 to steps - 1, for a GPU with one part. See pcsr_rows_kernel; a group of lanes owns every
// n-th row, n groups in the part, so that all blocks have as many boundary rows.
template <int lanes, typename T>
__global__ void __launch_bounds__(kPersistentRowsThreads, 1)
    persistent_rows_kernel(const __grid_constant__ PartsHere<T> here, int steps) {
  static_assert(lanes <= 32, "a row is added up within a warp");
  __shared__ unsigned warps_done;
  const PersistentPart<T>& part = here.part[0];
  const int block = blockIdx.x;
  const int thread = block * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  const int groups = here.blocks * static_cast<int>(blockDim.x) / lanes;
  const int lane = thread % lanes;
  const PersistentBlock<T> frame(here, part, block, warps_done);

  for (int step = 0; step < steps; ++step) {
    PersistentVectors<T> vectors{part, part.x[step % 2], part.x[(step + 1) % 2], here.factor, step};
    int column[kRowsItemsPerThread];
    T value[kRowsItemsPerThread];
    int k = 0, end = 0, next_k = 0, next_end = 0;  // of the lane's row, and of the one after it
    const auto find = [&](int row) {
      next_k = next_end = 0;
      if (row < part.rows) {
        next_k = part.row_offsets[row] + lane;
        next_end = part.row_offsets[row + 1];
      }
    };
    const auto load = [&] {
      load_items<lanes>(here.read_once, part.column_indices, part.values, k, end, column, value);
    };
    find(thread / lanes);
    k = next_k, end = next_end;
    load();
    find(thread / lanes + groups);
    if (!frame.begin(step)) return;
    // All lanes of a warp stay together: they shuffle.
    int row = thread / lanes;
    for (int first = thread / 32 * 32 / lanes; first < part.rows; first += groups, row += groups) {
      T sum = 0;
      while (true) {
        T product[kRowsItemsPerThread];
#pragma unroll
        for (int j = 0; j < kRowsItemsPerThread; ++j) {
          product[j] = k + lanes * j < end ? value[j] * vectors.element(column[j]) : T{0};
        }
#pragma unroll
        for (int j = 0; j < kRowsItemsPerThread; ++j) sum += product[j];
        k += lanes * kRowsItemsPerThread;
        if (k >= end) break;
        load();
      }
      k = next_k, end = next_end;
      load();
      find(row + 2 * groups);
      __syncwarp();
#pragma unroll
      for (int distance = 1; distance < lanes; distance *= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      }
      if (lane == 0 && row < part.rows) vectors.store(row, sum);
      if (first < part.boundary_rows && first + groups >= part.boundary_rows) {
        frame.boundary_done(step);
      }
    }
    __syncwarp();
    frame.end();
  }
}

}  // namespace spmv::multigpu
