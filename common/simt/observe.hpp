// Watching what the lanes of a block do: every access is checked, compared with those of other
// lanes, and counted. Not for use outside simt.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/lanes.hpp"
#include "simt/memory.hpp"
#include "simt/races.hpp"
#include "simt/recorder.hpp"

namespace simt {

class GridState;

// What one instruction did to one array.
struct Tally : Target {
  Strength strength;
  Tally* next;           // of the same instruction
  std::uint32_t number;  // among all of the Observer's, from 1 on
  std::uint32_t place;   // of the instruction
  bool counted = true;
  WrittenBytes* written = nullptr;     // null: all of the array
  Region* region = nullptr;            // null: no races are looked for
  bool draws = false, merges = false;  // see Observer::note_draw()
  AccessCounts counts = {};

  bool is_global() const { return space == Space::kGlobal || space == Space::kPeer; }
  bool is_load_only() const {  // on the path for what the launch does not write
    return access == Access::kTexture || strength == Strength::kReadOnly;
  }
  // "reads 4 bytes, 8 bytes into 'x'".
  std::string describe(std::uintptr_t address) const;
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
  std::uintptr_t last = 0;  // address that it last touched
  // Schedule::kLockstep: those that each lane of the warp last touched.
  std::unique_ptr<std::array<std::uintptr_t, kWarpSize>> last_of_lanes = nullptr;
  Tally* tally = nullptr;    // of that array; null if it is not one to count
  Tally* tallies = nullptr;  // of all arrays that it has touched
};

// What an access touches: reports that the kernel may not, that the address is not aligned, and
// that what is read was never written.
class AccessCheck {
 public:
  // `shared`: the shared variables of the grid's kernel.
  void start(const GridState& state, const std::vector<SharedVariable>& shared);
  void start_block();
  // Schedule::kLockstep: whether `lane` waits for those of its warp before it touches `address`.
  bool waits_for_warp(const Lane& lane, std::uintptr_t address) const {
    return lockstep_ && !is_of_lane(lane, address);
  }
  // An access that is not aligned to its size.
  struct Unaligned {
    Access access{};
    const void* pc = nullptr;
    std::uintptr_t address = 0;
  };
  // (Of 16 bytes only the processor knows whether they must be aligned: a structure of two numbers
  // of 8 bytes is announced like a vector, but loaded in another way.)
  void unaligned(Lane& lane, unsigned size, const Unaligned& access) {
    if (size < 16 || access.address % 8 != 0) reject_misaligned(lane, size, access);
    half_aligned_ = access;
  }
  Instruction& instruction(const void* pc, unsigned size, Access access,
                           Strength strength = Strength::kPlain) {
    Instruction* const guess = found_[slot_of(pc)];
    if (guess && guess->pc == pc && guess->size == size) return *guess;
    return look_up(pc, size, access, strength);
  }
  // Finds what `address` is part of, or reports that the kernel may not touch it. Whether that is
  // an array that the instruction has not touched before.
  bool classify(Lane& lane, Instruction& instruction, std::uintptr_t address);
  // Notes what is stored, and reports what is loaded and was not.
  void written(Lane& lane, const Tally& tally, std::uintptr_t address);
  // A barrier or warp operation, called `name`.
  const Tally& meeting(const void* pc, Access access, const char* name);
  [[noreturn]] void reject(Lane& lane, const Instruction& instruction, std::uintptr_t address);
  // The instruction at `pc` is about to touch what is no part of the variable that it names.
  [[noreturn]] static void reject_outside(Lane& lane, bool is_store, const void* pc);
  // The processor could not execute the instruction at `pc`, which names `address`, if any.
  [[noreturn]] void reject_fault(Lane& lane, Fault fault, const void* pc, std::uintptr_t address);

  std::deque<Tally> tallies;  // of all instructions

 private:
  std::size_t slot_of(const void* pc) const {
    const std::uintptr_t key = address_of(pc);
    return (key ^ key >> 6) % std::tuple_size_v<decltype(found_)>;
  }
  Instruction& look_up(const void* pc, unsigned size, Access access, Strength strength);
  bool is_of_lane(const Lane& lane, std::uintptr_t address) const;
  std::string describe_place(const Lane& lane, std::uintptr_t address) const;
  [[noreturn]] void reject_misaligned(Lane& lane, unsigned size, const Unaligned& access);
  Tally& add_tally(Instruction& instruction, Space space, const std::string& array);

