// Data races within a launch: two accesses of two threads to one byte, of which one writes and not
// both are atomic, and which nothing orders. Not for use outside simt.
//
// A launch runs once or several times. First as it is scheduled, on all cores: per element of
// global and of shared memory a *cell* notes which kinds of access came from one thread, one warp,
// one block, or several, which is enough to say that two threads may have raced (filter). (Loads of
// what the launch does not write are not noted; where one turns out to be written, the launch
// begins again.) Mostly it ends and none may, and that is all. Else memory is restored, and the
// launch runs again, on one thread of the host, with blocks, warps and lanes in order. If it
// failed, it does so with the same checks, and a failure there is the verdict. If two threads may
// have raced, every access to what it writes is compared with those before it (happens-before), and
// a race that this finds is the verdict, if the launch does not fail in order without it. So the
// verdict on races depends neither on the schedule nor on the number of workers.
//
// Accesses are ordered by: the program order of a thread; __syncthreads; __syncwarp; a barrier of
// the grid; and, between any threads, release and acquire: a fence followed by an atomic operation
// or a volatile store on one side, and on the other an atomic operation that reads what this wrote,
// or a volatile load that does, followed by a fence or a barrier. (Of another block's, a load
// without a fence is a race if an L1 cache may hold what it finds: if a block has loaded the sector
// before the store.) Atomic operations are also ordered with those before them at their address.
// A load by __ldg() or through a texture is for what no thread of the launch writes: behind a store
// it is reported, whatever orders the two. Where only atomics kept two accesses apart, one
// more run, in reverse, shows whether it was luck.
//
// A race that is reported is explained: the launch runs once more, with its lanes in lockstep. What
// the two threads do to the word says what the remedy is, and the first update in the array that
// another lane of the warp overwrites is told.
//
// As in CUDA's own examples, a plain load of a word that is also updated by atomics is not reported
// if the thread then checks what it read with atomicCAS. (By CUDA's memory model it is a race.)
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/engine.hpp"
#include "simt/profile.hpp"

namespace simt {

class Block;
struct Lane;
class WrittenBytes;

// kOverlook: blocks run in order, as with kOrder, and what they write is remembered, no more.
// kExplain: so, too, and what the threads of a race do to its word is noted, and lost updates of
// the array.
enum class RaceMode : std::uint8_t { kFilter, kOrder, kOverlook, kExplain };

// What an access is when it meets one of another thread.
enum class Strength : std::uint8_t {
  kPlain,
  kVolatile,  // a relaxed atomic load or store, as on the GPU
  kBlock,     // an atomic operation or store, for the threads of its block alone
  kCompare,   // atomicCAS
  kReadOnly,  // a load by __ldg(), for what no thread of the launch writes
};

// A point in the execution of a thread. `phase` counts the barriers of its grid, `epoch` those of
// its block, `step` what the thread itself did.
struct Moment {
  std::uint64_t block = 0;
  std::uint32_t phase = 0, epoch = 0, step = 0;
  std::uint16_t grid = 0;  // of co-resident ones
  std::uint16_t thread = 0;

