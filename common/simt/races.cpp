#include "simt/races.hpp"

#include <cstdio>
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

void Region::begin_cells(std::uintptr_t its_begin, std::size_t its_bytes, unsigned size) {
  if (cells) return;
  begin = its_begin;
  bytes = its_bytes;
  cell_bytes = std::min(size, 8u);
  cells.reset(static_cast<std::uint64_t*>(std::calloc(bytes / cell_bytes + 1, 8)));
  if (!cells) {
    std::fprintf(stderr, "error: no memory to look for races in %zu bytes\n", bytes);
    std::abort();
  }
}

Word& Region::word(std::size_t index) {
  if (words.empty()) words.resize(bytes / 8 + 1);
  if (!words[index]) words[index] = std::make_unique<Word>();
  return *words[index];
}

bool Region::is_cached_beside(std::size_t index, std::uint64_t block) const {
  const std::size_t first = index / 4 * 4;  // (Arrays begin at sectors.)
  for (std::size_t i = first; i < std::min(first + 4, words.size()); ++i) {
    if (words[i] && words[i]->is_cached_beside(block)) return true;
  }
  return false;
}

void Region::forget_order() {
  words.clear();
  published.clear();
}

Region* GlobalRaces::touch(std::uintptr_t begin, std::size_t bytes, unsigned size, bool writes,
                           WrittenBytes* written) {
  const std::lock_guard lock(mutex_);
  Region& region = regions_[begin];
  region.begin_cells(begin, bytes, size);
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
    if (mode == RaceMode::kFilter) {  // (Those that are read only have cells too.)
      std::memset(region.cells.get(), 0, (region.bytes / region.cell_bytes + 1) * 8);
    }
    region.forget_order();
  }
  readers_.clear();
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

void GlobalRaces::forget_contents() {
  for (auto& [begin, region] : regions_) {
    region.before.reset();
    region.forget_order();
  }
}

// --- The filter ---------------------------------------------------------------------------------

namespace {

// A cell, from its lowest bits: kinds of access since the launch began (of `block`, or of several
// blocks); kinds since the last barrier of the block (of one warp, or of several); kinds since the
// last __syncwarp of all lanes of that warp (of one thread, or of several); the number of that
// interval of the warp; which thread or warp; block + 1. All ones: two threads may race.
enum Kinds : std::uint64_t { kReads = 1, kWrites = 2, kStrong = 4, kStrongWrites = 8 };
constexpr std::uint64_t kMayRace = ~std::uint64_t{0};
constexpr unsigned kBlockKinds = 4, kWarpKinds = 8, kIntervalShift = 12, kOwnerShift = 30,
                   kBlockShift = 41;
constexpr std::uint64_t kLastInterval = (1u << (kOwnerShift - kIntervalShift)) - 1;
constexpr std::uint64_t kWarpsOwner = 1024;  // several threads of a warp: its number is added
constexpr std::uint64_t kSeveralWarps = (1u << (kBlockShift - kOwnerShift)) - 1;
constexpr std::uint64_t kSeveralBlocks = (1u << (64 - kBlockShift)) - 2;

// Whether accesses of these kinds by unordered threads can be a race.
bool conflict(std::uint64_t earlier, std::uint64_t kind) {
  if (!earlier) return false;
  if ((earlier | kind) & kWrites) return true;
  if (kind & kReads) return earlier & kStrong;
  return earlier & kReads || (earlier & kind & kStrongWrites);
}

// A load on the path for what the launch does not write.
bool is_read_only(Access access, Strength strength) {
  return access == Access::kTexture || strength == Strength::kReadOnly;
}

std::uint64_t kinds_of(Access access, Strength strength) {
  if (access == Access::kAtomic) return kStrong;
  const bool stores = access == Access::kStore;
  if (strength != Strength::kVolatile) return stores ? kWrites : kReads;
  return stores ? kStrong | kStrongWrites : kStrong;
}

// What an access makes of a cell.
struct CellUpdate {
  std::uint64_t block, thread, interval;  // of the thread that makes it; of its warp
  std::uint64_t barrier;                  // the first interval since the block's last barrier
  std::uint64_t kinds, wide_kinds;        // as threads of the block see it, and of other blocks
  bool shared;

