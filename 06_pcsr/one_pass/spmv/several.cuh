// Step 06, one pass: the product with 2, 4 or 8 vectors at once, Y = alpha A X + beta Y (SpMM).
//
// Both matrices of vectors are row-major: the elements that a nonzero multiplies, X[column][0],
// X[column][1], ..., lie side by side. So a nonzero is read once for all vectors, and what it
// gathers fills sectors, of which a single vector uses one element. Tiles and rows that are cut are
// those of the product with one vector (tiles.cuh, cut_rows.cuh). What differs is where the
// products are: there are too many for shared memory, so an iteration leaves its columns and values
// there, and the lanes gather, multiply and add up from there:
//
//   lane     has 16 bytes of a row of X, its *part*: 2 vectors in double precision, 4 in single
//            (8 bytes with two vectors in single precision)
//   group    of the 1, 2 or 4 lanes that have all parts: adds up 8, 16 or 32 consecutive nonzeros
//   warp     owns a tile; a segmented scan over its groups adds what rows have in earlier groups
//
// Launched by OnePassPlan::multiply_several (one_pass.cuh). Tests: test.cu, "one pass: several
// vectors ...".
#pragma once

#include <cuda_runtime.h>

#include "agent.cuh"
#include "cut_rows.cuh"
#include "tiles.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

template <typename T, int kVectors>
struct SeveralPolicy {
  static constexpr int kPart = kVectors * sizeof(T) < 16 ? kVectors : 16 / sizeof(T);  // of a lane
  static constexpr int kLanes = kVectors / kPart;                                      // of a group
  static constexpr int kGatheredAtOnce = 8;  // elements of X that a lane has in flight
  static constexpr int kItems = kGatheredAtOnce * kLanes;  // nonzeros of a group and iteration
  static constexpr int kIterationItems = 32 / kLanes * kItems;
  static constexpr int kThreads = 256;  // per block, at most, for 48 KB of shared memory
  static constexpr int kBlocks = 3;     // per multiprocessor
  static_assert(kIterationItems == 256 && 32 % kItems == 0,
                "the row-end bits of a group lie in one of eight words");
};

// What a warp's lanes exchange. The nonzeros of a group are padded by one, or all groups' would
// begin in the same bank.
template <typename T, int kVectors>
struct SeveralShared {
  using Policy = SeveralPolicy<T, kVectors>;
  static constexpr int kPlaces = Policy::kIterationItems + 32 / Policy::kLanes;
  static constexpr int kNone = -1;  // the column of what is no nonzero of the tile
  T values[kPlaces];
  int columns[kPlaces];
  int rows[kPlaces];  // that end here, where a bit of row_ends says so
  unsigned row_ends[8];

  static __device__ __forceinline__ int place(int i) { return i + i / Policy::kItems; }
};

// The vectors: X, of cols times kVectors elements, and Y, of rows times kVectors. Y is not read if
// beta is 0. Aligned to min(16, kVectors * sizeof(T)) bytes.
template <typename T, int kVectors>
struct SeveralVectors {
  using Policy = SeveralPolicy<T, kVectors>;
  using Part = Pack<T, Policy::kPart>;
  const T* x;
  T* y;
  T alpha;
  T beta;

  __device__ __forceinline__ Part gather(int column, int part) const {
    return reinterpret_cast<const Part*>(x)[1LL * column * Policy::kLanes + part];
  }

  __device__ __forceinline__ void store(int row, int part, const Part& sum) const {
    Part* to = reinterpret_cast<Part*>(y) + (1LL * row * Policy::kLanes + part);
    Part result = {};
    if (beta != T{0}) result = *to;
#pragma unroll
    for (int p = 0; p < Policy::kPart; ++p) {
      const T old = beta != T{0} ? beta * result.value[p] : T{0};
      result.value[p] = alpha * sum.value[p] + old;
    }
    *to = result;
  }

  __device__ __forceinline__ void store_element(int row, int v, T sum) const {
    T& to = y[1LL * row * kVectors + v];
    to = alpha * sum + (beta != T{0} ? beta * to : T{0});
  }
};

// One warp and its tile; the phases in the order of the kernel below.
template <typename T, int kVectors, typename Value>
class SeveralAgent {
 public:
  using Policy = SeveralPolicy<T, kVectors>;
  using Shared = SeveralShared<T, kVectors>;
  using Part = typename SeveralVectors<T, kVectors>::Part;
  static constexpr unsigned kAll = 0xffffffffu;

