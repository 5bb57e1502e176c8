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
  kAffine,         // v = a v + b + lane
  kShuffle,        // v += shuffle from lane a, width b
  kBallot,         // v ^= ballot of v's bit a
  kReduce,         // v ^= reduce_add of v
  kBarrierRotate,  // v = v of the thread a further on, through shared memory
  kBarrierCount,   // v += threads whose v has bit a
  kAtomicAdd,      // cell v mod a of global memory += 1
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

// The lane from which `lane` reads.
__host__ __device__ inline unsigned shuffle_source(const Instruction& in, unsigned lane) {
  const unsigned width = static_cast<unsigned>(in.b);
  return lane / width * width + static_cast<unsigned>(in.a) % width;
}

// What a thread does alone.
__host__ __device__ inline unsigned alone(const Instruction& in, unsigned v, unsigned lane) {
  const unsigned a = static_cast<unsigned>(in.a);
  if (in.op == Op::kAffine) return a * v + static_cast<unsigned>(in.b) + lane;
  if (in.op == Op::kBranch) return v >> a & 1u ? v * 5 + 1 : v ^ v >> 7;
  return v;
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
      case Op::kShuffle: {
        // What a lane that is not there would give is not defined: such a source gives nothing.
        const unsigned live = __ballot_sync(present, 1);
        const unsigned got = __shfl_sync(present, v, in.a, in.b);
        if (live >> shuffle_source(in, lane) & 1u) v += got;
        break;
      }
      case Op::kBallot:
        v ^= __ballot_sync(~0u, static_cast<int>(v >> a & 1u));
        break;
      case Op::kReduce:
        v ^= __reduce_add_sync(~0u, v);
        break;
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
  }

 private:
  // Combines the values `now` of the live threads among those from `first` to `end` - 1.
  template <typename Combine>
  unsigned fold(const std::vector<unsigned>& now, unsigned first, std::size_t end,
                Combine combine) const {
    unsigned folded = 0;
    for (unsigned other = first; other < std::min(end, now.size()); ++other) {
      if (alive_[other]) folded = combine(folded, now[other], other);
    }
    return folded;
  }

  // The value of thread t after `in`, of the values before.
  unsigned next(const Instruction& in, unsigned t, const std::vector<unsigned>& before) {
    const unsigned a = static_cast<unsigned>(in.a), lane = t % 32, v = before[t], warp = t - lane;
    switch (in.op) {
      case Op::kShuffle: {
        const unsigned source = warp + shuffle_source(in, lane);
        return source < v_.size() && alive_[source] ? v + before[source] : v;
      }
      case Op::kBallot:
        return v ^ fold(before, warp, warp + 32, [&](unsigned bits, unsigned x, unsigned other) {
                 return bits | (x >> a & 1u) << other % 32;
               });
      case Op::kReduce:
        return v ^ fold(before, warp, warp + 32,
                        [](unsigned sum, unsigned x, unsigned) { return sum + x; });
      case Op::kBarrierRotate: {
        const unsigned other = (t + a) % static_cast<unsigned>(v_.size());
        return v * 3 + ((alive_[other] ? before[other] : 0) | 1);
      }
      case Op::kBarrierCount:
        return v + fold(before, 0, v_.size(),
                        [&](unsigned n, unsigned x, unsigned) { return n + (x >> a & 1u); });
      case Op::kAtomicAdd:
        ++cells_[v % a];
        return v;
      default:
        return alone(in, v, lane);
    }
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
