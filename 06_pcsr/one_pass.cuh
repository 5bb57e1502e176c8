// y = alpha A x + beta y for a CSR matrix in device memory, in one pass over the matrix: the
// fastest kernel of this repository, for use in other programs. Needs the CUDA runtime and the
// files beside it that it includes, nothing else.
//
//   spmv::OnePassPlan<double> plan;                            // or float
//   plan.create({rows, cols, nnz, row_offsets, column_indices});
//   plan.prepare(stream);                                      // looks at the rows, once
//   plan.multiply(alpha, values, x, beta, y, stream);          // as often as needed
//
// Every function returns a cudaError_t, also of launches; cudaSuccess if all is well.
//
// Copyright (c) 2026 the authors; MIT licence, see LICENSE.
#pragma once

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#endif

#include "one_pass_rows.cuh"
#include "one_pass_shares.cuh"
#include "one_pass_warp.cuh"

namespace spmv {

// --- Sizes --------------------------------------------------------------------------------------

// How a matrix is divided into shares. Functions of sizes alone, for the host and the device.
struct OnePassShape {
  unsigned window;  // rows and nonzeros per share
  int share_count;
  int warps_per_block;  // one share per warp
  int blocks;
};

inline constexpr int kOnePassOverhang = 512;     // nonzeros by which a row may exceed its share
inline constexpr int kOnePassWindow = 32768;     // of a share, at most,
inline constexpr int kOnePassWindowFarX = 8192;  // and where x does not fit in the L2 cache
inline constexpr int kOnePassLeastWindow = 192;  // three quarters of a step, see below

// One share for each warp that the device holds at once. More where they would be so long that the
// whole matrix and x would be read at the same time; fewer where they would be too small: a share
// may begin 8 nonzeros before its window and end a row behind it, so a window of three quarters of
// a step leaves room for one step to be enough; and what is stored per share must not exceed 2% of
// the matrix. Fewer shares make smaller blocks, not fewer of them, so that every multiprocessor has
// some.
template <typename T>
__host__ __device__ constexpr OnePassShape one_pass_shape(int rows, int cols, int nnz,
                                                          int resident_blocks, long long l2_bytes) {
  constexpr int kWarps = OnePassPolicy<T>::kThreads / 32;
  constexpr long long kPerShare = sizeof(Share) + 2 * sizeof(PartialSum<T>) + sizeof(unsigned);
  const long long positions = 1LL * rows + nnz;
  if (positions == 0) return {kOnePassLeastWindow, 0, 1, 0};
  const auto divide_up = [](long long a, long long b) { return (a + b - 1) / b; };
  const auto larger = [](long long a, long long b) { return a > b ? a : b; };
  const long long matrix_bytes = 4LL * (rows + 1LL) + nnz * static_cast<long long>(4 + sizeof(T));
  const long long most =
      cols * static_cast<long long>(sizeof(T)) <= l2_bytes ? kOnePassWindow : kOnePassWindowFarX;
  const long long least =
      larger(kOnePassLeastWindow, divide_up(50 * kPerShare * positions, matrix_bytes));
  const long long warps = 1LL * resident_blocks * kWarps;
  const long long rounds = divide_up(positions, warps * most);
  const long long window = larger(divide_up(positions, warps * rounds), least);
  const long long shares = divide_up(positions, window);
  long long per_block = divide_up(shares, resident_blocks);
  if (per_block > kWarps) per_block = kWarps;
  return {static_cast<unsigned>(window), static_cast<int>(shares), static_cast<int>(per_block),
          static_cast<int>(divide_up(shares, per_block))};
}

// How pcsr_rows_kernel would multiply: `lanes` per row, `items` nonzeros per lane at a time.
struct RowsShape {
  int lanes;
  int items;
};

inline constexpr int kRowsStatisticsThreads = 128;  // per block of prepare_one_pass_kernel
inline constexpr int kRowsStatisticsBlocks = 64;    // at most

// Lanes for a row of average length; more where there are too few rows to occupy the device.
__host__ __device__ constexpr RowsShape rows_shape(int rows, int nnz, int multiprocessors) {
  const int mean = rows > 0 ? (nnz - 1) / rows + 1 : 0;
  RowsShape shape{1, mean <= 4 ? 4 : 8};
  while (shape.lanes < 32 && shape.lanes * shape.items < mean) shape.lanes *= 2;
  while (shape.lanes < 32 && 1LL * rows * shape.lanes < 512LL * multiprocessors) shape.lanes *= 2;
  return shape;
}

// --- Preparation --------------------------------------------------------------------------------

// What one block found out about the rows; see RowRounds.
struct RowsStatistics {
  long long rounds;
  int most_rounds;
};

// The first share_blocks blocks find shares, one per warp; the others look at the row lengths, and
// leave a RowsStatistics each.
template <typename T>
__global__ void prepare_one_pass_kernel(int share_blocks, int share_count, unsigned window,
                                        int rows, int nnz, const int* row_offsets, Share* shares,
                                        PartialSum<T>* partial_sums, unsigned* unstarted,
                                        RowsShape shape, RowsStatistics* statistics) {
  constexpr int kWarps = kRowsStatisticsThreads / 32;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int block = static_cast<int>(blockIdx.x);
  if (block < share_blocks) {
    const int s = block * kWarps + warp;
    if (s > share_count) return;
    find_share(s, share_count, window, kOnePassOverhang, rows, nnz, row_offsets, shares,
               partial_sums, unstarted);
    return;
  }
  __shared__ RowsStatistics of_warp[kWarps];
  RowsStatistics found{0, 0};
  const int statistics_block = block - share_blocks;
  const int statistics_blocks = static_cast<int>(gridDim.x) - share_blocks;
  for (long long first = 32LL * (statistics_block * kWarps + warp); first < rows;
       first += 32LL * kWarps * statistics_blocks) {
    const RowRounds rounds =
        rounds_of_rows(static_cast<int>(first), rows, shape.lanes, shape.items, row_offsets);
    found.rounds += rounds.sum;
    found.most_rounds = max(found.most_rounds, rounds.most);
  }
  if (threadIdx.x % 32 == 0) of_warp[warp] = found;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) {
    found.rounds += of_warp[w].rounds;
    found.most_rounds = max(found.most_rounds, of_warp[w].most_rounds);
  }
  statistics[statistics_block] = found;
}

