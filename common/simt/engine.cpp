#include "simt/engine.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <tuple>

#include "simt/block.hpp"
#include "simt/builtins.hpp"
#include "simt/cooperative.hpp"
#include "simt/random.hpp"

#ifdef SIMT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

constinit thread_local Lane* current_lane = nullptr;
constinit thread_local Trail* current_trail = nullptr;

// The built-in variables are constants to a lane, but not to the scheduler: the linker knows these
// by the names under which builtins.hpp declares them.
constinit thread_local uint3 thread_index asm("threadIdx"){};
constinit thread_local uint3 block_index asm("blockIdx"){};
constinit thread_local dim3 block_dimensions asm("blockDim"){};
constinit thread_local dim3 grid_dimensions asm("gridDim"){};

namespace {

// A guard and its stack are mappings of their own, of which Linux allows 65530: enough for every
// stack unless more than 28 cores run blocks of 1024 threads.
constexpr std::size_t kMaxGuarded = 28 * 1024;
std::atomic<std::size_t> all_stacks{0};
constexpr unsigned kPollsBeforeYield = 256;
constexpr unsigned kIdleRounds = 1000;
// No block has done anything but poll: another one is started, if there is one; it is a deadlock.
constexpr double kPatienceSeconds = 0.002, kDeadlockSeconds = 0.25;
constexpr unsigned kMaxDraws = 5;
constexpr unsigned kRoundsInVain = 16;
constexpr unsigned kPatience = 100;  // rounds; see Block::together()

const char* name_of(Collective kind) {
#define SIMT_NAME(kind, name) name,
  static constexpr const char* kNames[] = {SIMT_COLLECTIVES(SIMT_NAME)};
#undef SIMT_NAME
  return kNames[static_cast<int>(kind)];
}

bool can_go_on(const Lane& lane) {
  return lane.state == Lane::State::kReady || lane.state == Lane::State::kYielded;
}

bool has_not_returned(const Lane& lane) {
  return lane.state != Lane::State::kDone;
}

// Results of shuffles that CUDA leaves undefined: of either precision a NaN and a large number; of
// integers a negative and a large one.
constexpr std::uint64_t kUndefined = 0xfff7dead'ffbadbadu;
constexpr std::uint64_t kLargeUndefined = 0x7f7fffff'7f7fffffu;

// Of a mask that comes from __activemask(), as far as that shows.
std::string remark_on_mask(const Lane& lane) {
  if (lane.request.mask != lane.active) return "";
  return "; the mask is what __activemask() gave" + at_line(lane.active_pc) +
         ": CUDA promises only that it names the lane itself";
}

}  // namespace

std::uint64_t count_of(dim3 sizes) {
  return 1ull * sizes.x * sizes.y * sizes.z;
}

uint3 index_of(std::uint64_t number, dim3 sizes) {
  return {static_cast<unsigned>(number % sizes.x),
          static_cast<unsigned>(number / sizes.x % sizes.y),
          static_cast<unsigned>(number / sizes.x / sizes.y)};
}

std::string to_text(uint3 v) {
  return fmt::format("({},{},{})", v.x, v.y, v.z);
}

// The hardware looks at five bits of a delta or lane mask.
unsigned shuffle_source(const CollectiveRequest& request, unsigned id) {
  const int lane = static_cast<int>(id);
  const int width = request.width;
  const int segment = lane & ~(width - 1);
  const int distance = request.operand & 31;
  int source = segment + (request.operand & (width - 1));
  if (request.kind == Collective::kShuffleUp) {
    source = lane - distance < segment ? lane : lane - distance;
  } else if (request.kind == Collective::kShuffleDown) {
    source = lane + distance;
  } else if (request.kind == Collective::kShuffleXor) {
    source = lane ^ distance;  // an earlier segment's may be read, a later one's not
  }
  return static_cast<unsigned>(source >= segment + width ? lane : source);
}

Settings& settings() {
  static Settings instance = [] {
    Settings from_environment;  // for a program without options, such as 10_multigpu/minimal.cu
    const char* const devices = std::getenv("SIMT_DEVICES");
    if (devices) from_environment.devices = std::clamp(std::atoi(devices), 1, 64);
    const char* const seed = std::getenv("SIMT_SEED");
    if (seed) {
      from_environment.seed = std::strtoull(seed, nullptr, 10);
      from_environment.schedule = Schedule::kRandom;
      from_environment.late_peer_stores = true;
      from_environment.late_streams = true;
      from_environment.check_races = false;  // what is wrong shows in the results, as on a GPU
    }
    const char* const late = std::getenv("SIMT_LATE_STREAMS");
    if (late) from_environment.late_streams = std::atoi(late) != 0;
    return from_environment;
  }();
  return instance;
}

// --- Reports ------------------------------------------------------------------------------------

namespace {

std::mutex report_mutex;
std::string last_report;
bool quiet_reports = false;

}  // namespace

void (*report_listener)() = nullptr;

void publish_report(const std::string& report) {
  const std::lock_guard lock(report_mutex);
  last_report = report;
  if (report_listener) report_listener();
  if (!quiet_reports) std::fprintf(stderr, "%s\n", report.c_str());
}