  const Grid* grid_ = nullptr;
  const std::vector<SharedVariable>* shared_ = nullptr;
  bool lockstep_ = false, check_uninitialised_ = false;
  std::map<std::pair<const void*, unsigned>, Instruction> instructions_;  // by address and size
  std::array<Instruction*, 4096> found_{};  // the last one with each hash of the address
  std::deque<std::string> names_;           // of meetings, and of the program's variables
  std::map<const SharedVariable*, WrittenBytes> shared_written_;  // of those that were touched
  const SharedVariable* dynamic_ = nullptr;  // the `extern __shared__` array that lanes have used
  Unaligned half_aligned_;  // the last access to 16 bytes that was aligned to 8: see unaligned()
};

// Looks for races of the block's lanes with each other and with those of other blocks; races.hpp.
class RaceCheck {
 public:
  void start(GridState& state, unsigned threads, const std::deque<Tally>& tallies);
  void start_block(std::uint64_t id);
  // Looks for races in what `tally` touches, if the kernel is known to write there.
  void watch(Tally& tally);
  void access(Lane& lane, const Tally& tally, std::uintptr_t address) {
    if (races_ && races_->previous && !lane.waited) compare_with_previous(lane, tally, address);
    if (tally.region) look(lane, tally, address);
  }
  void fence(Lane& lane, Scope scope);
  // `lane` is at the barrier at `pc`.
  void meet(const Lane& lane, const void* pc);
  // Lanes of a warp, perhaps all, have done with __syncwarp, all threads of the block with a
  // barrier.
  void warp_synchronized(unsigned warp, unsigned mask, bool all);
  void block_synchronized();
  // The running block is at the barrier of its grid; the blocks of the grid have met.
  void grid_arrives();
  void grid_synchronized();
  // After the last block: by whom the kernel's own output is read, to GlobalRaces.
  void end_grid();

 private:
  void look(Lane& lane, const Tally& tally, std::uintptr_t address);
  void compare_with_previous(Lane& lane, const Tally& tally, std::uintptr_t address);
  void filter(const Lane& lane, const Tally& tally, std::uintptr_t address);
  void compare_with_earlier(Lane& lane, const Tally& tally, std::uintptr_t address);
  void compare(Lane& lane, const Tally& tally, std::uintptr_t address, const WordAccess& access,
               const Word& word, const std::vector<WordAccess>& earlier);
  Moment next_step(const Lane& lane);
  bool is_over(const Moment& moment, const Lane& lane) const;
  std::uint32_t& step_of(const Lane& lane) { return clocks_[lane.warp][lane.id][lane.id]; }
  Knowledge& knowledge(const Lane& lane);
  void join_warp(unsigned warp, unsigned mask);
  bool saw_last_write(const Word& word, Kind kind, const Lane& lane) const;
  void acquire(const Lane& lane, const std::shared_ptr<const Release>& release, bool block_only,
               bool weak);
  std::shared_ptr<const Release> release(const Lane& lane, bool block_only,
                                         const std::shared_ptr<const Release>& before);
  void reject_load_only(Lane& lane, const Tally& tally, std::uintptr_t address, const Word& word);
  Race::Thread* racing_thread(const Lane& lane);
  void explain(const Lane& lane, const Tally& tally, std::uintptr_t address);
  Race race_with(const WordAccess& other, const Lane& lane, const Tally& tally,
                 std::uintptr_t address) const;

