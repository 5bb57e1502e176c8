// CUDA on the CPU: the order in which things run, and random programs.
//
// A program is a list of instructions on one value per thread. A kernel interprets it; so does the
// host, a whole block at a time in lock step, which needs no threads, barriers or warp operations.
// Whatever the schedule, both must give the same values: programs have no races.
#include <algorithm>
#include <bit>
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

// Wrong: the last warp to write wins, and nobody promised which that is.
__global__ void last_one_wins_kernel(unsigned* winner) {
  *winner = blockIdx.x * blockDim.x + threadIdx.x;
}

// Wrong: without a barrier a thread may read before its neighbour has written.
__global__ void no_barrier_kernel(int* out) {
  __shared__ int cells[256];
  cells[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = cells[(threadIdx.x + 1) % blockDim.x];
}

TEST_CASE("kernels that lean on an order are found out by another", "[simt]") {
  std::set<unsigned> winners;
  std::set<std::vector<int>> results;
  const ScopedSettings restore;
  simt::settings().check_uninitialised = false;  // or the instrumented build would find them first
  simt::settings().check_races = false;
  under_every_schedule([&] {
    simt::settings().workers = 1;
    Buffer<unsigned> winner("winner", 1);
    launch(last_one_wins_kernel, {10, 64}, winner.data());
    winners.insert(winner.download()[0]);
    Buffer<int> out("out", 256);
    launch(no_barrier_kernel, {1, 256}, out.data());
    results.insert(out.download());
  });
  const std::size_t orders = simt::is_instrumented() ? 5 : 4;  // else kLockstep is kForward
  CHECK(winners.size() == orders);
  CHECK(results.size() == orders);
}

// --- Programs -----------------------------------------------------------------------------------

enum class Op {
  kAffine,     // v = a v + b + lane
  kShuffle,    // v += shuffle from lane a, width b
  kShuffleUp,  // ... by a
  kShuffleDown,
  kShuffleXor,
  kBallot,         // v ^= ballot of v's bit a
  kMatch,          // v ^= match_any of v mod a
  kReduce,         // v ^= reduce_add of v
  kHalves,         // even lanes reduce with even ones, odd lanes shuffle with odd ones
  kSegments,       // segments of width b: a trip count of their own, of shuffles among themselves
  kBarrierRotate,  // v = v of the thread a further on, through shared memory
  kBarrierCount,   // v += threads whose v has bit a
  kBarrierVotes,   // v += 1 where any v of the block is 0 mod a; 2 where all are not 1 mod a
  kAtomicAdd,      // cell v mod a of global memory += 1
  kLoop,           // v mod a rounds of arithmetic
  kBranch,         // threads whose v has bit a do one thing, the others another
  kLeave,          // threads whose v is 0 mod a return
  kCount
};

struct Instruction {
  Op op;
  int a, b;
};

constexpr int kCells = 64;

struct Program {
  std::vector<Instruction> instructions;
  unsigned blocks, threads;
  std::uint64_t seed;
};

__host__ __device__ inline unsigned first_value(std::uint64_t seed, unsigned thread) {
  const std::uint64_t x = (seed + thread) * 0x9e3779b97f4a7c15u;
  return static_cast<unsigned>(x >> 32) ^ static_cast<unsigned>(x);
}

// What a thread does alone.
__host__ __device__ inline unsigned alone(const Instruction& in, unsigned v, unsigned lane) {
  const unsigned a = static_cast<unsigned>(in.a);
  if (in.op == Op::kAffine) return a * v + static_cast<unsigned>(in.b) + lane;
  if (in.op == Op::kBranch) return v >> a & 1u ? v * 5 + 1 : v ^ v >> 7;
  if (in.op == Op::kLoop) {
    for (unsigned trip = v % a; trip > 0; --trip) v = v * 1664525u + trip;
  }
  return v;
}

// What a lane that is not there would give is not defined: such a source gives nothing.
__device__ inline unsigned shuffled(const Instruction& in, unsigned v, unsigned present, int lane) {
  const unsigned live = __ballot_sync(present, 1), a = static_cast<unsigned>(in.a);
  unsigned got = 0;
  int source = 0;
  if (in.op == Op::kShuffle) {
    got = __shfl_sync(present, v, in.a, in.b);
    source = __shfl_sync(~0u, lane, in.a, in.b);
  } else if (in.op == Op::kShuffleUp) {
    got = __shfl_up_sync(present, v, a, in.b);
    source = __shfl_up_sync(~0u, lane, a, in.b);
  } else if (in.op == Op::kShuffleDown) {
    got = __shfl_down_sync(present, v, a, in.b);
    source = __shfl_down_sync(~0u, lane, a, in.b);
  } else {
    got = __shfl_xor_sync(present, v, in.a, in.b);
    source = __shfl_xor_sync(~0u, lane, in.a, in.b);
  }
  return source >= 0 && source < 32 && (live >> source & 1u) ? got : 0;
}

__global__ void program_kernel(int count, const Instruction* instructions, std::uint64_t seed,
                               unsigned* values, unsigned* cells) {
  __shared__ unsigned exchange[1024];
  const unsigned self = threadIdx.x + blockDim.x * threadIdx.y;
  const unsigned threads = blockDim.x * blockDim.y;
  const unsigned global = blockIdx.x * threads + self;
  const unsigned lane = self % 32;
  // Lanes of this warp that exist; those that have left may go on being named.
  const unsigned present = threads - self / 32 * 32 >= 32 ? ~0u : (1u << threads % 32) - 1;
  unsigned v = first_value(seed, global);
  for (int i = 0; i < count; ++i) {
    const Instruction in = instructions[i];
    const unsigned a = static_cast<unsigned>(in.a);
    switch (in.op) {
      case Op::kShuffle:
      case Op::kShuffleUp:
      case Op::kShuffleDown:
      case Op::kShuffleXor:
        v += shuffled(in, v, present, static_cast<int>(lane));
        break;
      case Op::kBallot:
        v ^= __ballot_sync(~0u, static_cast<int>(v >> a & 1u));
        break;
      case Op::kMatch:
        v ^= __match_any_sync(present, v % a);
        break;
      case Op::kReduce:
        v ^= __reduce_add_sync(~0u, v);
        break;
      case Op::kHalves:
        if (lane % 2 == 0) {
          v += __reduce_xor_sync(0x55555555u, v);
        } else {
          v -= __reduce_max_sync(0xaaaaaaaau, v);
          __syncwarp(0xaaaaaaaau);
        }
        break;
      case Op::kSegments: {
        const unsigned width = static_cast<unsigned>(in.b);
        const unsigned segment = lane / width;
        const unsigned mask = (width == 32 ? ~0u : (1u << width) - 1) << segment * width;
        for (unsigned trip = 0; trip < (segment * a + self / 32) % 7; ++trip) {
          v += __reduce_add_sync(mask, v ^ trip);
        }
        break;
      }
      case Op::kBarrierRotate:
        exchange[self] = v;
        __syncthreads();
        v = v * 3 + (exchange[(self + a) % threads] | 1);
        __syncthreads();
        exchange[self] = 0;  // what a thread that has left hands on
        break;
      case Op::kBarrierCount:
        v += static_cast<unsigned>(__syncthreads_count(static_cast<int>(v >> a & 1u)));
        break;
      case Op::kBarrierVotes:
        v += __syncthreads_or(v % a == 0) ? 1 : 0;
        v += __syncthreads_and(v % a != 1) ? 2 : 0;
        break;
      case Op::kAtomicAdd:
        atomicAdd(&cells[v % a], 1u);
        break;
      case Op::kLeave:
        if (v % a == 0) {
          exchange[self] = 0;
          values[global] = v;
          return;
        }
        break;
      default:
        v = alone(in, v, lane);
    }
  }
  values[global] = v;
}

// The same, in lock step, for one block.
class LockStep {
 public:
  LockStep(unsigned threads, std::uint64_t seed, unsigned first, std::vector<unsigned>& cells)
      : v_(threads), alive_(threads, true), cells_(cells) {
    for (unsigned t = 0; t < threads; ++t) v_[t] = first_value(seed, first + t);
  }

  const std::vector<unsigned>& values() const { return v_; }

  void run(const Instruction& in) {
    const std::vector<unsigned> before = v_;
    for (unsigned t = 0; t < v_.size(); ++t) {
      if (alive_[t]) v_[t] = next(in, t, before);
    }
    if (in.op == Op::kLeave) {
      for (unsigned t = 0; t < v_.size(); ++t) {
        alive_[t] = alive_[t] && v_[t] % static_cast<unsigned>(in.a) != 0;
      }
    }
    if (in.op == Op::kBarrierVotes) vote(static_cast<unsigned>(in.a));
    if (in.op == Op::kSegments) add_in_segments(in);
  }

 private:
  // Combines the values `now` of the live threads that `same_group` puts with thread t.
  template <typename SameGroup, typename Combine>
  unsigned fold(unsigned t, const std::vector<unsigned>& now, SameGroup same_group,
                Combine combine) const {
    unsigned folded = 0;
    for (unsigned other = 0; other < now.size(); ++other) {
      if (alive_[other] && same_group(t, other)) folded = combine(folded, now[other], other);
    }
    return folded;
  }

  // The value of thread t after `in`, of the values before; votes and segments are for others.
  unsigned next(const Instruction& in, unsigned t, const std::vector<unsigned>& before) {
    const unsigned a = static_cast<unsigned>(in.a), lane = t % 32, v = before[t];
    const auto warp = [](unsigned one, unsigned other) { return one / 32 == other / 32; };
    const auto parity = [&](unsigned one, unsigned other) {
      return warp(one, other) && one % 2 == other % 2;
    };
    const auto block = [](unsigned, unsigned) { return true; };
    switch (in.op) {
      case Op::kShuffle:
      case Op::kShuffleUp:
      case Op::kShuffleDown:
      case Op::kShuffleXor: {
        const unsigned source = t - lane + shuffle_source(in, static_cast<int>(lane));
        return source < v_.size() && alive_[source] ? v + before[source] : v;
      }
      case Op::kBallot:
        return v ^ fold(t, before, warp, [&](unsigned bits, unsigned value, unsigned other) {
                 return bits | (value >> a & 1u) << other % 32;
               });
      case Op::kMatch:
        return v ^ fold(t, before, warp, [&](unsigned bits, unsigned value, unsigned other) {
                 return bits | (value % a == v % a ? 1u : 0u) << other % 32;
               });
      case Op::kReduce:
        return v ^
               fold(t, before, warp, [](unsigned sum, unsigned x, unsigned) { return sum + x; });
      case Op::kHalves:
        if (lane % 2) {
          return v - fold(t, before, parity,
                          [](unsigned most, unsigned x, unsigned) { return std::max(most, x); });
        }
        return v +
               fold(t, before, parity, [](unsigned all, unsigned x, unsigned) { return all ^ x; });
      case Op::kBarrierRotate: {
        const unsigned other = (t + a) % static_cast<unsigned>(v_.size());
        return v * 3 + ((alive_[other] ? before[other] : 0) | 1);
      }
      case Op::kBarrierCount:
        return v + fold(t, before, block,
                        [&](unsigned n, unsigned x, unsigned) { return n + (x >> a & 1u); });
      case Op::kAtomicAdd:
        ++cells_[v % a];
        return v;
      default:
        return alone(in, v, lane);
    }
  }

  void vote(unsigned a) {
    bool any = false, all = true;
    for (unsigned t = 0; t < v_.size(); ++t) any = any || (alive_[t] && v_[t] % a == 0);
    step([&](unsigned) { return any ? 1u : 0u; });
    for (unsigned t = 0; t < v_.size(); ++t) all = all && (!alive_[t] || v_[t] % a != 1);
    step([&](unsigned) { return all ? 2u : 0u; });
  }

  void add_in_segments(const Instruction& in) {
    const unsigned a = static_cast<unsigned>(in.a), width = static_cast<unsigned>(in.b);
    const auto segment = [&](unsigned t, unsigned other) { return t / width == other / width; };
    for (unsigned trip = 0; trip < 7; ++trip) {
      const std::vector<unsigned> now = v_;
      step([&](unsigned t) {
        if (trip >= (t % 32 / width * a + t / 32) % 7) return 0u;
        return fold(t, now, segment,
                    [&](unsigned sum, unsigned x, unsigned) { return sum + (x ^ trip); });
      });
    }
  }

  template <typename Increment>
  void step(Increment increment) {
    for (unsigned t = 0; t < v_.size(); ++t) {
      if (alive_[t]) v_[t] += increment(t);
    }
  }

  static unsigned shuffle_source(const Instruction& in, int lane) {
    const int begin = lane - lane % in.b;
    int source = lane;
    if (in.op == Op::kShuffle) source = begin + in.a % in.b;
    if (in.op == Op::kShuffleUp && lane - in.a >= begin) source = lane - in.a;
    if (in.op == Op::kShuffleDown && lane + in.a < begin + in.b) source = lane + in.a;
    if (in.op == Op::kShuffleXor && (lane ^ in.a) < begin + in.b) source = lane ^ in.a;
    return static_cast<unsigned>(source);
  }

  std::vector<unsigned> v_;
  std::vector<bool> alive_;
  std::vector<unsigned>& cells_;
};

Program random_program(std::uint64_t seed) {
  Random random(seed);
  constexpr unsigned kThreads[] = {1, 7, 31, 32, 33, 48, 64, 95, 128, 200, 256};
  Program program{{}, 1 + random.below(4), kThreads[random.below(11)], seed};
  const unsigned length = 5 + random.below(25);
  for (unsigned i = 0; i < length; ++i) {
    const auto op = static_cast<Op>(random.below(static_cast<unsigned>(Op::kCount)));
    const int width = 1 << random.below(6);
    const auto below = [&](unsigned n) { return static_cast<int>(random.below(n)); };
    Instruction in{op, 0, width};
    switch (op) {
      case Op::kAffine:
        in = {op, 1 + 2 * below(1000), below(1 << 20)};
        break;
      case Op::kMatch:
      case Op::kLoop:
      case Op::kBarrierVotes:
        in.a = 2 + below(20);
        break;
      case Op::kBarrierRotate:
        in.a = 1 + below(100);
        break;
      case Op::kAtomicAdd:
        in.a = 1 + below(kCells);
        break;
      case Op::kLeave:
        in.a = 5 + below(50);
        break;
      default:
        in.a = below(32);
    }
    program.instructions.push_back(in);
  }
  return program;
}

TEST_CASE("random programs give what lock step gives, under every schedule", "[simt]") {
  const ScopedSettings restore;
  // The programs ask shuffles which lane answers: what is undefined is to be no lane's number.
  simt::settings().check_races = false;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    const Program program = random_program(seed);
    std::vector<unsigned> cells(kCells), values;
    for (unsigned block = 0; block < program.blocks; ++block) {
      LockStep reference(program.threads, seed, block * program.threads, cells);
      for (const Instruction& in : program.instructions) reference.run(in);
      values.insert(values.end(), reference.values().begin(), reference.values().end());
    }

    const Buffer<Instruction> instructions("instructions", program.instructions);
    under_every_schedule([&] {
      Buffer<unsigned> device_values("values", values.size());
      Buffer<unsigned> device_cells("cells", std::vector<unsigned>(kCells));
      const unsigned rows = seed % 2 && program.threads % 2 == 0 ? 2 : 1;
      launch(program_kernel, {program.blocks, {program.threads / rows, rows}},
             static_cast<int>(program.instructions.size()), instructions.data(), seed,
             device_values.data(), device_cells.data());
      CAPTURE(seed, program.threads);
      CHECK(device_values.download() == values);
      CHECK(device_cells.download() == cells);
    });
  }
}

TEST_CASE("the number of the host's threads changes nothing", "[simt]") {
  const ScopedSettings restore;
  const Program program = random_program(11);
  const Buffer<Instruction> instructions("instructions", program.instructions);
  std::vector<std::vector<unsigned>> results;
  for (const unsigned workers : {1u, 2u, 3u, 8u}) {
    simt::settings().workers = workers;
    Buffer<unsigned> values("values", 300 * program.threads);
    Buffer<unsigned> cells("cells", std::vector<unsigned>(kCells));
    launch(program_kernel, {300, program.threads}, static_cast<int>(program.instructions.size()),
           instructions.data(), std::uint64_t{11}, values.data(), cells.data());
    results.push_back(values.download());
    const auto counted = cells.download();
    results.back().insert(results.back().end(), counted.begin(), counted.end());
    CHECK(results.back() == results.front());
  }
}

}  // namespace simt_test
