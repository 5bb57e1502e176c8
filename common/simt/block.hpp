// Blocks, the state that those of a grid share, and launches. Not for use outside simt.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "simt/observe.hpp"

namespace simt {

class Gang;

template <typename T>
void shuffle_order(T* order, std::size_t n, std::uint64_t seed) {
  for (std::size_t i = n; i > 1; --i) {
    seed = mix(seed);
    std::swap(order[i - 1], order[seed % i]);
  }
}

// The order of `n` blocks, warps or lanes.
template <typename T>
void set_order(T* order, std::size_t n, Schedule schedule, std::uint64_t seed) {
  std::iota(order, order + n, T{0});
  if (schedule == Schedule::kReverse) std::reverse(order, order + n);
  if (schedule == Schedule::kRandom) shuffle_order(order, n, seed);
}

// One of the times that a launch runs.
struct Attempt {
  Schedule schedule = settings().schedule;
  std::uint64_t seed = settings().seed;  // of the order of warps and lanes
  GlobalRaces* races = nullptr;          // null: they, and undefined shuffles, are not looked for
  bool is_replay = false;                // the launch has run before, and been counted
};
struct Ending {
  Outcome outcome = Outcome::kDone;
  std::string failure;  // its report
  bool failed() const { return outcome != Outcome::kDone; }
  bool operator==(const Ending&) const = default;
};
// Runs a launch once, on up to `workers` threads of the host; kAllAtOnce: its blocks take turns, as
// those of a cooperative launch do.
using RunOnce = std::function<Ending(const Attempt& attempt, unsigned workers)>;
inline constexpr unsigned kAllAtOnce = 0;
// How many blocks of a launch simt runs at the same time, if they wait for each other.
inline constexpr unsigned kMaxResidentBlocks = 264;
// Runs a launch of `grids`, as often as it takes to say whether it is right. A failure's report is
// published. `resident`: all their blocks are resident together.
Outcome run_launch(const std::vector<const Grid*>& grids, bool resident, unsigned workers,
                   const RunOnce& run_once);

// Notes that `kernel` relies on what CUDA does not promise; see take_remarks().
enum class Remark : std::uint8_t { kActiveMask, kVolatile, kFailedExchange };
void note_remark(const void* kernel, const void* pc, Remark remark);

// What the blocks of a running grid share.
class GridState : public Attempt {
 public:
  explicit GridState(const Grid& grid, const Attempt& attempt = {})
      : Attempt(attempt), grid_(grid) {}

  ResidentGrid* resident = nullptr;

  // Blocks that wait for each other, though not of a cooperative launch: a GPU that has room for
  // all of them runs them at the same time. While blocks only poll, more are started.
  void block_begins() {
    ++running_;
    stir();
  }
  void block_ends() {
    --running_;
    stir();
  }
  void set_idle(bool idle) {
    idle ? ++idle_ : --idle_;
    if (!idle) stir();
  }
  // Whether no block that has started does anything but poll.
  bool all_are_idle() const { return idle_ == running_; }
  // How often one has gone on, begun or ended. (Above 32 bits that count the blocks that have
  // polled since then and seen no change.)
  std::uint64_t stirs() const { return quiet_ >> 32; }
  void note_quiet(std::uint64_t since) {
    std::uint64_t old = quiet_;
    while (old >> 32 == since && !quiet_.compare_exchange_weak(old, old + 1)) continue;
  }
  bool all_are_quiet() const { return (quiet_ & 0xffffffffu) >= running_ && all_are_idle(); }
  std::function<void()> start_another;  // if there is one, and room for it

  void remark(const void* pc, Remark remark) {
    std::atomic<const void*>& last = remarked_[static_cast<int>(remark)];
    if (last.exchange(pc, std::memory_order_relaxed) != pc) note_remark(grid_.kernel, pc, remark);
  }

  bool is_ordered() const { return races && races->mode != RaceMode::kFilter; }