  std::uint64_t operator()(std::uint64_t old) const {
    if (block >= kSeveralBlocks || old == kMayRace) return kMayRace;
    const std::uint64_t own = cell(thread, kinds, kinds, wide_kinds);
    if (old == 0) return own;
    if ((old ^ own) >> kIntervalShift == 0) return old | own;  // again, in the same interval
    const std::uint64_t all = (old & 15) | wide_kinds;
    if (old >> kBlockShift != block) {
      if (shared) return own;
      return conflict(old & 15, wide_kinds) ? kMayRace : kSeveralBlocks << kBlockShift | all;
    }
    const std::uint64_t of_block = old >> kBlockKinds & 15, of_warp = old >> kWarpKinds & 15;
    const std::uint64_t owner = old >> kOwnerShift & kSeveralWarps, warp = thread / kWarpSize;
    const std::uint64_t its_interval = old >> kIntervalShift & kLastInterval;
    if (its_interval < barrier) return cell(thread, kinds, kinds, all);
    if ((owner < kWarpsOwner ? owner / kWarpSize : owner - kWarpsOwner) != warp) {
      return conflict(of_block, kinds) ? kMayRace : cell(kSeveralWarps, 0, of_block | kinds, all);
    }
    if (its_interval < interval) return cell(thread, kinds, of_block | kinds, all);
    if (conflict(of_warp, kinds)) return kMayRace;
    return cell(kWarpsOwner + warp, of_warp | kinds, of_block | kinds, all);
  }

  std::uint64_t cell(std::uint64_t owner, std::uint64_t of_warp, std::uint64_t of_block,
                     std::uint64_t all) const {
    return block << kBlockShift | owner << kOwnerShift | interval << kIntervalShift |
           of_warp << kWarpKinds | of_block << kBlockKinds | all;
  }
};

// Of a cell: whether lanes of one warp have loaded and stored, as volatile, with no __syncwarp.
bool is_unordered(std::uint64_t cell) {
  const std::uint64_t owner = cell >> kOwnerShift & kSeveralWarps;
  const std::uint64_t of_warp = cell >> kWarpKinds & 15;
  return owner >= kWarpsOwner && owner != kSeveralWarps && of_warp & kStrongWrites;
}

}  // namespace

void Observer::filter(const Lane& lane, const Tally& tally, std::uintptr_t address) {
  const bool shared = tally.space == Space::kShared;
  const std::uint64_t kinds = kinds_of(tally.access, tally.strength);
  const bool read_only = is_read_only(tally.access, tally.strength);
  // (For threads of other blocks an atomic operation of block scope is a plain one.)
  const CellUpdate update{block_number_ + 1,
                          std::uint64_t{lane.warp} * kWarpSize + lane.id,
                          std::min<std::uint64_t>(warps_[lane.warp].interval, kLastInterval),
                          std::min<std::uint64_t>(barrier_, kLastInterval),
                          kinds,
                          tally.strength == Strength::kBlock ? kWrites : kinds,
                          shared};
  std::uint64_t* const cells = tally.region->cells.get();
  const unsigned cell_bytes = tally.region->cell_bytes;
  const std::size_t first = (address - tally.begin) / cell_bytes;
  const std::size_t last = (address - tally.begin + tally.size - 1) / cell_bytes;
  for (std::size_t c = first; c <= last; ++c) {
    const std::atomic_ref<std::uint64_t> cell(cells[c]);
    std::uint64_t old = cell.load(std::memory_order_relaxed), now = update(old);
    if (read_only && old & (kWrites | kStrong)) now = kMayRace;
    if (shared && now != kMayRace && is_unordered(now)) {
      state_->remark(tally.pc, Remark::kVolatile);
    }
    if (shared || races_->one_worker) {
      if (now != old) cell.store(now, std::memory_order_relaxed);
    } else {
      while (now != old && !cell.compare_exchange_weak(old, now, std::memory_order_relaxed)) {
        now = update(old);
      }
    }
    if (now == kMayRace) races_->suspicious.store(true, std::memory_order_relaxed);
  }
}

const char* GlobalRaces::conflict_with(std::uintptr_t begin, std::size_t offset, unsigned size,
                                       Access access) const {
  const std::uint64_t kinds = kinds_of(access, Strength::kPlain);
  if (const auto found = regions_.find(begin); found != regions_.end()) {
    const Region& region = found->second;
    const std::size_t last = (offset + size - 1) / region.cell_bytes;
    for (std::size_t c = offset / region.cell_bytes; c <= last; ++c) {
      if (conflict(region.cells[c] & 15, kinds)) {
        return region.cells[c] & ~std::uint64_t{kReads} & 15 ? "writes" : "reads";
      }
    }
  }
  for (const auto& [load, its_begin] : readers_) {
    if (its_begin == begin && access != Access::kLoad) return "reads";
  }
  return nullptr;
}

