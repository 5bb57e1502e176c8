// y = alpha A x + beta y for a CSR matrix in device memory, in one pass over the matrix: the
// fastest kernel of this repository, for use in other programs. Needs the CUDA runtime and the
// files beside it that it includes, nothing else.
//
//   spmv::OnePassPlan<double> plan;                            // or float
//   plan.create({rows, cols, nnz, row_offsets, column_indices});
//   plan.prepare(stream);                                      // looks at the rows, once
//   plan.multiply(alpha, values, x, beta, y, stream);          // as often as needed
//   plan.multiply(values, x, y, z, epilogue, stream);          // z = epilogue(row, A x, y)
//   plan.multiply_several(8, alpha, values, x, beta, y, stream);  // 8 vectors at once, row-major
//   plan.multiply_transposed(alpha, values, x, beta, y, stream);  // y = alpha A^T x + beta y
//
// Every function that does something returns a cudaError_t, also of launches; cudaSuccess if all is
// well.
//
// Copyright (c) 2026 the authors; MIT licence, see LICENSE.
#pragma once

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <utility>
#endif

#include "agent.cuh"
#include "block_tiles.cuh"
#include "rows.cuh"
#include "several.cuh"
#include "several_rows.cuh"
#include "tiles.cuh"
#include "transposed.cuh"
#include "vectors.cuh"