#ifndef __CUDACC_RTC__

// --- The plan -----------------------------------------------------------------------------------

// The pattern of a CSR matrix in device memory, which the caller owns. Row r has the nonzeros
// row_offsets[r], ..., row_offsets[r + 1] - 1; row_offsets[0] is 0. Columns of a row may be in any
// order. Indices have 32 bits: rows, cols and nnz are at most 2^31 - 1, and rows + nnz less than
// 2^32 - 2^16. Pointers need no more than the alignment of their type.
struct CsrPattern {
  int rows = 0;
  int cols = 0;
  int nnz = 0;
  const int* row_offsets = nullptr;     // rows + 1
  const int* column_indices = nullptr;  // nnz
};

enum class OnePassPath {
  kAutomatic,  // prepare() chooses, from the row lengths
  kShares,     // any matrix: equal shares, a segmented scan
  kRows,       // rows of about the same length, in small matrices: a group of lanes per row
};

struct OnePassOptions {
  // Lets a product start while the kernel before it in the stream ends (programmatic dependent
  // launch; ignored below compute capability 9.0). Saves one to two microseconds per product. The
  // kernel just before a product may then write x and y, but not the matrix: not the values, column
  // indices or row offsets. (Kernels before that one may, and so may copies and memsets.)
  bool overlap = false;
  OnePassPath path = OnePassPath::kAutomatic;
};

