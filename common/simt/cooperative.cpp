#include "simt/cooperative.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "simt/cuda_atomic.hpp"
#include "simt/random.hpp"

namespace simt {
namespace {

constexpr unsigned kIdlePasses = 8, kIdleVisits = 3;  // of a block, before it is a deadlock
constexpr std::size_t kNamedWaits = 8;
constexpr std::uint64_t kHeldNumbers = 32;  // random ones, before another block is held back

}  // namespace

// --- Running ------------------------------------------------------------------------------------

Outcome Gang::run(const std::vector<Grid>& grids, const std::vector<cudaStream_t>& streams) {
  const DeviceMemoryAccess access;
  std::vector<const Grid*> launched;
  for (const Grid& grid : grids) launched.push_back(&grid);
  return run_launch(launched, true, 1, [&](const Attempt& attempt, unsigned) {
    Recorder* const recorder = attempt.is_replay ? nullptr : active_recorder();
    for (std::size_t i = 0; recorder && i < grids.size(); ++i) {
      const OnStream on(streams[i]);
      recorder->start_launch(grids[i]);
    }
    return Gang(grids, attempt).run();
  });
}

Gang::Gang(const std::vector<Grid>& grids, const Attempt& attempt)
    : schedule_(attempt.schedule), races_(attempt.races), residents_(grids.size()) {
  for (const Grid& grid : grids) {
    const std::size_t number = grids_.size();
    residents_[number].number = static_cast<std::uint16_t>(number);
    grids_.emplace_back(grid, attempt).resident = &residents_[number];
    const auto blocks = static_cast<unsigned>(count_of(grid.grid));
    barriers_.push_back({0, 0, blocks});
    for (unsigned b = 0; b < blocks; ++b) {
      Seat& seat = seats_.emplace_back();
      seat.grid = number;
      seat.block_number = b;
    }
  }
  live_ = static_cast<unsigned>(seats_.size());
}

Ending Gang::run() {
  const unsigned count = live_;
  std::vector<std::future<void>> ends;
  for (unsigned seat = 0; seat < count; ++seat) {
    ends.push_back(on_thread([this, seat] { work(seat); }));
  }
  seats_[next_after(count - 1)].baton.release();
  for (std::future<void>& end : ends) end.get();
  return ending_;
}

void Gang::work(unsigned number) {
  Seat& seat = seats_[number];
  seat.baton.acquire();
  if (!has_ended()) {
    seat.block = &own_block();
    seat.block->sit_down(this, number);
    seat.block->start_grid(grids_[seat.grid]);
    seat.block->run(seat.block_number);
    seat.block->end_grid();
    seat.block->sit_down(nullptr, 0);
    const GridState& grid = grids_[seat.grid];
    if (grid.failed()) fail(grid.ending());
  }
  seat.done = true;
  note_progress();
  --live_;
  if (live_ > 0) {
    seats_[next_after(number)].baton.release();
  } else {
    while (!late_.empty()) show(late_.size() - 1);
  }
}

// The first failure ends all grids.
void Gang::fail(const Ending& ending) {
  if (ending_.failed()) return;
  ending_ = ending;
  for (GridState& grid : grids_) grid.fail(ending.outcome, ending.failure);
}

bool Gang::has_ended() const {
  return ending_.failed() || (races_ && races_->must_begin_again);
}

std::string Gang::name_of(unsigned number) const {
  const Seat& seat = seats_[number];
  const Grid& grid = grids_[seat.grid].grid();
  const std::string name = name_of_block(seat.block_number, grid.grid);
  return grids_.size() == 1 ? name : name + " of device " + std::to_string(grid.device);
}

std::uint64_t Gang::random() {
  return mix64(settings().seed * kGoldenGamma + ++random_numbers_);
}

// With every fourth seed one block, another now and then, waits while any other can go on: what it
// has not read yet must not be overwritten, however far the others get.
const Gang::Seat* Gang::held_back() const {
  const std::uint64_t seed = settings().seed;
  if (seed % 4 != 0 || live_ < 2 || idle_passes_ > live_) return nullptr;
  const Seat& seat = seats_[mix64(seed + random_numbers_ / kHeldNumbers) % seats_.size()];
  return seat.done ? nullptr : &seat;
}

unsigned Gang::next_after(unsigned seat) {
  const auto count = static_cast<unsigned>(seats_.size());
  if (schedule_ == Schedule::kRandom) {
    const Seat* const held = held_back();
    auto nth = static_cast<unsigned>(random() % (live_ - (held ? 1 : 0)));
    for (unsigned i = 0;; ++i) {
      if (!seats_[i].done && &seats_[i] != held && nth-- == 0) return i;
    }
  }
  const unsigned step = schedule_ == Schedule::kReverse ? count - 1 : 1;
  do seat = (seat + step) % count;
  while (seats_[seat].done);
  return seat;
}

bool Gang::pass(unsigned number, bool progressed) {
  Seat& seat = seats_[number];
  if (has_ended()) return false;
  if (grids_[seat.grid].failed()) return fail(grids_[seat.grid].ending()), false;
  for (std::size_t i = late_.size(); i-- > 0;) {
    if (random() % 4 != 0) continue;
    std::swap(late_[i], late_[i + random() % (late_.size() - i)]);
    show(i);
    progressed = true;
  }
  if (progressed) note_progress();
  ++seat.visits;
  if (++idle_passes_ > 1ull * kIdlePasses * live_ && late_.empty() &&
      std::all_of(seats_.begin(), seats_.end(),
                  [](const Seat& s) { return s.done || s.visits >= kIdleVisits; })) {
    report_deadlock();
    return false;
  }
  const unsigned next = next_after(number);
  if (next != number) {
    seats_[next].baton.release();
    seat.baton.acquire();
  }
  return !has_ended();
}

void Gang::note_progress() {
  idle_passes_ = 0;
  for (Seat& other : seats_) other.visits = 0;
}

void Gang::report_deadlock() {
  std::string text = "kernel " + kernel_name(grids_[0].grid().kernel) +
                     ": deadlock: no block can go on before another one does";
  std::size_t named = 0;
  for (const Seat& seat : seats_) {
    if (seat.done) continue;
    if (++named > kNamedWaits) break;
    text += "\n  device " + std::to_string(grids_[seat.grid].grid().device) + ", " +
            seat.block->describe_wait();
  }
  if (live_ > kNamedWaits) text += "\n  and " + std::to_string(live_ - kNamedWaits) + " more";
  fail({Outcome::kFailed, text});
}

std::uint64_t Gang::arrive(unsigned seat) {
  GridBarrier& barrier = barriers_[seats_[seat].grid];
  for (LateStore& store : late_) store.released |= store.seat == seat;
  const std::uint64_t generation = barrier.generation;
  if (++barrier.arrived == barrier.blocks) {
    barrier.arrived = 0;
    ++barrier.generation;
  }
  return generation;
}

// --- Late stores --------------------------------------------------------------------------------

void Gang::set_aside(const Lane& lane, std::uintptr_t address, unsigned size,
                     const std::byte* old) {
  if (Recorder* const recorder = active_recorder()) recorder->finish_store();
  LateStore store{lane.block->seat(),
                  &lane,
                  address,
                  size,
                  lane.block->barriers(),
                  lane.block->warp_of(lane).syncs};
  auto* const memory = reinterpret_cast<std::byte*>(address);
  std::memcpy(store.bytes, memory, size);
  // (A structure is announced piece by piece before any is stored: such pieces are visible at
  // once.)
  if (std::memcmp(store.bytes, old, size) == 0) return mark_written(address, size);
  std::memcpy(memory, old, size);
  late_.push_back(store);
}

void Gang::show(std::size_t which) {
  const LateStore store = late_[which];
  late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(which));
  std::memcpy(reinterpret_cast<void*>(store.address), store.bytes, store.size);
  mark_written(store.address, store.size);
}

