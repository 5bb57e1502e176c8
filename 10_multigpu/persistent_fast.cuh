// Step 10: the persistent kernels for speed: step 06's two paths on each GPU's part.
//
// What persistent_kernel does badly: two grid barriers per step; each thread is latency-bound, with
// one load in flight; a long row delays its warp. Here
// - each block adds its arrival to a counter of its own part, and waits once per step. Only blocks
//   that have boundary rows wait for neighbours; the warp that completes a block's boundary rows
//   adds the block's arrival to the neighbours' counters, while the others go on;
// - while a block waits, the first nonzeros of its next rows are prefetched;
// - rows of like lengths have a fixed number of lanes each (persistent_rows_kernel), others are
//   divided into shares of as many rows and nonzeros per warp (persistent_shares_kernel).
//
// Ghost entries are plain stores, and the block's arrival is a release behind them. Two buffers
// suffice: as in persistent.cuh, with the arrivals of a neighbour's boundary blocks in the place of
// its flag.
//
// The norm (if `factor` is 0): alpha of step k is the power of two that scales the x of step k, so
// no pass over x is needed. Each part stores its sum of squares at all others, in words that hold
// 32 bits of data and the step number: such a word is written atomically, so no fence is needed,
// and the reader polls the word itself. (NCCL's LL protocol; step 06's cut rows. Ghost entries in
// such words were slower than plain ones and a flag: each column has to be tested. NOTES.md.)
//
//   warp     owns shares of rows and nonzeros, or rows, as in step 06
//   block    arrives, and waits
#pragma once

#include "../06_pcsr/one_pass/agent.cuh"
#include "../06_pcsr/one_pass/rows.cuh"
#include "norm.cuh"
#include "persistent_part.cuh"

namespace spmv::multigpu {

// Of a block, at most; one block per multiprocessor. With more, registers are spilled, or too few
// for the loads in flight (NOTES.md).
inline constexpr int kPersistentSharesThreads = 640;
inline constexpr int kPersistentRowsThreads = 768;

// Stores a number as words of data and flag.
__device__ __forceinline__ void store_words(unsigned long long* words, double value,
                                            unsigned flag) {
  unsigned bits[2];
  split_words(value, bits);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const cuda::atomic_ref<unsigned long long> word(words[i]);
    word.store(static_cast<unsigned long long>(flag) << 32 | bits[i], cuda::memory_order_relaxed);
  }
}

// Waits for them. False: timed out.
__device__ __forceinline__ bool load_words(unsigned long long* words, unsigned flag,
                                           unsigned most_polls, double& value) {
  unsigned bits[2] = {};
  bool arrived = true;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const cuda::atomic_ref<unsigned long long> word(words[i]);
    unsigned long long found = word.load(cuda::memory_order_relaxed);
    for (unsigned polls = 0; found >> 32 != flag && polls < most_polls; ++polls) {
      found = word.load(cuda::memory_order_relaxed);
    }
    arrived = arrived && found >> 32 == flag;
    bits[i] = static_cast<unsigned>(found);
  }
  value = join_words(bits);
  return arrived;
}

// Of a block.
template <int most_threads>
struct PersistentShared {
  double squares_of_warp[most_threads / 32];
  unsigned warps_done;  // with their boundary rows, of all steps
  double norm_factor;
};

// What both kernels do before and after the product of a step. All threads of a block call begin()
// and end().
template <typename T, int most_threads>
class PersistentBlock {
 public:
  __device__ __forceinline__ PersistentBlock(const PartsHere<T>& here,
                                             const PersistentPart<T>& part, int block,
                                             PersistentShared<most_threads>& shared)
      : here_(here),
        part_(part),
        block_(block),
        boundary_warps_(min(part.boundary_warps - block * static_cast<int>(blockDim.x / 32),
                            static_cast<int>(blockDim.x / 32))),
        shared_(shared) {
    if (threadIdx.x == 0) shared_.warps_done = 0;  // begin() has a barrier
  }

