// Step 06, one pass: PCSR whose products never leave shared memory.
//
// PCSR reads values and column indices fully coalesced, whatever the row lengths are, but writes an
// array of products and reads it again. Here a warp multiplies 256 nonzeros of its tile at a time
// (an *iteration*) and leaves the products in shared memory, where a segmented scan (step 05) adds
// up the rows. A nonzero costs 12 bytes in double precision instead of 28, and long rows cost as
// much as short ones. The sum of a row that goes on after the iteration is carried in a register.
//
//   lane     multiplies every 32nd of the iteration's 256 nonzeros; adds up 8 consecutive products
//   warp     owns a tile of the nonzeros and rows (tiles.cuh)
//   block    nothing but the shared memory of its warps: there is no block-wide barrier
//
// The file holds, in CUB's order: the policy (constants), the kernel's arguments, the shared memory
// of a warp, the warp agent with one method per phase, and the kernel.
//
// Launched by OnePassPlan::multiply (one_pass.cuh). Tests: test.cu, "one pass: ...". NOTES.md lists
// the versions before this one, and the ideas that were refuted. Copyright and licence (MIT): see
// one_pass.cuh.
#pragma once

#include <cuda_runtime.h>

#include "cut_rows.cuh"
#include "overlap.cuh"
#include "tiles.cuh"
#include "vectors.cuh"

