// Step 10, what it is for: A x = b on several GPUs by conjugate gradients, one kernel per GPU.
//   nvcc -std=c++20 -arch=native -DSPMV_CUDA -Xcompiler -fopenmp,-U__NVCC__ -I../common -lfmt -lz
//        conjugate_gradients.cu ../common/{sparse,device}/*.cpp -o conjugate_gradients   (one line)
//   ./conjugate_gradients MATRIX    on all GPUs (CUDA_VISIBLE_DEVICES=0,1: these two)
// MATRIX: a file (symmetric and positive definite), or a grid: stencil3d:192x192x192,points=27
//
// Parts, ghost entries and boundary rows are those of minimal.cu. An iteration is
//     w = A r,  gamma = r.r,  delta = r.w          each GPU for its own rows
//     all-reduce of gamma and delta                every block tells every block of every GPU
//     beta = gamma / gamma_before,  alpha = gamma / (delta - beta gamma / alpha_before)
//     p = r + beta p,  s = w + beta s,  x += alpha p,  r -= alpha s
//     r of boundary rows to the neighbours; barrier of the GPU's own blocks
// r is updated in boundary rows first and multiplied in interior rows first, so that ghost entries
// travel meanwhile: only warps with boundary rows wait for neighbours.
//
// This is Chronopoulos and Gear's form (1989): one all-reduce per iteration. The textbook's has
// two, the second of which needs the first's alpha; it reads or writes a vector 10 times, this one
// 11 times (s = A p is kept). Pipelined forms hide the all-reduce behind the product and take 15:
// with more than some 100,000 rows per GPU that costs more time than the all-reduce.
//
// All blocks of all GPUs have computed their w before any block passes the all-reduce. So r may be
// overwritten then, ghost entries included, and needs no second buffer.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cuda/atomic>
#include <functional>
#include <numeric>
#include <vector>

#include "../06_pcsr/one_pass/spmv/rows.cuh"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "sequential.hpp"

namespace device = spmv::device;
using device::check;
constexpr int kMaxGpus = 16;          // at most 32, the bits of a mask
constexpr int kThreads = 768;         // per block, at most; one block per multiprocessor
constexpr int kItems = 8;             // nonzeros per lane and window
constexpr int kWindow = 32 * kItems;  // nonzeros that a warp multiplies at a time
constexpr int kSharedBytes = kThreads / 32 * kWindow * 8;
constexpr double kTolerance = 1e-8;     // of |b - A x| / |b|
constexpr unsigned kAll = 0xffffffffu;  // lanes; also the lower half of a word
using Word = unsigned long long;        // the number of an iteration, and half a sum of it

struct Result {
  int iterations;  // -1: no step along p is possible (alpha is not positive)
  double gamma;    // r.r
};

// What the kernel on one GPU knows. A tile is 32 rows, a boundary tile has a boundary row.
struct Part {
  int gpu, gpus;
  unsigned neighbours;  // a bit per GPU that reads entries of this one, which then reads its own
  int first, rows, tiles, boundary_tiles;
  bool read_once;             // the matrix: it exceeds the L2 cache, which is left to the vectors
  const int* tile_order;      // boundary tiles first
  const unsigned* receivers;  // of each row: a bit per other GPU that reads its entry of r
  const int* row_offsets;
  const int* column_indices;
  const double* values;
  double *w, *p, *s, *x;  // of this GPU's rows
  Result* result;
  double* r[kMaxGpus];           // on every GPU: of all rows, of which it has its own and ghosts
  unsigned* arrivals[kMaxGpus];  // on every GPU: how many blocks of each GPU have stored their r
  Word* words[kMaxGpus];         // on every GPU: the sums of all blocks, of two iterations
};

struct Sums {
  double gamma, delta;
};

// The sums over a warp, in all its lanes.
__device__ Sums add_up_warp(Sums sums) {
  for (int distance = 16; distance > 0; distance /= 2) {
    sums.gamma += __shfl_xor_sync(kAll, sums.gamma, distance);
    sums.delta += __shfl_xor_sync(kAll, sums.delta, distance);
  }
  return sums;
}

// The sums over a block, in all its threads. Two calls in a row need two arrays of_warps.
__device__ Sums add_up_block(Sums sums, Sums* of_warps) {
  const unsigned lane = threadIdx.x % 32;
  sums = add_up_warp(sums);
  if (lane == 0) of_warps[threadIdx.x / 32] = sums;
  __syncthreads();
  return add_up_warp(lane < blockDim.x / 32 ? of_warps[lane] : Sums{0, 0});
}

