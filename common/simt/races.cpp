#include "simt/races.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <shared_mutex>

#include "simt/internal.hpp"

namespace simt {

// --- What a launch touches ----------------------------------------------------------------------

namespace {

std::shared_mutex watched_mutex;
std::set<const void*> watched;  // loads

}  // namespace

Region* GlobalRaces::touch(std::uintptr_t begin, std::size_t bytes, unsigned size, bool writes,
                           WrittenBytes* written) {
  const std::lock_guard lock(mutex_);
  Region& region = regions_[begin];
  if (!region.cells) {
    region.begin = begin;
    region.bytes = bytes;
    region.cell_bytes = std::min(size, 8u);
    region.cells.reset(static_cast<std::uint64_t*>(std::calloc(bytes / region.cell_bytes + 1, 8)));
    if (!region.cells) {
      std::fprintf(stderr, "error: no memory to look for races in %zu bytes\n", bytes);
      std::abort();
    }
  }
  // Every worker comes here before the first write of each of its instructions, and waits.
  if (writes && !region.before) {
    region.before = std::make_unique_for_overwrite<std::byte[]>(bytes);
    std::memcpy(region.before.get(), reinterpret_cast<const void*>(begin), bytes);
    region.written = written;
    if (written) region.written_before = written->save();
  }
  return &region;
}

bool GlobalRaces::is_watched(const void* load) {
  const std::shared_lock lock(watched_mutex);
  return watched.contains(load);
}

void GlobalRaces::read_unwatched(const void* load, std::uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  readers_.emplace_back(load, begin);
}

bool GlobalRaces::watch_readers() {
  const std::unique_lock lock(watched_mutex);
  bool found = false;
  for (const auto& [load, begin] : readers_) {
    const auto region = regions_.find(begin);
    if (region == regions_.end() || !region->second.before) continue;
    found |= watched.insert(load).second;
  }
  return found;
}

void GlobalRaces::restore(RaceMode next_mode) {
  mode = next_mode;
  suspicious = must_begin_again = false;
  for (auto& [begin, region] : regions_) {
    if (region.before) {
      std::memcpy(reinterpret_cast<void*>(begin), region.before.get(), region.bytes);
      if (region.written) region.written->restore(region.written_before);
    }
  }
  if (mode == RaceMode::kFilter) {
    // (Those that are read only have cells too.)
    for (auto& [begin, region] : regions_)
      std::memset(region.cells.get(), 0, (region.bytes / region.cell_bytes + 1) * 8);
  }
  for (auto& [begin, region] : regions_) region.words.clear();
  readers_.clear();
  words_.clear();
  releases_.clear();
  clocks_.clear();
  published_.clear();
  unchecked.clear();
}

std::vector<std::vector<std::byte>> GlobalRaces::written_memory() const {
  std::vector<std::vector<std::byte>> memory;
  for (const auto& [begin, region] : regions_) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(begin);
    if (region.before) memory.emplace_back(bytes, bytes + region.bytes);
  }
  return memory;
}

Word& GlobalRaces::word(Region& region, std::uintptr_t address) {
  if (region.words.empty()) region.words.resize(region.bytes / 8 + 1);
  Word*& word = region.words[(address - region.begin) / 8];
  if (!word) word = &words_.emplace_back();
  return *word;
}

const Clock* GlobalRaces::add_clock(const Release* release, const Clock* before, bool block_only) {
  return &clocks_.emplace_back(Clock{release, before, block_only});
}

// --- The filter ---------------------------------------------------------------------------------

namespace {

// A cell, from its lowest bits: kinds of access since the launch began (of `block`, or of several
// blocks), kinds in this epoch of the block (of `thread`, or of several threads), epoch, thread,
// block + 1. All ones: two threads may race.
enum Kinds : std::uint64_t { kReads = 1, kWrites = 2, kStrong = 4, kStrongWrites = 8 };
constexpr std::uint64_t kMayRace = ~std::uint64_t{0};
constexpr unsigned kNowShift = 4, kEpochShift = 8, kThreadShift = 26, kBlockShift = 37;
constexpr std::uint64_t kLastEpoch = (1u << (kThreadShift - kEpochShift)) - 1;
constexpr std::uint64_t kSeveralThreads = (1u << (kBlockShift - kThreadShift)) - 1;
constexpr std::uint64_t kSeveralBlocks = (1u << (64 - kBlockShift)) - 2;

// Whether accesses of these kinds by unordered threads can be a race.
bool conflict(std::uint64_t earlier, std::uint64_t kind) {
  if (!earlier) return false;
  if ((earlier | kind) & kWrites) return true;
  if (kind & kReads) return earlier & kStrong;
  return earlier & kReads || (earlier & kind & kStrongWrites);
}

}  // namespace

