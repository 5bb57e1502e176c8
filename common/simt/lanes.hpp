// The lanes and warps of a block, and the trails that lanes leave. Not for use outside simt.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "simt/context.hpp"
#include "simt/engine.hpp"
#include "simt/random.hpp"
#include "simt/shared_memory.hpp"

#ifdef __SANITIZE_ADDRESS__
#define SIMT_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER
#endif
#endif

namespace simt {

class Block;

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
  std::uint16_t draws = 0;                 // how often Block::draw() has set it aside
  std::array<std::uint32_t, 4> updated{};  // integers that Block::draw() has seen it update
  unsigned polls = 0;  // accesses in a row that found what the one before found, see polled()
  uint3 thread{};
  Fiber* fiber = nullptr;
  Block* block = nullptr;
  unsigned number() const { return warp * kWarpSize + id; }  // in its block
  const void* polled = nullptr;                              // address of its last atomic load
  std::uint64_t seen = 0;                                    // value that this load found
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
  unsigned active = 0;                    // what __activemask() has told it last
  const void* active_pc = nullptr;        // where `active` was told
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
  std::uint64_t events = 0;  // Block::events_ when lanes last waited at __activemask()
  unsigned waits = 0;        // rounds in which they have waited there since `events` was noted
  std::uint64_t busy = 0;    // Schedule::kTurns: turns that its last requests take
  std::uint64_t seed = 0;    // Schedule::kLockstep: of the order of its lanes
};

// Of each lane that `mask` names.
template <typename Visit>
void for_each_lane(unsigned mask, Visit&& visit) {
  for (; mask; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

extern constinit thread_local Lane* current_lane;

// --- Trails --------------------------------------------------------------------------------------

// Instructions in the order in which they stand in the executable.
inline const std::uintptr_t executable_begin = executable_address();
inline std::uint32_t place_of(const void* pc) {
  return static_cast<std::uint32_t>(address_of(pc) - executable_begin);
}

// A lane's trail: the basic blocks that it entered, and its accesses, in order.
struct TrailEntry {
  std::uint32_t place;     // of the instruction, in the executable
  std::uint32_t tally;     // Tally::number if it is an access, else 0
  std::uintptr_t address;  // of what is accessed
};
using Trail = std::vector<TrailEntry>;
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

}  // namespace simt