// The sums over all blocks of all GPUs, in all threads: always in the same order, so with the same
// bits everywhere and in every run. A word says which iteration it is of: no flag is needed, which
// could be stored only after the word has arrived. Two sets of words suffice: a block stores those
// of iteration k + 2 when it has those of k + 1, whose senders have read those of k.
__device__ Sums all_reduce(const Part& part, unsigned k, Sums sums, Sums (*of_warps)[32]) {
  sums = add_up_block(sums, of_warps[0]);
  const unsigned slots = part.gpus * gridDim.x, set = k % 2 * 4;
  if (threadIdx.x < 4u * part.gpus) {
    const int g = threadIdx.x / 4, i = threadIdx.x % 4;
    const Word bits = __double_as_longlong(i < 2 ? sums.gamma : sums.delta);
    cuda::atomic_ref<Word> word(
        part.words[g][(set + i) * slots + part.gpu * gridDim.x + blockIdx.x]);
    // Release: this block has read all entries of r that others may now overwrite.
    word.store(Word{k + 1} << 32 | (bits >> i % 2 * 32 & kAll), cuda::memory_order_release);
  }
  sums = {0, 0};
  for (unsigned slot = threadIdx.x; slot < slots; slot += blockDim.x) {
    Word* const words = part.words[part.gpu] + set * slots + slot;
    const auto load = [&](int i, cuda::memory_order order) {
      return cuda::atomic_ref<Word>(words[i * slots]).load(order);
    };
    Word a, b, c, d;
    do {  // four loads in flight: the last one alone is an acquire
      a = load(0, cuda::memory_order_relaxed), b = load(1, cuda::memory_order_relaxed);
      c = load(2, cuda::memory_order_relaxed), d = load(3, cuda::memory_order_acquire);
    } while (a >> 32 != k + 1 || b >> 32 != k + 1 || c >> 32 != k + 1 || d >> 32 != k + 1);
    sums.gamma += __longlong_as_double(b << 32 | (a & kAll));
    sums.delta += __longlong_as_double(d << 32 | (c & kAll));
  }
  return add_up_block(sums, of_warps[1]);
}

// Waits until all blocks of GPU g have stored their r of iteration k.
template <cuda::thread_scope scope>
__device__ void wait_for(const Part& part, int g, unsigned k) {
  const cuda::atomic_ref<unsigned, scope> arrivals(part.arrivals[part.gpu][g]);
  while (arrivals.load(cuda::memory_order_acquire) < k * gridDim.x) continue;
}

// w = A r in this warp's tiles, boundary tiles last; of this lane's rows r.r and r.w. The warp
// reads windows of consecutive nonzeros, coalesced whatever the rows' lengths, and leaves the
// products in shared memory. There each lane adds up those of its row, in their order, while the
// next window is loaded.
__device__ Sums multiply(const Part& part, unsigned k, double* products) {
  const double* r = part.r[part.gpu];
  const int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
  const int interior_tiles = part.tiles - part.boundary_tiles;
  int row, begin, end, next_row, next_begin, next_end;  // of this lane in this tile and the next
  const auto find = [&](int i) {
    const int place = i < interior_tiles ? i + part.boundary_tiles : i - interior_tiles;
    next_row = i < part.tiles ? part.tile_order[place] * 32 + lane : part.rows;
    next_begin = part.row_offsets[min(next_row, part.rows)];
    next_end = part.row_offsets[min(next_row + 1, part.rows)];
  };
  int column[kItems];
  double value[kItems];
  const auto load = [&](int from, int last) {
    spmv::detail::load_items<32>(part.read_once, part.column_indices, part.values, from + lane,
                                 last, column, value);
  };
  // Of a tile. Its first window begins with a whole sector: 8 columns, 32 bytes.
  const auto load_next = [&] {
    load(__shfl_sync(kAll, next_begin, 0) & ~7, __shfl_sync(kAll, next_end, 31));
  };

  Sums sums{0, 0};
  bool has_ghosts = false;
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  find(i);
  load_next();
  for (; i < part.tiles; i += warps) {
    row = next_row, begin = next_begin, end = next_end;
    find(i + warps);
    if (i >= interior_tiles && !has_ghosts) {
      if (lane < part.gpus && part.neighbours >> lane & 1)
        wait_for<cuda::thread_scope_system>(part, lane, k);
      __syncwarp();
      has_ghosts = true;
    }
    const int first = __shfl_sync(kAll, begin, 0), last = __shfl_sync(kAll, end, 31);
    double sum = 0;
    int window = first & ~7;
    do {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int n = window + 32 * j + lane;
        if (n >= first && n < last) products[32 * j + lane] = value[j] * r[column[j]];
      }
      if (window + kWindow < last)
        load(window + kWindow, last);
      else
        load_next();
      __syncwarp();
      const int row_end = min(end, window + kWindow);
      for (int j = max(begin, window); j < row_end; ++j) sum += products[j - window];
      __syncwarp();
      window += kWindow;
    } while (window < last);
    if (row >= part.rows) continue;
    const double own = r[part.first + row];
    part.w[row] = sum;
    sums.gamma += own * own;
    sums.delta += own * sum;
  }
  return sums;
}