std::string take_report() {
  const std::lock_guard lock(report_mutex);
  return std::exchange(last_report, {});
}

void set_quiet_reports(bool quiet) {
  const std::lock_guard lock(report_mutex);
  quiet_reports = quiet;
}

namespace {

auto& remarks = *new std::set<std::tuple<const void*, const void*, Remark>>;  // never destroyed

}  // namespace

void note_remark(const void* kernel, const void* pc, Remark remark) {
  const std::lock_guard lock(report_mutex);
  remarks.emplace(kernel, pc, remark);
}

Remarks take_remarks() {
  const std::lock_guard lock(report_mutex);
  std::set<std::string> any, wrong;
  for (const auto& [kernel, pc, remark] : std::exchange(remarks, {})) {
    const std::string place = "kernel " + kernel_name(kernel) + at_line(pc);
    if (remark == Remark::kActiveMask) {
      any.insert(place +
                 ": CUDA does not promise which lanes __activemask() and coalesced_threads() name, "
                 "beside the caller, so a result must not depend on them");
    } else if (remark == Remark::kVolatile) {
      any.insert(place +
                 ": lanes of a warp load and store volatile shared memory with no __syncwarp() "
                 "between, and CUDA does not promise their order");
    } else {
      wrong.insert(
          place +
          ": an atomicCAS found another value than it was given and stored nothing, and its "
          "thread did not repeat it");
    }
  }
  return {{any.begin(), any.end()}, {wrong.begin(), wrong.end()}};
}

std::string at_line(const void* pc) {
  const std::string line = pc ? source_line(pc) : "";
  return line.empty() ? line : " at " + line;
}

void GridState::fail(Outcome outcome, std::string what) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  failure_ = std::move(what);
  outcome_.store(outcome, std::memory_order_release);
}

// --- Switching ----------------------------------------------------------------------------------

#ifdef SIMT_ADDRESS_SANITIZER
void StackSwitch::leave_for(const StackSwitch& other, bool for_good) {
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack, other.stack, other.bytes);
}
void StackSwitch::arrive(StackSwitch* from) {
  __sanitizer_finish_switch_fiber(fake_stack, from ? &from->stack : nullptr,
                                  from ? &from->bytes : nullptr);
}
#else
void StackSwitch::leave_for(const StackSwitch&, bool) {}
void StackSwitch::arrive(StackSwitch*) {}
#endif

void Block::free_stacks() {
  if (!stacks_) return;
#ifdef SIMT_ADDRESS_SANITIZER
  // What the first frames of lanes forbade would be forbidden to the next owner of this memory.
  __asan_unpoison_memory_region(stacks_, stack_count_ * kStackBytes);
#endif
  munmap(stacks_, stack_count_ * kStackBytes);
  all_stacks -= stack_count_;
}

void Block::fiber_main() {
  Fiber& fiber = *current_lane->fiber;
  Block& block = *current_lane->block;
  fiber.stack_switch.arrive(block.from_scheduler_ ? &block.scheduler_switch_ : nullptr);
  // A lane that returns hands its stack to the next one that has not started: a kernel whose lanes
  // never wait runs on one stack without a switch.
  Warp& warp = block.warps_[current_lane->warp];
  for (Lane* lane = current_lane; lane;) {
    const Grid& grid = block.grid();
    grid.body(grid.arguments);
    block.finish(*lane);
    lane = block.state_->failed() ? nullptr : block.next_unstarted(warp);
    if (lane) {
      lane->fiber = &fiber;
      block.enter(*lane);
    }
  }
  block.idle_.push_back(&fiber);
  block.leave(fiber, warp, true);
}

void Block::enter(Lane& lane) {
  lane.state = Lane::State::kRunning;
  current_lane = &lane;
  current_trail = observer_.count.trail(lane);
  thread_index = lane.thread;
}

// Makes `lane` the one that runs, once its fiber is switched to.
Fiber& Block::prepare(Lane& lane) {
  if (!lane.fiber) {
    lane.fiber = idle_.back();
    idle_.pop_back();
    lane.fiber->context.prepare<fiber_main>(lane.fiber->stack);
    lane.fiber->stack_switch.fake_stack = nullptr;
  }
  enter(lane);
  return *lane.fiber;
}

// Runs `lane`, and those of its warp that can go on after it, until the last of these waits.
void Block::resume(Lane& lane) {
  Fiber& fiber = prepare(lane);
  from_scheduler_ = true;
  scheduler_switch_.leave_for(fiber.stack_switch);
  scheduler_.switch_to(fiber.context);
  scheduler_switch_.arrive();
  current_lane = nullptr;
  current_trail = nullptr;
}

// Sets the running lane aside, for good if it has returned. The next one of its warp goes on at
// once, without a switch to the scheduler in between.
void Block::leave(Fiber& fiber, Warp& warp, bool for_good) {
  Lane* const next = state_->failed() ? nullptr : next_lane(warp);
  if (next) {
    Fiber& other = prepare(*next);
    from_scheduler_ = false;
    fiber.stack_switch.leave_for(other.stack_switch, for_good);
    fiber.context.switch_to(other.context);
  } else {
    fiber.stack_switch.leave_for(scheduler_switch_, for_good);
    fiber.context.switch_to(scheduler_);
  }
}