  GridState* state_ = nullptr;
  GlobalRaces* races_ = nullptr;
  RaceMode mode_ = RaceMode::kOverlook;
  ResidentGrid* resident_ = nullptr;  // if the grid is one
  bool counted_ = false;              // so that the launch cannot begin again
  const std::deque<Tally>* tallies_ = nullptr;
  std::map<std::uintptr_t, Region> shared_;  // shared variables that were touched, by first byte
  std::uint64_t block_ = 0;
  std::uint32_t phase_ = 0, epoch_ = 0;  // see Moment
  // While filtering: numbers of intervals between meetings of lanes. `intervals_`: of each warp,
  // the one that began when all its lanes met last.
  std::vector<std::uint64_t> intervals_;
  std::uint64_t interval_ = 0, barrier_ = 0;  // the last one of any warp, of a block's barrier
  // While ordering or explaining. Which steps of each lane a lane of its warp knows to be over; of
  // itself, all that it made.
  std::vector<std::array<Steps, kWarpSize>> clocks_;
  // What all threads of the block know, and what each one has learnt since the last barrier. (Most
  // learn nothing.)
  Knowledge common_;
  std::unordered_map<unsigned, Knowledge> learnt_;
  // While a race is explained. Of words, by address: the last store by a warp of the running block,
  // and the lanes of the warp that have loaded the word, since then and at all.
  struct Update {
    const void* pc = nullptr;  // null: none
    std::uint32_t epoch = 0, step = 0;
    std::uint32_t seen_by = 0, read_by = 0;
    std::uint16_t warp = 0;
    std::uint8_t lane = 0;
  };
  std::unordered_map<std::uintptr_t, Update> updates_;
};

// Notes what lanes do in their trails, and counts the requests of their warps; lineup.cpp.
class AccessCount {
 public:
  void start(const GridState& state, unsigned threads, std::deque<Tally>& tallies);
  void start_block(std::uint64_t number);
  bool counting() const { return counting_; }
  // Of `lane`, which runs from now on; null if nothing is counted.
  Trail* trail(const Lane& lane) {
    if (recorder_) recorder_->finish_store();
    return counting_ ? &trails_[lane.id] : nullptr;
  }
  // The running lane, whose trail that is, makes an access.
  void access(const Lane& lane, const Tally& tally, std::uintptr_t address) {
    current_trail->push_back({tally.place, tally.number, address});
    if (recorder_) recorder_->access(lane, address, tally.size, tally.access);
  }
  void meet(const Lane& lane, const Tally& tally) {
    trails_[lane.id].push_back({tally.place, tally.number, 0});
    if (recorder_) recorder_->meet(lane, tally.access);
  }
  // The warp operation at which `lane` waits has a result.
  void complete(const Lane& lane) {
    if (recorder_) recorder_->complete(lane);
  }
  void block_synchronized() {
    ++kernel_.barriers;
    if (recorder_) recorder_->block_synchronized();
  }
  // Counts what the lanes of `warp` have done since the last call.
  void line_up(unsigned warp);
  // That a warp of the running block has made, as far as they are counted.
  std::uint64_t requests_of(unsigned warp) const { return counting_ ? warps_[warp].requests : 0; }
  void end_block();
  // Adds what was counted to the profile.
  void end_grid();

 private:
  struct WarpCount {
    std::uint64_t requests = 0;    // of the running block
    std::uint64_t item_begin = 0;  // those before its last draw; see KernelCounts
  };
  void end_item(WarpCount& warp);
  void request(Tally& tally, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask,
               unsigned warp);
  void count(Tally& tally, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask,
             unsigned warp, AccessCounts* own);

  const Grid* grid_ = nullptr;
  std::deque<Tally>* tallies_ = nullptr;
  bool counting_ = false;
  CacheModel* caches_ = nullptr;
  Recorder* recorder_ = nullptr;
  std::uint64_t block_ = 0;
  std::vector<WarpCount> warps_;
  Trail trails_[kWarpSize];
  // The last request to global memory, until a basic block begins: see repeated_sectors.
  struct Touched {
    unsigned mask = 0;  // its lanes; 0: there is none
    std::uintptr_t array = 0;
    Access access{};
    std::vector<std::uint64_t> sectors;  // in ascending order
  } touched_;
  std::vector<std::uint64_t> lane_work_;  // accesses of each thread of the block
  KernelCounts kernel_;
  // By address: lanes' atomics, and the requests of warps that draw from an integer.
  std::unordered_map<std::uintptr_t, std::uint64_t> atomics_, draws_;
};

// Profile that is being taken, if any; see start_profile().
bool profile_active();
CacheModel* profile_caches();

// All three, of the block that runs on a thread of the host.
class Observer {
 public:
  AccessCheck check;
  RaceCheck races;
  AccessCount count;

  // `shared`: the shared variables of the grid's kernel; must live until the next start().
  void start(GridState& state, const std::vector<SharedVariable>& shared, unsigned threads);
  // `number`: in its grid. `id`: also among those of grids that are resident together.
  void start_block(std::uint64_t number, std::uint64_t id);
  void access(Lane& lane, std::uintptr_t address, unsigned size, Access access, Strength strength,
              const void* pc);
  // The atomic at `pc`, which has just been seen, updates an integer. `merges`: nvcc makes one of
  // those of a warp's lanes on one address, as it does with additions.
  void note_draw(const void* pc, unsigned size, bool merges);
  // `lane` is at a barrier or warp operation.
  void meet(Lane& lane, Access access, const char* name, const void* pc);
  // All threads of the block have met at a barrier.
  void block_synchronized() {
    races.block_synchronized();
    count.block_synchronized();
  }
};

}  // namespace simt