  // Waits until x of step k is there, and finds alpha. False: a wait has timed out somewhere.
  __device__ __forceinline__ bool begin(int k, T& alpha) const {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int norm_warp = 1 % (blockDim.x / 32);
    bool arrived = true;
    if (warp == 0 && k > 0) {
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
    // All parts wait for the norm, so that none runs further ahead.
    if (here_.factor == 0 && warp == norm_warp) arrived = find_factor(k) && arrived;
    if (__syncthreads_or(!arrived)) return false;
    if (here_.factor == 0) alpha = static_cast<T>(shared_.norm_factor);
    return true;
  }

  // Called by each warp that has boundary rows, when it has stored them: and read all its ghost
  // entries. The last one tells the neighbours.
  __device__ __forceinline__ void boundary_done(int k) const {
    const int lane = threadIdx.x % 32;
    bool is_last = false;
    __syncwarp();
    if (lane == 0) {
      const cuda::atomic_ref<unsigned, cuda::thread_scope_block> warps_done(shared_.warps_done);
      is_last = warps_done.fetch_add(1, cuda::memory_order_acq_rel) ==
                static_cast<unsigned>(boundary_warps_) * (k + 1) - 1;
    }
    is_last = __shfl_sync(kAll, is_last, 0);
    __syncwarp();
    if (!is_last || lane >= part_.neighbours) return;
    const cuda::atomic_ref<unsigned> arrivals(*part_.neighbour[lane].arrivals_there);
    arrivals.fetch_add(1, cuda::memory_order_release);
  }

  // squares: of the entries that the thread has stored.
  __device__ __forceinline__ void end(int k, double squares) const {
    const bool has_norm = here_.factor == 0;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warps = blockDim.x / 32;
    if (has_norm) {
      const double of_warp = sum_of_warp(squares);
      if (lane == 0) shared_.squares_of_warp[warp] = of_warp;
    }
    __syncthreads();  // the block has stored all its entries
    if (warp != 0) return;
    bool is_last = false;
    if (lane == 0) {
      if (has_norm) {
        double of_block = 0;
        for (int w = 0; w < warps; ++w) of_block += shared_.squares_of_warp[w];
        sums_of_blocks(k)[block_] = of_block;
      }
      const unsigned all = static_cast<unsigned>(here_.blocks) * (k + 1);
      const cuda::atomic_ref<unsigned, cuda::thread_scope_device> own_arrivals(*part_.arrivals);
      if (has_norm) {
        is_last = own_arrivals.fetch_add(1, cuda::memory_order_acq_rel) == all - 1;
      } else {
        own_arrivals.fetch_add(1, cuda::memory_order_release);
      }
    }
    // The block that arrives last tells all parts this one's sum of squares.
    if (has_norm && __shfl_sync(kAll, is_last, 0)) {
      __syncwarp();  // what lane 0 has acquired
      double of_part = 0;
      for (int b = lane; b < here_.blocks; b += 32) of_part += __ldcg(&sums_of_blocks(k)[b]);
      of_part = __shfl_sync(kAll, sum_of_warp(of_part), 0);
      if (lane < here_.parts) {
        store_words(&part_.norms[lane][((k + 1) % 2 * here_.parts + part_.own_part) * 2], of_part,
                    static_cast<unsigned>(k) + 1);
      }
    }
  }

 private:
  static constexpr unsigned kAll = 0xffffffffu;

  // Those of step k - 1 may still be read.
  __device__ __forceinline__ double* sums_of_blocks(int k) const {
    return part_.block_sums + k % 2 * here_.blocks;
  }

  // False: timed out.
  __device__ __forceinline__ bool find_factor(int k) const {
    const int lane = threadIdx.x % 32;
    double norm = 0;
    bool arrived = true;
    if (lane < here_.parts && k > 0) {
      arrived = load_words(&part_.norms[part_.own_part][(k % 2 * here_.parts + lane) * 2],
                           static_cast<unsigned>(k), here_.most_polls, norm);
      if (!arrived) give_up(here_, part_, k, kAnyPart);
    }
    double sum = 0;
    for (int p = 0; p < here_.parts; ++p) sum += __shfl_sync(kAll, norm, p);
    if (lane == 0) shared_.norm_factor = k > 0 ? 1 / power_of_norm(sum) : 1;
    return arrived;
  }

  const PartsHere<T>& here_;
  const PersistentPart<T>& part_;
  const int block_;
  const int boundary_warps_;  // of this block; not positive: none
  PersistentShared<most_threads>& shared_;
};

// x and y of one step; see PlainVectors in vectors.cuh.
template <typename T>
struct PersistentVectors {
  const PersistentPart<T>& part;
  const T* x;
  T* y;
  T alpha;
  int step;
  double squares = 0;