  // Reads the tile's borders. `tile` must be warp-uniform and less than arguments.tile_count.
  __device__ __forceinline__ SeveralAgent(const OnePassArguments<T, Value>& arguments,
                                          const SeveralVectors<T, kVectors>& vectors,
                                          Shared& shared, int tile)
      : a_(arguments),
        vectors_(vectors),
        shared_(shared),
        tile_(tile),
        lane_(threadIdx.x % 32),
        part_(lane_ % Policy::kLanes),
        border_(read_borders(a_.tiles, tile)),
        row_(border_.rows.first),
        iteration_begin_(border_.nnz_begin) {
    if (lane_ < 8) shared_.row_ends[lane_] = 0;
  }

  // Tells the other tiles of its cut rows that this one has started.
  __device__ __forceinline__ void start() {
    cut_row_ = tiles_of_cut_row(a_.tile_items, border_.rows, a_.row_offsets);
    if (cut_row_.first >= 0) unstarted_ = atomicSub(&a_.unstarted[cut_row_.first], 1u);
    __syncwarp();
  }

  // Columns and values of the iteration, coalesced, into shared memory.
  __device__ __forceinline__ void load_items() {
    const int left = border_.nnz_end - iteration_begin_;
    last_iteration_ = left <= Policy::kIterationItems;
    iteration_end_ = last_iteration_ ? border_.nnz_end : iteration_begin_ + Policy::kIterationItems;
#pragma unroll
    for (int i = lane_; i < Policy::kIterationItems; i += 32) {
      const int k = iteration_begin_ + i;
      shared_.columns[Shared::place(i)] = i < left ? __ldcs(&a_.column_indices[k]) : Shared::kNone;
      shared_.values[Shared::place(i)] = i < left ? static_cast<T>(__ldcs(&a_.values[k])) : T{0};
    }
  }

  // Notes the rows that end in this iteration at their last nonzeros. Empty rows have none and are
  // stored here.
  __device__ __forceinline__ void mark_row_ends() {
    int marked;
    do {
      const int row = row_ + lane_;
      const bool ends = row < border_.rows.end && a_.row_offsets[row + 1] <= iteration_end_;
      if (ends) {
        const int end = a_.row_offsets[row + 1];
        if (a_.row_offsets[row] < end) {
          const int i = end - 1 - iteration_begin_;
          shared_.rows[Shared::place(i)] = row;
          atomicOr(&shared_.row_ends[i / 32], 1u << i % 32);
        } else {
          for (int part = 0; part < Policy::kLanes; ++part) vectors_.store(row, part, Part{});
        }
      }
      marked = __popc(__ballot_sync(kAll, ends));
      row_ += marked;
    } while (marked == 32);
    __syncwarp();
  }

  // Each group multiplies and adds up its consecutive nonzeros; rows that end in it are stored, but
  // the first, which may have begun in an earlier group. Then the scan over the groups.
  __device__ __forceinline__ void add_up() {
    const int group = lane_ / Policy::kLanes;
    const int first_item = group * Policy::kItems;
    const unsigned ends =
        shared_.row_ends[first_item / 32] >> (first_item % 32) & kAll >> (32 - Policy::kItems);
    Part sum = group == 0 ? carry_ : Part{};
    Part first_sum = {};  // of the first row that ends in the group
    int first_row = -1;
#pragma unroll 1
    for (int i = 0; i < Policy::kItems; i += Policy::kGatheredAtOnce) {
      const int from = Shared::place(first_item) + i;
      Part element[Policy::kGatheredAtOnce];
      T value[Policy::kGatheredAtOnce];  // not where they are used: stores stand between
#pragma unroll
      for (int j = 0; j < Policy::kGatheredAtOnce; ++j) {
        element[j] = gather(shared_.columns[from + j]);
        value[j] = shared_.values[from + j];
      }
#pragma unroll
      for (int j = 0; j < Policy::kGatheredAtOnce; ++j) {
#pragma unroll
        for (int p = 0; p < Policy::kPart; ++p) sum.value[p] += value[j] * element[j].value[p];
        if (ends >> (i + j) & 1) {
          const int row = shared_.rows[from + j];
          if (first_row < 0) {
            first_row = row;
            first_sum = sum;
          } else {
            vectors_.store(row, part_, sum);
          }
          sum = Part{};
        }
      }
    }
    // What is left in a group belongs to the first row that ends in a later one: the scan goes back
    // to the last group in which a row ends.
    const unsigned up_to_here = __ballot_sync(kAll, ends != 0) & kAll >> (31 - lane_);
    const int last_end = up_to_here ? 31 - __clz(up_to_here) : 0;
    const int segment_begin = last_end - last_end % Policy::kLanes;
#pragma unroll
    for (int distance = Policy::kLanes; distance < 32; distance *= 2) {
      const Part before = from_lane_before(sum, distance);
      if (lane_ - distance >= segment_begin) add(sum, before);
    }
    const Part before = from_lane_before(sum, Policy::kLanes);
    if (first_row >= 0) {
      if (group > 0) add(first_sum, before);
      store_first(first_row, first_sum);
    }
#pragma unroll
    for (int p = 0; p < Policy::kPart; ++p)
      carry_.value[p] = __shfl_sync(kAll, sum.value[p], 32 - Policy::kLanes + part_);
  }