// What multiply() does for one matrix. Movable, not copyable.
//
// A plan belongs to the device that is current in create(), and is used while that one is current.
// At most one product of a plan may run at a time: use it in one stream, or order the streams by
// events; products that are to run at the same time need a plan each. The values may change from
// product to product, the pattern may not (after a change of the pattern with the same sizes, call
// prepare() again).
template <typename T>
class OnePassPlan {
 public:
  OnePassPlan() = default;
  OnePassPlan(OnePassPlan&& other) noexcept { swap(other); }
  OnePassPlan& operator=(OnePassPlan&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OnePassPlan() {
    cudaFree(owned_);
    cudaFreeHost(statistics_);
  }

  // Computes sizes and allocates: a few hundred bytes of pinned host memory and, unless `workspace`
  // is given, workspace_bytes() of device memory. Reads nothing of the matrix. `workspace` is
  // aligned to 16 bytes (as cudaMalloc's memory is) and stays the caller's.
  // Errors: cudaErrorInvalidValue for negative sizes, sizes beyond the limits, null pointers of
  // arrays that are not empty, or a misaligned workspace; those of the CUDA runtime.
  cudaError_t create(const CsrPattern& matrix, const OnePassOptions& options = {},
                     void* workspace = nullptr) {
    const long long positions = 1LL * matrix.rows + matrix.nnz;
    if (matrix.rows < 0 || matrix.cols < 0 || matrix.nnz < 0 || positions >= 0xffff0000ll ||
        (matrix.rows > 0 && !matrix.row_offsets) || (matrix.nnz > 0 && !matrix.column_indices) ||
        reinterpret_cast<std::size_t>(workspace) % 16 != 0) {
      return cudaErrorInvalidValue;
    }
    OnePassPlan fresh;
    fresh.matrix_ = matrix;
    fresh.options_ = options;
    cudaError_t error = fresh.set_shape();
    if (error == cudaSuccess) {
      error = cudaHostAlloc(&fresh.statistics_, kRowsStatisticsBlocks * sizeof(RowsStatistics),
                            cudaHostAllocMapped);
    }
    if (error == cudaSuccess && !workspace && fresh.workspace_bytes() > 0) {
      error = cudaMalloc(&fresh.owned_, fresh.workspace_bytes());
      workspace = fresh.owned_;
    }
    if (error != cudaSuccess) return error;
    const std::size_t shares = fresh.shape_.share_count;
    char* next = static_cast<char*>(workspace);
    fresh.partial_sums_ = reinterpret_cast<PartialSum<T>*>(next);
    next += 2 * shares * sizeof(PartialSum<T>);
    fresh.shares_ = reinterpret_cast<Share*>(next);
    next += (shares + 1) * sizeof(Share);
    fresh.unstarted_ = reinterpret_cast<unsigned*>(next);
    swap(fresh);
    return cudaSuccess;
  }

  // Bytes of workspace that create() takes for this matrix on the current device: at most 2% of the
  // matrix, and 16 KB.
  static cudaError_t workspace_bytes(const CsrPattern& matrix, std::size_t* bytes) {
    OnePassPlan plan;
    plan.matrix_ = matrix;
    const cudaError_t error = plan.set_shape();
    *bytes = plan.workspace_bytes();
    return error;
  }
  std::size_t workspace_bytes() const {
    const std::size_t shares = shape_.share_count;
    if (shares == 0) return 0;
    return 2 * shares * sizeof(PartialSum<T>) + (shares + 1) * sizeof(Share) +
           shares * sizeof(unsigned);
  }

  // Reads the row offsets on the device, divides the matrix into shares and chooses a path. Waits
  // for `stream`, so it cannot be captured. Needed once, before the first product.
  cudaError_t prepare(cudaStream_t stream) {
    if (shape_.share_count == 0) return cudaSuccess;
    const bool rows_possible = rows_may_suit();
    constexpr int kWarps = kRowsStatisticsThreads / 32;
    const int share_blocks = shape_.share_count / kWarps + 1;
    const int wanted = (matrix_.rows + kRowsStatisticsThreads - 1) / kRowsStatisticsThreads;
    const int statistics_blocks = !rows_possible                   ? 0
                                  : wanted < kRowsStatisticsBlocks ? wanted
                                                                   : kRowsStatisticsBlocks;
    cudaError_t error = launch(
        prepare_one_pass_kernel<T>, share_blocks + statistics_blocks, kRowsStatisticsThreads, 0,
        stream, false, share_blocks, shape_.share_count, shape_.window, matrix_.rows, matrix_.nnz,
        matrix_.row_offsets, shares_, partial_sums_, unstarted_, rows_shape_, statistics_);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) return error;
    RowsStatistics all{0, 0};
    for (int b = 0; b < statistics_blocks; ++b) {
      all.rounds += statistics_[b].rounds;
      if (statistics_[b].most_rounds > all.most_rounds)
        all.most_rounds = statistics_[b].most_rounds;
    }
    path_ = rows_possible && rows_suit(all) ? OnePassPath::kRows : OnePassPath::kShares;
    return cudaSuccess;
  }

