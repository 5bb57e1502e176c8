// Data races within a launch: two accesses of two threads to one byte, of which one writes and not
// both are atomic, and which nothing orders. Not for use outside simt.
//
// A launch runs once or several times. First as it is scheduled, on all cores: per word of global
// memory a *cell* notes which kinds of access came from one thread, one block, or several, and
// shared memory is treated alike, which is enough to say that two threads may have raced (filter).
// (Loads of what the launch does not write are not noted; where one turns out to be written, the
// launch begins again.) Mostly it ends and none may, and that is all. Else memory is restored, and
// the launch runs again, on one thread of the host, with blocks, warps and lanes in order. If it
// failed, it does so with the same checks, and a failure there is the verdict. If two threads may
// have raced, every access to what it writes is compared with those before it (happens-before), and
// a race that this finds is the verdict, if the launch does not fail in order without it. So the
// verdict on races depends neither on the schedule nor on the number of workers.
//
// Accesses are ordered by: the program order of a thread; __syncthreads; __syncwarp; a barrier of
// the grid; and, between any threads, release and acquire: a fence followed by an atomic operation
// or a volatile store on one side, and on the other an atomic operation that reads what this wrote,
// or a volatile load that does, followed by a fence or a barrier. Atomic operations are also
// ordered with those before them at their address. Where only atomics kept two accesses apart, one
// more run, in reverse, shows whether it was luck.
//
// A race that is reported is explained: the launch runs once more, with its lanes in lockstep, and
// the first update in the array that another lane of the warp overwrites is told.
//
// As in CUDA's own examples, a plain load of a word that is also updated by atomics is no race if
// the thread then checks what it read with atomicCAS.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/engine.hpp"

namespace simt {

class WrittenBytes;

// kOverlook: blocks run in order, as with kOrder, and what they write is remembered, no more.
// kExplain: so, too, and an update of the array with a race that is lost is looked for.
enum class RaceMode : std::uint8_t { kFilter, kOrder, kOverlook, kExplain };

// What an access is when it meets one of another thread.
enum class Strength : std::uint8_t {
  kPlain,
  kVolatile,  // a relaxed atomic load or store, as on the GPU
  kBlock,     // an atomic operation, for the threads of its block alone
  kCompare,   // atomicCAS
};

// A point in the execution of a thread. `phase` counts the barriers of its grid, `epoch` those of
// its block, `time` the __syncwarp of its warp, `step` what the thread itself did.
struct Moment {
  std::uint64_t serial = 0;  // among all moments of the launch: one thread of the host makes them
  std::uint64_t block = 0;
  std::uint32_t phase = 0, epoch = 0, time = 0, step = 0;
  std::uint16_t grid = 0;  // of co-resident ones
  std::uint16_t warp = 0;
  std::uint8_t lane = 0;