// --- Clocks -------------------------------------------------------------------------------------

// (Of moments in the fence's epoch and block.)
bool Fence::covers(const Moment& moment) const {
  if (moment.warp != at.warp) return false;
  return moment.lane == at.lane ? moment.step <= at.step : moment.time < known[moment.lane];
}

bool VectorClock::covers(const Moment& moment) const {
  if (moment.grid < phases_.size() && moment.phase < phases_[moment.grid]) return true;
  if (moment.block / kBlocks >= times_.size() || !times_[moment.block / kBlocks]) return false;
  const BlockTime* const time = (*times_[moment.block / kBlocks])[moment.block % kBlocks].get();
  if (!time) return false;
  if (moment.epoch != time->epoch) return moment.epoch < time->epoch;
  auto fence =
      std::lower_bound(time->fences.begin(), time->fences.end(), moment.warp * kWarpSize,
                       [](const Fence& f, unsigned thread) { return f.at.thread() < thread; });
  for (; fence != time->fences.end() && fence->at.warp == moment.warp; ++fence) {
    if (fence->covers(moment)) return true;
  }
  return false;
}

bool VectorClock::BlockTime::covers(const BlockTime& other) const {
  if (epoch != other.epoch) return epoch > other.epoch;
  auto own = fences.begin();
  for (const Fence& fence : other.fences) {
    while (own != fences.end() && own->at.thread() < fence.at.thread()) ++own;
    if (own == fences.end() || own->at.thread() != fence.at.thread()) return false;
    if (own->at.step < fence.at.step) return false;
  }
  return true;
}

bool VectorClock::covers(const Times& times, const Times& others) {
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const BlockTime* const own = times[b].get();
    const BlockTime* const other = others[b].get();
    if (own != other && other && (!own || !own->covers(*other))) return false;
  }
  return true;
}

bool VectorClock::covers(const VectorClock& other) const {
  if (times_.size() < other.times_.size() || phases_.size() < other.phases_.size()) return false;
  for (std::size_t g = 0; g < other.phases_.size(); ++g) {
    if (phases_[g] < other.phases_[g]) return false;
  }
  for (std::size_t i = 0; i < other.times_.size(); ++i) {
    const auto& own = times_[i];
    const auto& its = other.times_[i];
    if (own != its && its && (!own || !covers(*own, *its))) return false;
  }
  return true;
}

VectorClock::Time VectorClock::join(const Time& time, const Time& other) {
  if (time == other || !other || (time && time->covers(*other))) return time;
  if (!time || other->covers(*time)) return other;
  // (Of the same epoch.)
  BlockTime both{time->epoch, {}};
  both.fences.reserve(time->fences.size() + other->fences.size());
  auto own = time->fences.begin();
  for (const Fence& fence : other->fences) {
    while (own != time->fences.end() && own->at.thread() < fence.at.thread()) {
      both.fences.push_back(*own++);
    }
    const bool also = own != time->fences.end() && own->at.thread() == fence.at.thread();
    both.fences.push_back(also && own->at.step > fence.at.step ? *own : fence);
    if (also) ++own;
  }
  both.fences.insert(both.fences.end(), own, time->fences.end());
  return std::make_shared<const BlockTime>(std::move(both));
}

Clock VectorClock::with(const Clock& clock, const Fence& fence) {
  VectorClock own = clock ? *clock : VectorClock{};
  const std::size_t chunk = fence.at.block / kBlocks;
  own.times_.resize(std::max(own.times_.size(), chunk + 1));
  Times times = own.times_[chunk] ? *own.times_[chunk] : Times{};
  Time& time = times[fence.at.block % kBlocks];
  time = join(time, std::make_shared<const BlockTime>(BlockTime{fence.at.epoch, {fence}}));
  own.times_[chunk] = std::make_shared<const Times>(std::move(times));
  own.phases_.resize(std::max<std::size_t>(own.phases_.size(), fence.at.grid + 1u));
  own.phases_[fence.at.grid] = std::max(own.phases_[fence.at.grid], fence.at.phase);
  return std::make_shared<const VectorClock>(std::move(own));
}