  // y = alpha A x + beta y on `stream`: launches one kernel, allocates nothing and waits for
  // nothing; may be captured in a CUDA graph. values: nnz elements; x: cols; y: rows, not read if
  // beta is 0; y may not overlap x. Two products of the same data give the same bits.
  cudaError_t multiply(T alpha, const T* values, const T* x, T beta, T* y,
                       cudaStream_t stream) const {
    if (shape_.share_count == 0) return cudaSuccess;
    if (path_ == OnePassPath::kRows) return multiply_rows(alpha, values, x, beta, y, stream);
    const OnePassArguments<T> arguments{shape_.share_count,
                                        shape_.window,
                                        shares_,
                                        matrix_.row_offsets,
                                        matrix_.column_indices,
                                        values,
                                        alpha,
                                        x,
                                        beta,
                                        y,
                                        partial_sums_,
                                        unstarted_};
    return launch(pcsr_one_pass_kernel<T>, shape_.blocks, 32 * shape_.warps_per_block,
                  shape_.warps_per_block * sizeof(OnePassShared<T>), stream, overlaps(), arguments);
  }

  // Switches the overlap of later products on or off (OnePassOptions::overlap).
  void overlap(bool on) { options_.overlap = on; }

  // What prepare() chose.
  OnePassPath path() const { return path_; }
  const OnePassShape& shape() const { return shape_; }
  const RowsShape& rows_shape() const { return rows_shape_; }
  bool overlaps() const { return options_.overlap && overlap_supported_; }

 private:
  void swap(OnePassPlan& other) noexcept {
    std::swap(matrix_, other.matrix_);
    std::swap(options_, other.options_);
    std::swap(shape_, other.shape_);
    std::swap(rows_shape_, other.rows_shape_);
    std::swap(path_, other.path_);
    std::swap(overlap_supported_, other.overlap_supported_);
    std::swap(owned_, other.owned_);
    std::swap(statistics_, other.statistics_);
    std::swap(partial_sums_, other.partial_sums_);
    std::swap(shares_, other.shares_);
    std::swap(unstarted_, other.unstarted_);
  }