namespace spmv {

// --- Sizes --------------------------------------------------------------------------------------

// How a matrix is divided into tiles. Functions of sizes alone, for the host and the device.
struct OnePassShape {
  unsigned tile_items;  // rows and nonzeros per tile
  int tile_count;
  int warps_per_block;  // one tile per warp
  int blocks;
};

inline constexpr int kOnePassOverhang = 512;        // nonzeros by which a row may exceed its tile
inline constexpr int kOnePassMostItems = 32768;     // of a tile, at most,
inline constexpr int kOnePassMostItemsFarX = 8192;  // and where x does not fit in the L2 cache
inline constexpr int kOnePassLeastItems = 192;      // three quarters of an iteration, see below

// One tile for each warp that the device holds at once. More where they would be so long that the
// whole matrix and x would be read at the same time; fewer where they would be too small: a tile
// may begin up to 8 nonzeros early and end a row late, so tile_items of three quarters of an
// iteration leave room for one iteration to be enough; and what is stored per tile must not exceed
// 2% of the matrix. Fewer tiles make smaller blocks, not fewer of them, so that every
// multiprocessor has some.
template <typename T, typename Value = T>
__host__ __device__ constexpr OnePassShape one_pass_shape(int rows, int cols, int nnz,
                                                          int resident_blocks, long long l2_bytes) {
  constexpr int kWarps = OnePassPolicy<T>::kThreads / 32;
  constexpr long long kPerTile = sizeof(Tile) + 2 * sizeof(PartialSum<T>) + sizeof(unsigned);
  const long long positions = 1LL * rows + nnz;
  if (positions == 0) return {kOnePassLeastItems, 0, 1, 0};
  const auto divide_up = [](long long a, long long b) { return (a + b - 1) / b; };
  const auto larger = [](long long a, long long b) { return a > b ? a : b; };
  const long long matrix_bytes =
      4LL * (rows + 1LL) + nnz * static_cast<long long>(4 + sizeof(Value));
  const long long most = cols * static_cast<long long>(sizeof(T)) <= l2_bytes
                             ? kOnePassMostItems
                             : kOnePassMostItemsFarX;
  const long long least =
      larger(kOnePassLeastItems, divide_up(50 * kPerTile * positions, matrix_bytes));
  const long long warps = 1LL * resident_blocks * kWarps;
  const long long tiles_per_warp = divide_up(positions, warps * most);
  const long long tile_items = larger(divide_up(positions, warps * tiles_per_warp), least);
  const long long tiles = divide_up(positions, tile_items);
  long long per_block = divide_up(tiles, resident_blocks);
  if (per_block > kWarps) per_block = kWarps;
  return {static_cast<unsigned>(tile_items), static_cast<int>(tiles), static_cast<int>(per_block),
          static_cast<int>(divide_up(tiles, per_block))};
}

// Whether the L2 cache holds `bytes` from one product to the next. Where it does not, bytes decide
// how long a product takes, not instructions.
__host__ __device__ constexpr bool fits_cache(long long bytes, long long l2_bytes) {
  return bytes <= l2_bytes / 4 * 3;
}

// Whether groups of lanes per row may be faster than tiles where the matrix does not fit in the L2
// cache: with a lane per row, as long as what the rows of all resident warps occupy leaves the L1
// cache room for x, and with whole warps per row, whose loads are coalesced (NOTES.md).
__host__ __device__ constexpr bool rows_may_suit_memory(int rows, int nnz) {
  return 2LL * nnz <= 11LL * rows || nnz >= 64LL * rows;
}
__host__ __device__ constexpr bool rows_suit_memory(int width) {
  return width == 0 || width >= 5;
}

// Lanes per row, as a power of two, with which pcsr_rows_kernel suits a matrix of long rows of any
// lengths that fits in the L2 cache, or -1. Of the numbers of lanes that occupy the device the one
// that costs least: an iteration of the longest row takes as long as 65,536 threads. Tiles, which
// cut such rows, are as fast as groups of lanes at the cost 400,000 + nnz / 3 (NOTES.md). Not 1,024
// lanes: for so many a single multiprocessor's throughput counts, not its latency.
__host__ __device__ constexpr int long_rows_width(int rows, int nnz, int longest) {
  int best = -1;
  long long least = 400'000 + nnz / 3;
  for (int width = 5; width < kRowsWidths - 1; ++width) {
    const long long threads = 1LL * rows << width;
    const long long cost = 65536LL * ((longest - 1) / (kRowsItemsPerThread << width) + 1) + threads;
    if (threads >= 65536 && cost < least) {
      best = width;
      least = cost;
    }
  }
  return best;
}

// Lanes per row, as a power of two, with which pcsr_rows_kernel suits the matrix, or -1 if it does
// not: lanes for a row of average length in one iteration; more where there are too few rows to
// occupy the device, where the longest row would take more than 3 iterations, and, in the L2, where
// that saves enough later iterations, which count twice: they wait for the ones before them. The
// lanes' loads, of a nonzero or not, must then be at most 2.5 times the nonzeros, 4 times in the
// L2, and some for what a launch takes anyway. Shorter rows count as 4 nonzeros, since tiles know
// 64 row ends ahead in an iteration of 256; beyond the L2 only where rows are alike. All constants
// are from measurements on an H200 (NOTES.md). fits_l2: fits_cache(), of the matrix.
__host__ __device__ constexpr int rows_width(int rows, int nnz, const RowsStatistics& found,
                                             bool fits_l2) {
  const auto loads = [](int width) { return static_cast<long long>(kRowsItemsPerThread) << width; };
  const auto cost = [&](int w) { return found.iterations(w, rows) + found.more_iterations[w]; };
  const int most = kRowsWidths - 1;
  int width = 0;
  while (width < most && loads(width) * rows < nnz) ++width;
  while (width < 5 && (1LL * rows << width) < 65536) ++width;
  while (width < most && found.longest > 3 * loads(width)) ++width;
  if (fits_l2 && width < 5 && cost(width + 1) < cost(width)) ++width;
  const long long all = found.iterations(width, rows) * loads(width > 5 ? width : 5);
  const bool alike = 1LL * found.longest * rows <= 2LL * nnz;
  const long long short_rows = fits_l2 || alike ? 4LL * rows : 0;
  const long long tiled = nnz > short_rows ? nnz : short_rows;
  const long long limit = (fits_l2 ? 8 : 5) * tiled / 2 + 600'000;
  const bool suits = found.longest <= 3 * loads(width) && all <= limit;
  if (suits && (fits_l2 || rows_suit_memory(width))) return width;
  return fits_l2 && nnz >= 64LL * rows ? long_rows_width(rows, nnz, found.longest) : -1;
}

// Groups per row, as a power of two, with which pcsr_several_rows_kernel suits the matrix, or -1:
// as many as pcsr_rows_kernel has lanes (its `width`) if a warp holds them, unless the longest row
// would then take more than the 3 iterations that rows_width() allows.
__host__ __device__ constexpr int several_width(int width, int longest) {
  if (width > kSeveralWidths - 1) width = kSeveralWidths - 1;
  return width >= 0 && longest <= 3 * (kRowsItemsPerThread << width) ? width : -1;
}

// Whether tiles of blocks may suit a matrix of this shape, and whether they do, by its longest row.
// Whole rows make tiles unequal only if tiles are short (up to three iterations) and a row can be
// longer than an iteration; one of more than three tiles makes a block the last (NOTES.md).
__host__ __device__ constexpr bool block_tiles_may_suit(const OnePassShape& shape) {
  return shape.warps_per_block > 1 && 2LL * shape.tile_items <= 3 * kOnePassOverhang;
}
__host__ __device__ constexpr bool block_tiles_suit(const OnePassShape& shape, int longest) {
  return block_tiles_may_suit(shape) && 2LL * longest > kOnePassOverhang &&
         longest <= 3LL * shape.tile_items * shape.warps_per_block;
}

// --- Preparation --------------------------------------------------------------------------------

inline constexpr int kPrepareThreads = 512;    // per block
inline constexpr int kStatisticsBlocks = 256;  // at most

// The first tile_blocks blocks find tiles, one per warp; each of the others looks at a part of
// the rows and writes an element of `statistics`.
template <typename T>
__global__ void prepare_one_pass_kernel(int tile_blocks, int tile_count, unsigned tile_items,
                                        int rows, int nnz, const int* row_offsets, Tile* tiles,
                                        PartialSum<T>* partial_sums, unsigned* unstarted,
                                        RowsStatistics* statistics) {
  constexpr int kWarps = kPrepareThreads / 32;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int block = static_cast<int>(blockIdx.x);
  if (block < tile_blocks) {
    const int s = block * kWarps + warp;
    if (s > tile_count) return;
    find_tile(s, tile_count, tile_items, kOnePassOverhang, rows, nnz, row_offsets, tiles,
              partial_sums, unstarted);
    return;
  }
  RowsStatistics found = {};
  const int statistics_block = block - tile_blocks;
  const int statistics_blocks = static_cast<int>(gridDim.x) - tile_blocks;
  for (long long first = 32LL * (statistics_block * kWarps + warp); first < rows;
       first += 32LL * kWarps * statistics_blocks) {
    look_at_rows(static_cast<int>(first), rows, row_offsets, found);
  }
  __shared__ RowsStatistics of_warp[kWarps];
  for (int distance = 16; distance > 0; distance /= 2) {
    found.longest = max(found.longest, __shfl_down_sync(0xffffffffu, found.longest, distance));
#pragma unroll
    for (int w = 0; w < kRowsWidths; ++w) {
      found.more_iterations[w] += __shfl_down_sync(0xffffffffu, found.more_iterations[w], distance);
    }
  }
  if (lane == 0) of_warp[warp] = found;
  __syncthreads();
  const int w = static_cast<int>(threadIdx.x);
  if (w < kRowsWidths) {
    int more_iterations = 0;
    for (const RowsStatistics& of : of_warp) more_iterations += of.more_iterations[w];
    statistics[statistics_block].more_iterations[w] = more_iterations;
  } else if (w == kRowsWidths) {
    int longest = 0;
    for (const RowsStatistics& of : of_warp) longest = max(longest, of.longest);
    statistics[statistics_block].longest = longest;
  }
}

#ifndef __CUDACC_RTC__

// Launches a kernel; overlap: it may start while the kernel before it in the stream ends.
template <typename... Parameters, typename... Arguments>
inline cudaError_t launch_kernel(void (*kernel)(Parameters...), int blocks, int threads,
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

// Device memory that is freed with its owner.
struct FreeDeviceMemory {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, FreeDeviceMemory>;

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
  kAutomatic,  // prepare() chooses from the row lengths: groups of lanes per row if they suit
  kTiles,      // equal tiles and a segmented scan, which suit any matrix
};

struct OnePassOptions {
  // Lets a product start while the kernel before it in the stream ends (programmatic dependent
  // launch; ignored below compute capability 9.0). Saves one to two microseconds per product. The
  // kernel just before a product may then write x and y, but not the matrix: not the values, column
  // indices or row offsets. (Kernels before that one may, and so may copies and memsets.)
  bool overlap = false;
  OnePassPath path = OnePassPath::kAutomatic;
  // The most vectors that multiply_several() will get: 1 (none), 2, 4 or 8.
  int most_vectors = 1;
};

// What multiply() does for one matrix. Movable, not copyable.
//
// A plan belongs to the device that is current in create(), and is used while that one is current.
// At most one product of a plan may run at a time: use it in one stream, or order the streams by
// events; products that are to run at the same time need a plan each. The values may change from
// product to product, the pattern may not (after a change of the pattern with the same sizes, call
// prepare() again).
//
// T: of the sums and vectors, float or double. Value: of the matrix's values, T or, for less to
// read, float where T is double.
template <typename T, typename Value = T>
class OnePassPlan {
 public:
  // Computes sizes and, unless `workspace` is given, allocates workspace_bytes() of device memory.
  // Reads nothing of the matrix; waits for the default stream.
  // `workspace` is aligned to 16 bytes (as cudaMalloc's memory is) and stays the caller's.
  // Errors: cudaErrorInvalidValue for negative sizes, sizes beyond the limits, null pointers of
  // arrays that are not empty, a misaligned workspace, or another number of vectors; those of the
  // CUDA runtime.
  cudaError_t create(const CsrPattern& matrix, const OnePassOptions& options = {},
                     void* workspace = nullptr) {
    const long long positions = 1LL * matrix.rows + matrix.nnz;
    if (matrix.rows < 0 || matrix.cols < 0 || matrix.nnz < 0 || positions >= 0xffff0000ll ||
        (matrix.rows > 0 && !matrix.row_offsets) || (matrix.nnz > 0 && !matrix.column_indices) ||
        reinterpret_cast<std::size_t>(workspace) % 16 != 0 ||
        !(options.most_vectors == 1 || is_several(options.most_vectors))) {
      return cudaErrorInvalidValue;
    }
    OnePassPlan fresh;
    fresh.matrix_ = matrix;
    fresh.options_ = options;
    cudaError_t error = fresh.set_shape();
    if (error == cudaSuccess && !workspace && fresh.workspace_bytes() > 0) {
      error = cudaMalloc(&workspace, fresh.workspace_bytes());
      fresh.owned_.reset(workspace);
    }
    // The first access to new memory takes 10 us longer (H200); prepare() need not pay for that.
    if (error == cudaSuccess && fresh.workspace_bytes() > 0) {
      error = cudaMemset(workspace, 0, fresh.workspace_bytes());
    }
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    if (error != cudaSuccess) return error;
    const std::size_t tiles = fresh.shape_.tile_count;
    char* next = static_cast<char*>(workspace);
    fresh.partial_sums_ = reinterpret_cast<PartialSum<T>*>(next);
    next += fresh.partial_sum_count() * sizeof(PartialSum<T>);
    fresh.tiles_ = reinterpret_cast<Tile*>(next);
    next += (tiles + 1) * sizeof(Tile);
    fresh.parts_ = reinterpret_cast<Tile*>(next);
    next += fresh.part_count() * sizeof(Tile);
    fresh.unstarted_ = reinterpret_cast<unsigned*>(next);
    next += tiles * sizeof(unsigned);
    fresh.statistics_ = reinterpret_cast<RowsStatistics*>(next);
    *this = std::move(fresh);
    return cudaSuccess;
  }

  // Bytes of workspace that create() takes for this matrix on the current device: at most 2.5% of
  // the matrix, and 32 KB; more for several vectors.
  static cudaError_t workspace_bytes(const CsrPattern& matrix, std::size_t* bytes,
                                     const OnePassOptions& options = {}) {
    OnePassPlan plan;
    plan.matrix_ = matrix;
    plan.options_ = options;
    const cudaError_t error = plan.set_shape();
    *bytes = plan.workspace_bytes();
    return error;
  }
  std::size_t workspace_bytes() const {
    const std::size_t tiles = shape_.tile_count;
    if (tiles == 0) return 0;
    return partial_sum_count() * sizeof(PartialSum<T>) + (tiles + 1 + part_count()) * sizeof(Tile) +
           tiles * sizeof(unsigned) + most_statistics_blocks() * sizeof(RowsStatistics);
  }

  // Reads the row offsets on the device, divides the matrix into tiles and chooses a path. Waits
  // for `stream`, so it cannot be captured. Needed once, before the first product.
  cudaError_t prepare(cudaStream_t stream) {
    if (shape_.tile_count == 0) return cudaSuccess;
    constexpr int kWarps = kPrepareThreads / 32;
    const int tile_blocks = shape_.tile_count / kWarps + 1;
    const int statistics_blocks = rows_may_suit_ ? most_statistics_blocks() : 0;
    cudaError_t error = launch_kernel(
        prepare_one_pass_kernel<T>, tile_blocks + statistics_blocks, kPrepareThreads, 0, stream,
        false, tile_blocks, shape_.tile_count, shape_.tile_items, matrix_.rows, matrix_.nnz,
        matrix_.row_offsets, tiles_, partial_sums_, unstarted_, statistics_);
    if (error == cudaSuccess && part_count() > 0) {
      error = launch_kernel(find_parts_kernel<T>, (part_count() - 1) / 4 + 1, 128, 0, stream, false,
                            shape_.blocks, shape_.warps_per_block,
                            shape_.tile_items * shape_.warps_per_block, matrix_.rows,
                            matrix_.row_offsets, parts_);
    }
    // To ordinary memory: the first pinned memory of a process takes a millisecond (NOTES.md).
    RowsStatistics found[kStatisticsBlocks];
    if (error == cudaSuccess && rows_may_suit_) {
      error = cudaMemcpyAsync(found, statistics_, statistics_blocks * sizeof(RowsStatistics),
                              cudaMemcpyDeviceToHost, stream);
    }
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) return error;
    rows_width_ = -1;
    several_width_ = -1;
    block_tiles_ = false;
    if (!rows_may_suit_) return cudaSuccess;
    RowsStatistics all = {};
    for (int b = 0; b < statistics_blocks; ++b) all.add(found[b]);
    rows_width_ = rows_width(matrix_.rows, matrix_.nnz, all, fits_l2_);
    block_tiles_ = rows_width_ < 0 && block_tiles_suit(shape_, all.longest);
    several_width_ = several_width(rows_width_, all.longest);
    return cudaSuccess;
  }

  // y = alpha A x + beta y on `stream`: launches one kernel, allocates nothing and waits for
  // nothing; may be captured in a CUDA graph. values: nnz elements; x: cols; y: rows, not read if
  // beta is 0; y may not overlap x. Two products of the same data give the same bits.
  cudaError_t multiply(T alpha, const Value* values, const T* x, T beta, T* y,
                       cudaStream_t stream) const {
    return multiply(values, x, beta == T{0} ? nullptr : y, y, Scaled<T>{alpha, beta}, stream);
  }

  // The same for z[row] = epilogue(row, (A x)[row], y[row]); see vectors.cuh. y, z: rows elements;
  // z may be y; neither may overlap x. Without y (null) the epilogue gets 0 for its element.
  template <typename Epilogue>
  cudaError_t multiply(const Value* values, const T* x, const T* y, T* z, const Epilogue& epilogue,
                       cudaStream_t stream) const {
    if (shape_.tile_count == 0) return cudaSuccess;
    const PlainVectors<T, Epilogue> vectors{x, y, z, epilogue};
    if (rows_width_ >= 0) return multiply_rows(values, vectors, stream);
    const auto kernel = block_tiles_ ? pcsr_block_tiles_kernel<T, Value, Epilogue>
                                     : pcsr_one_pass_kernel<T, Value, Epilogue>;
    if (const cudaError_t error = set_carveout(kernel); error != cudaSuccess) return error;
    OnePassArguments<T, Value> arguments = this->arguments(values);
    if (block_tiles_) arguments.tiles = parts_;
    return launch_kernel(kernel, shape_.blocks, 32 * shape_.warps_per_block, shared_bytes(), stream,
                         overlaps(), arguments, vectors);
  }

  // Y = alpha A X + beta Y with `vectors` vectors: 2, 4 or 8, and at most
  // OnePassOptions::most_vectors. x: cols times `vectors` elements; y: rows times `vectors`; both
  // row-major (X[row * vectors + v]) and aligned to 16 bytes. Never overlaps; in all else as
  // multiply(). Error: cudaErrorInvalidValue for another number of vectors or misaligned ones.
  cudaError_t multiply_several(int vectors, T alpha, const Value* values, const T* x, T beta, T* y,
                               cudaStream_t stream) const {
    const auto misaligned = [](const T* p) { return reinterpret_cast<std::size_t>(p) % 16 != 0; };
    if (!is_several(vectors) || vectors > options_.most_vectors || misaligned(x) || misaligned(y)) {
      return cudaErrorInvalidValue;
    }
    if (vectors == 2) return launch_several<2>(values, {x, y, alpha, beta}, stream);
    if (vectors == 4) return launch_several<4>(values, {x, y, alpha, beta}, stream);
    return launch_several<8>(values, {x, y, alpha, beta}, stream);
  }

  // y = alpha A^T x + beta y by one atomic per nonzero: y of cols elements, x of rows. Two products
  // of the same data may differ in the last bits. Launches two kernels and never overlaps; in all
  // else as multiply(). For many products, a plan of OnePassTranspose's pattern is faster.
  cudaError_t multiply_transposed(T alpha, const Value* values, const T* x, T beta, T* y,
                                  cudaStream_t stream) const {
    cudaError_t error = cudaSuccess;
    if (matrix_.cols > 0) {
      error = launch_kernel(scale_transposed_kernel<T>, (matrix_.cols - 1) / kTransposedThreads + 1,
                            kTransposedThreads, 0, stream, false, matrix_.cols, beta, y);
    }
    if (error != cudaSuccess || shape_.tile_count == 0) return error;
    return launch_kernel(pcsr_transposed_kernel<T, Value>,
                         (shape_.tile_count - 1) / (kTransposedThreads / 32) + 1,
                         kTransposedThreads, 0, stream, false, arguments(values), alpha, x, y);
  }

  // Switches the overlap of later products on or off (OnePassOptions::overlap).
  void overlap(bool on) { options_.overlap = on; }

  // What prepare() chose.
  int lanes_per_row() const { return rows_width_ >= 0 ? 1 << rows_width_ : 0; }  // 0: tiles
  // With several vectors, or as many as a warp holds; 0: tiles.
  int groups_per_row() const { return several_width_ >= 0 ? 1 << several_width_ : 0; }
  bool block_tiles() const { return block_tiles_; }  // a block owns a tile, not a warp
  const OnePassShape& shape() const { return shape_; }
  bool overlaps() const { return options_.overlap && overlap_supported_; }

 private:
  // Blocks of prepare_one_pass_kernel that look at rows.
  int most_statistics_blocks() const {
    const int wanted = (matrix_.rows - 1) / kPrepareThreads + 1;
    return wanted < kStatisticsBlocks ? wanted : kStatisticsBlocks;
  }

  // Large blocks take more shared memory than they use, or a multiprocessor would hold three of
  // them in single precision: where products overlap, the third one is of the next product, whose
  // blocks then spread unevenly over the multiprocessors.
  static constexpr std::size_t kBlockBytes =
      OnePassPolicy<T>::kThreads / 32 * sizeof(BlockTileShared<double>);
  std::size_t shared_bytes() const {
    return shape_.warps_per_block < 8 ? shape_.warps_per_block * sizeof(BlockTileShared<T>)
                                      : kBlockBytes;
  }

  // From the sizes and the current device.
  cudaError_t set_shape() {
    using Policy = OnePassPolicy<T>;
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
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, pcsr_one_pass_kernel<T, Value>,
                                                            Policy::kThreads, kBlockBytes);
    }
    if (error != cudaSuccess) return error;
    if (blocks > Policy::kBlocks) blocks = Policy::kBlocks;
    if (blocks < 1) blocks = 1;
    const std::size_t wanted = Policy::kBlocks * (kBlockBytes + reserved_bytes);
    const std::size_t percent = (100 * wanted + shared_bytes - 1) / shared_bytes;
    carveout_ = static_cast<int>(percent < 100 ? percent : 100);
    shape_ = one_pass_shape<T, Value>(matrix_.rows, matrix_.cols, matrix_.nnz,
                                      blocks * multiprocessors, l2_bytes);
    const long long bytes =
        4LL * matrix_.rows + matrix_.nnz * static_cast<long long>(4 + sizeof(Value));
    const long long vector_bytes =
        (1LL * matrix_.rows + matrix_.cols) * static_cast<long long>(sizeof(T));
    fits_l2_ = fits_cache(bytes, l2_bytes);
    read_once_ = !fits_cache(bytes + vector_bytes, l2_bytes);
    rows_may_suit_ = options_.path == OnePassPath::kAutomatic && matrix_.rows <= matrix_.nnz &&
                     (fits_l2_ || rows_may_suit_memory(matrix_.rows, matrix_.nnz));
    overlap_supported_ = major >= 9;
    return error;
  }

  // Shared memory and L1 cache are one memory: what the blocks do not need is left to the cache,
  // for x. The attribute is the kernel's, so the first product with an epilogue sets it.
  template <typename Kernel>
  cudaError_t set_carveout(Kernel kernel) const {
    const auto address = reinterpret_cast<const void*>(kernel);
    if (address == has_carveout_) return cudaSuccess;
    has_carveout_ = address;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout_);
  }

  template <typename Epilogue>
  cudaError_t multiply_rows(const Value* values, const PlainVectors<T, Epilogue>& vectors,
                            cudaStream_t stream) const {
    static constexpr decltype(&pcsr_rows_kernel<1, T, Value, Epilogue>) kKernels[kRowsWidths] = {
        pcsr_rows_kernel<1, T, Value, Epilogue>,   pcsr_rows_kernel<2, T, Value, Epilogue>,
        pcsr_rows_kernel<4, T, Value, Epilogue>,   pcsr_rows_kernel<8, T, Value, Epilogue>,
        pcsr_rows_kernel<16, T, Value, Epilogue>,  pcsr_rows_kernel<32, T, Value, Epilogue>,
        pcsr_rows_kernel<64, T, Value, Epilogue>,  pcsr_rows_kernel<128, T, Value, Epilogue>,
        pcsr_rows_kernel<256, T, Value, Epilogue>, pcsr_rows_kernel<512, T, Value, Epilogue>,
        pcsr_rows_kernel<1024, T, Value, Epilogue>};
    const long long threads = static_cast<long long>(matrix_.rows) << rows_width_;
    const int per_block = rows_threads(1 << rows_width_);
    return launch_kernel(kKernels[rows_width_], static_cast<int>((threads - 1) / per_block + 1),
                         per_block, 0, stream, overlaps(), matrix_.rows, read_once_,
                         matrix_.row_offsets, matrix_.column_indices, values, vectors);
  }

  static bool is_several(int vectors) { return vectors == 2 || vectors == 4 || vectors == 8; }

  // Two per tile: for the rows in which it begins and ends.
  std::size_t partial_sum_count() const {
    return std::size_t{2} * shape_.tile_count * options_.most_vectors;
  }

  // Borders of parts of blocks' tiles (block_tiles.cuh); 0 if there cannot be any.
  int part_count() const {
    if (!rows_may_suit_ || !block_tiles_may_suit(shape_)) return 0;
    return shape_.blocks * shape_.warps_per_block + 1;
  }

  template <int kVectors>
  cudaError_t launch_several(const Value* values, const SeveralVectors<T, kVectors>& vectors,
                             cudaStream_t stream) const {
    if (shape_.tile_count == 0) return cudaSuccess;
    if (several_width_ >= 0) return launch_several_rows(values, vectors, stream);
    constexpr int kMostWarps = SeveralPolicy<T, kVectors>::kThreads / 32;
    const int warps = shape_.warps_per_block < kMostWarps ? shape_.warps_per_block : kMostWarps;
    return launch_kernel(
        pcsr_several_kernel<T, kVectors, Value>, (shape_.tile_count - 1) / warps + 1, 32 * warps,
        warps * sizeof(SeveralShared<T, kVectors>), stream, false, arguments(values), vectors);
  }

  // With 2^width groups per row, or with more, as far as they are wanted and a warp holds them.
  template <int kVectors, int width = 0>
  cudaError_t launch_several_rows(const Value* values, const SeveralVectors<T, kVectors>& vectors,
                                  cudaStream_t stream) const {
    constexpr int kLanes = SeveralPolicy<T, kVectors>::kLanes << width;  // per row
    if constexpr (width + 1 < kSeveralWidths && 2 * kLanes <= 32) {
      if (several_width_ > width)
        return launch_several_rows<kVectors, width + 1>(values, vectors, stream);
    }
    return launch_kernel(pcsr_several_rows_kernel<1 << width, T, kVectors, Value>,
                         (matrix_.rows - 1) / (kSeveralRowsThreads / kLanes) + 1,
                         kSeveralRowsThreads, 0, stream, false, matrix_.rows, read_once_,
                         matrix_.row_offsets, matrix_.column_indices, values, vectors);
  }

  OnePassArguments<T, Value> arguments(const Value* values) const {
    return {shape_.tile_count,
            shape_.tile_items,
            tiles_,
            matrix_.row_offsets,
            matrix_.column_indices,
            values,
            partial_sums_,
            unstarted_};
  }

  CsrPattern matrix_;
  OnePassOptions options_;
  OnePassShape shape_ = {};
  bool fits_l2_ = false;    // the matrix
  bool read_once_ = false;  // matrix and vectors together do not fit
  bool rows_may_suit_ = false;
  bool block_tiles_ = false;
  int rows_width_ = -1;                         // binary logarithm of the lanes per row; -1: tiles
  int several_width_ = -1;                      // of the groups per row with several vectors
  int carveout_ = 0;                            // per cent of the L1 cache that are shared memory
  mutable const void* has_carveout_ = nullptr;  // the kernel for which it was set
  bool overlap_supported_ = false;
  DeviceMemory owned_;  // if the caller gave none; in it or in the caller's:
  PartialSum<T>* partial_sums_ = nullptr;
  Tile* tiles_ = nullptr;
  Tile* parts_ = nullptr;
  unsigned* unstarted_ = nullptr;
  RowsStatistics* statistics_ = nullptr;
};