  bool same_thread(const Moment& other) const {
    return block == other.block && thread == other.thread;
  }
};

// Of each lane of a warp, which of its steps are over: all up to this one.
using Steps = std::array<std::uint32_t, kWarpSize>;

// A vector clock: which moments are over for a thread that learnt of them by atomic operations or
// volatile loads. Of each grid, the number of its phases; of each block, 32 neighbours together,
// that of its epochs, and of each thread's steps. One comparison of epochs settles most of them (as
// in Flanagan and Freund, "FastTrack", 2009). Clocks do not change once they are made, and share
// what they have in common; null: nothing.
template <typename T>
using Counts = std::shared_ptr<const std::vector<T>>;
using Clock = Counts<Counts<Counts<std::uint32_t>>>;

// What a thread acquires by reading a word that was released after a fence. An atomic operation
// continues the release sequence of the word, and a plain store ends it.
struct Release {
  Clock all;                              // for its readers
  std::map<std::uint64_t, Clock> blocks;  // only threads of a block
  std::uint16_t grid = 0;                 // of the thread that released it last
};

// What a thread knows of others', and what it tells those who read what it writes: what it knew at
// a fence. Threads of a block learn of each other's at barriers.
struct Knowledge {
  // The release read last, and how: a loop that polls reads it again and again.
  std::tuple<std::shared_ptr<const Release>, bool, bool> read;
  Clock known;
  Clock pending;      // read by volatile loads: known from the next fence or barrier on;
  Clock from_others;  // likewise of other blocks, and known from the next wide fence on;
  Clock from_grid;    // of another grid: a barrier does nothing towards that
  // Of other blocks, read by atomics, or by volatile loads before a barrier: without a wide fence
  // the L1 cache may still hold what was loaded before.
  Clock unfenced;
  Clock told_block, told_all;  // by fences of any scope, and by those that are wider than the block

  // A fence, and what came `before` it.
  void fence(const Clock& before, bool wide);
  // Adds what `other` knows and tells, at a barrier: what it read by volatile loads counts, too.
  void meet(const Knowledge& other);
};

// One of several grids that are resident together, and what its blocks knew when they came to its
// barrier, to every other one. (None comes to the next but one before all have left this one.)
struct ResidentGrid {
  std::uint16_t number = 0;
  Clock known[2];
};

// What an access to 8 bytes of memory does.
enum class Kind : std::uint8_t { kRead, kWrite, kStrongRead, kStrongWrite, kUpdate, kBlockUpdate };

// An access to 8 bytes of memory.
struct WordAccess {
  Moment at;
  const void* pc = nullptr;
  std::uint32_t version = 0;  // how many strong writes to the word it has seen
  std::uint8_t bytes = 0;     // which of the eight, as bits
  Kind kind{};

  bool is_strong() const { return kind != Kind::kRead && kind != Kind::kWrite; }
  bool reads_only() const { return kind == Kind::kRead || kind == Kind::kStrongRead; }
  bool updates() const { return kind == Kind::kUpdate || kind == Kind::kBlockUpdate; }
  // Whether the two are a race unless they are ordered.
  bool conflicts(const WordAccess& other) const;
};

// Which blocks have done something to a word: none, one, or several.
struct Blocks {
  bool any = false, several = false;
  std::uint64_t last = 0;

  void add(std::uint64_t block) {
    several |= any && last != block;
    any = true;
    last = block;
  }
  bool beside(std::uint64_t block) const { return any && (several || last != block); }
};

// The accesses to a word with which a later one may race.
struct Word {
  std::uintptr_t address = 0;
  // Plain loads, volatile and atomic ones, and stores and updates: the last of each thread, in
  // order.
  std::vector<WordAccess> reads, strong_reads, writes;
  std::uint32_t version = 0;
  Blocks updated;                  // since the last plain store,
  std::uint32_t update_epoch = 0;  // and when last
  Blocks loaded;                   // so that their L1 caches may hold it
  // Whether one other than that of the last store or update had loaded it before that (or another
  // word of the sector).
  bool may_be_stale = false;

  void add(WordAccess access);
  // `thread` checks by atomicCAS what it has loaded.
  void forget_loads(const Moment& thread);
  // Whether an atomic operation was the last to write, and only luck or an order that other
  // accesses make keeps a plain access at `at` behind it.
  bool is_updated_beside(const Moment& at) const {
    return updated.any && (updated.beside(at.block) || update_epoch == at.epoch);
  }
};

// A race that is reported: `size` bytes at `address`, and two threads.
struct Race {
  struct Thread {
    std::uint64_t block = 0;
    unsigned number = 0;  // in it
    std::string name = {};
    // What it does to the word, while the race is explained; `changes`: it stores after it loaded.
    bool loads = false, stores = false, changes = false, updates_atomically = false;
    bool reads_first = false, reads_then_updates = false, updates_for_block = false;
    std::map<const void*, unsigned> barriers = {};  // how often it came to each
  };

