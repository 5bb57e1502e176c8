// y = alpha A x + beta y for a CSR matrix in device memory, in one pass over the matrix: the
// fastest kernel of this repository, for use in other programs. Needs the CUDA runtime and the
// files beside it that it includes, nothing else.
//
//   #include <spmv/one_pass.cuh>
//   spmv::OnePassPlan<double> plan;                            // or float
//   plan.create({rows, cols, nnz, row_offsets, column_indices});
//   plan.prepare(stream);                                      // looks at the rows, once
//   plan.multiply(alpha, values, x, beta, y, stream);          // as often as needed
//   plan.multiply(values, x, y, z, epilogue, stream);          // z = epilogue(row, A x, y)
//   plan.multiply_several(8, alpha, values, x, beta, y, stream);  // 8 vectors at once, row-major
//   plan.multiply_transposed(alpha, values, x, beta, y, stream);  // y = alpha A^T x + beta y
//
// Every function that does something returns a cudaError_t, also of launches; cudaSuccess if all is
// well. ../contract.md says what holds for lifetimes, streams, graphs, limits and bits.
//
// Copyright (c) 2026 the authors; MIT licence, see LICENSE.
#pragma once

#include <cuda_runtime.h>

// (SIMT_ERRORS: CUDA on the CPU, as this repository's tests have it.)
#if !defined(__CUDACC__) && !defined(SIMT_ERRORS)
#error "spmv/one_pass.cuh has kernels. Compile this source with nvcc: name it .cu, or use -x cu."
#endif

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "agent.cuh"
#include "block_tiles.cuh"
#include "choice.cuh"
#include "dot.cuh"
#include "launch.cuh"
#include "prepare.cuh"
#include "rows.cuh"
#include "several.cuh"
#include "several_rows.cuh"
#include "tiles.cuh"
#include "transposed.cuh"
#include "vectors.cuh"

// Major * 10,000 + minor * 100 + patch. The major number is that of the inline namespace: programs
// that hold two of them do not mix them up.
#define SPMV_ONE_PASS_VERSION 20000

namespace spmv {
inline namespace one_pass_2 {

// The most rows and the most nonzeros of a matrix. Indices have 32 bits, and a kernel looks up to
// 1,024 lanes times 16 nonzeros beyond an end before it compares.
inline constexpr int kOnePassMost = 0x7fffffff - 16'384;

// The pattern of a CSR matrix in device memory, which the caller owns. Row r has the nonzeros
// row_offsets[r], ..., row_offsets[r + 1] - 1; row_offsets[0] is 0, and row_offsets[rows] nnz.
// Columns of a row may be in any order, from 0 on. At most kOnePassMost rows and nonzeros, and
// 2^31 - 1 columns. Pointers need no more than the alignment of their type.
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
  // launch; ignored where the kernel was compiled for less than compute capability 9.0). Saves one
  // to two microseconds per product. The kernel just before a product may then write x and y, but
  // not the matrix: not the values, column indices or row offsets. (Kernels before that one may,
  // and so may copies and memsets.)
  bool overlap = false;
  OnePassPath path = OnePassPath::kAutomatic;
  // The most vectors that multiply_several() will get: 1 (none), 2, 4 or 8.
  int most_vectors = 1;
};

namespace detail {

// How far a plan is.
enum class PlanState { kEmpty, kCreated, kPrepared };

// What multiply() does for one matrix. Movable, not copyable.
//
// A product needs create() and then prepare(), both with success. A plan without them, or one that
// was moved from, returns cudaErrorIllegalState and writes nothing.
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
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "OnePassPlan<T>: sums and vectors are float or double");
  static_assert(std::is_same_v<Value, T> || std::is_same_v<Value, float>,
                "OnePassPlan<T, Value>: the matrix's values are of type T, or float");

 public:
  OnePassPlan() = default;
  OnePassPlan(OnePassPlan&& from) noexcept { *this = std::move(from); }
  OnePassPlan& operator=(OnePassPlan&& from) noexcept {
    if (this == &from) return *this;
    s_ = std::exchange(from.s_, State{});
    owned_ = std::move(from.owned_);
    configured_ = nullptr;
    return *this;
  }