void Gang::forward(unsigned seat, std::uintptr_t address, unsigned size) {
  for (std::size_t i = late_.size(); i-- > 0;) {
    const LateStore& store = late_[i];
    const bool overlap = store.address < address + size && address < store.address + store.size;
    if (store.seat == seat && overlap) show(i);
  }
}

bool Gang::precedes(const LateStore& store, const Lane& lane) const {
  if (store.seat != lane.block->seat()) return false;
  return store.in_block || store.lane == &lane || store.barriers < lane.block->barriers() ||
         (store.lane->warp == lane.warp && store.syncs < lane.block->warp_of(lane).syncs);
}

void Gang::fence(const Lane& lane, Scope scope) {
  const std::size_t own = seats_[lane.block->seat()].grid;
  const int device = grids_[own].grid().device;
  for (std::size_t i = late_.size(); i-- > 0;) {
    LateStore& store = late_[i];
    store.in_block |= precedes(store, lane);
    if (scope == Scope::kBlock) continue;
    store.released |= store.in_block && store.seat == lane.block->seat();
    const int its_device = grids_[seats_[store.seat].grid].grid().device;
    if (scope == Scope::kSystem && store.released && its_device == device) show(i);
  }
}

// --- What kernels call --------------------------------------------------------------------------

namespace {

// An atomic access of `lane`, about to be made.
void announce(Lane& lane, std::uintptr_t address, unsigned size, Access access, Scope scope,
              const void* pc) {
  Block& block = *lane.block;
  lane.pc = pc;
  Block::settle(lane);
  const bool of_block = access == Access::kStore && scope == Scope::kBlock;
  block.observer().access(lane, address, size, access,
                          of_block ? Strength::kBlock : Strength::kVolatile, pc);
  Block::settle(lane);
  if (Gang* const gang = block.gang()) gang->forward(block.seat(), address, size);
}

std::uint64_t load(const void* address, unsigned size) {
  return size == 4 ? __atomic_load_n(static_cast<const std::uint32_t*>(address), __ATOMIC_RELAXED)
                   : __atomic_load_n(static_cast<const std::uint64_t*>(address), __ATOMIC_RELAXED);
}

}  // namespace