void Block::suspend(Lane& lane) {
  settle(lane);
  lane.empty_loops = 0;
  Fiber& fiber = *lane.fiber;
  leave(fiber, warps_[lane.warp]);
  fiber.stack_switch.arrive();
}

// --- Running a block ----------------------------------------------------------------------------

void Block::start_grid(GridState& state) {
  state_ = &state;
  watch_faults();
  watch_faults_of_thread();
  const dim3 dim = state.grid().block;
  const std::size_t count = count_of(dim);
  if (stack_count_ < count) {
    free_stacks();
    void* const mapped = mmap(nullptr, count * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      std::fprintf(stderr, "error: no address space for the stacks of %zu threads\n", count);
      std::abort();
    }
    stacks_ = static_cast<std::byte*>(mapped);
    stack_count_ = count;
    const bool guarded = (all_stacks += count) <= kMaxGuarded;
    fibers_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      auto fiber = std::make_unique<Fiber>();
      fiber->stack = stacks_ + i * kStackBytes;
      fiber->stack_switch = {nullptr, fiber->stack, kStackBytes};
      // An overflow is a fault, not a corruption.
      if (guarded) mprotect(fiber->stack, kGuardBytes, PROT_NONE);
      fibers_.push_back(std::move(fiber));
    }
  }
  idle_.clear();
  for (std::size_t i = count; i-- > 0;) idle_.push_back(fibers_[i].get());

  new_lanes_.assign(count, {});
  new_warps_.assign((count + kWarpSize - 1) / kWarpSize, {});
  warp_order_.resize(new_warps_.size());
  for (unsigned i = 0; i < count; ++i) {
    new_lanes_[i].block = this;
    new_lanes_[i].id = static_cast<std::uint8_t>(i % kWarpSize);
    new_lanes_[i].warp = static_cast<std::uint16_t>(i / kWarpSize);
    new_lanes_[i].thread = index_of(i, dim);
    Warp& warp = new_warps_[i / kWarpSize];
    if (i % kWarpSize == 0) warp.first_lane = i;
    warp.live |= 1u << i % kWarpSize;
    ++warp.lanes;
  }
  block_dimensions = dim;
  grid_dimensions = state.grid().grid;
  shared_ = shared_variables(state.grid().kernel);
  for (SharedVariable& variable : shared_) {
    if (variable.dynamic) variable.bytes = state.grid().dynamic_shared_bytes;
  }
  observer_.start(state, shared_, static_cast<unsigned>(count));
}

void Block::end_grid() {
  if (observer_.count.counting()) {
    if (state_->failed()) observer_.count.line_up(running_warp_);
    observer_.count.end_grid();
  }
  observer_.races.end_grid();
#ifdef SIMT_ADDRESS_SANITIZER
  // Lanes may have been left where they stood.
  if (state_->failed()) __asan_unpoison_memory_region(stacks_, stack_count_ * kStackBytes);
#endif
  state_ = nullptr;
}

void Block::order_lanes(std::uint64_t block_number) {
  const std::uint64_t seed = mix(state_->seed ^ mix(block_number));
  const Schedule schedule = state_->schedule;
  set_order(warp_order_.data(), warp_order_.size(), schedule, seed);
  for (Warp& warp : warps_) {
    warp.seed = seed + warp.first_lane;
    set_order(warp.order, warp.lanes, schedule, warp.seed);
  }
}

void Block::run_lanes(std::uint64_t block_number) {
  block_index = index_ = index_of(block_number, grid().grid);
  lanes_ = new_lanes_;
  warps_ = new_warps_;
  order_lanes(block_number);
  live_ = static_cast<unsigned>(lanes_.size());
  at_barrier_ = 0;
  yielded_ = 0;
  for (const SharedVariable& variable : shared_) {
    std::memset(shared_address(variable.offset), 0xff, variable.bytes);  // NaN, or -1
  }

  observer_.start_block(block_number, gang_ ? seat_ : block_number);

  const bool take_turns = state_->schedule == Schedule::kTurns;
  is_idle_ = false;
  idle_rounds_ = 0;
  polling_since_ = {};
  while (live_ > 0) {
    const std::uint64_t progress_before = events_ + waits_, changes_before = changes_;
    bool ran = false;
    for (const unsigned w : warp_order_) {
      if (take_turns && warps_[w].busy > 0) {
        --warps_[w].busy;
        ran = true;
        continue;
      }
      running_warp_ = w;
      const std::uint64_t requests_before = observer_.count.requests_of(w);
      ran |= run_warp(warps_[w]);
      if (state_->failed()) return;
      warps_[w].busy = observer_.count.requests_of(w) - requests_before;
    }
    try_release_barrier();
    if (state_->failed()) return;
    if (yielded_ > 0) {
      // (Now and then all of them: some wait for no more than so many times.)
      const bool all = ++rounds_ % kRoundsInVain == 0;
      for (Lane& lane : lanes_) {
        if (lane.state != Lane::State::kYielded || (!all && lane.waits_in_vain())) continue;
        lane.state = Lane::State::kReady;
        --yielded_;
      }
      const bool progressed = events_ + waits_ != progress_before;
      if (gang_) {
        if (!gang_->pass(seat_, progressed)) return;
        continue;
      }
      if (!wait_for_blocks(progressed, changes_ != changes_before)) return;
    } else if (!ran) {
      report_deadlock();
      return;
    }
  }
  observer_.count.end_block();
}