// Iterates until r.r <= limit. Grid: all blocks are resident (a cooperative launch), of 64 threads
// or more.
__global__ void __launch_bounds__(kThreads, 1)
    solve_kernel(const __grid_constant__ Part part, double limit) {
  extern __shared__ double products[];  // kWindow per warp
  __shared__ Sums of_warps[2][32];
  const int warps = gridDim.x * blockDim.x / 32, thread = threadIdx.x;
  double* const r = part.r[part.gpu] + part.first;
  double gamma_before = 1, alpha = 1;
  for (int k = 0;; ++k) {
    const Sums own = multiply(part, k, products + thread / 32 * kWindow);
    const auto [gamma, delta] = all_reduce(part, k, own, of_warps);
    const double beta = k > 0 ? gamma / gamma_before : 0;
    const double divisor = delta - beta * gamma / alpha;
    const bool is_done = gamma <= limit || k == kMostIterations;
    if (is_done || !(divisor > 0)) {  // everywhere in the same iteration: the bits are the same
      if (blockIdx.x == 0 && thread == 0) *part.result = {is_done ? k : -1, gamma};
      return;
    }
    gamma_before = gamma, alpha = gamma / divisor;
    for (int t = (blockIdx.x * blockDim.x + thread) / 32; t < part.tiles; t += warps) {
      const int i = part.tile_order[t] * 32 + thread % 32;
      if (i >= part.rows) continue;
      const double p = r[i] + beta * part.p[i], s = part.w[i] + beta * part.s[i];
      const double x = part.x[i] + alpha * p, next = r[i] - alpha * s;
      part.p[i] = p, part.s[i] = s, part.x[i] = x, r[i] = next;
      for (int g = 0; g < part.gpus && t < part.boundary_tiles; ++g) {
        if (part.receivers[i] >> g & 1) part.r[g][part.first + i] = next;
      }
    }
    __syncthreads();  // all of this block's entries are stored
    const int g = thread - 32;
    if (g >= 0 && g < part.gpus && (part.neighbours >> g & 1)) {
      cuda::atomic_ref<unsigned> there(part.arrivals[g][part.gpu]);
      there.fetch_add(1, cuda::memory_order_release);
    }
    if (thread == 0) {  // of another warp than those: it does not wait for the link
      cuda::atomic_ref<unsigned, cuda::thread_scope_device> here(part.arrivals[part.gpu][part.gpu]);
      here.fetch_add(1, cuda::memory_order_release);
      wait_for<cuda::thread_scope_device>(part, part.gpu, k + 1);
    }
    __syncthreads();
  }
}

// A copy on the current GPU, which nothing frees before the program ends.
template <typename T>
T* to_gpu(const std::vector<T>& host) {
  T* data = nullptr;
  check(cudaMalloc(&data, (host.size() + 1) * sizeof(T)), "allocating memory");
  check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyDefault), "copying");
  return data;
}

struct Problem {
  std::vector<int> cuts;                // GPU g owns rows cuts[g] to cuts[g + 1] - 1
  std::vector<unsigned> receivers;      // of each row: a bit per other GPU that reads its entry
  std::vector<Part> parts;              // a GPU each, with as many nonzeros as the others
  std::vector<device::Stream> streams;  // of each
  int blocks, threads;                  // of each grid
};