// (Mostly one of the two knows what the other one knows.)
Clock VectorClock::join(const Clock& clock, const Clock& other) {
  if (clock == other || !other) return clock;
  if (!clock || other->covers(*clock)) return other;
  if (clock->covers(*other)) return clock;
  VectorClock both = *clock;
  both.times_.resize(std::max(clock->times_.size(), other->times_.size()));
  both.phases_.resize(std::max(clock->phases_.size(), other->phases_.size()));
  for (std::size_t i = 0; i < other->times_.size(); ++i) {
    auto& mine = both.times_[i];
    const auto& its = other->times_[i];
    if (mine == its || !its || (mine && covers(*mine, *its))) continue;
    if (!mine || covers(*its, *mine)) {
      mine = its;
      continue;
    }
    Times times;
    for (std::size_t b = 0; b < kBlocks; ++b) times[b] = join((*mine)[b], (*its)[b]);
    mine = std::make_shared<const Times>(std::move(times));
  }
  for (std::size_t g = 0; g < other->phases_.size(); ++g) {
    both.phases_[g] = std::max(both.phases_[g], other->phases_[g]);
  }
  return std::make_shared<const VectorClock>(std::move(both));
}

// --- What threads know --------------------------------------------------------------------------

void Knowledge::fence(const Fence& fence, bool wide) {
  if (is_wide && !wide) tell();
  known = VectorClock::join(known, std::exchange(pending, nullptr));
  unfenced = VectorClock::join(unfenced, std::exchange(from_others, nullptr));
  if (wide) {
    known = VectorClock::join(known, std::exchange(unfenced, nullptr));
    known = VectorClock::join(known, std::exchange(from_grid, nullptr));
  }
  last_fence = fence;
  fenced = true;
  is_wide = wide;
}

void Knowledge::tell() {
  if (!std::exchange(fenced, false)) return;
  const Clock told = VectorClock::with(VectorClock::join(known, unfenced), last_fence);
  const bool same = told_block == told_all;
  told_block = VectorClock::join(told_block, told);
  if (!std::exchange(is_wide, false)) return;
  told_all = same ? told_block : VectorClock::join(told_all, told);
}

void Knowledge::join(Knowledge& other) {
  other.tell();
  known = VectorClock::join(VectorClock::join(known, other.known), other.pending);
  unfenced = VectorClock::join(VectorClock::join(unfenced, other.unfenced), other.from_others);
  from_grid = VectorClock::join(from_grid, other.from_grid);
  told_block = VectorClock::join(told_block, other.told_block);
  told_all = VectorClock::join(told_all, other.told_all);
}

Knowledge& Observer::knowledge(const Lane& lane) {
  return learnt_.try_emplace(lane.warp * kWarpSize + lane.id, common_).first->second;
}

void Observer::join_block() {
  for (auto& [thread, learnt] : learnt_) common_.join(learnt);
  learnt_.clear();
}

void Observer::join_warp(unsigned warp, unsigned mask) {
  Knowledge joined = common_;
  bool any = false;
  for_each_lane(mask, [&](unsigned id) {
    const auto own = learnt_.find(warp * kWarpSize + id);
    if (own == learnt_.end()) return;
    joined.join(own->second);
    any = true;
  });
  if (any) for_each_lane(mask, [&](unsigned id) { learnt_[warp * kWarpSize + id] = joined; });
}

void Observer::grid_arrives() {
  if (!ordering_) return;
  Clock& known = resident_->known[phase_ % 2];
  known = VectorClock::join(known, common_.known);
}

void Observer::grid_synchronized() {
  if (ordering_) common_.known = VectorClock::join(common_.known, resident_->known[phase_ % 2]);
  ++phase_;
}

void Observer::fence(Lane& lane, Scope scope) {
  if (!ordering_) return;
  ++steps_[lane.warp * kWarpSize + lane.id];
  knowledge(lane).fence({now(lane), clocks_[lane.warp].known[lane.id]}, scope != Scope::kBlock);
}

// `lane` reads a word that was written with `release`.
void Observer::acquire(const Lane& lane, const std::shared_ptr<const Release>& release,
                       bool block_only, bool weak) {
  Knowledge& own = knowledge(lane);
  std::tuple read(release, block_only, weak);
  if (own.read == read) return;
  own.read = std::move(read);
  if (!weak) own.tell();
  const bool same_grid = !resident_ || release->grid == resident_->number;
  if (!block_only) {
    Clock& clock = !weak ? own.unfenced : same_grid ? own.from_others : own.from_grid;
    clock = VectorClock::join(clock, release->all);
  }
  Clock& clock = weak ? own.pending : own.known;
  for (const auto& [block, told] : release->blocks) {
    if (block == block_number_) clock = VectorClock::join(clock, told);
  }
}