namespace spmv {
inline namespace one_pass_2 {
namespace detail {

// --- Policy -------------------------------------------------------------------------------------

template <typename T>
struct OnePassPolicy {
  static constexpr int kThreads = 384;       // per block, at most
  static constexpr int kBlocks = 2;          // per multiprocessor
  static constexpr int kItemsPerThread = 8;  // nonzeros per lane and iteration
  static constexpr int kIterationItems = 32 * kItemsPerThread;
  static constexpr int kPack =
      16 / sizeof(T);  // products that a lane reads from shared memory at once
  // The products of a lane are padded by 16 bytes, or all lanes' would begin in the same few banks.
  static constexpr int kStride = kItemsPerThread + kPack;
  static constexpr int kEndWords = kIterationItems / 32;

  static_assert(kThreads % 32 == 0, "a block is a whole number of warps");
  static_assert(kItemsPerThread % kPack == 0, "a lane reads whole packs");
  static_assert(32 % kItemsPerThread == 0, "the row-end bits of a lane lie in one word");
  static_assert(kEndWords <= 32, "one lane clears one word of row-end bits");
};

// --- Arguments ----------------------------------------------------------------------------------

// T: of sums and vectors; Value: of the matrix in memory.
template <typename T, typename Value = T>
struct OnePassArguments {
  int tile_count;
  unsigned tile_items;  // rows and nonzeros per tile
  const Tile* tiles;
  const int* row_offsets;
  const int* column_indices;
  const Value* values;
  PartialSum<T>* partial_sums;
  unsigned* unstarted;
};

// --- Shared memory of a warp --------------------------------------------------------------------

template <typename T>
struct OnePassShared {
  using Policy = OnePassPolicy<T>;
  static constexpr bool kBlockTile = false;
  alignas(16) T products[32 * Policy::kStride];
  unsigned row_ends[Policy::kEndWords];  // one bit per product: the last of its row?

  // Where product i of the iteration is stored.
  static __device__ __forceinline__ int place(int i) {
    return i + i / Policy::kItemsPerThread * Policy::kPack;
  }
};

// That of a warp that shares a tile with the warps of its block (block_tiles.cuh): its partial sums
// of rows that lie in several of them.
template <typename T>
struct BlockTileShared : OnePassShared<T> {
  static constexpr bool kBlockTile = true;
  T head_sum;    // of the row in which its part of the tile begins
  T tail_sum;    // of the row that goes on in the next warp's part
  int tail_row;  // that row; -1: there is none
};

// 16 bytes or fewer, which a lane reads at once.
template <typename T, int count = 16 / sizeof(T)>
struct alignas(count * sizeof(T)) Pack {
  T value[count];
};

// --- The warp agent -----------------------------------------------------------------------------

// One warp and its tile. All lanes of the warp call every method. The order of the phases is that
// of pcsr_one_pass_kernel below; before wait_for_previous_kernel() only the constructor,
// load_first_items() and load_row_ends() may be called: they read the matrix and the plan, and
// nothing that a product writes.
//
// State between iterations (invariant at the loop's head):
//   iteration_begin_ the first nonzero of the iteration, a multiple of 8; column_ and value_ hold
//                    lane's nonzeros iteration_begin_ + lane + 32 j, j = 0, ..., 7
//   row_, begin_     the row that ends next, and where it begins
//   end_[b]          where row row_ + 32 b + lane ends; kNoEnd if not in this tile
//   carry_           the sum so far of row row_ over the iterations before; over all lanes together
//                    if carry_spread_, else in lane 0
//   shared.row_ends  all 0
//
// Shared: BlockTileShared<T> if the warps of a block share a tile.
template <typename T, typename Vectors = PlainVectors<T>, typename Value = T,
          typename Shared = OnePassShared<T>>
class OnePassAgent {
 public:
  using Policy = OnePassPolicy<T>;
  static constexpr int kItemsPerThread = Policy::kItemsPerThread;
  static constexpr int kIterationItems = Policy::kIterationItems;
  static constexpr unsigned kAll = 0xffffffffu;
  static constexpr int kNoEnd = 0x7fffffff;  // sentinel: the row ends in a later tile

  // Reads the tile's borders. `tile` must be warp-uniform and less than arguments.tile_count.
  __device__ __forceinline__ OnePassAgent(const OnePassArguments<T, Value>& arguments,
                                          Shared& shared, int tile, Vectors& vectors)
      : a_(arguments), shared_(shared), vectors_(vectors), tile_(tile), lane_(threadIdx.x % 32) {
    const TileBorders borders = read_borders(a_.tiles, tile);
    nnz_begin_ = borders.nnz_begin;
    nnz_end_ = borders.nnz_end;
    rows_ = borders.rows;
    row_ = rows_.first;
    iteration_begin_ = nnz_begin_ & ~7;  // begins with a whole sector
    if constexpr (Shared::kBlockTile) {
      if (lane_ == 0) {
        shared_.tail_sum = 0;
        shared_.tail_row = rows_.tail_cut ? rows_.end : -1;
      }
    }
  }

  // No row of the tile has nonzeros in it.
  __device__ __forceinline__ bool is_empty() const { return nnz_begin_ == nnz_end_; }

  // All there is to do for an empty tile.
  __device__ __forceinline__ void write_empty_rows() {
    for (int r = rows_.first + lane_; r < rows_.end; r += 32) vectors_.store(r, T{0});
  }

  // Loads the columns and values of the tile's first iteration.
  __device__ __forceinline__ void load_first_items() { load_items(iteration_begin_); }

  // Loads where the first row begins, where the first 64 rows end, and where cut rows lie.
  __device__ __forceinline__ void load_row_ends() {
    if constexpr (!Shared::kBlockTile) {
      cut_row_ = tiles_of_cut_row(a_.tile_items, rows_, a_.row_offsets);
    }
    begin_ = a_.row_offsets[row_];
    end_[0] = end_of(row_ + lane_);
    end_[1] = end_of(row_ + 32 + lane_);
    if (lane_ < Policy::kEndWords) shared_.row_ends[lane_] = 0;
  }

  // Tells the other tiles of its cut rows that this one has started.
  __device__ __forceinline__ void start() {
    if (cut_row_.first >= 0) unstarted_ = atomicSub(&a_.unstarted[cut_row_.first], 1u);
    __syncwarp();
  }

  // product_ = value times x for the nonzeros of the iteration that belong to the tile, 0 for
  // others.
  __device__ __forceinline__ void multiply() {
    const int left = nnz_end_ - iteration_begin_;
    // exercise: begin
#pragma unroll
    for (int j = 0; j < kItemsPerThread; ++j)
      product_[j] = static_cast<T>(value_[j]) * vectors_.element(column_[j]);
    if (iteration_begin_ + lane_ < nnz_begin_) product_[0] = 0;
    if (left < kIterationItems) {
#pragma unroll
      for (int j = 0; j < kItemsPerThread; ++j) {
        if (lane_ + 32 * j >= left) product_[j] = 0;
      }
    }
    // exercise: end
    last_iteration_ = left <= kIterationItems;
    iteration_end_ = last_iteration_ ? nnz_end_ : iteration_begin_ + kIterationItems;
  }

  // Loads the columns and values of the iteration after this one, if there is one; they are in
  // flight while the rows of this iteration are added up.
  __device__ __forceinline__ void load_next_items() {
    if (!last_iteration_) load_items(iteration_end_);
  }

  // Whether a row ends in this iteration. If none does, no scan is needed.
  __device__ __forceinline__ bool row_ends_in_iteration() const {
    return __shfl_sync(kAll, end_[0], 0) <= iteration_end_;
  }

  // No row ends: the iteration's products are added to the carry, each lane's to its own.
  __device__ __forceinline__ void add_to_carry() {
    // exercise: begin
#pragma unroll
    for (int j = 0; j < kItemsPerThread; ++j) carry_ += product_[j];
    carry_spread_ = true;
    // exercise: end
  }

  // Stores product i of the iteration, i = lane + 32 j, at place(i).
  __device__ __forceinline__ void store_products() {
    // exercise: begin
#pragma unroll
    for (int j = 0; j < kItemsPerThread; ++j) {
      shared_.products[OnePassShared<T>::place(lane_) + OnePassShared<T>::place(32) * j] =
          product_[j];
    }
    // exercise: end
  }

  // Sets the bit of the last product of each row that ends in this iteration, counts these
  // rows_done_, and loads where the rows after them end. Visible to the warp after the next
  // __syncwarp().
  __device__ __forceinline__ void mark_row_ends() {
    // exercise: begin
    rows_done_ = mark(end_[0]);
    if (rows_done_ == 32) rows_done_ += mark(end_[1]);
    for (int marked = rows_done_; marked == 64; rows_done_ += marked) {
      const int r = row_ + rows_done_ + lane_;
      const int ends[2] = {end_of(r), end_of(r + 32)};
      marked = mark(ends[0]) + mark(ends[1]);
    }
    // exercise: end
    const int next_row = row_ + rows_done_;
    next_begin_ = a_.row_offsets[next_row];
    next_end_[0] = end_of(next_row + lane_);
    next_end_[1] = end_of(next_row + 32 + lane_);
  }

  // The segmented scan. After it, the product at which a row ends holds the row's sum over this
  // iteration and the carry, and carry_, in lane 0, the sum of the products after the last row end.
  __device__ __forceinline__ void scan_segments() {
    // exercise: begin
    if (carry_spread_) carry_ = sum_of_warp(carry_);
    __syncwarp();
    // Each lane adds up 8 consecutive products; where a row ends, the sum takes the product's
    // place.
    T* own = &shared_.products[lane_ * Policy::kStride];
    const unsigned own_ends =
        shared_.row_ends[lane_ * kItemsPerThread / 32] >> (lane_ * kItemsPerThread % 32) &
        ((1u << kItemsPerThread) - 1);
    T sum = lane_ == 0 ? carry_ : T{0};
#pragma unroll
    for (int j = 0; j < kItemsPerThread / Policy::kPack; ++j) {
      const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(&own[j * Policy::kPack]);
#pragma unroll
      for (int i = 0; i < Policy::kPack; ++i) {
        sum += pack.value[i];
        if (own_ends >> (j * Policy::kPack + i) & 1) {
          own[j * Policy::kPack + i] = sum;
          sum = 0;
        }
      }
    }
    // What is left in a lane belongs to the first row that ends in a later lane: the scan goes back
    // to the last lane in which a row ends.
    const unsigned lanes_with_end = __ballot_sync(kAll, own_ends != 0);
    const unsigned up_to_here = lanes_with_end & kAll >> (31 - lane_);
    const int segment_begin = up_to_here ? 31 - __clz(up_to_here) : 0;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const T before = __shfl_up_sync(kAll, sum, distance);
      if (lane_ - distance >= segment_begin) sum += before;
    }
    const T before = __shfl_up_sync(kAll, sum, 1);
    if (own_ends && lane_ > 0) own[__ffs(own_ends) - 1] += before;
    carry_ = __shfl_sync(kAll, sum, 31);
    if (lane_ > 0) carry_ = 0;
    carry_spread_ = false;
    __syncwarp();
    // exercise: end
  }

  // Stores the rows_done_ rows that end in this iteration (of the head of the tile its partial
  // sum), one row per lane, and goes on to the rows after them.
  __device__ __forceinline__ void write_rows() {
    if (lane_ < Policy::kEndWords) shared_.row_ends[lane_] = 0;
      // exercise: begin
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      if (32 * b >= rows_done_) break;
      const int end_before = __shfl_up_sync(kAll, end_[b], 1);
      write_row(32 * b + lane_, lane_ > 0 ? end_before : begin_, end_[b]);
      begin_ = __shfl_sync(kAll, end_[b], 31);
    }
#pragma unroll 1
    for (int q = 64 + lane_; q < rows_done_; q += 32) {
      write_row(q, a_.row_offsets[row_ + q], a_.row_offsets[row_ + q + 1]);
    }
    // exercise: end
    row_ += rows_done_;
    begin_ = next_begin_;
    end_[0] = next_end_[0];
    end_[1] = next_end_[1];
    __syncwarp();
  }

  // Goes on to the iteration after this one; false if there is none.
  __device__ __forceinline__ bool next_iteration() {
    iteration_begin_ = iteration_end_;
    return !last_iteration_;
  }

  // Publishes the partial sum of the tail, and finishes the rows of which this tile started last;
  // those of a block's tile are finished by add_up_cut_row().
  __device__ __forceinline__ void finish_cut_rows() {
    // exercise: begin
    if (rows_.tail_cut) {
      carry_ = sum_of_warp(carry_);
      if (lane_ == 0) publish_tail(carry_);
    }
    if constexpr (!Shared::kBlockTile) {
      const unsigned started_last = __ballot_sync(kAll, unstarted_ == 1);
      for (int side = 0; side < 2; ++side) {  // head, tail
        if (!(started_last >> side & 1)) continue;
        const int first = __shfl_sync(kAll, cut_row_.first, side);
        const int last = __shfl_sync(kAll, cut_row_.last, side);
        const int row = side == 0 ? rows_.first : rows_.end;
        finish_cut_row<1>(first, last, a_.partial_sums, a_.unstarted,
                          [&](T total) { vectors_.store(row, total); });
      }
    }
    // exercise: end
  }

  // Where a row that began in an earlier warp of the block ends in this one: adds up its partial
  // sums. of_block: the shared memory of the block's warps, behind a barrier of the block after
  // finish_cut_rows().
  __device__ __forceinline__ void add_up_cut_row(const Shared* of_block) {
    if (!rows_.head_cut || rows_.is_piece()) return;
    const Shared* earlier = of_block + lane_;
    const bool has_part = earlier < &shared_ && earlier->tail_row == rows_.first;
    const T sum = sum_of_warp(has_part ? earlier->tail_sum : T{0});
    if (lane_ == 0) vectors_.store(rows_.first, sum + shared_.head_sum);
  }

 private:
  // Loads the columns and values of the iteration that begins at `from`, coalesced: 32 lanes, 32
  // consecutive nonzeros. They are read once (__ldcs): the caches evict them first, and keep x.
  __device__ __forceinline__ void load_items(int from) {
    if (nnz_end_ - from >= kIterationItems) {
      const int* own_columns = a_.column_indices + from + lane_;
      const Value* own_values = a_.values + from + lane_;
#pragma unroll
      for (int j = 0; j < kItemsPerThread; ++j) {
        column_[j] = __ldcs(&own_columns[32 * j]);
        value_[j] = __ldcs(&own_values[32 * j]);
      }
    } else {  // beyond the tile's last nonzero: that one again
      const int last = nnz_end_ - 1 - from;
#pragma unroll
      for (int j = 0; j < kItemsPerThread; ++j) {
        const int k = from + min(lane_ + 32 * j, last);
        column_[j] = __ldcs(&a_.column_indices[k]);
        value_[j] = __ldcs(&a_.values[k]);
      }
    }
  }

  __device__ __forceinline__ int end_of(int row) const {
    return row < rows_.end ? a_.row_offsets[row + 1] : kNoEnd;
  }

  // Marks the end of one row per lane, if it lies in this iteration; returns how many lanes' rows
  // end before iteration_end_.
  __device__ __forceinline__ int mark(int end) {
    const bool ends = end <= iteration_end_;
    if (ends && end > iteration_begin_) {
      const unsigned i = end - 1 - iteration_begin_;
      atomicOr(&shared_.row_ends[i / 32], 1u << i % 32);
    }
    return __popc(__ballot_sync(kAll, ends));
  }

  // Row row_ + q, if it ends in this iteration. An empty row has no product: its sum is 0.
  __device__ __forceinline__ void write_row(int q, int begin, int end) {
    if (q >= rows_done_) return;
    const T sum =
        begin < end ? shared_.products[OnePassShared<T>::place(end - 1 - iteration_begin_)] : T{0};
    if (begin >= nnz_begin_) {
      vectors_.store(row_ + q, sum);
    } else {
      publish_head(sum);
    }
  }

  // The partial sum of the row in which the tile begins, and of the one that goes on after it: by
  // one lane each.
  __device__ __forceinline__ void publish_head(T sum) {
    if constexpr (Shared::kBlockTile) {
      shared_.head_sum = sum;
    } else {
      publish(a_.partial_sums[2LL * tile_], sum);
    }
  }
  __device__ __forceinline__ void publish_tail(T sum) {
    if constexpr (Shared::kBlockTile) {
      shared_.tail_sum = sum;
    } else {
      publish(a_.partial_sums[2LL * tile_ + !rows_.is_piece()], sum);
    }
  }

  const OnePassArguments<T, Value>& a_;
  Shared& shared_;
  Vectors& vectors_;
  const int tile_;
  const int lane_;
  TileRows rows_;
  int nnz_begin_, nnz_end_;  // of the tile
  TilesOfRow cut_row_;       // lanes 0 and 1: see tiles_of_cut_row()
  unsigned unstarted_ = 0;   // and how many of these had not started, this tile included

  int iteration_begin_, iteration_end_ = 0;
  bool last_iteration_ = false;
  int column_[kItemsPerThread];
  Value value_[kItemsPerThread];
  T product_[kItemsPerThread];
  int row_, begin_ = 0, end_[2] = {};
  int rows_done_ = 0, next_begin_ = 0, next_end_[2] = {};  // between mark_row_ends and write_rows
  T carry_ = 0;
  bool carry_spread_ = false;
};

// All phases after wait_for_previous_kernel().
template <typename Agent>
__device__ __forceinline__ void multiply_tile(Agent& agent) {
  if (agent.is_empty()) return agent.write_empty_rows();
  agent.start();
  do {
    agent.multiply();
    let_next_kernel_start();  // where products overlap
    const bool row_ends = agent.row_ends_in_iteration();
    if (row_ends) {
      agent.store_products();
    } else {
      agent.add_to_carry();
    }
    agent.load_next_items();
    if (row_ends) {
      agent.mark_row_ends();
      agent.scan_segments();
      agent.write_rows();
    }
  } while (agent.next_iteration());
  agent.finish_cut_rows();
}

// --- The kernel ---------------------------------------------------------------------------------

// Any number of warps per block up to Policy::kThreads / 32, one tile per warp, and one
// OnePassShared per warp of dynamic shared memory.
template <typename T, typename Value = T, typename Epilogue = Scaled<T>>
__global__ void __launch_bounds__(OnePassPolicy<T>::kThreads, OnePassPolicy<T>::kBlocks)
    pcsr_one_pass_kernel(const __grid_constant__ OnePassArguments<T, Value> a,
                         const __grid_constant__ PlainVectors<T, Epilogue> vectors) {
  extern __shared__ __align__(16) unsigned char one_pass_shared[];
  const int warp_of_block = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const int tile = blockIdx.x * (blockDim.x / 32) + warp_of_block;
  if (tile >= a.tile_count) return;
  OnePassAgent<T, const PlainVectors<T, Epilogue>, Value> agent(
      a, reinterpret_cast<OnePassShared<T>*>(one_pass_shared)[warp_of_block], tile, vectors);

  // The matrix, which no kernel just before this one writes.
  if (!agent.is_empty()) {
    agent.load_first_items();
    agent.load_row_ends();
  }
  wait_for_previous_kernel();  // x, y, z and the partial sums from here on
  multiply_tile(agent);
}

}  // namespace detail
}  // namespace one_pass_2
}  // namespace spmv
