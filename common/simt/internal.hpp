// What the parts of simt know of each other. Not for use outside simt.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/context.hpp"
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "simt/races.hpp"
#include "simt/random.hpp"
#include "simt/recorder.hpp"
#include "simt/runtime.hpp"
#include "simt/shared_memory.hpp"

#ifdef __SANITIZE_ADDRESS__
#define SIMT_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER
#endif
#endif

namespace simt {

class Gang;
class GridState;

// --- Runtime ------------------------------------------------------------------------------------

// Remembers `error` for cudaGetLastError and returns it.
// `why`: what the error's name does not say; see take_reason().
cudaError_t set_error(cudaError_t error, const std::string& why = {});
// Who hears of each error; null: nobody.
extern void (*error_listener)(cudaError_t error, const std::string& why);
// Who hears of each report.
extern void (*report_listener)();
int current_device();
bool is_device(int device);

// --- Streams ------------------------------------------------------------------------------------

bool is_stream(cudaStream_t stream);
// -1 if there is no such stream, nor for the default stream, which each device has.
int device_of_stream(cudaStream_t stream);
// Whether what `stream` is asked for is not to be done at once: it is captured, or late.
bool is_deferred(cudaStream_t stream);
// What CUDA does not allow while streams are captured, since what they are asked for is not done
// then: to wait, to allocate and to free. Of streams that are captured in the mode global, or of
// all streams of the current device. Returns CUDA's error, and no graph will come of their
// captures.
enum class InCapture : std::uint8_t { kUnsafeCall, kWaitForDevice };
cudaError_t refuse_in_capture(InCapture call = InCapture::kUnsafeCall);
// What a stream is asked for.
using Work = std::function<cudaError_t()>;
// How the runtime tells of the end of a grid.
cudaError_t error_of(Outcome outcome);
// Keeps a cooperative grid, whose arguments are `kept`, until something waits for it.
cudaError_t enqueue_cooperative(cudaStream_t stream, const Grid& grid, std::shared_ptr<void> kept);
// Does `work` now, or keeps it for later.
cudaError_t enqueue(cudaStream_t stream, Work work);
// Does what is late, of a stream, of a device, or all of it; returns the first error.
cudaError_t finish_stream(cudaStream_t stream);
cudaError_t finish_device(int device);
// Of device memory that has not been freed.
std::vector<std::string> names_of_allocations();
cudaError_t finish_all();

// --- Memory -------------------------------------------------------------------------------------

// Which bytes of an array have been written: a mark for each. Threads of the host may use them at
// the same time.
class WrittenBytes {
 public:
  explicit WrittenBytes(std::size_t bytes) : marks_(bytes) {}
  // Whether all of `count` bytes from `offset` on are.
  bool all(std::size_t offset, std::size_t count) const {
    for (std::size_t i = offset; i < offset + count; ++i) {
      if (!std::atomic_ref(marks_[i]).load(std::memory_order_relaxed)) return false;
    }
    return true;
  }
  void add(std::size_t offset, std::size_t count) {
    for (std::size_t i = offset; i < offset + count; ++i) {
      std::atomic_ref(marks_[i]).store(true, std::memory_order_relaxed);
    }
  }
  // Whether every byte is: then none needs to be looked up any more.
  bool complete() const {
    if (!complete_) complete_ = all(0, marks_.size());
    return complete_;
  }
  void clear() { std::fill(marks_.begin(), marks_.end(), false); }
  std::vector<unsigned char> save() const { return marks_; }
  void restore(const std::vector<unsigned char>& saved) {
    marks_ = saved;
    complete_ = false;
  }

 private:
  mutable std::vector<unsigned char> marks_;
  mutable std::atomic<bool> complete_ = false;  // as far as is known
};

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::size_t mapped_bytes = 0;
  int device = 0;
  std::string name;
  bool open = true;
  std::shared_ptr<WrittenBytes> written = nullptr;  // instrumented build

  bool contains(std::uintptr_t address) const { return address - begin < bytes; }
};

// The allocation that holds `address`; null if there is none. Valid until it is freed.
const Allocation* find_allocation(std::uintptr_t address);
// Where `address` is, "12 bytes into 'x', which has 12", for a report; "" if near no allocation.
std::string describe_address(std::uintptr_t address);
// The pinned host memory that holds `address`, which kernels may use as they use a device's.
NamedRange find_pinned(std::uintptr_t address);
// Notes that `bytes` bytes of device memory were written; of what the host copied `from` device
// memory, those that had been written there.
void mark_written(std::uintptr_t to, std::size_t bytes, std::uintptr_t from = 0);
// Whether a kernel on `device` may use memory of `owner`.
bool can_reach(int device, int owner);