void Observer::filter(const Lane& lane, const Tally& tally, std::uintptr_t address) {
  std::uint64_t kinds = 0, wide_kinds = 0;  // as threads of the block see it, and of other blocks
  if (tally.access == Access::kAtomic) {
    kinds = kStrong;
    wide_kinds = tally.strength == Strength::kBlock ? kWrites : kStrong;
  } else {
    const bool stores = tally.access == Access::kStore;
    const bool strong = tally.strength == Strength::kVolatile;
    kinds = !strong ? (stores ? kWrites : kReads) : stores ? kStrong | kStrongWrites : kStrong;
    wide_kinds = kinds;
  }
  const std::uint64_t block = block_number_ + 1;
  const std::uint64_t thread = lane.warp * kWarpSize + lane.id;
  const std::uint64_t epoch = std::min<std::uint64_t>(epoch_ - first_epoch_, kLastEpoch);
  const auto cell_of = [epoch](std::uint64_t owner, std::uint64_t its_thread, std::uint64_t recent,
                               std::uint64_t all) {
    return owner << kBlockShift | its_thread << kThreadShift | epoch << kEpochShift |
           recent << kNowShift | all;
  };
  const std::uint64_t first_access =
      block >= kSeveralBlocks ? kMayRace : cell_of(block, thread, kinds, wide_kinds);
  const auto add_to = [&](std::uint64_t old) {
    const std::uint64_t owner = old >> kBlockShift, all = old & 15;
    if (owner != block) {
      if (conflict(all, wide_kinds)) return kMayRace;
      return kSeveralBlocks << kBlockShift | all | wide_kinds;
    }
    const std::uint64_t recent =
        (old >> kEpochShift & kLastEpoch) == epoch ? old >> kNowShift & 15 : 0;
    if (!recent || (old >> kThreadShift & kSeveralThreads) == thread) {
      return cell_of(block, thread, recent | kinds, all | wide_kinds);
    }
    if (conflict(recent, kinds)) return kMayRace;
    return cell_of(block, kSeveralThreads, recent | kinds, all | wide_kinds);
  };
  std::uint64_t* const cells = tally.region->cells.get();
  const unsigned cell_bytes = tally.region->cell_bytes;
  const std::size_t begin = (address - tally.begin) / cell_bytes;
  const std::size_t last = (address - tally.begin + tally.size - 1) / cell_bytes;
  for (std::size_t w = begin; w <= last; ++w) {
    const std::atomic_ref<std::uint64_t> cell(cells[w]);
    std::uint64_t old = cell.load(std::memory_order_relaxed), now = old;
    do {
      if (old == kMayRace) break;
      now = old == 0 || block >= kSeveralBlocks ? first_access : add_to(old);
      if (now != old && races_->one_worker) {
        cell.store(now, std::memory_order_relaxed);
        break;
      }
    } while (now != old && !cell.compare_exchange_weak(old, now, std::memory_order_relaxed));
    if (old == kMayRace || now == kMayRace)
      races_->suspicious.store(true, std::memory_order_relaxed);
  }
}

// --- Happens-before -----------------------------------------------------------------------------

bool Fence::covers(const Moment& moment) const {
  if (moment.grid == at.grid && moment.phase < at.phase) return true;
  if (moment.block != at.block) return false;
  if (moment.epoch != at.epoch) return moment.epoch < at.epoch;
  if (moment.warp != at.warp) return false;
  return moment.lane == at.lane ? moment.step <= at.step : moment.time < known[moment.lane];
}