  // Computes sizes and, unless `workspace` is given, allocates workspace_bytes() of device memory.
  // Reads nothing of the matrix; waits for the default stream.
  // `workspace` is aligned to 16 bytes (as cudaMalloc's memory is) and stays the caller's.
  // Errors: cudaErrorInvalidValue for negative sizes, sizes beyond the limits, nonzeros without
  // rows or columns, null pointers of arrays that are not empty, a misaligned workspace, or another
  // number of vectors; those of the CUDA runtime. After an error the plan is empty.
  [[nodiscard]] cudaError_t create(const CsrPattern& matrix, const OnePassOptions& options = {},
                                   void* workspace = nullptr) {
    *this = OnePassPlan();
    OnePassPlan fresh;
    cudaError_t error = fresh.set_shape(matrix, options);
    if (error != cudaSuccess) return error;
    if (reinterpret_cast<std::size_t>(workspace) % 16 != 0) return cudaErrorInvalidValue;
    const std::size_t bytes = fresh.workspace_bytes();
    if (!workspace && bytes > 0) {
      error = cudaMalloc(&workspace, bytes);
      fresh.owned_.reset(workspace);
    }
    // The first access to new memory takes 10 us longer (H200); prepare() need not pay for that.
    if (error == cudaSuccess && bytes > 0) error = cudaMemset(workspace, 0, bytes);
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    if (error != cudaSuccess) return error;
    State& state = fresh.s_;
    const std::size_t tiles = state.shape.tile_count;
    char* next = static_cast<char*>(workspace);
    state.partial_sums = reinterpret_cast<PartialSum<T>*>(next);
    next += fresh.partial_sum_count() * sizeof(PartialSum<T>);
    state.tiles = reinterpret_cast<Tile*>(next);
    next += (tiles + 1) * sizeof(Tile);
    state.parts = reinterpret_cast<Tile*>(next);
    next += fresh.part_count() * sizeof(Tile);
    state.unstarted = reinterpret_cast<unsigned*>(next);
    next += tiles * sizeof(unsigned);
    state.statistics = reinterpret_cast<RowsStatistics*>(next);
    state.is = PlanState::kCreated;
    *this = std::move(fresh);
    return cudaSuccess;
  }

  // Bytes of workspace that create() takes for this matrix on the current device: at most 2.5% of
  // the matrix, and 32 KB; more for several vectors.
  // Errors as create().
  [[nodiscard]] static cudaError_t workspace_bytes(const CsrPattern& matrix, std::size_t* bytes,
                                                   const OnePassOptions& options = {}) {
    OnePassPlan plan;
    const cudaError_t error = plan.set_shape(matrix, options);
    *bytes = error == cudaSuccess ? plan.workspace_bytes() : 0;
    return error;
  }
  std::size_t workspace_bytes() const {
    const std::size_t tiles = s_.shape.tile_count;
    if (tiles == 0) return 0;
    return partial_sum_count() * sizeof(PartialSum<T>) + (tiles + 1 + part_count()) * sizeof(Tile) +
           tiles * sizeof(unsigned) + statistics_blocks() * sizeof(RowsStatistics);
  }

