// cooperative_groups within a block: blocks, tiles, partitions, reductions and scans.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cassert>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

namespace cg = cooperative_groups;

constexpr unsigned kThreads = 96;

__global__ void block_kernel() {
  __shared__ unsigned cells[kThreads];
  const cg::thread_block block = cg::this_thread_block();
  assert(block.group_index().x == blockIdx.x);
  cells[block.thread_rank()] = block.size();
  block.sync();
  assert(cells[block.size() - 1 - block.thread_rank()] == kThreads);
  cg::sync(block);
}

// As in the guides: the group is an argument, and its size is known at run time.
__device__ unsigned sum_of(const cg::thread_group& group, unsigned* cells, unsigned value) {
  for (unsigned half = group.size() / 2; half > 0; half /= 2) {
    cells[group.thread_rank()] = value;
    group.sync();
    if (group.thread_rank() < half) value += cells[group.thread_rank() + half];
    group.sync();
  }
  return value;
}
__global__ void group_kernel() {
  __shared__ unsigned cells[kThreads];
  const cg::thread_group all = cg::this_thread_block();
  assert(all.size() == kThreads && all.thread_rank() == threadIdx.x);
  const cg::thread_group tile = cg::tiled_partition(cg::this_thread_block(), 16);
  const unsigned sum = sum_of(tile, cells + threadIdx.x / 16 * 16, threadIdx.x);
  assert(tile.thread_rank() != 0 || sum == 16 * threadIdx.x + 120);
  all.sync();
  const cg::thread_group warp = cg::tiled_partition(all, 32);
  assert(warp.size() == 32 && warp.thread_rank() == threadIdx.x % 32);
}

template <unsigned kSize>
__global__ void tile_kernel() {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<kSize>(block);
  const int i = static_cast<int>(block.thread_rank()), size = kSize, first = i / size * size;
  int sum = 0, before = 0, most = 0;
  unsigned votes = 0;
  for (int k = first; k < first + size; ++k) {
    sum += k;
    if (k < i) before += k;
    votes |= (k % 3 == 0 ? 1u : 0u) << (k - first);
    most = max(most, k * 37 % 101);
  }
  assert(cg::reduce(tile, i, cg::plus<int>()) == sum);
  assert(cg::inclusive_scan(tile, i) == before + i);
  assert(cg::exclusive_scan(tile, i) == before);
  assert(tile.shfl(i, 0) == first);
  assert(tile.meta_group_rank() == i / kSize && tile.thread_rank() == i % kSize);
  assert(tile.ballot(i % 3 == 0) == votes);
  assert(cg::reduce(tile, (i * 37) % 101, cg::greater<int>()) == most);
  constexpr unsigned kHalf = (kSize + 1) / 2;
  const auto half = cg::tiled_partition<kHalf>(tile);
  assert(cg::reduce(half, 1, cg::plus<int>()) == static_cast<int>(kHalf));
  assert(half.meta_group_size() == kSize / kHalf);
  assert(half.meta_group_rank() == i % kSize / kHalf);
}

__global__ void partitions_kernel(int* count) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = static_cast<int>(threadIdx.x);
  int sum = 0;
  unsigned rank = 0;
  for (int k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
    if (k % 5 != i % 5) continue;
    sum += k;
    rank += k < i;
  }
  const auto alike = cg::labeled_partition(warp, i % 5);
  assert(cg::reduce(alike, i, cg::plus<int>()) == sum);
  assert(alike.thread_rank() == rank);
  const auto even = cg::labeled_partition(warp, i % 2 == 0);
  assert(even.size() == 16);
  assert(cg::inclusive_scan(even, 1) == i % 32 / 2 + 1);
  // One atomic per group, of which each warp has two, or more.
  if (i % 4 == 0) {
    const auto group = cg::coalesced_threads();
    if (group.thread_rank() == 0) atomicAdd(count, static_cast<int>(group.size()));
  } else {
    const auto group = cg::coalesced_threads();
    const int size = static_cast<int>(group.size());
    if (group.thread_rank() == group.size() - 1) atomicAdd(count + 1, size);
  }
}

TEST_CASE("cooperative groups: blocks, tiles and partitions", "[simt]") {
  under_every_schedule([] {
    launch(block_kernel, {3, kThreads});
    launch(group_kernel, {1, kThreads});
    for (const auto kernel : {tile_kernel<1>, tile_kernel<2>, tile_kernel<8>, tile_kernel<32>}) {
      launch(kernel, {1, kThreads});
    }
    Buffer<int> count("count", std::vector<int>(2));
    launch(partitions_kernel, {1, kThreads}, count.data());
    CHECK(count.download() == std::vector<int>{kThreads / 4, kThreads / 4 * 3});
  });
}

}  // namespace
}  // namespace simt_test