namespace {

using Kind = WordAccess::Kind;
constexpr std::size_t kMaxLoadsToCheck = 4096;

Kind kind_of(Access access, Strength strength) {
  if (access == Access::kAtomic) {
    return strength == Strength::kBlock ? Kind::kBlockUpdate : Kind::kUpdate;
  }
  const bool stores = access == Access::kStore;
  if (strength == Strength::kVolatile) return stores ? Kind::kStrongWrite : Kind::kStrongRead;
  return stores ? Kind::kWrite : Kind::kRead;
}

bool is_strong(Kind kind) {
  return kind != Kind::kRead && kind != Kind::kWrite;
}
bool reads_only(Kind kind) {
  return kind == Kind::kRead || kind == Kind::kStrongRead;
}
bool updates(Kind kind) {
  return kind == Kind::kUpdate || kind == Kind::kBlockUpdate;
}

// Adds an access to those of its kind, of which only a thread's last one counts.
void add(std::vector<WordAccess>& list, const WordAccess& access) {
  const auto replaces = [](const WordAccess& b, const WordAccess& a) {
    return a.kind == b.kind && a.bytes == b.bytes && a.at.same_thread(b.at);
  };
  if (!list.empty() && replaces(access, list.back())) {
    list.back() = access;
    return;
  }
  if (list.size() == list.capacity() && list.size() >= 64) {
    std::vector<WordAccess> kept;
    std::set<std::tuple<std::uint64_t, unsigned, Kind, std::uint8_t>> seen;
    for (auto a = list.rbegin(); a != list.rend(); ++a) {
      const auto thread = static_cast<unsigned>(a->at.warp * kWarpSize + a->at.lane);
      if (seen.insert({a->at.block, thread, a->kind, a->bytes}).second) kept.push_back(*a);
    }
    list.assign(kept.rbegin(), kept.rend());
    list.reserve(2 * list.size());
  }
  list.push_back(access);
}

// Whether two accesses to one byte are a race unless they are ordered. (Two volatile stores are
// none by the memory model, but one of them is lost: they count as one.)
bool conflict(const WordAccess& a, const WordAccess& b) {
  if (!(a.bytes & b.bytes) || a.at.same_thread(b.at)) return false;
  if (reads_only(a.kind) && reads_only(b.kind)) return false;
  if (!is_strong(a.kind) || !is_strong(b.kind)) return true;
  if (a.kind == Kind::kStrongWrite && b.kind == Kind::kStrongWrite) return true;
  return a.at.block != b.at.block && (a.kind == Kind::kBlockUpdate || b.kind == Kind::kBlockUpdate);
}

}  // namespace

Moment Observer::now(const Lane& lane) const {
  Moment moment;
  moment.serial = races_->next_moment();
  moment.block = block_number_;
  moment.phase = phase_;
  moment.epoch = epoch_;
  moment.grid = resident_ ? resident_->number : 0;
  moment.time = warps_[lane.warp].time;
  moment.step = fences_[lane.warp * kWarpSize + lane.id].step;
  moment.warp = static_cast<std::uint16_t>(lane.warp);
  moment.lane = lane.id;
  return moment;
}

// Whether `moment` is over for `lane`, by program order, barriers and __syncwarp.
bool Observer::is_over(const Moment& moment, const Lane& lane) const {
  if (moment.block != block_number_) {
    return resident_ && moment.grid == resident_->number && moment.phase < phase_;
  }
  if (moment.epoch != epoch_) return true;
  if (moment.warp != lane.warp) return false;
  return moment.lane == lane.id || moment.time < warps_[lane.warp].known[lane.id][moment.lane];
}

// Whether `lane` comes after `reading`, and so knows what that tells.
bool Observer::has(const Lane& lane, const Reading& reading) const {
  if (!is_over(reading.at, lane)) return false;
  const Fences& own = fences_[lane.warp * kWarpSize + lane.id];
  const Moment& at = reading.at;
  return !reading.weak || !at.same_thread(now(lane)) || at.epoch != epoch_ ||
         (own.any && own.last.at.step > at.step) ||
         at.time < warps_[lane.warp].known[lane.id][lane.id];
}