std::uint64_t atomic_load(const void* address, unsigned size, bool acquire, Scope scope) noexcept {
  Lane& lane = *current_lane;
  const void* const pc = SIMT_CALLER();
  const bool in_gang = lane.block->gang() != nullptr;
  // A lane that polls lets others run before it looks again.
  if (in_gang && lane.polled == address && lane.seen == load(address, size)) {
    lane.pc = pc;
    lane.block->yield(lane);
  }
  announce(lane, address_of(address), size, Access::kLoad, scope, pc);
  const std::uint64_t value = load(address, size);
  if (!in_gang && lane.polled == address && lane.seen == value) lane.block->polled(lane, pc);
  if (!lane.finds_again(address, value)) lane.block->changed();
  lane.polled = address;
  lane.seen = value;
  if (acquire) {
    std::atomic_thread_fence(std::memory_order_acquire);
    lane.block->observer().races.fence(lane, scope);
  }
  return value;
}

void atomic_store(void* address, std::uint64_t value, unsigned size, bool release,
                  Scope scope) noexcept {
  Lane& lane = *current_lane;
  const std::uintptr_t place = address_of(address);
  if (release) lane.block->observer().races.fence(lane, scope);
  announce(lane, place, size, Access::kStore, scope, SIMT_CALLER());
  if (Recorder* const recorder = active_recorder()) recorder->finish_store(value);
  Gang* const gang = lane.block->gang();
  if (gang && release) {
    gang->fence(lane, scope);
    lane.block->yield(lane);
  }
  lane.polls = 0;
  std::byte old[8];
  std::memcpy(old, address, size);
  if (size == 4) {
    __atomic_store_n(static_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(value),
                     __ATOMIC_RELAXED);
  } else {
    __atomic_store_n(static_cast<std::uint64_t*>(address), value, __ATOMIC_RELAXED);
  }
  lane.block->changed();
  if (gang && !release && lane.block->is_late(place)) gang->set_aside(lane, place, size, old);
}

void grid_sync() noexcept {
  Lane& lane = *current_lane;
  Block& block = *lane.block;
  const void* const pc = SIMT_CALLER();
  lane.pc = pc;
  Gang* const gang = block.gang();
  if (!gang) {
    const Unobserved unobserved;
    block.fail(lane, "grid sync in a kernel that was not launched as a cooperative one", pc);
  }
  block.barrier(lane, Barrier::kPlain, 0);
  if (lane.thread.x == 0 && lane.thread.y == 0 && lane.thread.z == 0) {
    block.observer().races.grid_arrives();
    const std::uint64_t generation = gang->arrive(block.seat());
    block.changed();
    lane.at_grid_barrier = true;
    while (!gang->is_open(block.seat(), generation)) {
      lane.pc = pc;
      block.yield(lane);
    }
    lane.at_grid_barrier = false;
    block.changed();
    block.observer().races.grid_synchronized();
  }
  lane.pc = pc;
  block.barrier(lane, Barrier::kPlain, 0);
}

}  // namespace simt