// After a round in which lanes of the block have polled memory: lets other blocks go on if nothing
// else happens in this one. False if it is to stop.
bool Block::wait_for_blocks(bool progressed, bool changed) {
  const bool was_idle = is_idle_;
  idle_rounds_ = progressed || changed ? 0 : idle_rounds_ + 1;
  is_idle_ = idle_rounds_ > (state_->is_ordered() ? kIdleRounds : kIdleRounds / 8);
  if (is_idle_ != was_idle) state_->set_idle(is_idle_);
  // Blocks one after the other need not be an order in which the kernel can end.
  if (is_idle_ && state_->is_ordered()) return state_->fail(Outcome::kAbandoned, ""), false;
  const auto now = std::chrono::steady_clock::now();
  const auto seconds_since = [now](std::chrono::steady_clock::time_point since) {
    return std::chrono::duration<double>(now - since).count();
  };
  if (progressed || polling_since_ == decltype(polling_since_){}) polling_since_ = now;
  // (Changes memory all the time, and no lane meets another or returns.)
  bool stuck = !is_idle_ && seconds_since(polling_since_) > settings().spin_limit_seconds;
  if (is_idle_) {
    if (!was_idle || !state_->all_are_idle()) all_idle_since_ = now;
    if (!was_idle || stirs_ != state_->stirs()) {
      stirs_ = state_->stirs();
      quiet_rounds_ = 0;
    }
    if (++quiet_rounds_ == 2 * kRoundsInVain) state_->note_quiet(stirs_);
    const double idle = seconds_since(all_idle_since_);
    if (idle > kPatienceSeconds && state_->start_another) state_->start_another();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    stuck = idle > kDeadlockSeconds && state_->all_are_quiet();
  }
  if (stuck) report_deadlock();
  return !stuck;
}

Lane* Block::next_unstarted(Warp& warp) {
  if (warp.started == warp.lanes) return nullptr;
  return &lanes_[warp.first_lane + warp.order[warp.started++]];
}

// The next lane of a warp that can go on: one that has not started, else one that no longer waits.
Lane* Block::next_lane(Warp& warp) {
  if (Lane* const lane = next_unstarted(warp)) return lane;
  while (warp.resumed < warp.lanes) {
    Lane& lane = lanes_[warp.first_lane + warp.order[warp.resumed++]];
    if (lane.state == Lane::State::kReady) return &lane;
  }
  return nullptr;
}

// Runs the lanes of a warp until none can go on by itself. False if none could to begin with.
bool Block::run_warp(Warp& warp) {
  bool ran = false;
  do {
    warp.resumed = 0;
    while (Lane* lane = next_lane(warp)) {
      ran = true;
      resume(*lane);
      if (state_->failed()) return true;
    }
  } while (
      release_accesses(&lanes_[warp.first_lane], warp) ||
      (meet(warp) && state_->schedule != Schedule::kTurns && !std::exchange(warp.drew, false)));
  if (ran && observer_.count.counting()) observer_.count.line_up(warp.first_lane / kWarpSize);
  return ran;
}

void Block::finish(Lane& lane) {
  settle(lane);
  if (lane.failed_exchange) state_->remark(lane.failed_exchange, Remark::kFailedExchange);
  lane.state = Lane::State::kDone;
  warps_[lane.warp].live &= ~(1u << lane.id);
  --live_;
  ++events_;
}

// Schedule::kLockstep, once no other lane of the warp can go on: of those that are about to access
// memory, the ones at the first place in the program do, in an order of their own. False if there
// are none.
bool Block::release_accesses(Lane* lanes, Warp& warp) {
  const void* first = nullptr;
  for (const Lane* lane = lanes; lane < lanes + warp.lanes; ++lane) {
    if (lane->state != Lane::State::kAtAccess) continue;
    if (!first || std::less<>{}(lane->pc, first)) first = lane->pc;
  }
  if (!first) return false;
  for (Lane* lane = lanes; lane < lanes + warp.lanes; ++lane) {
    if (lane->state == Lane::State::kAtAccess && lane->pc == first) {
      lane->state = Lane::State::kReady;
    }
  }
  warp.seed = mix(warp.seed);
  shuffle_order(warp.order, warp.lanes, warp.seed);
  return true;
}

// --- Meeting ------------------------------------------------------------------------------------

std::uint64_t Block::collective(Lane& lane, const CollectiveRequest& request) {
  lane.request = request;
  const unsigned bit = 1u << lane.id;
  const bool is_named = (request.mask & bit) != 0;
  const bool is_width =
      request.width > 0 && request.width <= 32 && !(request.width & (request.width - 1));
  if (!is_named || !is_width) {
    const Unobserved unobserved;
    fail(lane,
         is_named
             ? fmt::format("{} with width {}; it must be 1, 2, 4, 8, 16 or 32",
                           name_of(request.kind), request.width)
             : fmt::format("{} with mask {:#x}, which does not name the lane that calls it ({})",
                           name_of(request.kind), request.mask, lane.id),
         lane.pc);
  }
  observer_.meet(lane, Access::kWarpOperation, name_of(request.kind), lane.pc);
  warps_[lane.warp].pending |= bit;
  lane.state = Lane::State::kAtCollective;
  suspend(lane);
  return lane.result;
}