// Ready to run: x = 0, r = b. Throws InputError where GPUs cannot reach each other.
Problem prepare(const Csr& a, const Vector& b, int gpus) {
  Problem problem{cut_by_nonzeros(a, gpus), {}, std::vector<Part>(gpus), {}, 0, 0};
  auto& [cuts, receivers, parts, streams, blocks, threads] = problem;
  receivers = receivers_of(a, cuts);
  int tiles = 0;  // of the GPU that has most
  for (int g = 0; g < gpus; ++g) tiles = std::max(tiles, (cuts[g + 1] - cuts[g] + 31) / 32);
  blocks = std::min(tiles, device::attribute(cudaDevAttrMultiProcessorCount));
  threads = 32 * std::clamp((tiles - 1) / blocks + 1, 2, kThreads / 32);
  const std::string fault = device::connect_devices(gpus);
  if (!fault.empty()) throw spmv::InputError(fault);
  for (int g = 0; g < gpus; ++g) {
    const device::OnDevice on(g);
    streams.emplace_back();
    constexpr auto kMost = cudaFuncAttributeMaxDynamicSharedMemorySize;
    check(cudaFuncSetAttribute(solve_kernel, kMost, kSharedBytes), "shared memory");
    const Csr own = spmv::slice_of(a, cuts[g], cuts[g + 1]);
    Part& part = parts[g];
    part.gpu = g, part.gpus = gpus, part.first = cuts[g], part.rows = own.rows;
    const unsigned* const of_rows = receivers.data() + part.first;
    part.neighbours = std::reduce(of_rows, of_rows + part.rows, 0u, std::bit_or());
    part.read_once =
        12.0 * own.nnz() + 40.0 * own.rows > 0.75 * device::attribute(cudaDevAttrL2CacheSize);
    part.tile_order = to_gpu(order_tiles(of_rows, part.rows, part.boundary_tiles));
    part.receivers = to_gpu(std::vector(of_rows, of_rows + part.rows));
    part.row_offsets = to_gpu(own.row_offsets), part.column_indices = to_gpu(own.column_indices);
    part.values = to_gpu(own.values), part.tiles = (own.rows + 31) / 32;
    for (double** v : {&part.w, &part.p, &part.s, &part.x}) *v = to_gpu(Vector(part.rows));
    part.result = to_gpu(std::vector<Result>(1));
    double* const there = to_gpu(known_entries(b, g, cuts, receivers));
    unsigned* const arrivals = to_gpu(std::vector<unsigned>(gpus));
    Word* const words = to_gpu(std::vector<Word>(8L * gpus * blocks));
    for (Part& other : parts) {
      other.r[g] = there, other.arrivals[g] = arrivals, other.words[g] = words;
    }
    check(cudaDeviceSynchronize(), "preparing");  // no kernel starts before all is set
  }
  return problem;
}

// Runs the kernels to their end. The result of all GPUs is the same.
Result solve(const Problem& problem, double limit) {
  Result result{};
  for (const Part& part : problem.parts) {  // all are launched before any is waited for
    const device::OnDevice on(part.gpu);
    device::launch_cooperative(solve_kernel,
                               {dim3(problem.blocks), dim3(problem.threads), kSharedBytes,
                                problem.streams[part.gpu].get()},
                               part, limit);
  }
  for (const Part& part : problem.parts) {
    problem.streams[part.gpu].synchronize();
    check(cudaMemcpy(&result, part.result, sizeof result, cudaMemcpyDefault), "copying");
  }
  return result;
}

Vector x_of(const Problem& problem) {
  Vector x(problem.cuts.back());
  for (const Part& part : problem.parts) {
    check(cudaMemcpy(x.data() + part.first, part.x, part.rows * 8L, cudaMemcpyDefault), "copying");
  }
  return x;
}

#ifndef CONJUGATE_GRADIENTS_AS_HEADER
int main(int argc, char** argv) try {
  int gpus = 0;
  const bool has_gpus = cudaGetDeviceCount(&gpus) == cudaSuccess && 0 < gpus && gpus <= kMaxGpus;
  if (!has_gpus || argc != 2) {
    std::fprintf(stderr, "usage: conjugate_gradients MATRIX, with 1 to 16 GPUs\n");
    return 2;
  }
  const Csr a = load(argv[1]).csr;
  const Vector b = make_b(a.rows);
  const double limit = kTolerance * kTolerance * dot(b, b);
  const Problem problem = prepare(a, b, gpus);
  for (const Part& part : problem.parts)
    std::printf("GPU %d: %d rows, %d of %d tiles have boundary rows\n", part.gpu, part.rows,
                part.boundary_tiles, part.tiles);
  const Result result = solve(problem, limit);
  if (result.iterations < 0)
    throw spmv::InputError("not symmetric and positive definite, or too ill-conditioned");
  const double residual = residual_of(a, b, x_of(problem));
  const bool right = residual <= 2 * kTolerance;
  std::printf("%d iterations, a sequential solver %d; |b - A x| / |b| = %.2e: %s\n",
              result.iterations, sequential_iterations(a, b, limit), residual,
              right ? "verified" : "WRONG");
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s: %s\n", argv[1], error.what());
  return 2;
}
#endif