  // Reads the row offsets and a sample of the column indices on the device, divides the matrix into
  // tiles and chooses a path. Waits for `stream`, so it cannot be captured. Needed once, before the
  // first product. Errors:
  // cudaErrorInvalidValue for offsets that do not begin with 0, do not end with nnz or descend
  // (those of a part of another matrix, say); cudaErrorIllegalState without create(); those of the
  // CUDA runtime. After an error the plan refuses products.
  [[nodiscard]] cudaError_t prepare(cudaStream_t stream) {
    if (s_.is == PlanState::kEmpty) return cudaErrorIllegalState;
    s_.is = PlanState::kCreated;
    const OnePassShape& shape = s_.shape;
    const CsrPattern& matrix = s_.matrix;
    RowsStatistics all = {};
    if (shape.tile_count > 0) {
      const int tile_blocks = shape.tile_count / (kPrepareThreads / 32) + 1;
      cudaError_t error =
          launch_kernel(prepare_one_pass_kernel<T>, tile_blocks + statistics_blocks(),
                        kPrepareThreads, 0, stream, false, tile_blocks, shape.tile_count,
                        shape.tile_items, matrix.rows, matrix.nnz, matrix.row_offsets, s_.tiles,
                        s_.partial_sums, s_.unstarted, s_.statistics, matrix.column_indices);
      if (error == cudaSuccess && part_count() > 0) {
        error = launch_kernel(find_parts_kernel<T>, (part_count() - 1) / 4 + 1, 128, 0, stream,
                              false, shape.blocks, shape.warps_per_block,
                              shape.tile_items * shape.warps_per_block, matrix.rows,
                              matrix.row_offsets, s_.parts);
      }
      // To ordinary memory: the first pinned memory of a process takes a millisecond (NOTES.md).
      RowsStatistics found[kStatisticsBlocks];
      if (error == cudaSuccess) {
        error = cudaMemcpyAsync(found, s_.statistics, statistics_blocks() * sizeof(RowsStatistics),
                                cudaMemcpyDeviceToHost, stream);
      }
      if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
      if (error != cudaSuccess) return error;
      for (int b = 0; b < statistics_blocks(); ++b) all.add(found[b]);
      if (all.longest == kWrongOffsets) return cudaErrorInvalidValue;
    }
    if (!s_.fits_l2 && shape.tile_count > 0 && part_count() == 0) {
      s_.shape.warps_per_block = far_warps(shape, s_.warps_of_shape, kWarps, all);
      s_.shape.blocks = (shape.tile_count - 1) / shape.warps_per_block + 1;
    }
    // Single precision leaves the L1 more room, which short rows need.
    const bool l1_has_room = s_.l1_has_room || (sizeof(T) == 4 && matrix.nnz <= 9LL * matrix.rows);
    s_.rows_width =
        s_.rows_may_suit ? rows_width(matrix.rows, matrix.nnz, all, s_.fits_l2, l1_has_room) : -1;
    s_.block_tiles = s_.rows_may_suit && s_.rows_width < 0 && block_tiles_suit(shape, all.longest);
    s_.several_width = several_width(s_.rows_width, all.longest);
    s_.is = PlanState::kPrepared;
    return cudaSuccess;
  }

  // y = alpha A x + beta y on `stream`: launches one kernel, allocates nothing and waits for
  // nothing; may be captured in a CUDA graph. values: nnz elements; x: cols; y: rows, not read if
  // beta is 0; y may not overlap x. Two products of the same data give the same bits.
  // Errors: cudaErrorIllegalState if the plan is not prepared; those of the launch.
  [[nodiscard]] cudaError_t multiply(T alpha, const Value* values, const T* x, T beta, T* y,
                                     cudaStream_t stream) const {
    return multiply(values, x, beta == T{0} ? nullptr : y, y, Scaled<T>{alpha, beta}, stream);
  }

  // The same for z[row] = epilogue(row, (A x)[row], y[row]); see vectors.cuh. y, z: rows elements;
  // z may be y; neither may overlap x. Without y (null) the epilogue gets 0 for its element.
  template <typename Epilogue>
  [[nodiscard]] cudaError_t multiply(const Value* values, const T* x, const T* y, T* z,
                                     const Epilogue& epilogue, cudaStream_t stream) const {
    if (s_.is != PlanState::kPrepared) return cudaErrorIllegalState;
    if (s_.shape.tile_count == 0) return cudaSuccess;
    const PlainVectors<T, Epilogue> vectors{x, y, z, epilogue};
    if (s_.rows_width >= 0) return multiply_rows(values, vectors, stream);
    const auto kernel = s_.block_tiles ? pcsr_block_tiles_kernel<T, Value, Epilogue>
                                       : pcsr_one_pass_kernel<T, Value, Epilogue>;
    if (const cudaError_t error = configure(kernel, true); error != cudaSuccess) return error;
    OnePassArguments<T, Value> arguments = this->arguments(values);
    if (s_.block_tiles) arguments.tiles = s_.parts;
    return launch_kernel(kernel, s_.shape.blocks, 32 * s_.shape.warps_per_block, shared_bytes(),
                         stream, configured_overlap_, arguments, vectors);
  }

  // Y = alpha A X + beta Y with `vectors` vectors: 2, 4 or 8, and at most
  // OnePassOptions::most_vectors. x: cols times `vectors` elements; y: rows times `vectors`; both
  // row-major (X[row * vectors + v]) and aligned to 16 bytes. Never overlaps; in all else as
  // multiply(). Error: cudaErrorInvalidValue for another number of vectors or misaligned ones.
  [[nodiscard]] cudaError_t multiply_several(int vectors, T alpha, const Value* values, const T* x,
                                             T beta, T* y, cudaStream_t stream) const {
    if (s_.is != PlanState::kPrepared) return cudaErrorIllegalState;
    const auto misaligned = [](const T* p) { return reinterpret_cast<std::size_t>(p) % 16 != 0; };
    if (!is_several(vectors) || vectors > s_.options.most_vectors || misaligned(x) ||
        misaligned(y)) {
      return cudaErrorInvalidValue;
    }
    if (vectors == 2) return launch_several<2>(values, {x, y, alpha, beta}, stream);
    if (vectors == 4) return launch_several<4>(values, {x, y, alpha, beta}, stream);
    return launch_several<8>(values, {x, y, alpha, beta}, stream);
  }