// Completes the operations of a warp at which every live lane that they name has arrived. Called
// when no lane of the warp can go on, so that lanes that wait at one instruction, though in groups
// with masks of their own, go on from it together, as on the hardware. False if there were none.
bool Block::meet(Warp& warp) {
  Lane* const lanes = &lanes_[warp.first_lane];
  unsigned completed = 0;
  for (unsigned rest = warp.pending; rest;) {
    const Lane& lane = lanes[std::countr_zero(rest)];
    const unsigned mask = lane.request.mask & warp.live;
    if (lane.request.kind == Collective::kActiveMask || awaited(lane)) {
      rest &= rest - 1;
      continue;
    }
    complete(warp, mask);
    completed |= mask;
    rest &= ~mask;
  }
  if (completed) {
    ++events_;
  } else if ((completed = together(warp))) {
    complete(warp, completed);
  }
  // All that run on meet in one place: what comes before it and after it is counted apart.
  if (observer_.count.counting() && completed && completed == warp.live) {
    const void* const pc = lanes[std::countr_zero(completed)].pc;
    unsigned rest = completed;
    while (rest && lanes[std::countr_zero(rest)].pc == pc) rest &= rest - 1;
    if (!rest) observer_.count.line_up(warp.first_lane / kWarpSize);
  }
  return completed != 0;
}

// The lanes of a warp, none of which can go on, that are together at __activemask(): of those that
// wait at one, the lanes at the first place in the program, as a GPU's that have left a loop wait
// for the others, and in the same iteration of its loops. 0 if there are none, or while a lane that
// lets others run may still come. (If it waits for one of these, nothing happens in the block, and
// patience ends.)
unsigned Block::together(Warp& warp) {
  const Lane* first = nullptr;
  unsigned lanes = 0;
  bool may_come = false;
  for (unsigned rest = warp.pending ? warp.live : 0; rest; rest &= rest - 1) {
    const Lane& lane = lanes_[warp.first_lane + std::countr_zero(rest)];
    may_come |= lane.state == Lane::State::kYielded;
    if (lane.state != Lane::State::kAtCollective || lane.request.kind != Collective::kActiveMask) {
      continue;
    }
    if (!first || std::less<>{}(lane.pc, first->pc) ||
        (lane.pc == first->pc && lane.loops < first->loops)) {
      first = &lane;
      lanes = 0;
    }
    if (lane.pc == first->pc && lane.same_iteration(*first)) lanes |= 1u << lane.id;
  }
  if (!lanes || !may_come) return some_of(warp, lanes);
  if (std::exchange(warp.events, events_) != events_) warp.waits = 0;
  if (warp.waits == kPatience) return some_of(warp, lanes);
  ++warp.waits;
  ++waits_;
  return 0;
}

// Which of `lanes`, that are together, go on and see each other: CUDA promises a lane that
// __activemask() names the lane itself. All of them under kForward and kTurns, one at a time under
// kReverse (and where nothing tells iterations apart), and under the schedules with a seed all, one
// or some, as is drawn.
unsigned Block::some_of(Warp& warp, unsigned lanes) const {
  const Schedule schedule = state_->schedule;
  const unsigned last = std::bit_floor(lanes);
  if (!lanes || schedule == Schedule::kReverse || !is_instrumented()) return last;
  if (schedule == Schedule::kForward || schedule == Schedule::kTurns) return lanes;
  warp.seed = mix(warp.seed);
  const unsigned some = lanes & static_cast<unsigned>(warp.seed);
  const unsigned how = warp.seed >> 62;
  return how == 0 ? lanes : how == 1 || !some ? last : some;
}

// A lane that `lane`, at a warp operation, still waits for: one that its mask names and that is not
// at the same operation with the same mask. Null if there is none.
const Lane* Block::awaited(const Lane& lane) const {
  const Warp& warp = warps_[lane.warp];
  for (unsigned rest = lane.request.mask & warp.live; rest; rest &= rest - 1) {
    const Lane& other = lanes_[warp.first_lane + std::countr_zero(rest)];
    if (other.state != Lane::State::kAtCollective || other.request.kind != lane.request.kind ||
        other.request.mask != lane.request.mask) {
      return &other;
    }
  }
  return nullptr;
}