// What `lane` tells those who read what it is about to write, beside what `before` tells. Null if
// that is nothing.
std::shared_ptr<const Release> Observer::release(const Lane& lane, bool block_only,
                                                 const std::shared_ptr<const Release>& before) {
  const auto own = learnt_.find(lane.warp * kWarpSize + lane.id);
  Knowledge& knows = own == learnt_.end() ? common_ : own->second;
  knows.tell();
  if (!knows.told_block) return before;
  Release release = before ? *before : Release{};
  release.grid = resident_ ? resident_->number : 0;
  if (!block_only) release.all = VectorClock::join(release.all, knows.told_all);
  // (Where blocks run one after the other, those of others have ended.)
  if (!resident_) {
    std::erase_if(release.blocks, [&](const auto& of) { return of.first != block_number_; });
  }
  const auto of_block = std::find_if(release.blocks.begin(), release.blocks.end(),
                                     [&](const auto& of) { return of.first == block_number_; });
  if (of_block == release.blocks.end()) {
    release.blocks.emplace_back(block_number_, knows.told_block);
  } else {
    of_block->second = VectorClock::join(of_block->second, knows.told_block);
  }
  return std::make_shared<const Release>(std::move(release));
}

// --- Words --------------------------------------------------------------------------------------

namespace {

using Kind = WordAccess::Kind;
constexpr std::size_t kMaxLoadsToCheck = 4096;

Kind kind_of(Access access, Strength strength) {
  if (access == Access::kAtomic) {
    return strength == Strength::kBlock ? Kind::kBlockUpdate : Kind::kUpdate;
  }
  const bool stores = access == Access::kStore;
  if (stores && strength == Strength::kBlock) return Kind::kBlockUpdate;
  if (strength == Strength::kVolatile) return stores ? Kind::kStrongWrite : Kind::kStrongRead;
  return stores ? Kind::kWrite : Kind::kRead;
}

// Adds an access to those of its kind, of which only a thread's last one counts.
void add_last_of_thread(std::vector<WordAccess>& list, const WordAccess& access) {
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

}  // namespace

// (Two volatile stores are no race by the memory model, but one of them is lost: they count as
// one.)
bool WordAccess::conflicts(const WordAccess& other) const {
  if (!(bytes & other.bytes) || at.same_thread(other.at)) return false;
  if (reads_only() && other.reads_only()) return false;
  if (!is_strong() || !other.is_strong()) return true;
  if (kind == Kind::kStrongWrite && other.kind == Kind::kStrongWrite) return true;
  return at.block != other.at.block &&
         (kind == Kind::kBlockUpdate || other.kind == Kind::kBlockUpdate);
}

void Word::add(WordAccess access) {
  const Kind kind = access.kind;
  if (access.is_strong() && kind != Kind::kStrongRead) ++version;
  access.version = version;
  if (kind == Kind::kRead) {
    loaded_by_several |= loaded && loaded_by != access.at.block;
    loaded = true;
    loaded_by = access.at.block;
  }
  // Those after which this one certainly came need not be kept.
  if (kind == Kind::kWrite) {
    const auto is_replaced = [&](const WordAccess& a) { return !(a.bytes & ~access.bytes); };
    for (auto* list : {&reads, &strong_reads, &writes}) std::erase_if(*list, is_replaced);
    updated = updated_by_several = false;
  } else if (access.updates()) {
    std::erase_if(writes, [&](const WordAccess& a) {
      return a.kind == kind && a.bytes == access.bytes &&
             (kind == Kind::kUpdate || a.at.block == access.at.block);
    });
    updated_by_several |= updated && update_block != access.at.block;
    updated = true;
    update_block = access.at.block;
    update_epoch = access.at.epoch;
  }
  add_last_of_thread(kind == Kind::kRead         ? reads
                     : kind == Kind::kStrongRead ? strong_reads
                                                 : writes,
                     access);
}

void Word::forget_loads(const Moment& thread) {
  const std::size_t count = std::min(reads.size(), kMaxLoadsToCheck);
  const auto first = reads.end() - static_cast<std::ptrdiff_t>(count);
  reads.erase(std::remove_if(first, reads.end(),
                             [&](const WordAccess& a) { return a.at.same_thread(thread); }),
              reads.end());
}

// --- Happens-before -----------------------------------------------------------------------------

Moment Observer::now(const Lane& lane) const {
  return {.block = block_number_,
          .phase = phase_,
          .epoch = epoch_,
          .time = clocks_[lane.warp].time,
          .step = steps_[lane.warp * kWarpSize + lane.id],
          .grid = resident_ ? resident_->number : std::uint16_t{0},
          .warp = lane.warp,
          .lane = lane.id};
}

// Whether `moment` is over for `lane`, by program order, barriers and __syncwarp.
bool Observer::is_over(const Moment& moment, const Lane& lane) const {
  if (moment.block != block_number_) {
    return resident_ && moment.grid == resident_->number && moment.phase < phase_;
  }
  if (moment.epoch != epoch_) return true;
  if (moment.warp != lane.warp) return false;
  return moment.lane == lane.id || moment.time < clocks_[lane.warp].known[lane.id][moment.lane];
}

// Whether `moment` came before a fence that `lane` knows of through atomic operations; `unfenced`:
// of another block's, without a fence behind them.
bool Observer::is_known(const Moment& moment, const Lane& lane, bool unfenced) const {
  const auto own = learnt_.find(lane.warp * kWarpSize + lane.id);
  const Knowledge& its = own == learnt_.end() ? common_ : own->second;
  const Clock& known = unfenced ? its.unfenced : its.known;
  return known && known->covers(moment);
}

// Whether `lane` has seen the last atomic operation on the word, or comes after a thread that has.
// Atomic operations on a word are ordered with those before them: what happens after the last one
// happens after all. (A volatile load and store one after the other are no update.)
bool Observer::saw_last_write(const Word& word, Kind kind, const Lane& lane) const {
  const bool by_update = kind == Kind::kStrongWrite;
  const auto is_one = [&](const WordAccess& a) {
    return a.version == word.version && (by_update ? a.updates() : a.is_strong()) &&
           is_over(a.at, lane);
  };
  // (The latest first. Volatile loads are in the order of what they saw.)
  if (std::any_of(word.writes.rbegin(), word.writes.rend(), is_one)) return true;
  if (by_update) return false;
  for (auto a = word.strong_reads.rbegin(); a != word.strong_reads.rend(); ++a) {
    if (a->version < word.version) return false;
    if (is_one(*a)) return true;
  }
  return false;
}

// Compares an access to a word with earlier ones. A race ends the launch, unless one of the two is
// a load that may still be checked by atomicCAS.
void Observer::compare(Lane& lane, const Tally& tally, std::uintptr_t address,
                       const WordAccess& access, const Word& word,
                       const std::vector<WordAccess>& earlier) {
  for (const WordAccess& a : earlier) {
    if (!access.conflicts(a) || is_over(a.at, lane)) continue;
    const bool was_strong_write = a.is_strong() && !a.reads_only();
    const bool ordered = was_strong_write && saw_last_write(word, access.kind, lane);
    const bool unfenced = !ordered && !is_known(a.at, lane) && is_known(a.at, lane, true);
    const bool is_stale = access.kind == Kind::kRead && word.may_be_stale;
    if (ordered || is_known(a.at, lane) || (unfenced && !is_stale)) {
      races_->relied_on_order = true;
      continue;
    }
    const Unobserved unobserved;
    if (unfenced) {
      races_->race = race_with(a, lane, tally, address);
      races_->race.missing =
          ", with no __threadfence() between the atomic operation or the flag that tells of it and "
          "this load, which may find an older value in its L1 cache";
      races_->race.has_flag = true;
      lane.block->fail(lane, races_->race.report + (resident_ ? races_->race.missing : ""));
    }
    const bool then = a.kind == Kind::kRead && access.updates();
    if (!then && !(access.kind == Kind::kRead && a.updates())) {
      races_->race = race_with(a, lane, tally, address);
      lane.block->fail(lane, races_->race.report + (resident_ ? races_->race.missing : ""));
    }
    const GlobalRaces::Load load = GlobalRaces::load_of(then ? a.at : access.at, word);
    if (!races_->unchecked.contains(load)) {
      races_->unchecked[load] = race_with(a, lane, tally, address);
    }
  }
}

// Compares the access with those before it, and orders the lane after what it reads.
void Observer::order(Lane& lane, const Tally& tally, std::uintptr_t address) {
  ++steps_[lane.warp * kWarpSize + lane.id];
  const bool is_atomic = tally.access == Access::kAtomic;
  WordAccess access{now(lane), tally.pc};
  access.kind = kind_of(tally.access, tally.strength);
  // An atomic operation that leaves the value as it is: a way of reading it.
  if (is_atomic && !lane.changes(lane.update)) access.kind = Kind::kStrongRead;
  if (access.is_strong()) {
    auto& published = tally.region->published[address];
    const bool block_only = tally.strength == Strength::kBlock;
    if (published && access.kind != Kind::kStrongWrite) {
      acquire(lane, published, block_only, !is_atomic);
    }
    if (!access.reads_only()) {
      published = release(lane, block_only, is_atomic ? published : nullptr);
    }
  }
  const std::size_t begin = address - tally.begin, end = begin + tally.size;
  for (std::size_t w = begin / 8; 8 * w < end; ++w) {
    Word& word = tally.region->word(w);
    word.address = tally.begin + 8 * w;
    access.bytes = bytes_of_word(w, begin, end);
    if (tally.strength == Strength::kCompare) {
      races_->unchecked.erase(GlobalRaces::load_of(access.at, word));
      word.forget_loads(access.at);
    }
    if (!access.is_strong() && word.is_updated_beside(access.at)) races_->relied_on_order = true;
    if (is_read_only(tally.access, tally.strength)) reject_read_only(lane, tally, address, word);
    if (!access.reads_only()) {
      word.may_be_stale = tally.region->is_cached_beside(w, access.at.block);
    }
    compare(lane, tally, address, access, word, word.writes);
    if (!access.reads_only()) {
      compare(lane, tally, address, access, word, word.reads);
      // (Of two atomic accesses one is no race unless its scope is too small.)
      if (!access.is_strong() || access.kind == Kind::kBlockUpdate) {
        compare(lane, tally, address, access, word, word.strong_reads);
      }
    }
    word.add(access);
  }
}

// A load by __ldg() or through a texture of what the launch has written.
void Observer::reject_read_only(Lane& lane, const Tally& tally, std::uintptr_t address,
                                const Word& word) {
  if (word.writes.empty()) return;
  const Unobserved unobserved;
  const WordAccess& write = word.writes.back();
  std::string what = describe_access(tally, address);
  what += tally.access == Access::kTexture ? " through a texture" : " by __ldg()";
  what += ", which " + (write.at.block == block_number_
                            ? lane.block->name_of_thread(write.at.warp * kWarpSize + write.at.lane)
                            : lane.block->name_of_block(write.at.block));
  what += (write.updates() ? " updated" : " wrote") + at_line(write.pc);
  lane.block->fail(lane,
                   what +
                       " in the same launch: this load is for what no thread of the launch "
                       "writes, and may find an older value",
                   tally.pc);
}

Race Observer::race_with(const WordAccess& other, const Lane& lane, const Tally& tally,
                         std::uintptr_t address) const {
  const bool own_block = other.at.block == block_number_;
  Race race;
  race.address = address;
  race.size = tally.size;
  race.shared = tally.space == Space::kShared;
  race.threads[0].block = block_number_;
  race.threads[0].number = lane.warp * kWarpSize + lane.id;
  race.threads[1].block = other.at.block;
  race.threads[1].number = other.at.warp * kWarpSize + other.at.lane;
  std::string what = "race: " + describe_access(tally, address) + ", which " +
                     lane.block->name_of_thread(race.threads[1].number);
  if (!own_block) what += " of " + lane.block->name_of_block(other.at.block);
  for (Race::Thread& thread : race.threads) {
    thread.name = lane.block->name_of_thread(thread.number);
    if (!own_block) thread.name += " of " + lane.block->name_of_block(thread.block);
  }
  what += other.reads_only() ? " read" : other.updates() ? " updated" : " wrote";
  what += at_line(other.pc);
  race.report = lane.block->describe_failure(lane, what, tally.pc);
  race.missing = own_block && other.at.warp == lane.warp
                     ? ", with no __syncwarp or __syncthreads between"
                 : own_block ? ", with no __syncthreads between"
                             : ", with no fence and atomic operation that order them";
  return race;
}

// --- Explaining a race --------------------------------------------------------------------------

// (As far as lanes in lockstep have shown.)
std::string Race::explanation() const {
  const auto& [a, b] = threads;
  const bool one_block = a.block == b.block;
  const auto updates = [](const Thread& t) { return t.changes || t.updates_atomically; };
  if (!one_block && a.updates_atomically && b.updates_atomically && !a.changes && !b.changes &&
      (a.updates_for_block || b.updates_for_block)) {
    return "; an atomic operation with _block in its name is one for the threads of a block alone: "
           "between blocks use the one without, such as atomicAdd";
  }
  for (const Thread* const t : {&a, &b}) {
    if (t->reads_then_updates && !t->stores) {
      return "; " + t->name +
             " reads it and updates it in two steps, and the other thread comes between: use the "
             "value that the atomic operation returns, and do not read it besides";
    }
  }
  if (updates(a) && updates(b) && (a.changes || b.changes)) {
    return (shared ? "; both threads load it, change it and store it: give each thread an element "
                     "of its own, put a __syncthreads between if one is to follow the other, or "
                     "use an atomic operation in both, such as atomicAdd"
                   : "; both threads load it, change it and store it: if both are to add to it, "
                     "use an atomic operation in both, such as atomicAdd; if it belongs to one of "
                     "them, two threads have computed the same index: look at where it comes "
                     "from") +
           lost_update;
  }
  if (a.stores && b.stores && !a.loads && !b.loads) {
    return "; both threads store to it: let one thread own it" + lost_update;
  }
  return missing + (one_block  ? skipped_barrier()
                    : has_flag ? ""
                               : ": it takes a fence and a flag, or two launches");
}

std::string Race::skipped_barrier() const {
  const auto times = [](const Thread& t, const void* barrier) {
    const auto found = t.barriers.find(barrier);
    return found == t.barriers.end() ? 0u : found->second;
  };
  const auto text = [](unsigned n) {
    return n == 0 ? std::string("never") : n == 1 ? "once" : std::to_string(n) + " times";
  };
  for (const auto& [t, other] : {std::pair(&threads[0], &threads[1]), {&threads[1], &threads[0]}}) {
    for (const auto& [barrier, count] : t->barriers) {
      const unsigned its_count = times(*other, barrier);
      if (count <= its_count) continue;
      return "; " + t->name + " waits at the __syncthreads" + at_line(barrier) + " " + text(count) +
             ", " + other->name + " " + text(its_count) +
             ": move the barrier out of the branch or loop that some threads skip";
    }
  }
  return "";
}

void Observer::note_barrier(const Lane& lane, const void* pc) {
  for (Race::Thread& thread : races_->race.threads) {
    if (thread.block == block_number_ && thread.number == lane.warp * kWarpSize + lane.id) {
      ++thread.barriers[pc];
    }
  }
}

// While lanes run in lockstep: what the threads of the race do to its word; and whether a lane
// stores to a word of the array to which another one of its warp has stored, and has not seen that.
void Observer::explain(const Lane& lane, const Tally& tally, std::uintptr_t address) {
  Race& race = races_->race;
  const bool stores = tally.access == Access::kStore, is_atomic = tally.access == Access::kAtomic;
  if (race.address - tally.begin >= tally.end - tally.begin) return;
  if (address < race.address + race.size && race.address < address + tally.size) {
    for (Race::Thread& thread : race.threads) {
      if (thread.block != block_number_ || thread.number != lane.warp * kWarpSize + lane.id) {
        continue;
      }
      thread.changes |= stores && thread.loads;
      thread.stores |= stores;
      thread.reads_then_updates |= is_atomic && thread.reads_first;
      thread.updates_atomically |= is_atomic;
      thread.updates_for_block |= is_atomic && tally.strength == Strength::kBlock;
      thread.loads |= !stores;
      thread.reads_first |= tally.access == Access::kLoad && !thread.updates_atomically;
    }
  }
  if (!race.lost_update.empty()) return;
  const Unobserved unobserved;
  const std::uint32_t bit = 1u << lane.id;
  Update& update = updates_[address];
  const bool same_warp = update.warp == lane.warp && update.epoch == epoch_;
  if (!same_warp) update = {};
  if (stores && update.pc && !(update.seen_by & bit) && update.lane != lane.id &&
      update.time >= clocks_[lane.warp].known[lane.id][update.lane]) {
    race.lost_update = "; with the lanes of the warp in lockstep, thread " + to_text(lane.thread) +
                       (update.read_by & bit ? ", which read the old value before," : "") +
                       " overwrites" + at_line(tally.pc) + " the value " +
                       value_text(address, tally.size) + " that " +
                       lane.block->name_of_thread(lane.warp * kWarpSize + update.lane) + " stored" +
                       at_line(update.pc) + ": it is lost";
    return;
  }
  if (stores || is_atomic) {
    update = {tally.pc, epoch_, clocks_[lane.warp].time, bit, update.read_by, lane.warp, lane.id};
  } else {
    update.epoch = epoch_;
    update.warp = lane.warp;
    update.seen_by |= bit;
    update.read_by |= bit;
  }
}

}  // namespace simt
