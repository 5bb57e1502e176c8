// Step 10: the persistent kernel for speed: step 06's warp agent on each GPU's part.
//
// What persistent_kernel does badly: two grid barriers per step; each thread is latency-bound, with
// one load in flight; a long row delays its warp. Here
// - each warp has a share of rows and nonzeros (06_pcsr/one_pass_shares.cuh). Boundary rows are in
//   the first shares;
// - each block adds its arrival to counters of its own part and of the neighbours, and waits once
//   per step. Only blocks that have boundary rows wait for neighbours;
// - while a block waits, the first nonzeros of its next shares are prefetched.
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
//   warp     owns shares of rows and nonzeros, as in step 06
//   block    arrives, and waits
#pragma once

#include "../06_pcsr/one_pass_warp.cuh"
#include "norm.cuh"
#include "persistent_part.cuh"

namespace spmv::multigpu {

inline constexpr int kPersistentThreads = 768;  // of a block, at most; one per multiprocessor

// Stores an entry as words of data and flag.
template <typename T>
__device__ __forceinline__ void store_words(unsigned long long* words, T value, unsigned flag) {
  unsigned bits[sizeof(T) / 4];
  split_words(value, bits);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
    const cuda::atomic_ref<unsigned long long> word(words[i]);
    word.store(static_cast<unsigned long long>(flag) << 32 | bits[i], cuda::memory_order_relaxed);
  }
}

// Waits for them. False: timed out.
template <typename T>
__device__ __forceinline__ bool load_words(unsigned long long* words, unsigned flag,
                                           unsigned most_polls, T& value) {
  unsigned bits[sizeof(T) / 4] = {};
  bool arrived = true;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) {
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

// x and y of one step; see PlainVectors in one_pass_warp.cuh.
template <typename T>
struct PersistentVectors {
  const PersistentPart<T>& part;
  const T* x;
  T alpha;
  int step;
  double squares = 0;

  __device__ __forceinline__ T element(int column) { return x[column]; }

  __device__ __forceinline__ void stored(int row, T entry) {
    squares += static_cast<double>(entry) * static_cast<double>(entry);
    if (row >= part.boundary_rows) return;
    for (int s = part.send_offsets[row]; s < part.send_offsets[row + 1]; ++s) {
      *part.sends[s].place[(step + 1) % 2] = entry;
    }
  }
};

// Steps 0 to steps - 1. Dynamic shared memory: a OnePassShared for each warp.
template <typename T>
__global__ void __launch_bounds__(kPersistentThreads, 1)
    persistent_fast_kernel(const __grid_constant__ PartsHere<T> here, int steps) {
  constexpr unsigned kAll = 0xffffffffu;
  extern __shared__ __align__(16) unsigned char one_pass_shared[];
  __shared__ double squares_of_warp[kPersistentThreads / 32];
  const PersistentPart<T>& part = here.part[blockIdx.x / here.blocks];
  const int block = blockIdx.x % here.blocks;
  const int lane = threadIdx.x % 32;
  const int warp = __shfl_sync(kAll, threadIdx.x / 32, 0);
  const int warps = blockDim.x / 32;
  OnePassShared<T>& shared = reinterpret_cast<OnePassShared<T>*>(one_pass_shared)[warp];
  const bool at_boundary = block < part.boundary_blocks;
  const bool has_norm = here.factor == 0;
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> own_arrivals(*part.arrivals);

  for (int k = 0; k < steps; ++k) {
    PersistentVectors<T> vectors{part, part.x[k % 2], static_cast<T>(here.factor), k};
    const OnePassArguments<T>& a = part.product[k % 2];
    // Lane 0 waits for this part's blocks, the next ones for the neighbours'.
    const auto wait = [&] {
      bool ends = false;
      if (warp == 0 && k > 0) {
        bool arrived = true;
        unsigned awaited = part.own_part;
        if (lane == 0) {
          arrived = wait_until<cuda::thread_scope_device>(
              part.arrivals, static_cast<unsigned>(here.blocks) * k, here.most_polls);
        } else if (lane <= part.neighbours && at_boundary) {
          const Neighbour& neighbour = part.neighbour[lane - 1];
          awaited = neighbour.number;
          arrived =
              wait_until(neighbour.arrivals_here, neighbour.arrivals_per_step * k, here.most_polls);
        }
        if (!arrived) give_up(here, part, k, awaited);
        ends = atomicAdd(here.stuck, 0u) != 0;
      }
      return __syncthreads_or(ends) != 0;
    };
    const auto find_factor = [&] {
      double norm = 0;
      if (lane < here.parts && k > 0) {
        const bool arrived = load_words(&part.norms[part.own_part][(k % 2 * here.parts + lane) * 2],
                                        static_cast<unsigned>(k), here.most_polls, norm);
        if (!arrived) give_up(here, part, k, kAnyPart);
      }
      double sum = 0;
      for (int p = 0; p < here.parts; ++p) sum += __shfl_sync(kAll, norm, p);
      vectors.alpha = static_cast<T>(k > 0 ? 1 / power_of_norm(sum) : 1);
    };

    const auto start = [&] {
      const bool ends = wait();
      if (has_norm && !ends) find_factor();  // so that no part runs further ahead than the others
      return !ends;
    };

    int share = block * warps + warp;
    const int all_warps = here.blocks * warps;
    bool has_started = false;
    for (; share < a.share_count; share += all_warps) {
      OnePassWarp<T, PersistentVectors<T>> agent(a, shared, share, vectors);
      if (!agent.is_empty()) {
        agent.load_first_step();
        agent.load_row_ends();
      }
      if (!has_started && !start()) return;
      has_started = true;
      multiply_share(agent);
    }
    if (!has_started && !start()) return;

    if (has_norm) {
      const double of_warp = sum_of_warp(vectors.squares);
      if (lane == 0) squares_of_warp[warp] = of_warp;
    }
    __syncthreads();  // the block has stored all its entries, and read all its ghost entries
    if (warp == 1 % warps && lane < part.neighbours && at_boundary) {
      const cuda::atomic_ref<unsigned> arrivals(*part.neighbour[lane].arrivals_there);
      arrivals.fetch_add(1, cuda::memory_order_release);
    }
    if (warp != 0) continue;
    bool is_last = false;
    if (lane == 0) {
      if (has_norm) {
        double of_block = 0;
        for (int w = 0; w < warps; ++w) of_block += squares_of_warp[w];
        part.block_sums[block] = of_block;
      }
      const unsigned all = static_cast<unsigned>(here.blocks) * (k + 1);
      is_last = own_arrivals.fetch_add(1, cuda::memory_order_acq_rel) == all - 1;
    }
    // The block that arrives last tells all parts this one's sum of squares.
    if (has_norm && __shfl_sync(kAll, is_last, 0)) {
      double of_part = 0;
      for (int b = lane; b < here.blocks; b += 32) of_part += __ldcg(&part.block_sums[b]);
      of_part = __shfl_sync(kAll, sum_of_warp(of_part), 0);
      if (lane < here.parts) {
        store_words(&part.norms[lane][((k + 1) % 2 * here.parts + part.own_part) * 2], of_part,
                    static_cast<unsigned>(k) + 1);
      }
    }
  }
}

}  // namespace spmv::multigpu