// The results of the operation at which the lanes in `mask` have arrived.
void Block::set_results(Warp& warp, unsigned mask) {
  Lane* const lanes = &lanes_[warp.first_lane];
  const Collective kind = lanes[std::countr_zero(mask)].request.kind;
  const auto set_all = [&](std::uint64_t result) {
    for_each_lane(mask, [&](unsigned id) { lanes[id].result = result; });
  };
  const auto reduce = [&](auto initial, auto&& combine) {
    for_each_lane(mask, [&](unsigned id) {
      initial = combine(initial, static_cast<decltype(initial)>(lanes[id].request.value));
    });
    set_all(static_cast<unsigned>(initial));
  };
  unsigned ballot = 0;
  for_each_lane(mask,
                [&](unsigned id) { ballot |= (lanes[id].request.value != 0 ? 1u : 0u) << id; });

  switch (kind) {
    case Collective::kSyncWarp:
      ++warp.syncs;
      return observer_.races.warp_synchronized(warp.first_lane / kWarpSize, mask,
                                               std::popcount(mask) == static_cast<int>(warp.lanes));
    case Collective::kShuffle:
    case Collective::kShuffleUp:
    case Collective::kShuffleDown:
    case Collective::kShuffleXor:
      for_each_lane(mask, [&](unsigned id) {
        const unsigned source = shuffle_source(lanes[id].request, id);
        if (mask >> source & 1u) {
          lanes[id].result = lanes[source].request.value;
        } else {
          GlobalRaces* const races = state_->races;
          lanes[id].result = races ? races->shuffles.read(*this, lanes[id], source) : kUndefined;
        }
      });
      return;
    case Collective::kBallot:
      return set_all(ballot);
    case Collective::kAny:
      return set_all(ballot != 0);
    case Collective::kAll:
      return set_all(ballot == mask);
    case Collective::kActiveMask:
      for_each_lane(mask, [&](unsigned id) {
        lanes[id].active = mask;
        lanes[id].active_pc = lanes[id].pc;
      });
      state_->remark(lanes[std::countr_zero(mask)].pc, Remark::kActiveMask);
      return set_all(mask);
    case Collective::kMatchAny:
      for_each_lane(mask, [&](unsigned id) {
        unsigned same = 0;
        for_each_lane(mask, [&](unsigned other) {
          if (lanes[other].request.value == lanes[id].request.value) same |= 1u << other;
        });
        lanes[id].result = same;
      });
      return;
    case Collective::kMatchAll: {
      bool same = true;
      const std::uint64_t first = lanes[std::countr_zero(mask)].request.value;
      for_each_lane(mask, [&](unsigned id) { same &= lanes[id].request.value == first; });
      return set_all(same ? mask : 0);
    }
    case Collective::kReduceAdd:
      return reduce(0u, std::plus<>{});
    case Collective::kReduceAnd:
      return reduce(~0u, std::bit_and<>{});
    case Collective::kReduceOr:
      return reduce(0u, std::bit_or<>{});
    case Collective::kReduceXor:
      return reduce(0u, std::bit_xor<>{});
    case Collective::kReduceMinSigned:
      return reduce(INT32_MAX, [](int a, int b) { return std::min(a, b); });
    case Collective::kReduceMaxSigned:
      return reduce(INT32_MIN, [](int a, int b) { return std::max(a, b); });
    case Collective::kReduceMinUnsigned:
      return reduce(UINT32_MAX, [](unsigned a, unsigned b) { return std::min(a, b); });
    case Collective::kReduceMaxUnsigned:
      return reduce(0u, [](unsigned a, unsigned b) { return std::max(a, b); });
  }
}

void Block::complete(Warp& warp, unsigned mask) {
  Lane* const lanes = &lanes_[warp.first_lane];
  set_results(warp, mask);
  const Lane& first = lanes[std::countr_zero(mask)];
  for_each_lane(mask, [&](unsigned id) {
    lanes[id].state = Lane::State::kReady;
    lanes[id].pc = first.pc;
    lanes[id].be_where(first);
    observer_.count.complete(lanes[id]);
  });
  warp.pending &= ~mask;
}

std::uint64_t UndefinedShuffles::read(const Block& block, const Lane& lane, unsigned source) {
  any_ = true;
  const auto is_known = [&](const Read& read) { return read.pc == lane.pc; };
  if (collecting && std::none_of(reads.begin(), reads.end(), is_known)) {
    const unsigned mask = lane.request.mask;
    const std::string why =
        !(mask >> source & 1u) ? fmt::format("mask {:#x} does not name", mask)
        : source >= block.warp_of(lane).lanes
            ? "the block does not have"
            : "has ended without this call, which all lanes of the mask must make";
    const std::string what =
        fmt::format("the result of {} is used, and undefined: lane {} reads from lane {}, which {}",
                    name_of(lane.request.kind), lane.id, source, why) +
        remark_on_mask(lane);
    reads.push_back({lane.pc, block.describe_failure(lane, what, lane.pc)});
  }
  if (std::find(varied.begin(), varied.end(), lane.pc) == varied.end()) return kUndefined;
  return result == Result::kOwnValue ? lane.request.value : kLargeUndefined;
}

int Block::barrier(Lane& lane, Barrier kind, int predicate) {
  lane.barrier = kind;
  lane.predicate = predicate;
  observer_.meet(lane, Access::kBarrier, "__syncthreads", lane.pc);
  lane.state = Lane::State::kAtBarrier;
  ++at_barrier_;
  suspend(lane);
  return static_cast<int>(lane.result);
}