  // Goes on to the iteration after this one; false if there is none.
  __device__ __forceinline__ bool next_iteration() {
    __syncwarp();
    if (lane_ < 8) shared_.row_ends[lane_] = 0;
    __syncwarp();
    iteration_begin_ = iteration_end_;
    return !last_iteration_;
  }

  // Publishes the partial sums of the tail, and finishes the rows of which this tile started last.
  __device__ __forceinline__ void finish_cut_rows() {
    const TileRows& rows = border_.rows;
    if (rows.tail_cut && lane_ < Policy::kLanes) publish_part(!rows.is_piece(), carry_);
    const unsigned started_last = __ballot_sync(kAll, unstarted_ == 1);
    for (int side = 0; side < 2; ++side) {  // head, tail
      if (!(started_last >> side & 1)) continue;
      const int first = __shfl_sync(kAll, cut_row_.first, side);
      const int last = __shfl_sync(kAll, cut_row_.last, side);
      const int row = side == 0 ? rows.first : rows.end;
      finish_cut_row<kVectors>(first, last, a_.partial_sums, a_.unstarted,
                               [&](T total) { vectors_.store_element(row, lane_, total); });
    }
  }

 private:
  __device__ __forceinline__ Part gather(int column) const {
    if (column == Shared::kNone) return {};
    return vectors_.gather(column, part_);
  }

  static __device__ __forceinline__ Part from_lane_before(const Part& sum, int distance) {
    Part before;
#pragma unroll
    for (int p = 0; p < Policy::kPart; ++p)
      before.value[p] = __shfl_up_sync(kAll, sum.value[p], distance);
    return before;
  }

  static __device__ __forceinline__ void add(Part& sum, const Part& other) {
#pragma unroll
    for (int p = 0; p < Policy::kPart; ++p) sum.value[p] += other.value[p];
  }

  // The first row that ends in a group: of the head of the tile it is a partial sum.
  __device__ __forceinline__ void store_first(int row, const Part& sum) const {
    if (border_.rows.head_cut && row == border_.rows.first) {
      publish_part(0, sum);
    } else {
      vectors_.store(row, part_, sum);
    }
  }

  // side: 0 for the head of the tile, 1 for its tail.
  __device__ __forceinline__ void publish_part(int side, const Part& sum) const {
    PartialSum<T>* to = &a_.partial_sums[(2LL * tile_ + side) * kVectors + part_ * Policy::kPart];
    for (int p = 0; p < Policy::kPart; ++p) publish(to[p], sum.value[p]);
  }

  const OnePassArguments<T, Value>& a_;
  const SeveralVectors<T, kVectors>& vectors_;
  Shared& shared_;
  const int tile_;
  const int lane_;
  const int part_;  // which of the parts of a row of X
  const TileBorders border_;
  TilesOfRow cut_row_;  // lanes 0 and 1: see tiles_of_cut_row()
  unsigned unstarted_ = 0;
  int row_;  // the row that ends next
  int iteration_begin_, iteration_end_ = 0;
  bool last_iteration_ = false;
  Part carry_ = {};  // the sums of row_ over the iterations before
};

// Any number of warps per block up to the launch bound, one tile per warp, and one SeveralShared
// per warp of dynamic shared memory. a.partial_sums: kVectors for each tile's head and tail.
template <typename T, int kVectors, typename Value = T>
__global__ void __launch_bounds__(SeveralPolicy<T, kVectors>::kThreads,
                                  SeveralPolicy<T, kVectors>::kBlocks)
    pcsr_several_kernel(const __grid_constant__ OnePassArguments<T, Value> a,
                        const __grid_constant__ SeveralVectors<T, kVectors> vectors) {
  extern __shared__ __align__(16) unsigned char several_shared[];
  const int warp_of_block = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const int tile = blockIdx.x * (blockDim.x / 32) + warp_of_block;
  if (tile >= a.tile_count) return;
  using Shared = SeveralShared<T, kVectors>;
  SeveralAgent<T, kVectors, Value> agent(
      a, vectors, reinterpret_cast<Shared*>(several_shared)[warp_of_block], tile);
  agent.start();
  do {
    agent.load_items();
    agent.mark_row_ends();
    agent.add_up();
  } while (agent.next_iteration());
  agent.finish_cut_rows();
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