// In the instrumented build an allocation can be touched only after open(), and while one of these
// lives. (One by one, as they are needed: changing the protection of much memory takes long.)
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
  // The allocation that holds `address`, if one does.
  static void open(std::uintptr_t address);
};

// From now on a fault in a kernel is a report; on this thread of the host also one for want of
// stack.
enum class Fault : std::uint8_t { kDivision, kAlignment, kAddress, kStack };
void watch_faults();
void watch_faults_of_thread();

// --- Lanes --------------------------------------------------------------------------------------

// Tells AddressSanitizer, where there is one, that execution moves to another stack.
struct StackSwitch {
  void* fake_stack = nullptr;  // of the context that this belongs to, while it is set aside
  const void* stack = nullptr;
  std::size_t bytes = 0;

  void leave_for(const StackSwitch& other, bool for_good = false);
  void arrive(StackSwitch* from = nullptr);
};

inline constexpr unsigned kPollsBeforeLook = 4;

struct Fiber {
  std::byte* stack = nullptr;  // lowest address
  Context context;
  StackSwitch stack_switch;

  std::uintptr_t usable() const { return address_of(stack) + kGuardBytes; }
  bool holds(std::uintptr_t address) const { return address - usable() < kUsableBytes; }
};

// What a lane brings to a warp operation; see collective().
struct CollectiveRequest {
  Collective kind{};
  unsigned mask = 0;
  std::uint64_t value = 0;
  int operand = 0;
  int width = kWarpSize;
};

// The lane whose value lane `id` receives from a shuffle; its own when the source lies outside its
// segment of `width` lanes.
unsigned shuffle_source(const CollectiveRequest& request, unsigned id);

struct alignas(64) Lane {
  enum class State : std::uint8_t {
    kUnstarted,
    kReady,
    kRunning,
    kAtAccess,  // Schedule::kLockstep: about to make one
    kAtCollective,
    kAtBarrier,
    kYielded,
    kDone
  };
  // In one cache line: what is set when a block or a lane starts, or looked at with each access.
  State state = State::kUnstarted;
  std::uint8_t id = 0;  // in its warp
  bool at_grid_barrier = false;
  bool stores_late = false;  // see Block::expect_late_store()
  bool waited = false;       // for the previous kernel of the stream, by cudaGridDependency...
  std::uint16_t warp = 0;
  std::uint16_t draws = 0;                 // see Block::draw(),
  std::array<std::uint32_t, 4> updated{};  // as well
  unsigned polls = 0;  // accesses in a row that found what the one before found, see polled()
  uint3 thread{};
  Fiber* fiber = nullptr;
  Block* block = nullptr;
  unsigned number() const { return warp * kWarpSize + id; }  // in its block
  const void* polled = nullptr;                              // its last atomic load

  std::uint64_t seen = 0;  // by that
  // The words that it has loaded last by atomic operations: a loop may poll several in turn.
  struct Seen {
    const void* word = nullptr;
    std::uint64_t value = 0;
  };
  std::array<Seen, 8> recent{};
  unsigned next_recent = 0;
  // Whether `word` is one of them, and has not changed.
  bool finds_again(const void* word, std::uint64_t value) {
    for (Seen& of : recent) {
      if (of.word == word) return std::exchange(of.value, value) == value;
    }
    recent[next_recent++ % recent.size()] = {word, value};
    return false;
  }
  // While it is set aside: the word that its last atomic operation has left as it was, as a
  // lock that is taken. (Null: none.)
  const void* unchanged = nullptr;
  std::uint8_t unchanged_bytes = 0;
  std::uint64_t unchanged_value = 0;
  bool waits_in_vain() const {
    return unchanged && !std::memcmp(unchanged, &unchanged_value, unchanged_bytes);
  }
  // Where it is in its loops: the basic block that it entered last, how often it went back to an
  // earlier one, and a hash of which ones. (Instrumented build.)
  std::uintptr_t block_entered = 0;
  std::uint64_t loops = 0, loop_hash = 0;
  void enter_block(std::uintptr_t place) {
    if (place <= block_entered) {
      ++loops;
      if (++empty_loops == kEmptyLoops) loops_for_ever();
      loop_hash = (loop_hash ^ place) * kGoldenGamma;
    }
    block_entered = place;
  }
  // Iterations since it last touched memory, or met others. Where there are more, there will be no
  // end: a loop that polls memory with plain loads has lost them, as it does with nvcc.
  static constexpr std::uint32_t kEmptyLoops = 1u << 28;
  std::uint32_t empty_loops = 0;
  [[noreturn]] void loops_for_ever();
  bool same_iteration(const Lane& other) const {
    return loops == other.loops && loop_hash == other.loop_hash;
  }
  // The lane has met `other` here.
  void be_where(const Lane& other) {
    block_entered = other.block_entered;
    loops = other.loops;
    loop_hash = other.loop_hash;
  }
  unsigned active = 0;                    // what __activemask() has told it last,
  const void* active_pc = nullptr;        // and where
  const void* failed_exchange = nullptr;  // its last atomicCAS, if that changed nothing
  // While it updates a word: whether changes(update) it.
  const void* update = nullptr;
  bool (*changes)(const void* update) = nullptr;
  CollectiveRequest request;
  Barrier barrier{};
  int predicate = 0;
  std::uint64_t result = 0;
  const void* pc = nullptr;  // where it waits
};