// Lets the threads go on from a barrier if every live one has arrived.
void Block::try_release_barrier() {
  if (at_barrier_ == 0 || at_barrier_ != live_) return;
  int count = 0;
  const Lane* first = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.state != Lane::State::kAtBarrier) continue;
    if (!first) first = &lane;
    // (A compiler may make two calls of one.)
    if (lane.barrier != first->barrier ||
        (lane.pc != first->pc && source_line(lane.pc) != source_line(first->pc))) {
      report(lane,
             "waits at another __syncthreads than " + describe(*first) +
                 ": a barrier in divergent code",
             lane.pc);
      return;
    }
    count += lane.predicate != 0;
  }
  int result = 0;
  if (first->barrier == Barrier::kOr) result = count != 0;
  if (first->barrier == Barrier::kAnd) result = count == static_cast<int>(live_);
  if (first->barrier == Barrier::kCount) result = count;
  for (Lane& lane : lanes_) {
    if (lane.state != Lane::State::kAtBarrier) continue;
    lane.result = static_cast<std::uint64_t>(result);
    lane.state = Lane::State::kReady;
    lane.be_where(*first);
  }
  at_barrier_ = 0;
  ++events_;
  ++barriers_;
  observer_.block_synchronized();
}

void Block::yield(Lane& lane) {
  lane.state = Lane::State::kYielded;
  lane.polls = 0;
  ++yielded_;
  suspend(lane);
}

void Block::wait_for_access(Lane& lane, const void* pc) {
  lane.pc = pc;
  lane.state = Lane::State::kAtAccess;
  suspend(lane);
}

void Lane::loops_for_ever() {
  const Unobserved unobserved;
  block->fail(*this,
              fmt::format("a loop without end: {} iterations without an access to memory (plain "
                          "loads of what another thread is to change are taken out of loops: poll "
                          "with volatile or atomic loads)",
                          kEmptyLoops),
              reinterpret_cast<const void*>(block_entered));
}

void Block::look_at_polls(Lane& lane, const void* pc) {
  if (lane.polls < kPollsBeforeYield && !state_->is_ordered()) return;
  lane.pc = pc;
  yield(lane);
}

void Block::polled(Lane& lane, const void* pc, const void* word, std::uint64_t value,
                   unsigned bytes) {
  // (What is counted does not depend on the order of lanes. Blocks that take turns have the turns
  // of a lane that polls drawn from the seed, too.)
  if (observer_.count.counting() || gang_) return polled(lane, pc);
  if (++lane.polls < 2) return;
  lane.unchanged = word;
  lane.unchanged_value = value;
  lane.unchanged_bytes = static_cast<std::uint8_t>(bytes);
  lane.pc = pc;
  yield(lane);
  lane.unchanged = nullptr;
  lane.polls = 1;
}

// Work that threads take from a counter would all be the first one's, which runs until it must
// wait. So a lane that comes to a counter again lets the other lanes run first, and its warp the
// other warps. (Not while a profile is taken.)
void Block::draw(Lane& lane, const void* address, const void* pc) {
  if (observer_.count.counting() || lane.draws == kMaxDraws) return;
  const auto word = static_cast<std::uint32_t>(address_of(address) / 4);
  const std::uint32_t mark = word | 1u << 31;  // never that of none
  if (std::exchange(lane.updated[word % 4], mark) != mark) return;
  ++lane.draws;
  warps_[lane.warp].drew = true;
  lane.pc = pc;
  yield(lane);
}

// --- Failing ------------------------------------------------------------------------------------

std::string Block::name_of_thread(unsigned number) const {
  return "thread " + to_text(lanes_[number].thread);
}

std::string Block::name_of_block(std::uint64_t id) const {
  if (gang_) return gang_->name_of(static_cast<unsigned>(id));
  return simt::name_of_block(id, grid().grid);
}

std::string name_of_block(std::uint64_t number, dim3 dim) {
  return "block " + to_text(index_of(number, dim));
}

std::string Block::describe(const Lane& lane) const {
  std::string text = name_of_thread(static_cast<unsigned>(&lane - lanes_.data()));
  if (lane.state == Lane::State::kDone) return text + " has returned";
  if (lane.state == Lane::State::kAtCollective) {
    text +=
        fmt::format(" waits at {} with mask {:#x}", name_of(lane.request.kind), lane.request.mask);
  } else if (lane.state == Lane::State::kAtBarrier) {
    text += " waits at __syncthreads";
  } else if (lane.at_grid_barrier) {
    text += " waits for the blocks of its grid";
  } else if (can_go_on(lane)) {
    text += " polls memory";
    const std::uintptr_t address = address_of(lane.polled);
    if (const Allocation* const allocation = find_allocation(address)) {
      text += fmt::format(" ({} bytes into '{}', where it finds {})", address - allocation->begin,
                          allocation->name, lane.seen);
    }
  }
  return text + at_line(lane.pc);
}

std::string Block::describe_failure(const Lane& lane, const std::string& what,
                                    const void* pc) const {
  return fmt::format("kernel {}{}, block {}, thread {}: {}", kernel_name(grid().kernel),
                     at_line(pc), to_text(index_), to_text(lane.thread), what);
}

void Block::report(const Lane& lane, const std::string& what, const void* pc, Outcome outcome) {
  state_->fail(outcome, describe_failure(lane, what, pc));
}

