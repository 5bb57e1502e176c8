#include "simt/races.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <shared_mutex>

#include "simt/block.hpp"

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
    if (words[i] && words[i]->loaded.beside(block)) return true;
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

// --- A block's accesses -------------------------------------------------------------------------

void RaceCheck::start(GridState& state, unsigned threads, const std::deque<Tally>& tallies) {
  state_ = &state;
  races_ = state.races;
  mode_ = races_ ? races_->mode : RaceMode::kOverlook;
  resident_ = state.resident;
  counted_ = profile_active() && !state.is_replay;
  tallies_ = &tallies;
  intervals_.resize((threads + kWarpSize - 1) / kWarpSize);
  if (mode_ == RaceMode::kOrder || mode_ == RaceMode::kExplain) clocks_.resize(intervals_.size());
}

void RaceCheck::start_block(std::uint64_t id) {
  block_ = id;
  ++epoch_;
  interval_ = barrier_ = 0;
  std::fill(intervals_.begin(), intervals_.end(), 0);
  for (auto& [begin, region] : shared_) region.forget_order();
  updates_.clear();
  common_ = {};
  learnt_.clear();
}

void RaceCheck::watch(Tally& tally) {
  const Unobserved unobserved;
  const std::size_t bytes = tally.end - tally.begin;
  if (tally.space == Space::kShared) {
    if (!races_) return;
    tally.region = &shared_[tally.begin];
    return tally.region->begin_cells(tally.begin, bytes, tally.size);
  }
  const bool writes = tally.access == Access::kStore || tally.access == Access::kAtomic;
  if (races_ && (writes || GlobalRaces::is_watched(tally.pc))) {
    tally.region = races_->touch(tally.begin, bytes, tally.size, writes, tally.written);
  }
  if (mode_ != RaceMode::kFilter || !writes || counted_) return;
  for (const Tally& other : *tallies_) {
    if (!other.is_global() || other.region || other.begin != tally.begin) continue;
    races_->read_unwatched(other.pc, other.begin);
    races_->must_begin_again = true;
  }
}

void RaceCheck::end_grid() {
  if (!races_) return;
  for (const Tally& tally : *tallies_) {
    if (tally.is_global() && !tally.region) races_->read_unwatched(tally.pc, tally.begin);
  }
}

void RaceCheck::look(Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (mode_ == RaceMode::kFilter) {
    filter(lane, tally, address);
  } else if (mode_ == RaceMode::kOrder) {
    compare_with_earlier(lane, tally, address);
  } else if (mode_ == RaceMode::kExplain) {
    explain(lane, tally, address);
  }
}

// The kernel may start before the previous one has completed, and `lane` has not waited for that.
void RaceCheck::compare_with_previous(Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (tally.space == Space::kShared) return;
  const Unobserved unobserved;
  const GlobalRaces& previous = *races_->previous;
  const char* const did =
      previous.conflict_with(tally.begin, address - tally.begin, tally.size, tally.access);
  if (!did) return;
  lane.block->fail(lane,
                   fmt::format("race: {}, which the previous kernel, {}, {}, before it waits by "
                               "cudaGridDependencySynchronize()",
                               tally.describe(address), kernel_name(previous.kernel), did),
                   tally.pc);
}

void RaceCheck::meet(const Lane& lane, const void* pc) {
  if (mode_ != RaceMode::kExplain) return;
  if (Race::Thread* const thread = racing_thread(lane)) ++thread->barriers[pc];
}

void RaceCheck::warp_synchronized(unsigned warp, unsigned mask, bool all) {
  if (!is_instrumented()) return;
  if (all) intervals_[warp] = ++interval_;
  if (clocks_.empty()) return;
  std::array<Steps, kWarpSize>& known = clocks_[warp];
  Steps joined = {};
  for_each_lane(mask, [&](unsigned id) {
    for (unsigned i = 0; i < kWarpSize; ++i) joined[i] = std::max(joined[i], known[id][i]);
  });
  for_each_lane(mask, [&](unsigned id) { known[id] = joined; });
  if (mode_ == RaceMode::kOrder) join_warp(warp, mask);
}

