// CUDA on the CPU: the order in which things run.
#include <algorithm>
#include <numeric>
#include <set>

#include "simt/tests/testing.hpp"

namespace simt_test {

// --- Schedules ----------------------------------------------------------------------------------

__global__ void arrival_kernel(int* counter, int* arrivals) {
  const int place = atomicAdd(counter, 1);
  arrivals[place] = blockIdx.x * blockDim.x + threadIdx.x;
}

// The numbers of the threads of a grid, in the order in which they ran.
std::vector<int> arrivals(simt::Schedule schedule, std::uint64_t seed, int blocks, int threads) {
  const ScopedSettings restore;
  simt::settings().schedule = schedule;
  simt::settings().seed = seed;
  simt::settings().workers = 1;
  Buffer<int> counter("counter", std::vector<int>(1));
  Buffer<int> order("order", blocks * threads);
  launch(arrival_kernel, {blocks, threads}, counter.data(), order.data());
  return order.download();
}

TEST_CASE("threads run in the order that is asked for", "[simt]") {
  std::vector<int> expected(7 * 80);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(arrivals(simt::Schedule::kForward, 1, 7, 80) == expected);
  std::reverse(expected.begin(), expected.end());
  CHECK(arrivals(simt::Schedule::kReverse, 1, 7, 80) == expected);
  std::reverse(expected.begin(), expected.end());

  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int> order = arrivals(simt::Schedule::kRandom, seed, 7, 80);
    CHECK(order == arrivals(simt::Schedule::kRandom, seed, 7, 80));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    CHECK(order == expected);
  }
  CHECK(orders.size() == 20);
  for (const int blocks : {1, 2, 3, 4, 5, 64, 1000, 1021}) {
    std::vector<int> order = arrivals(simt::Schedule::kRandom, 5, blocks, 1);
    std::sort(order.begin(), order.end());
    std::vector<int> all(blocks);
    std::iota(all.begin(), all.end(), 0);
    CHECK(order == all);
  }
}

}  // namespace simt_test