// Whether `moment` came before a fence that `lane` knows of through atomic operations.
bool Observer::is_known(const Moment& moment, const Lane& lane) {
  constexpr std::size_t kTold = 64;
  std::vector<Told>& of_block = told_[moment.block];
  for (auto told = of_block.rbegin(); told != of_block.rend(); ++told) {
    if (told->fence->covers(moment) && has(lane, told->reading)) return true;
  }
  for (auto reading = readings().rbegin(); reading != readings().rend(); ++reading) {
    if (reading->at.serial < moment.serial) break;  // made before the access
    if (!has(lane, *reading)) continue;
    const Moment& at = reading->at;
    const std::uint64_t visit = races_->next_visit();
    std::vector<Known> rest{{reading->clock, at.block, reading->block_only}};
    while (!rest.empty()) {
      const Known reader = rest.back();
      rest.pop_back();
      for (const Clock* clock = reader.clock; clock; clock = clock->before) {
        const Known visitor{nullptr, reader.block, reader.block_only};
        if (clock->visit != visit) clock->visitors.clear();
        clock->visit = visit;
        if (std::find(clock->visitors.begin(), clock->visitors.end(), visitor) !=
            clock->visitors.end()) {
          break;
        }
        clock->visitors.push_back(visitor);
        const Release& release = *clock->release;
        if (release.serial < moment.serial) break;
        const bool own_block = release.block == reader.block;
        if ((clock->block_only || reader.block_only) && !own_block) continue;
        for (const Fence& fence : own_block ? release.fences : release.wide_fences) {
          if (!fence.covers(moment)) continue;
          if (of_block.size() == kTold)
            of_block.erase(of_block.begin(), of_block.begin() + kTold / 2);
          of_block.push_back({*reading, &fence});
          return true;
        }
        const auto& known = own_block ? release.known : release.widely_known;
        rest.insert(rest.end(), known.begin(), known.end());
      }
    }
  }
  return false;
}

void Observer::fence(Lane& lane, Scope scope) {
  if (!ordering_) return;
  Fences& fences = fences_[lane.warp * kWarpSize + lane.id];
  ++fences.step;
  fences.any = true;
  fences.last = {now(lane), warps_[lane.warp].known[lane.id]};
  if (scope != Scope::kBlock) {
    fences.wide = true;
    fences.last_wide = fences.last;
  }
  fenced_ = true;
}

// What `lane` tells those who read what it is about to write: the fences that it or threads before
// it executed. Null if there are none.
const Release* Observer::release(const Lane& lane) {
  if (!fenced_) return nullptr;
  // Of those that it knows to be over, the ones in the latest epoch cover all in earlier ones.
  const auto collect = [&](bool Fences::*had, Fence Fences::*last, std::vector<Fence>& into) {
    std::uint32_t latest = 0;
    for (const Fences& f : fences_) {
      if (f.*had && is_over((f.*last).at, lane)) latest = std::max(latest, (f.*last).at.epoch);
    }
    for (const Fences& f : fences_) {
      const Fence& fence = f.*last;
      if (f.*had && fence.at.epoch == latest && is_over(fence.at, lane)) into.push_back(fence);
    }
  };
  std::vector<Fence> fences, wide_fences;
  collect(&Fences::any, &Fences::last, fences);
  if (fences.empty()) return nullptr;
  collect(&Fences::wide, &Fences::last_wide, wide_fences);
  Release& release = races_->add_release();
  release.block = block_number_;
  const auto covered = [](const std::vector<Fence>& by, const Moment& moment) {
    return std::any_of(by.begin(), by.end(), [&](const Fence& f) { return f.covers(moment); });
  };
  for (const Reading& reading : readings()) {
    const Known known{reading.clock, reading.at.block, reading.block_only};
    if (covered(fences, reading.at)) release.known.push_back(known);
    if (covered(wide_fences, reading.at)) release.widely_known.push_back(known);
  }
  release.fences = std::move(fences);
  release.wide_fences = std::move(wide_fences);
  return &release;
}

