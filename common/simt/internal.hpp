// What the parts of simt know of each other. Not for use outside simt.
#pragma once

#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "simt/runtime.hpp"
#include "simt/shared_memory.hpp"

namespace simt {

class Block;

// --- Runtime ------------------------------------------------------------------------------------

// Remembers `error` for cudaGetLastError and returns it.
cudaError_t set_error(cudaError_t error);
int current_device();
bool is_device(int device);
bool is_stream(cudaStream_t stream);

// --- Memory -------------------------------------------------------------------------------------

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::size_t mapped_bytes = 0;
  int device = 0;
  std::string name;

  bool contains(std::uintptr_t address) const { return address - begin < bytes; }
};

// The allocation that holds `address`, or the nearest one at or below it if none does (a hint for
// the report, see contains()); null if there is none. Valid until it is freed.
const Allocation* find_allocation(std::uintptr_t address);
// Whether a kernel on `device` may use memory of `owner`.
bool can_reach(int device, int owner);

// In the instrumented build device memory can be touched only while one of these lives.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

// --- Lanes --------------------------------------------------------------------------------------

// Tells AddressSanitizer, where there is one, that execution moves to another stack.
struct StackSwitch {
  void* fake_stack = nullptr;  // of the context that this belongs to, while it is set aside
  const void* stack = nullptr;
  std::size_t bytes = 0;

  void leave_for(const StackSwitch& other);
  void arrive(StackSwitch* from = nullptr);
};

struct Fiber {
  std::byte* stack = nullptr;  // lowest address
  boost::context::detail::fcontext_t context = nullptr;
  Block* block = nullptr;
  StackSwitch stack_switch;
};

// What a lane brings to a warp operation; see collective().
struct CollectiveRequest {
  Collective kind{};
  unsigned mask = 0;
  std::uint64_t value = 0;
  int operand = 0;
  int width = kWarpSize;
};

struct Lane {
  enum class State : std::uint8_t {
    kUnstarted,
    kReady,
    kRunning,
    kAtCollective,
    kAtBarrier,
    kYielded,
    kDone
  };
  State state = State::kUnstarted;
  std::uint8_t id = 0;  // in its warp
  unsigned warp = 0;
  unsigned polls = 0;  // atomics since it last let others run
  uint3 thread{};
  Block* block = nullptr;
  Fiber* fiber = nullptr;
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
  std::uint8_t order[kWarpSize] = {};
  unsigned lanes = 0;
};

extern constinit thread_local Lane* current_lane;

// --- Observation --------------------------------------------------------------------------------

// Collects the accesses of one warp at a time and counts them when its lanes converge.
class Observer {
 public:
  void start(const Grid& grid);
  void access(Lane& lane, std::uintptr_t address, unsigned size, Access access, const void* pc);
  // The lanes in `mask` have converged: what they did since they last did is complete.
  void converge(unsigned mask);
  void merge_into(Profile& profile);
  bool counting() const { return counting_; }

 private:
  struct Site {
    const void* pc = nullptr;
    unsigned size = 0;
    Access access{};
    Space space{};
    bool local = false;                 // the lane's own stack, or a constant: not counted
    std::uintptr_t begin = 0, end = 0;  // where the last access was known to be right
    const std::string* array = nullptr;
    std::vector<std::uintptr_t> addresses[kWarpSize];
    std::vector<std::pair<const std::string*, AccessCounts>> counts;
  };
  Site& site_for(const void* pc, unsigned size, Access access);
  bool classify(Lane& lane, Site& site, std::uintptr_t address, unsigned size);
  void count_request(Site& site, std::uintptr_t* addresses, unsigned lanes);

  const Grid* grid_ = nullptr;
  bool counting_ = false;
  std::vector<std::unique_ptr<Site>> table_;  // by hash of pc
  std::vector<Site*> sites_;
  std::vector<Site*> touched_;
  std::vector<SharedVariable> shared_;
};

// Profile that is being taken, if any; see start_profile().
bool profile_active();
void add_to_profile(Observer& observer);

// --- Blocks -------------------------------------------------------------------------------------

// What the blocks of a running grid share.
class GridState {
 public:
  explicit GridState(const Grid& grid) : grid_(grid) {}
  const Grid& grid() const { return grid_; }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The first failure counts; the blocks of the grid stop as they notice it.
  void fail(std::string what);
  const std::string& failure() const { return failure_; }

 private:
  const Grid& grid_;
  std::mutex mutex_;
  std::string failure_;
  std::atomic<bool> failed_{false};
};

// Runs blocks, one after the other, on the thread of the host that calls it.
class Block {
 public:
  Block();
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void start_grid(GridState& grid);
  void run(std::uint64_t block_number);
  void end_grid();

  // By the running lane.
  std::uint64_t collective(Lane& lane, const CollectiveRequest& request);
  int barrier(Lane& lane, Barrier kind, int predicate);
  void yield(Lane& lane);
  [[noreturn]] void fail(Lane& lane, const std::string& what, const void* pc);

  const Grid& grid() const { return state_->grid(); }
  uint3 index() const { return index_; }
  Observer& observer() { return observer_; }
  bool on_stack(const Lane& lane, std::uintptr_t address) const;

 private:
  static void fiber_main(boost::context::detail::transfer_t transfer);
  void order_lanes(std::uint64_t block_number);
  bool run_warp(Warp& warp);
  void enter(Lane& lane);
  void resume(Lane& lane);
  void suspend(Lane& lane);
  void finish(Lane& lane);
  Lane* next_unstarted(Warp& warp);
  void try_complete(Warp& warp, Lane& lane);
  void complete(Warp& warp, unsigned mask);
  void try_release_barrier();
  void report_deadlock();
  std::string describe(const Lane& lane) const;

  GridState* state_ = nullptr;
  uint3 index_{};
  std::vector<Lane> lanes_;
  std::vector<Warp> warps_;
  std::vector<unsigned> warp_order_;
  std::vector<SharedVariable> shared_;
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  unsigned yielded_ = 0;
  std::uint64_t events_ = 0;  // completions and exits, to tell progress from polling

  std::byte* stacks_ = nullptr;
  std::size_t stack_count_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  StackSwitch scheduler_switch_;
  Observer observer_;
};

}  // namespace simt