  bool same_thread(const Moment& other) const {
    return block == other.block && warp == other.warp && lane == other.lane;
  }
};

// A fence, and what came before it: the thread's own steps, earlier epochs of its block, and what
// the other lanes of its warp did before the times `known`.
struct Fence {
  Moment at;
  std::array<std::uint32_t, kWarpSize> known{};
  bool covers(const Moment& moment) const;
};

// The last fences of a thread, and the last clock that it read.
struct Clock;
struct Fences {
  std::uint32_t step = 0;          // of the thread
  bool any = false, wide = false;  // whether there were
  const Clock* read = nullptr;
  bool read_weakly = false;
  Fence last;       // of any scope
  Fence last_wide;  // of the device or the system
};

// A clock, and who read it: a thread of `block`. (Within a block, fences and atomics of
// block scope are enough, also where a release of wider scope passes the clock on later.)
struct Clock;
struct Known {
  const Clock* clock = nullptr;
  std::uint64_t block = 0;
  bool block_only = false;
  bool operator==(const Known&) const = default;
};
// What one finds out by reading a word that was written after a fence.
struct Release {
  std::uint64_t serial = 0;  // of no moment before it
  std::uint64_t block = 0;
  std::vector<Fence> fences, wide_fences;
  std::vector<Known> known, widely_known;  // by reading, before those fences
};
struct Clock {
  const Release* release = nullptr;
  const Clock* before = nullptr;  // of the read-modify-write operations before it on the word
  bool block_only = false;        // for threads of the block of `release`
  mutable std::uint64_t visit = 0;
  mutable std::vector<Known> visitors = {};
};

// A clock that a thread has read.
struct Reading {
  Moment at;
  const Clock* clock = nullptr;
  bool block_only = false;
  bool weak = false;  // by a volatile load: a fence or a barrier must follow
};

// One of several grids that are resident together. Blocks that have met in its barrier know of each
// other what they have read.
struct ResidentGrid {
  std::uint16_t number = 0;
  std::vector<Reading> readings;
};

// An access to 8 bytes of global memory.
struct WordAccess {
  enum class Kind : std::uint8_t {
    kRead,
    kWrite,
    kStrongRead,
    kStrongWrite,
    kUpdate,
    kBlockUpdate
  };
  Moment at;
  const void* pc = nullptr;
  std::uint32_t version = 0;  // how many strong writes to the word it has seen
  std::uint8_t bytes = 0;     // which of the eight, as bits
  Kind kind{};
};
struct Word {
  // Plain loads, volatile and atomic ones, and stores and updates: the last of each thread, in
  // order.
  std::vector<WordAccess> reads, strong_reads, writes;
  std::uint32_t version = 0;
  // Updates since the last plain store: whether of one block, which, and when it was last.
  bool updated = false, updated_by_several = false;
  std::uint64_t update_block = 0;
  std::uint32_t update_epoch = 0;
  std::uint32_t block = 0;  // shared memory: stamp of the block that this is about
};

// Memory that a launch touches, of which it writes some.
struct Region {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> before;  // its content before the first write
  WrittenBytes* written = nullptr;      // which of it is initialised, where that is known
  std::vector<std::uint64_t> written_before;
  unsigned cell_bytes = 4;  // per cell: the size of the elements, up to 8
  std::unique_ptr<std::uint64_t[], void (*)(void*)> cells{nullptr, std::free};
  std::vector<Word*> words;  // one per 8 bytes
};

// Of one launch; all its blocks share it.
class GlobalRaces {
 public:
  RaceMode mode = RaceMode::kFilter;
  bool one_worker = false;              // cells need no atomic updates
  std::atomic<bool> suspicious{false};  // by the filter: look closer
  // What was read without being watched is being written: the blocks that have not started need
  // not.
  std::atomic<bool> must_begin_again{false};
  bool relied_on_order = false;  // of atomic operations, see above
  std::uintptr_t raced = 0;      // kOrder: the word of the race that is reported
  std::string lost_update;       // kExplain: of its array; for the report
  // Whether blocks may have learnt of each other: by an atomic or volatile access to global memory.
  std::atomic<bool> communicates{false};

  // The region of the allocation at `begin`, about to be written, or to be watched, by an access to
  // `size` bytes.
  Region* touch(std::uintptr_t begin, std::size_t bytes, unsigned size, bool writes,
                WrittenBytes* written);
  // Loads are watched only where the kernel also writes what they read. Which those are is learnt:
  // an instruction that did reads `region` without being watched.
  static bool is_watched(const void* load);
  void read_unwatched(const void* load, std::uintptr_t begin);
  // Watches those that read what the launch wrote, from now on. False if there are none.
  bool watch_readers();
  // Memory is again as it was before the launch, and nothing has happened yet.
  void restore(RaceMode next_mode);
  // What is in the memory that the launch has written, in any of its runs.
  std::vector<std::vector<std::byte>> written_memory() const;

  // --- kOrder: one thread of the host ---
  Word& word(Region& region, std::uintptr_t address);
  const Clock*& published(std::uintptr_t address) { return published_[address]; }
  // Reports of loads that raced unless their threads check them with atomicCAS: by block, thread
  // and word.
  using Load = std::tuple<std::uint64_t, unsigned, std::uintptr_t>;
  std::map<Load, std::string> unchecked;
  Release& add_release() {
    return releases_.emplace_back(Release{next_moment(), 0, {}, {}, {}, {}});
  }
  std::uint64_t next_moment() { return ++moments_; }
  const Clock* add_clock(const Release* release, const Clock* before, bool block_only);
  std::uint64_t next_visit() { return ++visits_; }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, Region> regions_;
  std::vector<std::pair<const void*, std::uintptr_t>> readers_;
  std::deque<Word> words_;
  std::deque<Release> releases_;
  std::deque<Clock> clocks_;
  std::unordered_map<std::uintptr_t, const Clock*> published_;
  std::uint64_t visits_ = 0, moments_ = 0;
};

}  // namespace simt