// Compares the access with those before it, and orders the lane after what it reads.
void Observer::order(Lane& lane, const Tally& tally, std::uintptr_t address) {
  Fences& own = fences_[lane.warp * kWarpSize + lane.id];
  ++own.step;
  const bool is_atomic = tally.access == Access::kAtomic;
  Kind kind = kind_of(tally.access, tally.strength);
  // An atomic operation that leaves the value as it is: a way of reading it.
  if (is_atomic && !lane.changes(lane.update)) kind = Kind::kStrongRead;
  if (is_strong(kind)) {
    const Clock*& published = tally.region ? races_->published(address) : published_[address];
    const bool block_only = tally.strength == Strength::kBlock;
    if (published && kind != Kind::kStrongWrite) {
      // A loop that polls reads the same again and again.
      if (own.read != published || (own.read_weakly && is_atomic)) {
        readings().push_back({now(lane), published, block_only, !is_atomic});
        own.read = published;
        own.read_weakly = !is_atomic;
      }
    }
    if (!reads_only(kind)) {
      const Clock* before = is_atomic ? published : nullptr;
      if (const Release* const release = this->release(lane)) {
        // What the release itself tells needs no second entry.
        const auto& known = release->widely_known;
        const auto is_before = [&](const Known& k) { return k.clock == before; };
        while (before && std::any_of(known.begin(), known.end(), is_before)) {
          before = before->before;
        }
        published = races_->add_clock(release, before, block_only);
      } else {
        published = before;
      }
    }
  }

  const std::size_t begin = address - tally.begin, end = begin + tally.size;
  for (std::size_t w = begin / 8; 8 * w < end; ++w) {
    Word& word =
        tally.region ? races_->word(*tally.region, tally.begin + 8 * w) : (*tally.ordered)[w];
    if (!tally.region && word.block != block_) word = {}, word.block = block_;
    WordAccess access;
    access.at = now(lane);
    access.pc = tally.pc;
    access.kind = kind;
    const std::size_t first = std::max(begin, 8 * w) - 8 * w;
    const std::size_t last = std::min(end, 8 * w + 8) - 8 * w;
    access.bytes = static_cast<std::uint8_t>((1u << last) - (1u << first));
    const std::uintptr_t place = tally.begin + 8 * w;
    if (tally.strength == Strength::kCompare) {
      races_->unchecked.erase({block_number_, lane.warp * kWarpSize + lane.id, place});
      const std::size_t count = std::min(word.reads.size(), kMaxLoadsToCheck);
      for (auto a = word.reads.end() - static_cast<std::ptrdiff_t>(count); a != word.reads.end();) {
        const bool is_checked = a->at.same_thread(access.at);
        a = is_checked ? word.reads.erase(a) : a + 1;
      }
    }

    // Atomic operations on a word are ordered with those before them: who comes after the last one,
    // or after one that saw it, comes after all.
    const auto saw_last_write = [&] {
      // (A volatile load and store one after the other are no update.)
      const bool by_update = kind == Kind::kStrongWrite;
      for (const auto* list : {&word.writes, &word.strong_reads}) {
        for (auto a = list->rbegin(); a != list->rend(); ++a) {
          if (list == &word.strong_reads && (by_update || a->version < word.version)) break;
          if (by_update ? !updates(a->kind) : !is_strong(a->kind)) continue;
          if (a->version == word.version && is_over(a->at, lane)) return true;
        }
      }
      return false;
    };
    if (!is_strong(kind) && word.updated &&
        (word.updated_by_several || word.update_block != block_number_ ||
         word.update_epoch == epoch_)) {
      races_->relied_on_order = true;
    }
    const auto compare = [&](const std::vector<WordAccess>& earlier) {
      for (const WordAccess& a : earlier) {
        if (!conflict(a, access) || is_over(a.at, lane)) continue;
        const bool was_strong_write = is_strong(a.kind) && !reads_only(a.kind);
        if (is_known(a.at, lane) || (was_strong_write && saw_last_write())) {
          races_->relied_on_order = true;
          continue;
        }
        const Unobserved unobserved;
        const bool then = a.kind == Kind::kRead && updates(kind);
        if (!then && !(kind == Kind::kRead && updates(a.kind))) {
          races_->raced = address;
          lane.block->fail(lane, describe_race(lane, tally, address, a));
        }
        const Moment& load = then ? a.at : access.at;
        const GlobalRaces::Load key{load.block, load.warp * kWarpSize + load.lane, place};
        if (!races_->unchecked.contains(key)) {
          races_->unchecked[key] = describe_race(lane, tally, address, a);
        }
      }
    };
    compare(word.writes);
    if (!reads_only(kind)) {
      compare(word.reads);
      compare(word.strong_reads);
    }

    if (is_strong(kind) && kind != Kind::kStrongRead) ++word.version;
    access.version = word.version;
    // Those after which this one certainly came need not be kept.
    if (kind == Kind::kWrite) {
      const auto is_replaced = [&](const WordAccess& a) { return !(a.bytes & ~access.bytes); };
      for (auto* list : {&word.reads, &word.strong_reads, &word.writes}) {
        std::erase_if(*list, is_replaced);
      }
      word.updated = word.updated_by_several = false;
    } else if (updates(kind)) {
      std::erase_if(word.writes, [&](const WordAccess& a) {
        return a.kind == kind && a.bytes == access.bytes &&
               (kind == Kind::kUpdate || a.at.block == access.at.block);
      });
      word.updated_by_several |= word.updated && word.update_block != block_number_;
      word.updated = true;
      word.update_block = block_number_;
      word.update_epoch = epoch_;
    }
    add(kind == Kind::kRead         ? word.reads
        : kind == Kind::kStrongRead ? word.strong_reads
                                    : word.writes,
        access);
  }
}