// --- The transpose ------------------------------------------------------------------------------

// A^T as a CSR matrix of its own, made on the device, for a plan of its own:
//
//   spmv::OnePassTranspose transpose;
//   transpose.create(pattern, stream);
//   transpose.gather(values, transposed_values, stream);  // again whenever the values change
//   plan.create(transpose.pattern());
//
// Owns 8 bytes per nonzero and 4 per column of A, and the caller the values. Movable, not copyable.
class OnePassTranspose {
 public:
  // Builds the pattern of A^T, whose rows have ascending columns. Waits for `stream`. Errors:
  // cudaErrorInvalidValue as OnePassPlan::create(); those of the CUDA runtime, which leave this as
  // it was.
  cudaError_t create(const CsrPattern& a, cudaStream_t stream) {
    if (a.rows < 0 || a.cols < 0 || a.nnz < 0 ||
        (a.nnz > 0 && !(a.row_offsets && a.column_indices))) {
      return cudaErrorInvalidValue;
    }
    OnePassTranspose fresh;
    const std::size_t nnz = a.nnz;
    const std::size_t offsets = a.cols + std::size_t{1};
    void* memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, (2 * nnz + offsets) * sizeof(int));
    if (error != cudaSuccess) return error;
    fresh.owned_.reset(memory);
    fresh.from_ = static_cast<int*>(memory);
    int* rows_of = fresh.from_ + nnz;
    int* row_offsets = rows_of + nnz;
    fresh.pattern_ = {a.cols, a.rows, a.nnz, row_offsets, rows_of};
    int* scratch = nullptr;  // nonzeros in any order, and a counter per column
    error = cudaMalloc(reinterpret_cast<void**>(&scratch), (nnz + offsets) * sizeof(int));
    if (error != cudaSuccess) return error;
    int* counts = scratch + nnz;
    error = cudaMemsetAsync(counts, 0, offsets * sizeof(int), stream);
    const auto then = [&](auto kernel, int blocks, int threads, auto... arguments) {
      if (error == cudaSuccess && blocks > 0)
        error = launch_kernel(kernel, blocks, threads, 0, stream, false, arguments...);
    };
    const int blocks = blocks_of(a.nnz);
    then(count_columns_kernel<int>, blocks, kThreads, a.nnz, a.column_indices, counts);
    then(scan_counts_kernel<int>, 1, 1024, a.cols, counts, row_offsets);
    then(scatter_columns_kernel<int>, blocks, kThreads, a.nnz, a.column_indices, counts, scratch);
    then(order_columns_kernel<int>, blocks, kThreads, a.rows, a.nnz, a.row_offsets,
         a.column_indices, static_cast<const int*>(row_offsets), static_cast<const int*>(scratch),
         fresh.from_, rows_of);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    cudaFree(scratch);
    if (error == cudaSuccess) *this = std::move(fresh);
    return error;
  }

  // The pattern of A^T, in memory of this object.
  const CsrPattern& pattern() const { return pattern_; }

  // transposed[i]: the values in the order of pattern(); nnz elements, like values.
  template <typename Value>
  cudaError_t gather(const Value* values, Value* transposed, cudaStream_t stream) const {
    if (pattern_.nnz == 0) return cudaSuccess;
    return launch_kernel(gather_values_kernel<Value>, blocks_of(pattern_.nnz), kThreads, 0, stream,
                         false, pattern_.nnz, static_cast<const int*>(from_), values, transposed);
  }

 private:
  static constexpr int kThreads = 256;
  static int blocks_of(int nnz) { return nnz / kThreads + (nnz % kThreads != 0); }

  CsrPattern pattern_;
  int* from_ = nullptr;  // the nonzero of A that stands at each place of A^T
  DeviceMemory owned_;
};

#endif  // __CUDACC_RTC__

}  // namespace spmv