  // From the sizes and the current device.
  cudaError_t set_shape() {
    using Policy = OnePassPolicy<T>;
    constexpr std::size_t kBlockBytes = Policy::kThreads / 32 * sizeof(OnePassShared<T>);
    int device = 0;
    int multiprocessors = 0;
    int l2_bytes = 0;
    int major = 0;
    int shared_bytes = 0;
    int reserved_bytes = 0;
    int blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    const auto read = [&](int* value, cudaDeviceAttr attribute) {
      if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, device);
    };
    read(&multiprocessors, cudaDevAttrMultiProcessorCount);
    read(&l2_bytes, cudaDevAttrL2CacheSize);
    read(&major, cudaDevAttrComputeCapabilityMajor);
    read(&shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    read(&reserved_bytes, cudaDevAttrReservedSharedMemoryPerBlock);
    if (error == cudaSuccess) {
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, pcsr_one_pass_kernel<T>,
                                                            Policy::kThreads, kBlockBytes);
    }
    if (error != cudaSuccess) return error;
    if (blocks > Policy::kBlocks) blocks = Policy::kBlocks;
    if (blocks < 1) blocks = 1;
    // Shared memory and L1 cache are one memory: what the blocks do not need is left to the cache,
    // for x.
    const std::size_t wanted = Policy::kBlocks * (kBlockBytes + reserved_bytes);
    const std::size_t percent = (100 * wanted + shared_bytes - 1) / shared_bytes;
    error = cudaFuncSetAttribute(pcsr_one_pass_kernel<T>,
                                 cudaFuncAttributePreferredSharedMemoryCarveout,
                                 static_cast<int>(percent < 100 ? percent : 100));
    shape_ = one_pass_shape<T>(matrix_.rows, matrix_.cols, matrix_.nnz, blocks * multiprocessors,
                               l2_bytes);
    rows_shape_ = spmv::rows_shape(matrix_.rows, matrix_.nnz, multiprocessors);
    overlap_supported_ = major >= 9;
    return error;
  }

  // From the sizes: may rows be multiplied by groups of lanes?
  bool rows_may_suit() const {
    if (options_.path != OnePassPath::kAutomatic) return options_.path == OnePassPath::kRows;
    return matrix_.nnz <= kRowsMostNonzeros;
  }
  // From the row lengths: is at least 1 / kRowsMostSlack of the lanes' loads of a nonzero, and is
  // no row much longer than the others?
  bool rows_suit(const RowsStatistics& found) const {
    if (options_.path != OnePassPath::kAutomatic) return true;
    return found.most_rounds <= kRowsMostRounds &&
           static_cast<double>(found.rounds) * 32 * rows_shape_.items <=
               kRowsMostSlack * matrix_.nnz;
  }
  static constexpr int kRowsMostNonzeros = 0;
  static constexpr int kRowsMostRounds = 4;
  static constexpr double kRowsMostSlack = 2.5;

  cudaError_t multiply_rows(T alpha, const T* values, const T* x, T beta, T* y,
                            cudaStream_t stream) const {
    const auto with = [&](auto kernel) {
      const long long threads = 1LL * matrix_.rows * rows_shape_.lanes;
      return launch(kernel, static_cast<int>((threads + kRowsThreads - 1) / kRowsThreads),
                    kRowsThreads, 0, stream, overlaps(), matrix_.rows, matrix_.row_offsets,
                    matrix_.column_indices, values, alpha, x, beta, y);
    };
    const bool few = rows_shape_.items == 4;
    switch (rows_shape_.lanes) {
      case 1:
        return few ? with(pcsr_rows_kernel<1, 4, T>) : with(pcsr_rows_kernel<1, 8, T>);
      case 2:
        return few ? with(pcsr_rows_kernel<2, 4, T>) : with(pcsr_rows_kernel<2, 8, T>);
      case 4:
        return few ? with(pcsr_rows_kernel<4, 4, T>) : with(pcsr_rows_kernel<4, 8, T>);
      case 8:
        return few ? with(pcsr_rows_kernel<8, 4, T>) : with(pcsr_rows_kernel<8, 8, T>);
      case 16:
        return few ? with(pcsr_rows_kernel<16, 4, T>) : with(pcsr_rows_kernel<16, 8, T>);
      default:
        return few ? with(pcsr_rows_kernel<32, 4, T>) : with(pcsr_rows_kernel<32, 8, T>);
    }
  }

  template <typename... Parameters, typename... Arguments>
  static cudaError_t launch(void (*kernel)(Parameters...), int blocks, int threads,
                            std::size_t shared_bytes, cudaStream_t stream, bool overlap,
                            const Arguments&... arguments) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlap ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
  }

  CsrPattern matrix_;
  OnePassOptions options_;
  OnePassShape shape_ = {};
  RowsShape rows_shape_ = {};
  OnePassPath path_ = OnePassPath::kShares;
  bool overlap_supported_ = false;
  void* owned_ = nullptr;                 // device memory, if the caller gave none
  RowsStatistics* statistics_ = nullptr;  // pinned host memory, which the device writes
  PartialSum<T>* partial_sums_ = nullptr;
  Share* shares_ = nullptr;
  unsigned* unstarted_ = nullptr;
};

#endif  // __CUDACC_RTC__

}  // namespace spmv
