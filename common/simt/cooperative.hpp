// Co-resident grids: what a cooperative launch promises, on several devices at once.
//
// Every block has a thread of the host and with it shared memory of its own, but one block runs at
// a time: the one that holds the baton. It passes the baton on when none of its threads can go on
// alone: when they poll memory, wait at a grid barrier, or pass a fence. Who is next follows from
// Settings::schedule and its seed, so a run is the same every time. At random, every fourth seed
// keeps one block waiting while any other can go on.
//
// Deadlock: every live block has had the baton several times, no wait has ended, no store or
// atomic has changed anything, and no late store is under way.
//
// Late stores (Settings::late_peer_stores): a store to another device's memory, plain or relaxed,
// is set aside and becomes visible when the baton is passed, in an order drawn at random. What
// orders it: the end of the grid, or a fence or release at system scope by a thread that comes
// after the store: the same thread, one behind a barrier of the block or warp, one behind a
// release at block scope in that block, or one behind a release at device scope. The block's own
// loads of such an address find the stored value. (Plain stores are seen in the instrumented build
// only.)
#pragma once

#include <semaphore.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "simt/block.hpp"

namespace simt {

class Gang {
 public:
  // All blocks of `grids`, of any devices, each to its end or to the first failure. `streams` are
  // the grids'.
  static Outcome run(const std::vector<Grid>& grids, const std::vector<cudaStream_t>& streams);
  static Ending run_once(const std::vector<Grid>& grids, const Attempt& attempt) {
    return Gang(grids, attempt).run();
  }

  // --- By the block at `seat`, which holds the baton ---

  // Lets others run. False: some block has failed, and this one is to stop.
  bool pass(unsigned seat, bool progressed);
  // Arrives at the grid's barrier; is_open() once all blocks of the grid have arrived.
  std::uint64_t arrive(unsigned seat);
  bool is_open(unsigned seat, std::uint64_t generation) const {
    return barriers_[seats_[seat].grid].generation != generation;
  }

  // Sets aside the `size` bytes that `lane` has just stored at `address`, where `old` was before.
  void set_aside(const Lane& lane, std::uintptr_t address, unsigned size, const std::byte* old);
  // Makes late stores of the block to any of these bytes visible.
  void forward(unsigned seat, std::uintptr_t address, unsigned size);
  // A fence or a release by `lane`.
  void fence(const Lane& lane, Scope scope);
  // Of the block at `seat`, in a report.
  std::string name_of(unsigned seat) const;

 private:
  Gang(const std::vector<Grid>& grids, const Attempt& attempt);

  // (std::binary_semaphore polls before it sleeps, which takes most of the time where hundreds of
  // blocks share a few cores.)
  class Baton {
   public:
    Baton() { sem_init(&semaphore_, 0, 0); }
    ~Baton() { sem_destroy(&semaphore_); }
    Baton(const Baton&) = delete;
    Baton& operator=(const Baton&) = delete;
    void release() { sem_post(&semaphore_); }
    void acquire() {
      while (sem_wait(&semaphore_) != 0) continue;
    }

   private:
    sem_t semaphore_;
  };
  struct Seat {
    Block* block = nullptr;  // of the thread that runs it; null before it has started
    std::size_t grid = 0;
    std::uint64_t block_number = 0;
    bool done = false;
    unsigned visits = 0;  // since something last changed
    Baton baton;
  };
  struct GridBarrier {
    std::uint64_t generation = 0;
    unsigned arrived = 0, blocks = 0;
  };
  struct LateStore {
    unsigned seat;
    const Lane* lane;
    std::uintptr_t address;
    unsigned size;
    unsigned barriers, syncs;  // of the block, of the warp, when it was made
    std::byte bytes[16] = {};
    bool in_block = false;  // released at block scope,
    bool released = false;  // at device scope
  };

  Ending run();
  void work(unsigned seat);
  void fail(const Ending& ending);
  bool has_ended() const;
  void show(std::size_t which);
  bool precedes(const LateStore& store, const Lane& lane) const;
  std::uint64_t random();
  const Seat* held_back() const;
  unsigned next_after(unsigned seat);
  void note_progress();
  void report_deadlock();

  const Schedule schedule_;
  const GlobalRaces* const races_;
  std::deque<GridState> grids_;
  std::vector<ResidentGrid> residents_;  // the grids'
  std::vector<GridBarrier> barriers_;
  std::deque<Seat> seats_;
  std::vector<LateStore> late_;
  unsigned live_ = 0;
  std::uint64_t idle_passes_ = 0;
  std::uint64_t random_numbers_ = 0;  // that have been drawn
  Ending ending_;
};

}  // namespace simt
