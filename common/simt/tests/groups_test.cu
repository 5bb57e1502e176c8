// cooperative_groups within a block: blocks, tiles, partitions, reductions and scans.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

namespace cg = cooperative_groups;

constexpr unsigned kThreads = 96;

__global__ void block_kernel(int* out) {
  __shared__ int cells[kThreads];
  const cg::thread_block block = cg::this_thread_block();
  cells[block.thread_rank()] = static_cast<int>(block.size());
  block.sync();
  const unsigned other = block.size() - 1 - block.thread_rank();
  out[block.group_index().x * block.size() + block.thread_rank()] = cells[other];
  cg::sync(block);
}

template <unsigned kSize>
__global__ void tile_kernel(int* out) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<kSize>(block);
  const int i = static_cast<int>(block.thread_rank());
  int* const own = out + 8 * i;
  own[0] = cg::reduce(tile, i, cg::plus<int>());
  own[1] = cg::inclusive_scan(tile, i);
  own[2] = cg::exclusive_scan(tile, i);
  own[3] = tile.shfl(i, 0);
  own[4] = static_cast<int>(tile.meta_group_rank() * 100 + tile.thread_rank());
  own[5] = static_cast<int>(tile.ballot(i % 3 == 0));
  own[6] = cg::reduce(tile, (i * 37) % 101, cg::greater<int>());
  const auto half = cg::tiled_partition<(kSize + 1) / 2>(tile);
  own[7] = cg::reduce(half, 1, cg::plus<int>()) * 100 +
           static_cast<int>(half.meta_group_size() * 10 + half.meta_group_rank());
}

template <unsigned kSize>
void check_tiles() {
  CAPTURE(kSize);
  Buffer<int> out("out", 8 * kThreads);
  launch(tile_kernel<kSize>, {1, kThreads}, out.data());
  const std::vector<int> result = out.download();
  for (unsigned i = 0; i < kThreads; ++i) {
    const unsigned first = i / kSize * kSize;
    int sum = 0, before = 0, votes = 0, most = 0;
    for (unsigned k = first; k < first + kSize; ++k) {
      sum += static_cast<int>(k);
      if (k < i) before += static_cast<int>(k);
      votes |= (k % 3 == 0 ? 1 : 0) << (k - first);
      most = std::max(most, static_cast<int>(k * 37 % 101));
    }
    const int* const own = &result[8 * i];
    CHECK(own[0] == sum);
    CHECK(own[1] == before + static_cast<int>(i));
    CHECK(own[2] == before);
    CHECK(own[3] == static_cast<int>(first));
    CHECK(own[4] == static_cast<int>(i / kSize * 100 + i % kSize));
    CHECK(own[5] == votes);
    CHECK(own[6] == most);
    constexpr unsigned kHalf = (kSize + 1) / 2;
    CHECK(own[7] == static_cast<int>(kHalf * 100 + kSize / kHalf * 10 + i % kSize / kHalf));
  }
}

__global__ void partitions_kernel(int* out, int* count) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = static_cast<int>(threadIdx.x);
  const auto alike = cg::labeled_partition(warp, i % 5);
  const auto even = cg::labeled_partition(warp, i % 2 == 0);
  out[4 * i] = cg::reduce(alike, i, cg::plus<int>());
  out[4 * i + 1] = static_cast<int>(alike.thread_rank());
  out[4 * i + 2] = static_cast<int>(even.size());
  out[4 * i + 3] = cg::inclusive_scan(even, 1);
  // One atomic per group, of which each warp has two.
  if (i % 4 == 0) {
    const auto group = cg::coalesced_threads();
    if (group.thread_rank() == 0) atomicAdd(count, static_cast<int>(group.size()));
  } else {
    const auto group = cg::coalesced_threads();
    if (group.thread_rank() == group.size() - 1) atomicAdd(count + 1, 1);
  }
}

TEST_CASE("cooperative groups: blocks, tiles and partitions", "[simt]") {
  under_every_schedule([] {
    Buffer<int> out("out", 3 * kThreads);
    launch(block_kernel, {3, kThreads}, out.data());
    CHECK(out.download() == std::vector<int>(3 * kThreads, kThreads));
    check_tiles<1>();
    check_tiles<2>();
    check_tiles<8>();
    check_tiles<32>();

    Buffer<int> groups("groups", 4 * kThreads), count("count", std::vector<int>(2));
    launch(partitions_kernel, {1, kThreads}, groups.data(), count.data());
    CHECK(count.download() == std::vector<int>{kThreads / 4, kThreads / 32});
    const std::vector<int> result = groups.download();
    for (int i = 0; i < static_cast<int>(kThreads); ++i) {
      int sum = 0, rank = 0;
      for (int k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
        if (k % 5 != i % 5) continue;
        sum += k;
        rank += k < i;
      }
      CHECK(result[static_cast<std::size_t>(4 * i)] == sum);
      CHECK(result[static_cast<std::size_t>(4 * i + 1)] == rank);
      CHECK(result[static_cast<std::size_t>(4 * i + 2)] == 16);
      CHECK(result[static_cast<std::size_t>(4 * i + 3)] == i % 32 / 2 + 1);
    }
  });
}

}  // namespace
}  // namespace simt_test
