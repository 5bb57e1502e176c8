// How a grid runs on the CPU.
//
// Every CUDA thread (a *lane* of a warp) runs the kernel's function as an ordinary call, on a stack
// of its own. It runs until it returns or until it needs other lanes: at a warp operation or at a
// barrier it switches to the block's scheduler, which runs another lane of the warp, then another
// warp. Lanes that never wait share one stack and never switch. The blocks of a grid are spread
// over the cores; a block stays on one thread of the host.
//
// This is one of the orders that CUDA allows, and which one is selectable (Schedule), so that a
// kernel that leans on an order it was not promised is found out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simt/types.hpp"

namespace simt {

inline constexpr unsigned kWarpSize = 32;

// kTurns is kForward, but the warps of a block take turns at their warp operations; where requests
// are counted, each takes a turn. kLockstep is kForward, but the lanes of a warp advance together
// from one access to memory to the next, as on a GPU: all that stand at the first place in the
// program make their access, in an order drawn from the seed, before any goes on. So all lanes load
// before one stores, and an update that is not atomic is lost. (Instrumented build; else kForward.)
enum class Schedule { kForward, kReverse, kRandom, kTurns, kLockstep };

// Settings of the CPU backend. Not to be changed while a kernel runs.
struct Settings {
  Schedule schedule = Schedule::kForward;  // of blocks in the grid, warps in the block and lanes
  std::uint64_t seed = 1;                  // for kRandom and kLockstep
  unsigned workers = 0;  // threads of the host; 0: one per core. While profiling: profile.hpp
  // Whether a block that waits for one that has not begun gets more of them. Else it is reported.
  bool more_workers = true;
  int devices = 1;                 // what cudaGetDeviceCount says
  bool peer_access = true;         // between any two of them
  int multiprocessors = 132;       // of a device; what a cooperative launch may fill
  int compiled_for = 90;           // compute capability that cudaFuncGetAttributes() names
  bool late_streams = false;       // see runtime.hpp
  bool late_peer_stores = false;   // see cooperative.hpp
  double spin_limit_seconds = 10;  // deadlock: a block changes memory for longer, without progress
  // Instrumented build: what ends a kernel, beside accesses out of bounds.
  bool check_uninitialised = true;  // reads of global or shared memory that was never written
  // Races on shared memory, and on global memory within a launch; undefined results of shuffles.
  bool check_races = true;
  bool constant_program = false;  // writes to variables that are neither the device's nor a lane's
};
Settings& settings();

// What went wrong in the last kernel that failed: kernel, source line, block, thread, and what. The
// same text is printed to stderr, unless `quiet`, when it happens. Empty if none failed since the
// last call.
std::string take_report();
void set_quiet_reports(bool quiet);
// Why the last call of the runtime that failed did, where its error's name does not say it.
std::string take_reason();
// On what kernels have done since the last call, a line for each place, none a mistake by itself.
struct Remarks {
  std::vector<std::string> unpromised;  // they relied on it though CUDA does not promise it
  std::vector<std::string> if_wrong;    // where to look if a result is wrong
};
Remarks take_remarks();

// Ways in which lanes of a warp meet, and what CUDA calls them. (__activemask() promises no lanes:
// it names those that are at it together.)
#define SIMT_COLLECTIVES(OPERATION)                  \
  OPERATION(kSyncWarp, "__syncwarp")                 \
  OPERATION(kShuffle, "__shfl_sync")                 \
  OPERATION(kShuffleUp, "__shfl_up_sync")            \
  OPERATION(kShuffleDown, "__shfl_down_sync")        \
  OPERATION(kShuffleXor, "__shfl_xor_sync")          \
  OPERATION(kBallot, "__ballot_sync")                \
  OPERATION(kAny, "__any_sync")                      \
  OPERATION(kAll, "__all_sync")                      \
  OPERATION(kMatchAny, "__match_any_sync")           \
  OPERATION(kMatchAll, "__match_all_sync")           \
  OPERATION(kReduceAdd, "__reduce_add_sync")         \
  OPERATION(kReduceMinSigned, "__reduce_min_sync")   \
  OPERATION(kReduceMaxSigned, "__reduce_max_sync")   \
  OPERATION(kReduceMinUnsigned, "__reduce_min_sync") \
  OPERATION(kReduceMaxUnsigned, "__reduce_max_sync") \
  OPERATION(kReduceAnd, "__reduce_and_sync")         \
  OPERATION(kReduceOr, "__reduce_or_sync")           \
  OPERATION(kReduceXor, "__reduce_xor_sync")         \
  OPERATION(kActiveMask, "__activemask")
#define SIMT_KIND(kind, name) kind,
enum class Collective : std::uint8_t { SIMT_COLLECTIVES(SIMT_KIND) };
#undef SIMT_KIND

// Who sees what a fence or a release orders.
enum class Scope : std::uint8_t { kBlock, kDevice, kSystem };

// Ways in which threads of a block meet.
enum class Barrier : std::uint8_t { kPlain, kOr, kAnd, kCount };

// --- Called by the running lane -----------------------------------------------------------------

// Waits for every live lane that `mask` names and returns this lane's result. `operand` is a
// shuffle's source lane, delta or lane mask; `width` the lanes of its segments. (Passed one by one
// because a structure would be memory of the kernel, and observed.)
std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, int operand,
                         int width) noexcept;
// Waits for every live thread of the block. Returns 0 for kPlain.
int barrier(Barrier kind, int predicate) noexcept;
// Lets others run; lanes that poll memory call it (through atomics, fences and __nanosleep).
void yield() noexcept;
// A memory fence. Lets others run, too.
void fence(Scope scope) noexcept;
// What the lane has read by an atomic operation orders it from now on. Lets nobody run.
void acquire(Scope scope) noexcept;

// Waits until the previous kernel of the stream has completed: see Grid::may_start_early.
void wait_for_previous_grid() noexcept;

// The thread that runs is stopped, at the next place that it comes to, with a report that names it:
// for the handler of a signal, when a program has run for too long. (Instrumented build.)
void end_soon() noexcept;
bool is_ending() noexcept;

// Ends the launch with an error.
[[noreturn]] void trap() noexcept;
long long nanoseconds() noexcept;

// --- Called by the host -------------------------------------------------------------------------

struct Grid {
  const void* kernel = nullptr;  // address of the kernel's function, which gives it its name
  dim3 grid;
  dim3 block;
  std::size_t dynamic_shared_bytes = 0;
  int device = 0;
  bool may_start_early = false;  // before the previous kernel of its stream has completed
  void (*body)(const void* arguments) = nullptr;  // calls the kernel's function
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;
};

// How a grid ended. (Abandoned: simt ran it again in an order in which it cannot end.)
enum class Outcome : std::uint8_t { kDone, kFailed, kIllegalAddress, kMisaligned, kAbandoned };
// Runs every block to its end, or to the first failure, of which take_report() tells.
Outcome run_grid(const Grid& grid);

}  // namespace simt