// While lanes run in lockstep: a lane stores to a word that another one of its warp has stored to,
// and has not seen what that stored.
void Observer::look_for_lost_update(const Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (races_->raced - tally.begin >= tally.end - tally.begin) return;
  if (!races_->lost_update.empty()) return;
  const Unobserved unobserved;
  const std::uint32_t bit = 1u << lane.id;
  Update& update = updates_[address];
  const bool same_warp = update.warp == lane.warp && update.epoch == epoch_;
  if (!same_warp) update = {};
  if (tally.access == Access::kStore && update.pc && !(update.seen_by & bit) &&
      update.lane != lane.id && update.time >= warps_[lane.warp].known[lane.id][update.lane]) {
    const auto at = [](const void* pc) {
      const std::string line = source_line(pc);
      return line.empty() ? line : " at " + line;
    };
    races_->lost_update =
        "; with the lanes of the warp in lockstep, thread " + to_text(lane.thread) +
        (update.read_by & bit ? ", which read the old value before," : "") + " overwrites" +
        at(tally.pc) + " the value " + value_text(address, tally.size) + " that " +
        lane.block->name_of_thread(lane.warp * kWarpSize + update.lane) + " stored" +
        at(update.pc) + ": it is lost";
    return;
  }
  if (tally.access != Access::kLoad) {
    update = {tally.pc, epoch_, warps_[lane.warp].time, bit, update.read_by, lane.warp, lane.id};
  } else {
    update.epoch = epoch_;
    update.warp = lane.warp;
    update.seen_by |= bit;
    update.read_by |= bit;
  }
}

std::string Observer::describe_race(const Lane& lane, const Tally& tally, std::uintptr_t address,
                                    const WordAccess& other) const {
  const bool own_block = other.at.block == block_number_;
  std::string what = "race: " + verb(tally.access) + std::to_string(tally.size) + " bytes, " +
                     std::to_string(address - tally.begin) + " bytes into " +
                     (tally.space == Space::kShared ? "shared '" : "'") + *tally.array +
                     "', which " +
                     lane.block->name_of_thread(other.at.warp * kWarpSize + other.at.lane);
  if (!own_block) what += " of " + lane.block->name_of_block(other.at.block);
  what += reads_only(other.kind) ? " read" : updates(other.kind) ? " updated" : " wrote";
  const std::string line = source_line(other.pc);
  if (!line.empty()) what += " at " + line;
  what += own_block && other.at.warp == lane.warp ? ", with no __syncwarp or __syncthreads between"
          : own_block                             ? ", with no __syncthreads between"
                      : ", with no fence and atomic operation that order them";
  return lane.block->describe_failure(lane, what, tally.pc);
}

}  // namespace simt