  // y = alpha A^T x + beta y by one atomic per nonzero: y of cols elements, x of rows. Two products
  // of the same data may differ in the last bits. Launches two kernels and never overlaps; in all
  // else as multiply(). For many products, a plan of OnePassTranspose's pattern is faster.
  [[nodiscard]] cudaError_t multiply_transposed(T alpha, const Value* values, const T* x, T beta,
                                                T* y, cudaStream_t stream) const {
    if (s_.is != PlanState::kPrepared) return cudaErrorIllegalState;
    const int cols = s_.matrix.cols;
    cudaError_t error = cudaSuccess;
    if (cols > 0) {
      error = launch_kernel(scale_transposed_kernel<T>, (cols - 1) / kTransposedThreads + 1,
                            kTransposedThreads, 0, stream, false, cols, beta, y);
    }
    if (error != cudaSuccess || s_.shape.tile_count == 0) return error;
    return launch_kernel(pcsr_transposed_kernel<T, Value>,
                         (s_.shape.tile_count - 1) / (kTransposedThreads / 32) + 1,
                         kTransposedThreads, 0, stream, false, arguments(values), alpha, x, y);
  }

  // Switches the overlap of later products on or off (OnePassOptions::overlap).
  void overlap(bool on) {
    s_.options.overlap = on;
    configured_ = nullptr;
  }

  // What prepare() chose.
  int lanes_per_row() const { return s_.rows_width >= 0 ? 1 << s_.rows_width : 0; }  // 0: tiles
  // With several vectors, or as many as a warp holds; 0: tiles.
  int groups_per_row() const { return s_.several_width >= 0 ? 1 << s_.several_width : 0; }
  bool block_tiles() const { return s_.block_tiles; }  // a block owns a tile, not a warp
  const OnePassShape& shape() const { return s_.shape; }
  bool overlaps() const { return s_.options.overlap && s_.can_overlap; }
  bool is_prepared() const { return s_.is == PlanState::kPrepared; }

 private:
  // All of a plan but the memory that it owns; moved as a whole, so that a plan that was moved from
  // is as one that was never created.
  struct State {
    PlanState is = PlanState::kEmpty;
    CsrPattern matrix;
    OnePassOptions options;
    OnePassShape shape = {};
    bool fits_l2 = false;      // the matrix
    bool read_once = false;    // matrix and vectors together do not fit
    bool l1_has_room = false;  // DeviceFigures::l1_has_room()
    int warps_of_shape = 0;    // per block, as one_pass_shape() says
    bool rows_may_suit = false;
    bool block_tiles = false;
    int rows_width = -1;     // binary logarithm of the lanes per row; -1: tiles
    int several_width = -1;  // of the groups per row with several vectors
    int carveout = 0;        // per cent of the L1 cache that are shared memory
    bool can_overlap = false;
    // In the workspace:
    PartialSum<T>* partial_sums = nullptr;
    Tile* tiles = nullptr;
    Tile* parts = nullptr;
    unsigned* unstarted = nullptr;
    RowsStatistics* statistics = nullptr;
  };

  // Blocks of prepare_one_pass_kernel that look at rows.
  int statistics_blocks() const {
    const int wanted = (s_.matrix.rows - 1) / kPrepareThreads + 1;
    return wanted < kStatisticsBlocks ? wanted : kStatisticsBlocks;
  }

  static constexpr int kWarps = OnePassPolicy<T>::kThreads / 32;
  // Large blocks take more shared memory than they use, or a multiprocessor would hold three of
  // them in single precision: where products overlap, the third one is of the next product, whose
  // blocks then spread unevenly over the multiprocessors.
  static constexpr std::size_t kBlockBytes = kWarps * sizeof(BlockTileShared<double>);
  std::size_t shared_bytes() const {
    const int warps = s_.shape.warps_per_block;
    if (s_.shape.in_waves) return warps * sizeof(OnePassShared<T>);
    // (8: see far_warps().)
    if (!s_.fits_l2 && !s_.block_tiles && warps == 8) return 8 * sizeof(OnePassShared<double>);
    return warps < 8 ? warps * sizeof(BlockTileShared<T>) : kBlockBytes;
  }