struct Warp {
  unsigned first_lane = 0;  // in the block
  unsigned live = 0;        // lanes that have not returned
  unsigned pending = 0;     // lanes at a warp operation
  unsigned started = 0;     // how many of `order` have started
  unsigned resumed = 0;     // how many of it have been looked at since lanes last met
  unsigned syncs = 0;       // __syncwarp() completed
  bool drew = false;        // see Block::draw()
  std::uint8_t order[kWarpSize] = {};
  unsigned lanes = 0;
  std::uint64_t events = 0;  // Block::events_ when lanes last waited at __activemask(),
  unsigned waits = 0;        // and for how many rounds since then
  std::uint64_t busy = 0;    // Schedule::kTurns: turns that its last requests take
  std::uint64_t seed = 0;    // Schedule::kLockstep: of the order of its lanes
};

// Of each lane that `mask` names.
template <typename Visit>
void for_each_lane(unsigned mask, Visit&& visit) {
  for (; mask; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

extern constinit thread_local Lane* current_lane;

// --- Observation --------------------------------------------------------------------------------

// Instructions in the order in which they stand in the executable.
inline const std::uintptr_t executable_begin = executable_address();
inline std::uint32_t place_of(const void* pc) {
  return static_cast<std::uint32_t>(address_of(pc) - executable_begin);
}

// A lane's trail: the basic blocks that it entered, and its accesses, in order.
struct Step {
  std::uint32_t place;     // of the instruction, in the executable
  std::uint32_t tally;     // Observer::tallies_[tally - 1] if it is an access, else 0
  std::uintptr_t address;  // of what is accessed
};
using Trail = std::vector<Step>;
// Of the running lane, if its steps are to be counted.
extern constinit thread_local Trail* current_trail;

// Lives while simt does something in the running lane's name. Of functions of the standard library
// the linker keeps one copy, and that may be a kernel's object file's, whose accesses are observed.
class Unobserved {
 public:
  Unobserved()
      : lane_(std::exchange(current_lane, nullptr)),
        trail_(std::exchange(current_trail, nullptr)) {}
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;
  ~Unobserved() {
    current_lane = lane_;
    current_trail = trail_;
  }

 private:
  Lane* lane_;
  Trail* trail_;
};

// Checks every access of a block's lanes, and counts them, a warp at a time.
class Observer {
 public:
  // `shared`: the shared variables of the grid's kernel; must live until the next start().
  void start(GridState& state, const std::vector<SharedVariable>& shared, unsigned threads);
  // `number`: in its grid. `id`: also among those of grids that are resident together.
  void start_block(std::uint64_t number, std::uint64_t id);
  void end_block();
  void access(Lane& lane, std::uintptr_t address, unsigned size, Access access, Strength strength,
              const void* pc);
  // The atomic at `pc`, which has just been seen, updates an integer. `merges`: nvcc makes one of
  // those of a warp's lanes on one address, as it does with additions.
  void note_draw(const void* pc, unsigned size, bool merges);
  void fence(Lane& lane, Scope scope);
  // The instruction at `pc` is about to touch what is no part of the variable that it names.
  [[noreturn]] void reject_outside(Lane& lane, bool is_store, const void* pc);
  // The processor could not execute the instruction at `pc`, which names `address`, if any.
  [[noreturn]] void reject_fault(Lane& lane, Fault fault, const void* pc, std::uintptr_t address);
  // `lane` is at a barrier or warp operation.
  void meet(Lane& lane, Access access, const char* name, const void* pc);
  // The warp operation at which `lane` waits has a result.
  void complete(const Lane& lane) {
    if (recorder_) recorder_->complete(lane);
  }
  // Lanes of a warp, perhaps all, have done with __syncwarp, all threads of the block with a
  // barrier.
  void warp_synchronized(unsigned warp, unsigned mask, bool all);
  void block_synchronized();
  // The running block is at the barrier of its grid; the blocks of the grid have met.
  void grid_arrives();
  void grid_synchronized();
  // Counts what the lanes of `warp` have done since the last call; lineup.cpp.
  void line_up(unsigned warp);
  // After the last block: by whom the kernel's own output is read, to `races`.
  void end_races();
  // Adds what was counted to the profile.
  void end_grid();
  bool counting() const { return counting_; }
  // That a warp of the running block has made, as far as they are counted.
  std::uint64_t requests_of(unsigned warp) const { return counting_ ? warps_[warp].requests : 0; }
  // Of `lane`, which runs from now on; null if nothing is counted.
  Trail* trail(const Lane& lane) {
    if (recorder_) recorder_->finish_store();
    return counting_ ? &trails_[lane.id] : nullptr;
  }

 private:
  // What one instruction did to one array.
  struct Tally : Target {
    Strength strength;
    Tally* next;  // of the same instruction
    std::uint32_t number;
    std::uint32_t place;  // of the instruction
    bool counted = true;
    WrittenBytes* written = nullptr;     // null: all of the array
    Region* region = nullptr;            // null: no races are looked for
    bool draws = false, merges = false;  // see note_draw()
    AccessCounts counts = {};
  };
  struct alignas(64) Instruction {
    const void* pc = nullptr;
    unsigned size = 0;
    Access access{};
    Strength strength{};
    // The array that it was last seen to touch: its first byte, and in how many places of it one
    // access fits. (An address just below null is in none.)
    std::uintptr_t begin = 0;
    std::size_t room = 0;
    std::uintptr_t last = 0;                  // address that it last touched;
    std::uintptr_t* last_of_lanes = nullptr;  // Schedule::kLockstep: each lane of the warp
    Tally* tally = nullptr;                   // of that array; null if it is not one to count
    Tally* tallies = nullptr;                 // of all arrays that it has touched
  };
  struct Warp {
    std::uint64_t interval = 0;    // number of that since all lanes met last
    std::uint64_t requests = 0;    // of the running block
    std::uint64_t item_begin = 0;  // those before its last draw; see KernelCounts
  };
  // Which steps of each lane a lane of its warp knows to be over; of itself, all that it made.
  using WarpClock = std::array<Steps, kWarpSize>;
  struct Shared {
    explicit Shared(std::size_t bytes) : written(bytes) {}
    WrittenBytes written;
    Region region;
  };
  std::size_t slot_of(const void* pc) const {
    const std::uintptr_t key = address_of(pc);
    return (key ^ key >> 6) % std::tuple_size_v<decltype(found_)>;
  }
  bool is_of_lane(const Lane& lane, std::uintptr_t address) const;
  Instruction& find_instruction(const void* pc, unsigned size, Access access,
                                Strength strength = Strength::kPlain) {
    Instruction* const guess = found_[slot_of(pc)];
    if (guess && guess->pc == pc && guess->size == size) return *guess;
    return look_up(pc, size, access, strength);
  }
  Instruction& look_up(const void* pc, unsigned size, Access access, Strength strength);
  void classify(Lane& lane, Instruction& instruction, std::uintptr_t address);
  [[noreturn]] void reject(Lane& lane, const Instruction& instruction, std::uintptr_t address);
  std::string describe_place(const Lane& lane, std::uintptr_t address) const;
  struct Unaligned {
    Access access{};
    const void* pc = nullptr;
    std::uintptr_t address = 0;
  };
  [[noreturn]] void reject_misaligned(Lane& lane, unsigned size, const Unaligned& access);
  Tally* add_tally(Instruction& instruction, Space space, const std::string& array);
  void check_written(Lane& lane, const Tally& tally, std::uintptr_t address);
  void check_order(Lane& lane, const Tally& tally, std::uintptr_t address);
  void check_previous(Lane& lane, const Tally& tally, std::uintptr_t address);
  void watch(Tally& tally);
  // races.cpp
  void filter(const Lane& lane, const Tally& tally, std::uintptr_t address);
  void order(Lane& lane, const Tally& tally, std::uintptr_t address);
  Moment next_step(const Lane& lane);
  bool is_over(const Moment& moment, const Lane& lane) const;
  std::uint32_t& step_of(const Lane& lane) { return clocks_[lane.warp][lane.id][lane.id]; }
  Knowledge& knowledge(const Lane& lane);
  void join_warp(unsigned warp, unsigned mask);
  bool saw_last_write(const Word& word, Kind kind, const Lane& lane) const;
  void compare(Lane& lane, const Tally& tally, std::uintptr_t address, const WordAccess& access,
               const Word& word, const std::vector<WordAccess>& earlier);
  void acquire(const Lane& lane, const std::shared_ptr<const Release>& release, bool block_only,
               bool weak);
  std::shared_ptr<const Release> release(const Lane& lane, bool block_only,
                                         const std::shared_ptr<const Release>& before);
  void reject_read_only(Lane& lane, const Tally& tally, std::uintptr_t address, const Word& word);
  Race::Thread* racing_thread(const Lane& lane);
  void explain(const Lane& lane, const Tally& tally, std::uintptr_t address);
  Race race_with(const WordAccess& other, const Lane& lane, const Tally& tally,
                 std::uintptr_t address) const;
  static std::string verb(Access access);
  // "reads 4 bytes, 8 bytes into 'x'".
  static std::string describe_access(const Tally& tally, std::uintptr_t address);
  void end_item(Warp& warp);
  void count(Tally& tally, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask,
             unsigned warp, AccessCounts* own);
  void count(Tally& tally, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask,
             unsigned warp);

  const Grid* grid_ = nullptr;
  const std::vector<SharedVariable>* shared_ = nullptr;
  bool counting_ = false, check_uninitialised_ = false;
  std::map<std::pair<const void*, unsigned>, Instruction> instructions_;  // by address and size
  std::array<Instruction*, 4096> found_{};  // the last one with each hash of the address
  std::deque<std::array<std::uintptr_t, kWarpSize>> last_of_lanes_;
  std::deque<Tally> tallies_;
  std::deque<std::string> operations_;  // names of meetings

  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Shared>> of_shared_;  // of each variable; null: untouched
  std::uint64_t interval_ = 0, barrier_ = 0;  // the last one of any warp, of a block's barrier
  std::uint32_t epoch_ = 0;
  GridState* state_ = nullptr;
  const SharedVariable* dynamic_ = nullptr;  // the `extern __shared__` array that lanes have used
  GlobalRaces* races_ = nullptr;
  RaceMode mode_ = RaceMode::kOverlook;
  bool lockstep_ = false;
  std::uint64_t block_number_ = 0;
  std::uint32_t phase_ = 0;
  ResidentGrid* resident_ = nullptr;  // if the grid is one
  // While ordering or explaining, of the running block.
  std::vector<WarpClock> clocks_;
  // What all threads of the block know, and what each one has learnt since the last barrier. (Most
  // learn nothing.)
  Knowledge common_;
  std::unordered_map<unsigned, Knowledge> learnt_;

  // Of words, by address: the last store by a warp of the running block, and the lanes of the warp
  // that have loaded the word, since then and at all. While a race is explained.
  struct Update {
    const void* pc = nullptr;  // null: none
    std::uint32_t epoch = 0, step = 0;
    std::uint32_t seen_by = 0, read_by = 0;
    std::uint16_t warp = 0;
    std::uint8_t lane = 0;
  };
  std::unordered_map<std::uintptr_t, Update> updates_;

  // The last access to 16 bytes that was aligned to 8: see access().
  Unaligned half_aligned_;

  Trail trails_[kWarpSize];
  // The last request to global memory, until a basic block begins: see repeated_sectors.
  struct Touched {
    unsigned mask = 0;  // its lanes; 0: there is none
    std::uintptr_t array = 0;
    Access access{};
    std::vector<std::uint64_t> sectors;  // in ascending order
  } touched_;
  std::uint64_t grid_block_ = 0;          // number of the running block in its grid
  std::vector<std::uint64_t> lane_work_;  // accesses of each thread of the block
  KernelCounts kernel_;
  // By address: lanes' atomics, and the requests of warps that draw from an integer.
  std::unordered_map<std::uintptr_t, std::uint64_t> atomics_, draws_;
  CacheModel* caches_ = nullptr;
  Recorder* recorder_ = nullptr;
};

// Profile that is being taken, if any; see start_profile().
bool profile_active();
CacheModel* profile_caches();

// --- Blocks -------------------------------------------------------------------------------------

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
  // polled in vain since then.)
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