  std::string report;
  std::string missing;    // what would order the two accesses; part of the report
  bool has_flag = false;  // all but a fence is there
  std::uintptr_t address = 0;
  unsigned size = 0;
  bool shared = false;
  Thread threads[2];
  std::string lost_update;  // in the same array

  std::string explanation() const;
};

// An array of global memory that a launch touches and may write, or a shared variable.
struct Region {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> before;  // global: its content before the first write
  WrittenBytes* written = nullptr;      // which of it is initialised, where that is known
  std::vector<unsigned char> written_before;
  unsigned cell_bytes = 4;  // per cell: the size of the elements, up to 8
  std::unique_ptr<std::uint64_t[], void (*)(void*)> cells{nullptr, std::free};
  // kOrder: the accesses to each 8 bytes, and what their last release tells, by address.
  std::vector<std::unique_ptr<Word>> words;
  std::unordered_map<std::uintptr_t, std::shared_ptr<const Release>> published;

  // Makes the cells, unless it has them: the first access is of `size` bytes.
  void begin_cells(std::uintptr_t its_begin, std::size_t its_bytes, unsigned size);
  Word& word(std::size_t index);
  // Whether an L1 cache may hold the sector of this word, beside that of `block`.
  bool is_cached_beside(std::size_t index, std::uint64_t block) const;
  void forget_order();
};

// Shuffles of a launch that read from a lane which does not take part. CUDA leaves their results
// undefined: a kernel may drop them, but what it does may not depend on them; see
// Check::vary_shuffles().
class UndefinedShuffles {
 public:
  // What one may have for a result, beside a NaN or a negative number.
  enum class Result : std::uint8_t { kOwnValue, kLargeNumber };
  struct Read {
    const void* pc;
    std::string report;
  };

  bool any() const { return any_; }
  // While one worker runs the launch: the first read of each instruction.
  bool collecting = false;
  std::vector<Read> reads;
  // The instructions that have `result`; all others have a NaN or a negative number.
  std::vector<const void*> varied;
  Result result{};

  // The result for `lane`, which reads from `source`.
  std::uint64_t read(const Block& block, const Lane& lane, unsigned source);

 private:
  std::atomic<bool> any_{false};
};

// Of one launch; all its blocks share it.
class GlobalRaces {
 public:
  UndefinedShuffles shuffles;
  RaceMode mode = RaceMode::kFilter;
  bool one_worker = false;              // cells need no atomic updates
  std::atomic<bool> suspicious{false};  // by the filter: look closer
  // What was read without being watched is being written: the blocks that have not started need
  // not.
  std::atomic<bool> must_begin_again{false};
  bool relied_on_order = false;  // of atomic operations, see above
  Race race;                     // that kOrder has found; address 0: none
  // Of a kernel that may start before the previous one of its stream has completed: what that one
  // has touched, with which accesses are compared until the thread waits for it.
  const GlobalRaces* previous = nullptr;
  const void* kernel = nullptr;  // whose launch this is

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
  // The launch has ended, and will not be restored.
  void forget_contents();
  // "writes" or "reads", what the launch has done to `size` bytes of the array at `begin`, if an
  // access to them by the next kernel is a race with it; else null. (An array that the launch has
  // not written may count as read as a whole.)
  const char* conflict_with(std::uintptr_t begin, std::size_t offset, unsigned size,
                            Access access) const;

  // --- kOrder: one thread of the host ---
  // Reports of loads that raced unless their threads check them with atomicCAS: by block, thread
  // and word.
  using Load = std::tuple<std::uint64_t, unsigned, std::uintptr_t>;
  std::map<Load, Race> unchecked;
  static Load load_of(const Moment& at, const Word& word) {
    return {at.block, at.thread, word.address};
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, Region> regions_;
  std::vector<std::pair<const void*, std::uintptr_t>> readers_;
};

}  // namespace simt