  // Whether a plan can be made, from what is known without reading the matrix.
  static bool is_valid(const CsrPattern& matrix, const OnePassOptions& options) {
    const bool has_nonzeros = matrix.nnz > 0;
    return matrix.rows >= 0 && matrix.cols >= 0 && matrix.nnz >= 0 && matrix.rows <= kOnePassMost &&
           matrix.nnz <= kOnePassMost && !(matrix.rows > 0 && !matrix.row_offsets) &&
           !(has_nonzeros && (!matrix.column_indices || matrix.rows == 0 || matrix.cols == 0)) &&
           (options.most_vectors == 1 || is_several(options.most_vectors));
  }

  // From the sizes and the current device.
  cudaError_t set_shape(const CsrPattern& matrix, const OnePassOptions& options) {
    using Policy = OnePassPolicy<T>;
    if (!is_valid(matrix, options)) return cudaErrorInvalidValue;
    s_.matrix = matrix;
    s_.options = options;
    DeviceFigures figures;
    int blocks = 0;
    cudaError_t error = detail::read_figures(&figures);
    if (error == cudaSuccess) {
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, pcsr_one_pass_kernel<T, Value>,
                                                            Policy::kThreads, kBlockBytes);
    }
    if (error == cudaSuccess) {
      error = detail::can_overlap(pcsr_one_pass_kernel<T, Value>, &s_.can_overlap);
    }
    if (error != cudaSuccess) return error;
    if (blocks > Policy::kBlocks) blocks = Policy::kBlocks;
    if (blocks < 1) blocks = 1;
    s_.l1_has_room = figures.l1_has_room();
    s_.shape = one_pass_shape<T, Value>(matrix.rows, matrix.cols, matrix.nnz,
                                        blocks * figures.multiprocessors, figures.l2_bytes,
                                        s_.l1_has_room);
    s_.warps_of_shape = s_.shape.warps_per_block;
    const std::size_t warps = sizeof(T) == 4 && s_.shape.in_waves ? 32 : Policy::kBlocks * kWarps;
    const std::size_t wanted =
        s_.shape.in_waves
            ? warps / s_.shape.warps_per_block * (this->shared_bytes() + figures.reserved_bytes)
            : Policy::kBlocks * (kBlockBytes + figures.reserved_bytes);
    const std::size_t percent = (100 * wanted + figures.shared_bytes - 1) / figures.shared_bytes;
    s_.carveout = static_cast<int>(percent < 100 ? percent : 100);
    const long long bytes =
        4LL * matrix.rows + matrix.nnz * static_cast<long long>(4 + sizeof(Value));
    const long long vector_bytes =
        (1LL * matrix.rows + matrix.cols) * static_cast<long long>(sizeof(T));
    s_.fits_l2 = fits_cache(bytes, figures.l2_bytes);
    s_.read_once = !fits_cache(bytes + vector_bytes, figures.l2_bytes);
    s_.rows_may_suit = options.path == OnePassPath::kAutomatic && matrix.rows <= matrix.nnz;
    return error;
  }

  // Before the first product with an epilogue, whose kernel is one of its own: whether it may
  // overlap, and, for tiles, its shared memory. That and the L1 cache are one memory: what the
  // blocks do not need is left to the cache, for x.
  template <typename Kernel>
  cudaError_t configure(Kernel kernel, bool tiles) const {
    const auto address = reinterpret_cast<const void*>(kernel);
    if (address == configured_) return cudaSuccess;
    bool can = false;
    cudaError_t error = s_.options.overlap ? detail::can_overlap(kernel, &can) : cudaSuccess;
    if (error == cudaSuccess && tiles) {
      error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, s_.carveout);
    }
    if (error != cudaSuccess) return error;
    configured_ = address;
    configured_overlap_ = can;
    return cudaSuccess;
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
    const auto kernel = kKernels[s_.rows_width];
    if (const cudaError_t error = configure(kernel, false); error != cudaSuccess) return error;
    const long long threads = static_cast<long long>(s_.matrix.rows) << s_.rows_width;
    const int per_block = rows_threads(1 << s_.rows_width);
    return launch_kernel(kernel, static_cast<int>((threads - 1) / per_block + 1), per_block, 0,
                         stream, configured_overlap_, s_.matrix.rows, s_.read_once,
                         s_.matrix.row_offsets, s_.matrix.column_indices, values, vectors);
  }

  static bool is_several(int vectors) { return vectors == 2 || vectors == 4 || vectors == 8; }

  // Two per tile: for the rows in which it begins and ends.
  std::size_t partial_sum_count() const {
    return std::size_t{2} * s_.shape.tile_count * s_.options.most_vectors;
  }

  // Borders of parts of blocks' tiles (block_tiles.cuh); 0 if there cannot be any.
  int part_count() const {
    if (!s_.rows_may_suit || !block_tiles_may_suit(s_.shape)) return 0;
    return s_.shape.blocks * s_.shape.warps_per_block + 1;
  }

  template <int kVectors>
  cudaError_t launch_several(const Value* values, const SeveralVectors<T, kVectors>& vectors,
                             cudaStream_t stream) const {
    const OnePassShape& shape = s_.shape;
    if (shape.tile_count == 0) return cudaSuccess;
    if (s_.several_width >= 0) return launch_several_rows(values, vectors, stream);
    constexpr int kMostWarps = SeveralPolicy<T, kVectors>::kThreads / 32;
    const int warps = shape.warps_per_block < kMostWarps ? shape.warps_per_block : kMostWarps;
    return launch_kernel(
        pcsr_several_kernel<T, kVectors, Value>, (shape.tile_count - 1) / warps + 1, 32 * warps,
        warps * sizeof(SeveralShared<T, kVectors>), stream, false, arguments(values), vectors);
  }

  // With 2^width groups per row, or with more, as far as they are wanted and a warp holds them.
  template <int kVectors, int width = 0>
  cudaError_t launch_several_rows(const Value* values, const SeveralVectors<T, kVectors>& vectors,
                                  cudaStream_t stream) const {
    constexpr int kLanes = SeveralPolicy<T, kVectors>::kLanes << width;  // per row
    if constexpr (width + 1 < kSeveralWidths && 2 * kLanes <= 32) {
      if (s_.several_width > width)
        return launch_several_rows<kVectors, width + 1>(values, vectors, stream);
    }
    const CsrPattern& matrix = s_.matrix;
    return launch_kernel(pcsr_several_rows_kernel<1 << width, T, kVectors, Value>,
                         (matrix.rows - 1) / (kSeveralRowsThreads / kLanes) + 1,
                         kSeveralRowsThreads, 0, stream, false, matrix.rows, s_.read_once,
                         matrix.row_offsets, matrix.column_indices, values, vectors);
  }

  OnePassArguments<T, Value> arguments(const Value* values) const {
    return {s_.shape.tile_count,
            s_.shape.tile_items,
            s_.tiles,
            s_.matrix.row_offsets,
            s_.matrix.column_indices,
            values,
            s_.partial_sums,
            s_.unstarted};
  }

  State s_;
  DeviceMemory owned_;                        // the workspace, if the caller gave none
  mutable const void* configured_ = nullptr;  // the kernel that configure() has seen last,
  mutable bool configured_overlap_ = false;   // and whether it overlaps
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
  OnePassTranspose() = default;
  OnePassTranspose(OnePassTranspose&& from) noexcept { *this = std::move(from); }
  OnePassTranspose& operator=(OnePassTranspose&& from) noexcept {
    pattern_ = std::exchange(from.pattern_, CsrPattern{});
    from_ = std::exchange(from.from_, nullptr);
    owned_ = std::move(from.owned_);
    return *this;
  }

  // Builds the pattern of A^T, whose rows have ascending columns. Waits for `stream`. Errors:
  // cudaErrorInvalidValue as OnePassPlan::create(); those of the CUDA runtime. After an error this
  // is empty.
  [[nodiscard]] cudaError_t create(const CsrPattern& a, cudaStream_t stream) {
    *this = OnePassTranspose();
    if (a.rows < 0 || a.cols < 0 || a.nnz < 0 || a.rows > kOnePassMost || a.cols > kOnePassMost ||
        a.nnz > kOnePassMost ||
        (a.nnz > 0 && !(a.row_offsets && a.column_indices && a.rows > 0 && a.cols > 0))) {
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
  // Error: cudaErrorIllegalState without create().
  template <typename Value>
  [[nodiscard]] cudaError_t gather(const Value* values, Value* transposed,
                                   cudaStream_t stream) const {
    if (!owned_) return cudaErrorIllegalState;
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

}  // namespace detail

using detail::OnePassPlan;
using detail::OnePassTranspose;

}  // namespace one_pass_2
}  // namespace spmv