void RaceCheck::block_synchronized() {
  ++epoch_;
  barrier_ = ++interval_;
  std::fill(intervals_.begin(), intervals_.end(), barrier_);
  for (const auto& [thread, learnt] : learnt_) common_.meet(learnt);
  learnt_.clear();
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

Kind kind_of(Access access, Strength strength) {
  if (access == Access::kAtomic) {
    return strength == Strength::kBlock ? Kind::kBlockUpdate : Kind::kUpdate;
  }
  const bool stores = access == Access::kStore;
  if (stores && strength == Strength::kBlock) return Kind::kBlockUpdate;
  if (strength == Strength::kVolatile) return stores ? Kind::kStrongWrite : Kind::kStrongRead;
  return stores ? Kind::kWrite : Kind::kRead;
}

std::uint64_t kinds_of(Kind kind) {
  constexpr std::uint64_t kKinds[] = {kReads,  kWrites, kStrong, kStrong | kStrongWrites,
                                      kStrong, kStrong};
  return kKinds[static_cast<int>(kind)];
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

void RaceCheck::filter(const Lane& lane, const Tally& tally, std::uintptr_t address) {
  const bool shared = tally.space == Space::kShared;
  const std::uint64_t kinds = kinds_of(kind_of(tally.access, tally.strength));
  // (For threads of other blocks an atomic operation of block scope is a plain one.)
  const CellUpdate update{block_ + 1,
                          lane.number(),
                          std::min<std::uint64_t>(intervals_[lane.warp], kLastInterval),
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
    if (tally.is_load_only() && old & (kWrites | kStrong)) now = kMayRace;
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
  const std::uint64_t kinds = kinds_of(kind_of(access, Strength::kPlain));
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

namespace {

constexpr std::size_t kNeighbours = 32;

// What stands at `i`; behind the end: 0, or null.
template <typename T>
const T& at(const Counts<T>& counts, std::size_t i) {
  static const T nothing{};
  return counts && i < counts->size() ? (*counts)[i] : nothing;
}

bool covers(std::uint32_t own, std::uint32_t other) {
  return own >= other;
}
template <typename T>
bool covers(const Counts<T>& own, const Counts<T>& other) {
  if (own == other || !other) return true;
  for (std::size_t i = 0; i < other->size(); ++i) {
    if (!covers(at(own, i), (*other)[i])) return false;
  }
  return true;
}
bool covers(const Clock& clock, const Moment& moment) {
  const auto& block = at(at(clock, 1 + moment.block / kNeighbours), moment.block % kNeighbours);
  return at(at(at(clock, 0), moment.grid), 0) > moment.phase || at(block, 0) > moment.epoch ||
         at(block, 1u + moment.thread) >= moment.step;
}

// The least that covers both. (Mostly one of the two covers the other one.)
std::uint32_t join(std::uint32_t own, std::uint32_t other) {
  return std::max(own, other);
}
template <typename T>
Counts<T> join(const Counts<T>& own, const Counts<T>& other) {
  if (covers(own, other)) return own;
  if (covers(other, own)) return other;
  std::vector<T> both = *own;
  both.resize(std::max(own->size(), other->size()));
  for (std::size_t i = 0; i < other->size(); ++i) both[i] = join(both[i], (*other)[i]);
  return std::make_shared<const std::vector<T>>(std::move(both));
}
void add(Clock& clock, const Clock& other) {
  clock = join(clock, other);
}

// With nothing but `value`, at `i`.
template <typename T>
Counts<T> only(std::size_t i, T value) {
  std::vector<T> counts(i + 1);
  counts.back() = std::move(value);
  return std::make_shared<const std::vector<T>>(std::move(counts));
}

// Of what came before `now`: earlier epochs of its block, and steps of its warp.
Clock clock_of(const Moment& now, const Steps& known) {
  std::vector<std::uint32_t> of_block(1 + now.thread / kWarpSize * kWarpSize);
  of_block[0] = now.epoch;
  of_block.insert(of_block.end(), known.begin(), known.end());
  const Counts<std::uint32_t> block =
      std::make_shared<const std::vector<std::uint32_t>>(std::move(of_block));
  return join(only(0, only(now.grid, only(0, now.phase))),
              only(1 + now.block / kNeighbours, only(now.block % kNeighbours, block)));
}

}  // namespace

// --- What threads know --------------------------------------------------------------------------

void Knowledge::fence(const Clock& before, bool wide) {
  add(known, std::exchange(pending, nullptr));
  add(unfenced, std::exchange(from_others, nullptr));
  if (wide) {
    add(known, std::exchange(unfenced, nullptr));
    add(known, std::exchange(from_grid, nullptr));
  }
  const Clock told = join(join(known, unfenced), before);
  const bool same = told_block == told_all;
  add(told_block, told);
  if (wide) told_all = same ? told_block : join(told_all, told);
}

void Knowledge::meet(const Knowledge& other) {
  add(known, other.known);
  add(known, other.pending);
  add(unfenced, other.unfenced);
  add(unfenced, other.from_others);
  add(from_grid, other.from_grid);
  add(told_block, other.told_block);
  add(told_all, other.told_all);
}

Knowledge& RaceCheck::knowledge(const Lane& lane) {
  return learnt_.try_emplace(lane.number(), common_).first->second;
}

void RaceCheck::join_warp(unsigned warp, unsigned mask) {
  Knowledge joined = common_;
  bool any = false;
  for_each_lane(mask, [&](unsigned id) {
    const auto own = learnt_.find(warp * kWarpSize + id);
    if (own == learnt_.end()) return;
    joined.meet(own->second);
    any = true;
  });
  if (any) for_each_lane(mask, [&](unsigned id) { learnt_[warp * kWarpSize + id] = joined; });
}

void RaceCheck::grid_arrives() {
  if (mode_ == RaceMode::kOrder) add(resident_->known[phase_ % 2], common_.known);
}

void RaceCheck::grid_synchronized() {
  if (mode_ == RaceMode::kOrder) add(common_.known, resident_->known[phase_ % 2]);
  ++phase_;
}

void RaceCheck::fence(Lane& lane, Scope scope) {
  if (mode_ != RaceMode::kOrder) return;
  const Moment now = next_step(lane);
  knowledge(lane).fence(clock_of(now, clocks_[lane.warp][lane.id]), scope != Scope::kBlock);
}

// `lane` reads a word that was written with `release`.
void RaceCheck::acquire(const Lane& lane, const std::shared_ptr<const Release>& release,
                        bool block_only, bool weak) {
  Knowledge& own = knowledge(lane);
  std::tuple read(release, block_only, weak);
  if (own.read == read) return;
  own.read = std::move(read);
  const bool same_grid = !resident_ || release->grid == resident_->number;
  if (!block_only) {
    add(!weak ? own.unfenced : same_grid ? own.from_others : own.from_grid, release->all);
  }
  const auto told = release->blocks.find(block_);
  if (told != release->blocks.end()) add(weak ? own.pending : own.known, told->second);
}

// What `lane` tells those who read what it is about to write, beside what `before` tells. Null if
// that is nothing.
std::shared_ptr<const Release> RaceCheck::release(const Lane& lane, bool block_only,
                                                  const std::shared_ptr<const Release>& before) {
  const auto own = learnt_.find(lane.number());
  const Knowledge& knows = own == learnt_.end() ? common_ : own->second;
  if (!knows.told_block) return before;
  Release release = before ? *before : Release{};
  release.grid = resident_ ? resident_->number : 0;
  if (!block_only) add(release.all, knows.told_all);
  // (Where blocks run one after the other, those of others have ended.)
  if (!resident_) {
    std::erase_if(release.blocks, [&](const auto& of) { return of.first != block_; });
  }
  add(release.blocks[block_], knows.told_block);
  return std::make_shared<const Release>(std::move(release));
}

// --- Words --------------------------------------------------------------------------------------

namespace {

constexpr std::ptrdiff_t kMaxLoadsToCheck = 4096;

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
      if (seen.insert({a->at.block, a->at.thread, a->kind, a->bytes}).second) kept.push_back(*a);
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
  if (kind == Kind::kRead) loaded.add(access.at.block);
  // Those after which this one certainly came need not be kept.
  if (kind == Kind::kWrite) {
    const auto is_replaced = [&](const WordAccess& a) { return !(a.bytes & ~access.bytes); };
    for (auto* list : {&reads, &strong_reads, &writes}) std::erase_if(*list, is_replaced);
    updated = {};
  } else if (access.updates()) {
    std::erase_if(writes, [&](const WordAccess& a) {
      return a.kind == kind && a.bytes == access.bytes &&
             (kind == Kind::kUpdate || a.at.block == access.at.block);
    });
    updated.add(access.at.block);
    update_epoch = access.at.epoch;
  }
  auto& list = kind == Kind::kRead ? reads : kind == Kind::kStrongRead ? strong_reads : writes;
  add_last_of_thread(list, access);
}

void Word::forget_loads(const Moment& thread) {
  const auto first = reads.end() - std::min(std::ssize(reads), kMaxLoadsToCheck);
  reads.erase(std::remove_if(first, reads.end(),
                             [&](const WordAccess& a) { return a.at.same_thread(thread); }),
              reads.end());
}

// --- Happens-before -----------------------------------------------------------------------------

Moment RaceCheck::next_step(const Lane& lane) {
  return {.block = block_,
          .phase = phase_,
          .epoch = epoch_,
          .step = ++step_of(lane),
          .grid = resident_ ? resident_->number : std::uint16_t{0},
          .thread = static_cast<std::uint16_t>(lane.number())};
}

// Whether `moment` is over for `lane`, by program order, barriers and __syncwarp.
bool RaceCheck::is_over(const Moment& moment, const Lane& lane) const {
  if (moment.block != block_) {
    return resident_ && moment.grid == resident_->number && moment.phase < phase_;
  }
  if (moment.epoch != epoch_) return true;
  return moment.thread / kWarpSize == lane.warp &&
         moment.step <= clocks_[lane.warp][lane.id][moment.thread % kWarpSize];
}

// Whether `lane` has seen the last atomic operation on the word, or comes after a thread that has.
// Atomic operations on a word are ordered with those before them: what happens after the last one
// happens after all. (A volatile load and store one after the other are no update.)
bool RaceCheck::saw_last_write(const Word& word, Kind kind, const Lane& lane) const {
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
void RaceCheck::compare(Lane& lane, const Tally& tally, std::uintptr_t address,
                        const WordAccess& access, const Word& word,
                        const std::vector<WordAccess>& earlier) {
  const auto own = learnt_.find(lane.number());
  const Knowledge& knows = own == learnt_.end() ? common_ : own->second;
  for (const WordAccess& a : earlier) {
    if (!access.conflicts(a) || is_over(a.at, lane)) continue;
    const bool ordered =
        (a.is_strong() && !a.reads_only() && saw_last_write(word, access.kind, lane)) ||
        covers(knows.known, a.at);
    // By atomic operations of another block's, without a fence behind them.
    const bool unfenced = !ordered && covers(knows.unfenced, a.at);
    if (ordered || (unfenced && !(access.kind == Kind::kRead && word.may_be_stale))) {
      races_->relied_on_order = true;
      continue;
    }
    const Unobserved unobserved;
    const WordAccess& load = a.kind == Kind::kRead ? a : access;
    const bool may_check =
        !unfenced && load.kind == Kind::kRead && (a.updates() || access.updates());
    const auto its_load = GlobalRaces::load_of(load.at, word);
    if (may_check && races_->unchecked.contains(its_load)) continue;
    Race race = race_with(a, lane, tally, address);
    race.has_flag = unfenced;
    if (unfenced) {
      race.missing =
          ", with no __threadfence() between the atomic operation or the flag that tells of it and "
          "this load, which may find an older value in its L1 cache";
    }
    Race& kept = (may_check ? races_->unchecked[its_load] : races_->race) = std::move(race);
    if (!may_check) lane.block->fail(lane, kept.report + (resident_ ? kept.missing : ""));
  }
}

// Compares the access with those before it, and orders the lane after what it reads.
void RaceCheck::compare_with_earlier(Lane& lane, const Tally& tally, std::uintptr_t address) {
  const bool is_atomic = tally.access == Access::kAtomic;
  WordAccess access{next_step(lane), tally.pc};
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
    const std::size_t first = std::max(begin, 8 * w) - 8 * w,
                      last = std::min(end - 8 * w, std::size_t{8});
    access.bytes = static_cast<std::uint8_t>((1u << last) - (1u << first));
    if (tally.strength == Strength::kCompare) {
      races_->unchecked.erase(GlobalRaces::load_of(access.at, word));
      word.forget_loads(access.at);
    }
    if (!access.is_strong() && word.is_updated_beside(access.at)) races_->relied_on_order = true;
    if (tally.is_load_only()) reject_load_only(lane, tally, address, word);
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
void RaceCheck::reject_load_only(Lane& lane, const Tally& tally, std::uintptr_t address,
                                 const Word& word) {
  if (word.writes.empty()) return;
  const Unobserved unobserved;
  const WordAccess& write = word.writes.back();
  const bool own_block = write.at.block == block_;
  lane.block->fail(
      lane,
      fmt::format("{} {}, which {} {}{} in the same launch: this load is for what no thread of the "
                  "launch writes, and may find an older value",
                  tally.describe(address),
                  tally.access == Access::kTexture ? "through a texture" : "by __ldg()",
                  own_block ? lane.block->name_of_thread(write.at.thread)
                            : lane.block->name_of_block(write.at.block),
                  write.updates() ? "updated" : "wrote", at_line(write.pc)),
      tally.pc);
}

Race RaceCheck::race_with(const WordAccess& other, const Lane& lane, const Tally& tally,
                          std::uintptr_t address) const {
  const bool own_block = other.at.block == block_;
  const auto thread = [&](std::uint64_t block, unsigned number) {
    const std::string of = own_block ? "" : " of " + lane.block->name_of_block(block);
    return Race::Thread{
        .block = block, .number = number, .name = lane.block->name_of_thread(number) + of};
  };
  Race race;
  race.address = address;
  race.size = tally.size;
  race.shared = tally.space == Space::kShared;
  race.threads[0] = thread(block_, lane.number());
  race.threads[1] = thread(other.at.block, other.at.thread);
  const char* const did = other.reads_only() ? "read" : other.updates() ? "updated" : "wrote";
  race.report =
      lane.block->describe_failure(lane,
                                   fmt::format("race: {}, which {} {}{}", tally.describe(address),
                                               race.threads[1].name, did, at_line(other.pc)),
                                   tally.pc);
  race.missing = !own_block ? ", with no fence and atomic operation that order them"
                 : other.at.thread / kWarpSize == lane.warp
                     ? ", with no __syncwarp or __syncthreads between"
                     : ", with no __syncthreads between";
  return race;
}

// --- Explaining a race --------------------------------------------------------------------------

// A barrier to which one of the two came more often; "" if there is none.
static std::string skipped_barrier(const Race::Thread (&threads)[2]) {
  const auto text = [](unsigned n) {
    return n == 0 ? std::string("never") : n == 1 ? "once" : std::to_string(n) + " times";
  };
  for (const auto& [t, other] : {std::pair(&threads[0], &threads[1]), {&threads[1], &threads[0]}}) {
    for (const auto& [barrier, count] : t->barriers) {
      const auto its = other->barriers.find(barrier);
      const unsigned its_count = its == other->barriers.end() ? 0 : its->second;
      if (count <= its_count) continue;
      return fmt::format(
          "; {} waits at the __syncthreads{} {}, {} {}: move the barrier out of the branch or loop "
          "that some threads skip",
          t->name, at_line(barrier), text(count), other->name, text(its_count));
    }
  }
  return "";
}

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
  for (const Thread& t : threads) {
    if (t.reads_then_updates && !t.stores) {
      return "; " + t.name +
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
  return missing + (one_block  ? skipped_barrier(threads)
                    : has_flag ? ""
                               : ": it takes a fence and a flag, or two launches");
}

// The one of the race's two threads that `lane` is, or null.
Race::Thread* RaceCheck::racing_thread(const Lane& lane) {
  for (Race::Thread& thread : races_->race.threads) {
    if (thread.block == block_ && thread.number == lane.number()) return &thread;
  }
  return nullptr;
}

// While lanes run in lockstep: what the threads of the race do to its word; and whether a lane
// stores to a word of the array to which another one of its warp has stored, and has not seen that.
void RaceCheck::explain(const Lane& lane, const Tally& tally, std::uintptr_t address) {
  Race& race = races_->race;
  const bool stores = tally.access == Access::kStore, is_atomic = tally.access == Access::kAtomic;
  if (race.address - tally.begin >= tally.end - tally.begin) return;
  if (address < race.address + race.size && race.address < address + tally.size) {
    if (Race::Thread* const thread = racing_thread(lane)) {
      thread->changes |= stores && thread->loads;
      thread->stores |= stores;
      thread->reads_then_updates |= is_atomic && thread->reads_first;
      thread->updates_atomically |= is_atomic;
      thread->updates_for_block |= is_atomic && tally.strength == Strength::kBlock;
      thread->loads |= !stores;
      thread->reads_first |= tally.access == Access::kLoad && !thread->updates_atomically;
    }
  }
  const std::uint32_t step = ++step_of(lane);
  if (!race.lost_update.empty()) return;
  const Unobserved unobserved;
  const std::uint32_t bit = 1u << lane.id;
  Update& update = updates_[address];
  if (update.warp != lane.warp || update.epoch != epoch_) {
    update = {.epoch = epoch_, .warp = lane.warp};
  }
  if (stores && update.pc && !(update.seen_by & bit) && update.lane != lane.id &&
      update.step > clocks_[lane.warp][lane.id][update.lane]) {
    race.lost_update = fmt::format(
        "; with the lanes of the warp in lockstep, thread {}{} overwrites{} the value {} that {} "
        "stored{}: it is lost",
        to_text(lane.thread), update.read_by & bit ? ", which read the old value before," : "",
        at_line(tally.pc), value_text(address, tally.size),
        lane.block->name_of_thread(lane.warp * kWarpSize + update.lane), at_line(update.pc));
    return;
  }
  if (stores || is_atomic) {
    update = {tally.pc, epoch_, step, bit, update.read_by, lane.warp, lane.id};
  } else {
    update.seen_by |= bit;
    update.read_by |= bit;
  }
}

}  // namespace simt