void Block::fail(Lane& lane, std::string&& what, const void* pc, Outcome outcome) {
  const Unobserved unobserved;
  report(lane, std::exchange(what, {}), pc, outcome);  // nothing may be left to free on this stack
  for (;;) suspend(lane);
}

void Block::fail(Lane& lane, std::string&& report) {
  const Unobserved unobserved;
  state_->fail(Outcome::kFailed, std::exchange(report, {}));
  for (;;) suspend(lane);
}

// The first one; null if there is none.
template <typename Wanted>
const Lane* Block::find_lane(Wanted&& is_wanted) const {
  const auto it = std::find_if(lanes_.begin(), lanes_.end(), is_wanted);
  return it == lanes_.end() ? nullptr : &*it;
}

// Names a lane that waits, at a warp operation if there is one, and one that will not come.
void Block::report_deadlock() {
  const Lane* missing = nullptr;
  const Lane* waiting =
      find_lane([](const Lane& lane) { return lane.state == Lane::State::kAtCollective; });
  if (waiting) {
    missing = awaited(*waiting);
  } else {
    waiting = find_lane(has_not_returned);
    missing = find_lane([waiting](const Lane& lane) {
      return lane.state != Lane::State::kDone && lane.state != waiting->state;
    });
  }
  std::string text = "kernel " + kernel_name(grid().kernel) + ", block " + to_text(index_) +
                     ": deadlock: " + describe(*waiting);
  if (missing) text += ", but " + describe(*missing);
  if (waiting->state == Lane::State::kAtCollective) text += remark_on_mask(*waiting);
  const auto at_barrier = [](const Lane* lane) {
    return lane && lane->state == Lane::State::kAtBarrier;
  };
  if (at_barrier(waiting) || at_barrier(missing)) text += "; a barrier in divergent code";
  const bool polls = find_lane(can_go_on);
  if (polls && count_of(grid().grid) > 1) {
    text +=
        "; if it waits for another block: CUDA does not promise that one runs meanwhile, unless "
        "the launch is cooperative";
  }
  state_->fail(Outcome::kFailed, text);
}

std::string Block::describe_wait() const {
  // A lane that polls keeps those that are at a barrier.
  const Lane* lane = find_lane(can_go_on);
  if (!lane) lane = find_lane(has_not_returned);
  return "block " + to_text(index_) + (lane ? ", " + describe(*lane) : ": all have returned");
}

// --- Late stores --------------------------------------------------------------------------------

bool Block::is_late(std::uintptr_t address) const {
  if (!gang_ || !settings().late_peer_stores) return false;
  const Allocation* const allocation = find_allocation(address);
  return allocation && allocation->device != grid().device;
}

void Block::expect_late_store(Lane& lane, std::uintptr_t address, unsigned size) {
  gang_->forward(seat_, address, size);
  expected_ = {&lane, address, size, {}};
  lane.stores_late = true;
  std::memcpy(expected_.old, reinterpret_cast<const void*>(address), size);
}

void Block::settle_store() {
  const ExpectedStore made = std::exchange(expected_, {});
  made.lane->stores_late = false;
  gang_->set_aside(*made.lane, made.address, made.size, made.old);
}

// --- By the running lane ------------------------------------------------------------------------

std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, int operand,
                         int width) noexcept {
  Lane& lane = *current_lane;
  lane.pc = SIMT_CALLER();
  return lane.block->collective(lane, {kind, mask, value, operand, width});
}

int barrier(Barrier kind, int predicate) noexcept {
  Lane& lane = *current_lane;
  lane.pc = SIMT_CALLER();
  return lane.block->barrier(lane, kind, predicate);
}

void yield() noexcept {
  Lane& lane = *current_lane;
  lane.pc = SIMT_CALLER();
  lane.block->yield(lane);
}

void wait_for_previous_grid() noexcept {
  current_lane->waited = true;
}

void trap() noexcept {
  Lane& lane = *current_lane;
  lane.block->fail(lane, "__trap()", SIMT_CALLER());
}

long long nanoseconds() noexcept {
  // A lane may wait for the clock, or give up after a while. (Where blocks take turns, the latter.)
  if (current_lane && !current_lane->block->gang()) current_lane->block->changed();
  static std::atomic<long long> now{0};
  return now += 100;
}

void acquire(Scope scope) noexcept {
  current_lane->block->observer().races.fence(*current_lane, scope);
}

void fence(Scope scope) noexcept {
  Lane& lane = *current_lane;
  lane.pc = SIMT_CALLER();
  Block::settle(lane);
  lane.block->observer().races.fence(lane, scope);
  if (Gang* const gang = lane.block->gang()) gang->fence(lane, scope);
  lane.block->yield(lane);
}

}  // namespace simt

// assert() of a kernel ends the launch, not the process. (In place of the C library's.)
extern "C" void __assert_fail(const char* condition, const char* file, unsigned line,
                              const char* function) noexcept {
  if (simt::Lane* const lane = simt::current_lane) {
    const simt::Unobserved unobserved;
    lane->block->fail(*lane, "assertion '" + std::string(condition) + "' failed", SIMT_CALLER());
  }
  std::fprintf(stderr, "%s:%u: %s: assertion '%s' failed\n", file, line, function, condition);
  std::abort();
}
