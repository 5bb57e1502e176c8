// Step 06, one pass: into how many tiles a matrix is divided, and which kernel suits it.
//
// Functions of sizes, of row lengths (RowsStatistics) and of what the device says of itself. So the
// same matrix on the same model of GPU always gets the same kernel, and a product the same bits.
//
// Called by OnePassPlan (one_pass.cuh) and by step 10; tested in test.cu, "one pass: a plan chooses
// ..." and after it.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "agent.cuh"
#include "rows.cuh"
#include "several_rows.cuh"
#include "tiles.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

// What a plan asks of a device.
struct DeviceFigures {
  int multiprocessors = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bits = 0;  // width of the memory bus
  int l2_bytes = 0;
  int shared_bytes = 0;    // of a multiprocessor,
  int reserved_bytes = 0;  // and what the system keeps of them per block

  // Bytes of the memory's peak for each multiprocessor and clock: 12.8 on an H100, 18.4 on an H200.
  __host__ __device__ constexpr double bytes_per_clock() const {
    const double clocks = 1.0 * multiprocessors * clock_khz;
    return clocks > 0 ? 2.0 * memory_clock_khz * memory_bits / 8 / clocks : 0;
  }
  // Whether the L1 has room beside a product in tiles whose matrix comes from memory. Tiles keep
  // the L1 busy for 0.047 of the time that memory needs, for each byte per clock: measured on an
  // H200, where that is 87%; predicted for an H100: 60%, measured 58% (NOTES.md). Where it has
  // room, what short tiles or lanes per row cost in waits is hidden, and they read memory in order.
  __host__ __device__ constexpr bool l1_has_room() const {
    return 0.047 * bytes_per_clock() < 0.75;
  }
};

// What the current device says. The driver is slow to read the clock rates, so a device is asked
// once in a process.
inline cudaError_t read_figures(DeviceFigures* figures) {
  static std::mutex mutex;
  static std::map<int, DeviceFigures> known;
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace(device);
  const auto read = [&, &found = entry->second](int DeviceFigures::*figure, cudaDeviceAttr name) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&(found.*figure), name, device);
  };
  if (is_new) {
    read(&DeviceFigures::multiprocessors, cudaDevAttrMultiProcessorCount);
    read(&DeviceFigures::clock_khz, cudaDevAttrClockRate);
    read(&DeviceFigures::memory_clock_khz, cudaDevAttrMemoryClockRate);
    read(&DeviceFigures::memory_bits, cudaDevAttrGlobalMemoryBusWidth);
    read(&DeviceFigures::l2_bytes, cudaDevAttrL2CacheSize);
    read(&DeviceFigures::shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    read(&DeviceFigures::reserved_bytes, cudaDevAttrReservedSharedMemoryPerBlock);
  }
  *figures = entry->second;
  if (error != cudaSuccess) known.erase(entry);
  return error;
}

// How a matrix is divided into tiles, by its sizes and what is known of the device; on both sides.
struct OnePassShape {
  unsigned tile_items;  // rows and nonzeros per tile
  int tile_count;
  int warps_per_block;  // one tile per warp
  int blocks;
  bool in_waves = false;  // short tiles in small blocks: see one_pass_shape()
};

inline constexpr int kOnePassOverhang = 512;        // nonzeros by which a row may exceed its tile
inline constexpr int kOnePassMostItems = 40960;     // of a tile, at most,
inline constexpr int kOnePassMostItemsFarX = 8192;  // and where x does not fit in the L2 cache
inline constexpr int kOnePassLeastItems = 192;      // three quarters of an iteration, see below

// Whether the L2 cache holds `bytes` from one product to the next. Where it does not, bytes decide
// how long a product takes, not instructions.
__host__ __device__ constexpr bool fits_cache(long long bytes, long long l2_bytes) {
  return bytes <= l2_bytes / 4 * 3;
}

// One tile for each warp that the device holds at once. More where they would be so long that the
// whole matrix and x would be read at the same time; fewer where they would be too small: a tile
// may begin up to 8 nonzeros early and end a row late, so tile_items of three quarters of an
// iteration leave room for one iteration to be enough; and what is stored per tile must not exceed
// 2% of the matrix. Fewer tiles make smaller blocks, not fewer of them, so that every
// multiprocessor has some.
//
// A matrix much larger than the L2 has *tiles in waves*: short ones in small blocks, which start in
// the order of the matrix as others end. All resident warps then read a window of it, not thousands
// of streams far apart, and x is found in the L2 by all that need it. That pays where the L1 has
// room; where it has not, only in single precision, of which small blocks hold 32 warps per
// multiprocessor in place of 24 (NOTES.md).
template <typename T, typename Value = T>
__host__ __device__ constexpr OnePassShape one_pass_shape(int rows, int cols, int nnz,
                                                          int resident_blocks, long long l2_bytes,
                                                          bool l1_has_room = false) {
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

  const long long wave_items = larger(l1_has_room ? 1024 : 2048, least);
  const int least_waves = l1_has_room ? 4 : 10;
  if ((l1_has_room || sizeof(T) == 4) && !fits_cache(matrix_bytes, l2_bytes) &&
      positions >= least_waves * wave_items * warps) {
    const long long tiles = divide_up(positions, wave_items);
    constexpr int kWaveWarps = sizeof(T) == 4 ? 4 : 8;  // 32 and 24 warps in 64 KB
    return {static_cast<unsigned>(wave_items), static_cast<int>(tiles), kWaveWarps,
            static_cast<int>(divide_up(tiles, kWaveWarps)), true};
  }

  const long long tiles_per_warp = divide_up(positions, warps * most);
  const long long tile_items = larger(divide_up(positions, warps * tiles_per_warp), least);
  const long long tiles = divide_up(positions, tile_items);
  long long per_block = divide_up(tiles, resident_blocks);
  if (per_block > kWarps) per_block = kWarps;
  return {static_cast<unsigned>(tile_items), static_cast<int>(tiles), static_cast<int>(per_block),
          static_cast<int>(divide_up(tiles, per_block))};
}