  const Grid& grid() const { return grid_; }
  bool failed() const { return outcome() != Outcome::kDone; }
  bool has_ended() const { return failed() || (races && races->must_begin_again); }
  Outcome outcome() const { return outcome_.load(std::memory_order_acquire); }
  // The first failure counts; the blocks of the grid stop as they notice it.
  void fail(Outcome outcome, std::string what);
  const std::string& failure() const { return failure_; }
  Ending ending() const { return {outcome(), failure_}; }

 private:
  const Grid& grid_;
  std::mutex mutex_;
  std::string failure_;
  std::atomic<Outcome> outcome_{Outcome::kDone};
  void stir() {
    std::uint64_t old = quiet_;
    while (!quiet_.compare_exchange_weak(old, ((old >> 32) + 1) << 32)) continue;
  }
  std::atomic<unsigned> running_{0}, idle_{0};  // blocks
  std::atomic<std::uint64_t> quiet_{0};
  std::atomic<const void*> remarked_[3] = {};  // where, last, of each kind
};

// Of blocks in a grid or threads in a block: how many there are, and which the `number`-th is.
std::uint64_t count_of(dim3 sizes);
uint3 index_of(std::uint64_t number, dim3 sizes);
// In a report. at_line: " at file.cuh:31"; "" where that is not known.
std::string to_text(uint3 v);
std::string at_line(const void* pc);
// What is in memory, of a type that is guessed from the bits; see trace.cpp.
std::string value_text(std::uintptr_t address, unsigned size);
// Of block `number` of a grid of these sizes, in a report.
std::string name_of_block(std::uint64_t number, dim3 grid);
// Makes a failed kernel's report known; see take_report().
void publish_report(const std::string& report);

// Runs blocks, one after the other, on the thread of the host that calls it.
class Block {
 public:
  Block() = default;
  ~Block() { free_stacks(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void start_grid(GridState& grid);
  void run(std::uint64_t block_number) {
    run_with_contexts(scheduler_, [&] { run_lanes(block_number); });
    if (is_idle_) state_->set_idle(is_idle_ = false);
  }
  void end_grid();

  // By the running lane.
  std::uint64_t collective(Lane& lane, const CollectiveRequest& request);
  int barrier(Lane& lane, Barrier kind, int predicate);
  void yield(Lane& lane);
  // `lane` makes the access at `pc` when its warp has come there; Schedule::kLockstep.
  void wait_for_access(Lane& lane, const void* pc);
  // `lane` has looked at memory and found nothing new. Lets others run now and then: it may wait
  // for one of them. An access that does find something, or that stores, clears Lane::polls.
  void polled(Lane& lane, const void* pc) {
    if (++lane.polls >= kPollsBeforeLook) look_at_polls(lane, pc);
  }
  // Likewise by an atomic operation, which has found `value` in `bytes` bytes at `word`: such lanes
  // are set aside sooner, and need not run before the word has changed.
  void polled(Lane& lane, const void* pc, const void* word, std::uint64_t value, unsigned bytes);
  [[noreturn]] void fail(Lane& lane, std::string&& what, const void* pc,
                         Outcome outcome = Outcome::kFailed);
  [[noreturn]] void fail(Lane& lane, std::string&& report);
  // The report that `lane` did `what` at `pc`.
  std::string describe_failure(const Lane& lane, const std::string& what, const void* pc) const;

  // A block of co-resident grids, which has a seat there; see cooperative.hpp.
  void sit_down(Gang* gang, unsigned seat) {
    gang_ = gang;
    seat_ = seat;
  }
  Gang* gang() const { return gang_; }
  unsigned seat() const { return seat_; }
  unsigned barriers() const { return barriers_; }
  const Warp& warp_of(const Lane& lane) const { return warps_[lane.warp]; }
  // A lane has changed memory, or has found it changed: its block is no longer merely waiting.
  void changed() {
    ++changes_;
    if (gang_) ++events_;
  }
  // Whether a store of this block to `address` is to become visible late.
  bool is_late(std::uintptr_t address) const;
  // A plain store of `lane` follows, which is to be late.
  void expect_late_store(Lane& lane, std::uintptr_t address, unsigned size);
  // The store that was expected of `lane`, if any, has been made.
  static void settle(const Lane& lane) {
    if (lane.stores_late) lane.block->settle_store();
  }
  std::string describe_wait() const;

  const Grid& grid() const { return state_->grid(); }
  uint3 index() const { return index_; }
  Observer& observer() { return observer_; }
  std::string name_of_thread(unsigned number) const;
  std::string name_of_block(std::uint64_t id) const;  // see Observer::start_block()
  // `lane` is about to update an integer at `address`, and may be drawing a ticket.
  void draw(Lane& lane, const void* address, const void* pc);
  // Whether `address` lies on the stack of any of the block's threads.
  bool on_a_stack(std::uintptr_t address) const {
    return address - address_of(stacks_) < stack_count_ * kStackBytes;
  }

 private:
  static void fiber_main();
  void free_stacks();
  void run_lanes(std::uint64_t block_number);
  void order_lanes(std::uint64_t block_number);
  bool run_warp(Warp& warp);
  void enter(Lane& lane);
  Fiber& prepare(Lane& lane);
  void resume(Lane& lane);
  void leave(Fiber& fiber, Warp& warp, bool for_good = false);
  void suspend(Lane& lane);
  void finish(Lane& lane);
  Lane* next_unstarted(Warp& warp);
  Lane* next_lane(Warp& warp);
  bool meet(Warp& warp);
  static bool release_accesses(Lane* lanes, Warp& warp);
  unsigned together(Warp& warp);
  unsigned some_of(Warp& warp, unsigned lanes) const;
  const Lane* awaited(const Lane& lane) const;
  template <typename Wanted>
  const Lane* find_lane(Wanted&& is_wanted) const;
  void set_results(Warp& warp, unsigned mask);
  void complete(Warp& warp, unsigned mask);
  void try_release_barrier();
  void report(const Lane& lane, const std::string& what, const void* pc,
              Outcome outcome = Outcome::kFailed);
  void report_deadlock();
  bool wait_for_blocks(bool progressed, bool changed);
  std::string describe(const Lane& lane) const;
  void settle_store();
  void look_at_polls(Lane& lane, const void* pc);

  struct ExpectedStore {
    Lane* lane = nullptr;
    std::uintptr_t address = 0;
    unsigned size = 0;
    std::byte old[16] = {};
  };

  Gang* gang_ = nullptr;
  unsigned seat_ = 0;
  ExpectedStore expected_;
  unsigned barriers_ = 0;  // completed
  GridState* state_ = nullptr;
  uint3 index_{};
  std::vector<Lane> lanes_, new_lanes_;  // of the running block; as each block begins
  std::vector<Warp> warps_, new_warps_;
  std::vector<unsigned> warp_order_;
  unsigned running_warp_ = 0;
  std::vector<SharedVariable> shared_;
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  unsigned yielded_ = 0;
  std::uint64_t events_ = 0;   // completions and exits, to tell progress from polling
  std::uint64_t changes_ = 0;  // of memory, that a lane made or found
  bool is_idle_ = false;       // nothing but polling for many rounds,
  unsigned rounds_ = 0;
  std::uint64_t stirs_ = 0;    // GridState::stirs() when it began to be idle, or later
  unsigned quiet_rounds_ = 0;  // since then
  unsigned idle_rounds_ = 0;   // how many
  std::chrono::steady_clock::time_point all_idle_since_, polling_since_;
  std::uint64_t waits_ = 0;  // rounds in which lanes at __activemask() have waited for others

  std::byte* stacks_ = nullptr;  // lowest address
  std::size_t stack_count_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Context scheduler_;
  StackSwitch scheduler_switch_;
  bool from_scheduler_ = false;  // that is where the last switch came from
  Observer observer_;
};

// Threads are kept between launches, with a block each. A thread's start clears the shared memory
// of every kernel in the program (it is thread_local), a block maps the stacks of its lanes: either
// costs more than a small kernel. Runs `job` on a thread of the host that does nothing else
// meanwhile; the future is ready when it has ended.
std::future<void> on_thread(std::function<void()> job);
// That of the calling thread.
Block& own_block();

// What is asked for next does not run beside the last kernel, which has completed.
void forget_last_kernel();

}  // namespace simt