  __device__ __forceinline__ T element(int column) { return x[column]; }

  // Stores the entry, here and in the ghost entries of the neighbours that need it.
  __device__ __forceinline__ void store(int row, T sum) {
    const T entry = alpha * sum;
    y[row] = entry;
    squares += static_cast<double>(entry) * static_cast<double>(entry);
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
__global__ void __launch_bounds__(kPersistentSharesThreads, 1)
    persistent_shares_kernel(const __grid_constant__ PartsHere<T> here, int steps) {
  extern __shared__ __align__(16) unsigned char one_pass_shared[];
  __shared__ PersistentShared<kPersistentSharesThreads> shared_of_block;
  const PersistentPart<T>& part = here.part[one_part ? 0 : blockIdx.x / here.blocks];
  const int block = one_part ? blockIdx.x : blockIdx.x % here.blocks;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const int warps = blockDim.x / 32;
  OnePassShared<T>& shared = reinterpret_cast<OnePassShared<T>*>(one_pass_shared)[warp];
  const PersistentBlock<T, kPersistentSharesThreads> frame(here, part, block, shared_of_block);

  for (int k = 0; k < steps; ++k) {
    PersistentVectors<T> vectors{part, part.x[k % 2], part.x[(k + 1) % 2],
                                 static_cast<T>(here.factor), k};
    const OnePassArguments<T>& a = part.product;
    bool has_begun = false;
    for (int tile = block * warps + warp; tile < a.tile_count; tile += here.blocks * warps) {
      OnePassAgent<T, PersistentVectors<T>> agent(a, shared, tile, vectors);
      if (!agent.is_empty()) {
        agent.load_first_items();
        agent.load_row_ends();
      }
      if (!has_begun && !frame.begin(k, vectors.alpha)) return;
      has_begun = true;
      multiply_tile(agent);
    }
    if (!has_begun && !frame.begin(k, vectors.alpha)) return;
    if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);
    frame.end(k, vectors.squares);
  }
}

// Steps 0 to steps - 1, for a GPU with one part. See pcsr_rows_kernel; a group of lanes owns every
// n-th row, n groups in the part, so that all blocks have as many boundary rows.
template <int lanes, typename T>
__global__ void __launch_bounds__(kPersistentRowsThreads, 1)
    persistent_rows_kernel(const __grid_constant__ PartsHere<T> here, int steps) {
  static_assert(lanes <= 32, "a row is added up within a warp");
  __shared__ PersistentShared<kPersistentRowsThreads> shared;
  const PersistentPart<T>& part = here.part[0];
  const int block = blockIdx.x;
  const int thread = block * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  const int groups = here.blocks * static_cast<int>(blockDim.x) / lanes;
  const int lane = thread % lanes;
  const PersistentBlock<T, kPersistentRowsThreads> frame(here, part, block, shared);

  for (int step = 0; step < steps; ++step) {
    PersistentVectors<T> vectors{part, part.x[step % 2], part.x[(step + 1) % 2],
                                 static_cast<T>(here.factor), step};
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
    if (!frame.begin(step, vectors.alpha)) return;
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
    frame.end(step, vectors.squares);
  }
}

}  // namespace spmv::multigpu