// Warps per block for a matrix that does not fit in the L2 cache, where one_pass_shape() says
// `warps`. Large blocks have neighbouring tiles on the same multiprocessor: where columns are
// scattered, that keeps x in its L1. A block ends with the slowest of its warps, so that smaller
// ones suit a row of very many tiles, whose warps are faster than the others.
__host__ __device__ constexpr int far_warps(const OnePassShape& shape, int warps, int most_warps,
                                            const RowsStatistics& found) {
  if (shape.in_waves) return found.columns_are_near() ? warps : most_warps;
  return warps > 8 && found.longest >= 32LL * shape.tile_items ? 8 : warps;
}

// Whether 2^width lanes per row are faster than tiles where the matrix does not fit in the L2 cache
// (NOTES.md). A lane per row, as long as what the rows of all resident warps occupy leaves the L1
// cache room for x: short rows, or rows of one iteration. Whole warps per long row, whose loads are
// coalesced. Up to 4 lanes per row where tiles leave the L1 room, and neighbouring rows find x
// there.
__host__ __device__ constexpr bool rows_suit_memory(int rows, int nnz, int width,
                                                    const RowsStatistics& found, bool l1_has_room) {
  if (width >= 5) return nnz >= 512LL * rows;
  if (2LL * nnz <= 11LL * rows && width == 0) return true;
  if (!found.columns_are_near()) return false;
  if (width == 0 && found.more_iterations[0] == 0) return true;
  return l1_has_room && width <= 2 && nnz <= 18LL * rows;
}

// The same where rows are long and alike, their columns cross, and the matrix does not fit in the
// L2 cache, or -1: as few lanes as occupy the device, from a warp on. The warps of a block then go
// through neighbouring rows at the same pace, and find x in the L1, since these have columns in the
// same sectors.
__host__ __device__ constexpr int crossing_rows_width(int rows, int nnz,
                                                      const RowsStatistics& found) {
  if (!found.columns_cross() || nnz < 512LL * rows || 1LL * found.longest * rows > 2LL * nnz) {
    return -1;
  }
  for (int width = 5; width < kRowsWidths; ++width) {
    if (1LL * rows << width >= 131'072) return width;
  }
  return -1;
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
// lanes' loads, of a nonzero or not, must then be at most 2.5 times the nonzeros, 3 times where
// the L1 has room, 4 times in the L2, and some for what a launch takes anyway. Shorter rows count
// as 4 nonzeros, since tiles know 64 row ends ahead in an iteration of 256; beyond the L2 only
// where rows are alike. The constants are from measurements on an H200, those of l1_has_room from
// an H100 (NOTES.md). fits_l2: fits_cache(), of the matrix; l1_has_room: DeviceFigures'.
__host__ __device__ constexpr int rows_width(int rows, int nnz, const RowsStatistics& found,
                                             bool fits_l2, bool l1_has_room = false) {
  const auto loads = [](int width) { return static_cast<long long>(kRowsItemsPerThread) << width; };
  const auto cost = [&](int w) { return found.iterations(w, rows) + found.more_iterations[w]; };
  const int most = kRowsWidths - 1;
  int width = 0;
  while (width < most && loads(width) * rows < nnz) ++width;
  while (width < 5 && (1LL * rows << width) < 65536) ++width;
  while (width < most && found.longest > 3 * loads(width)) ++width;
  if ((fits_l2 || l1_has_room) && width < 5 && cost(width + 1) < cost(width)) ++width;
  const long long all = found.iterations(width, rows) * loads(width > 5 ? width : 5);
  const bool alike = 1LL * found.longest * rows <= 2LL * nnz;
  const long long short_rows = fits_l2 || alike ? 4LL * rows : 0;
  const long long tiled = nnz > short_rows ? nnz : short_rows;
  const long long limit = (fits_l2 ? 8 : l1_has_room ? 6 : 5) * tiled / 2 + 600'000;
  const bool suits = found.longest <= 3 * loads(width) && all <= limit;
  if (!fits_l2) {
    const int crossing_width = crossing_rows_width(rows, nnz, found);
    if (crossing_width >= 0) return crossing_width;
  }
  if (suits && (fits_l2 || rows_suit_memory(rows, nnz, width, found, l1_has_room))) return width;
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

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
