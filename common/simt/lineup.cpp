// From the trails of a warp's lanes to the requests of the warp.
//
// A trail is a list of places in the program. A GPU executes an instruction for all lanes of a warp
// that stand at it; those that are further on wait where paths meet again. Here the lanes whose
// next place is the first in the program go on together, again and again: lanes that have left a
// loop or skipped a branch wait behind it for those that have not. (That is right where the
// compiler lays out blocks in the order of the source, for which build.mk asks it.)
#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>

#include "simt/block.hpp"

namespace simt {
namespace {

std::mutex profile_mutex;
bool profiling = false;
Profile profile;
std::unique_ptr<CacheModel> caches;

using Addresses = std::uintptr_t[kWarpSize];

// For each `group` of neighbouring lanes: the distinct units of `unit` bytes, counted from `base`
// on, in which those of the group that `mask` names access `size` bytes; unless there are none.
template <typename Visit>
void for_each_group(const Addresses& addresses, unsigned mask, unsigned size, unsigned group,
                    std::uintptr_t base, unsigned unit, Visit&& visit) {
  for (unsigned first = 0; first < kWarpSize; first += group) {
    std::uintptr_t units[2 * kWarpSize];  // an access may straddle two sectors
    unsigned n = 0;
    for (unsigned id = first; id < first + group; ++id) {
      if (!(mask >> id & 1)) continue;
      const std::uintptr_t begin = addresses[id] - base;
      for (std::uintptr_t u = begin / unit; u <= (begin + size - 1) / unit; ++u) units[n++] = u;
    }
    std::sort(units, units + n);
    if (n > 0) visit(units, std::unique(units, units + n));
  }
}

// Adds the rounds in which 32 banks of 4 bytes serve the accesses to shared memory. Lanes that want
// the same word share it. Wider accesses are served half a warp or a quarter of it at a time.
void count_passes(AccessCounts& counts, const Addresses& addresses, unsigned mask, unsigned size) {
  const auto visit = [&counts](const std::uintptr_t* word, const std::uintptr_t* end) {
    unsigned load[kWarpSize] = {};
    unsigned most = 0;
    for (; word < end; ++word) most = std::max(most, ++load[*word % kWarpSize]);
    counts.passes += most;
    ++counts.ideal_passes;
  };
  for_each_group(addresses, mask, size, kWarpSize / std::max(1u, size / kBankBytes),
                 address_of(shared_address(0)), kBankBytes, visit);
}

// A texture unit takes 8 neighbouring lanes at a time, as an H200's counters say: their fetches are
// a request, with sectors of its own.
void count_fetches(AccessCounts& counts, const Addresses& addresses, unsigned mask, unsigned size) {
  const auto visit = [&counts](const std::uintptr_t* sector, const std::uintptr_t* end) {
    ++counts.texture_requests;
    counts.texture_sectors += static_cast<std::uint64_t>(end - sector);
  };
  for_each_group(addresses, mask, size, 8, 0, kSectorBytes, visit);
}

}  // namespace

const char* to_string(Access access) {
  constexpr const char* kNames[] = {"load", "store", "atomic", "load", "barrier", "warp operation"};
  return kNames[static_cast<int>(access)];
}

const char* to_string(Space space) {
  constexpr const char* kNames[] = {"global", "shared", "peer", "none"};
  return kNames[static_cast<int>(space)];
}

// --- Profile ------------------------------------------------------------------------------------

void Spread::add(std::uint64_t work) {
  ++parts;
  total += work;
  most = std::max(most, work);
}

Spread& Spread::operator+=(const Spread& other) {
  parts += other.parts;
  total += other.total;
  most = std::max(most, other.most);
  return *this;
}

KernelCounts& KernelCounts::operator+=(const KernelCounts& other) {
  launches += other.launches;
  lanes += other.lanes;
  warps += other.warps;
  blocks += other.blocks;
  drawers += other.drawers;
  barriers += other.barriers;
  longest_item = std::max(longest_item, other.longest_item);
  draws += other.draws;
  hottest_counter += other.hottest_counter;
  hottest_address += other.hottest_address;
  shared_bytes = std::max(shared_bytes, other.shared_bytes);
  dram_write_sectors += other.dram_write_sectors;
  return *this;
}

void start_profile(const Gpu* gpu) {
  const std::lock_guard lock(profile_mutex);
  profiling = is_instrumented();
  profile = {};
  caches = gpu && profiling ? std::make_unique<CacheModel>(*gpu) : nullptr;
}

Profile stop_profile() {
  const std::lock_guard lock(profile_mutex);
  profiling = false;
  // What is left in the L2 goes to DRAM after the last kernel; it is that one's.
  if (caches && !profile.order.empty()) {
    profile.kernels[profile.order.back()].dram_write_sectors += caches->take_written(true);
  }
  caches = nullptr;
  return std::exchange(profile, {});
}

bool profile_active() {
  return profiling;
}

CacheModel* profile_caches() {
  return caches.get();
}

void AccessCount::start(const GridState& state, unsigned threads, std::deque<Tally>& tallies) {
  grid_ = &state.grid();
  tallies_ = &tallies;
  warps_.resize((threads + kWarpSize - 1) / kWarpSize);
  lane_work_.resize(threads);
  kernel_.shared_bytes = static_shared_bytes(grid_->kernel) + grid_->dynamic_shared_bytes;
  counting_ = profile_active() && !state.is_replay;
  caches_ = counting_ ? profile_caches() : nullptr;
  recorder_ = counting_ ? active_recorder() : nullptr;
  if (caches_) caches_->start_grid(threads, kernel_.shared_bytes);
}

void AccessCount::start_block(std::uint64_t number) {
  block_ = number;
  if (number == 0) kernel_.launches = 1;
  if (caches_) caches_->start_block();
}

void AccessCount::end_block() {
  if (!counting_) return;
  std::uint64_t requests = 0;
  for (WarpCount& warp : warps_) {
    if (warp.item_begin > 0) kernel_.drawers.add(warp.requests);
    end_item(warp);
    warp.item_begin = 0;
    requests += warp.requests;
    kernel_.warps.add(std::exchange(warp.requests, 0));
  }
  kernel_.blocks.add(requests);
  for (std::uint64_t& work : lane_work_) kernel_.lanes.add(std::exchange(work, 0));
}

void AccessCount::end_item(WarpCount& warp) {
  kernel_.longest_item = std::max(kernel_.longest_item, warp.requests - warp.item_begin);
  warp.item_begin = warp.requests;
}

void AccessCount::end_grid() {
  const std::lock_guard lock(profile_mutex);
  if (caches_) kernel_.dram_write_sectors = caches_->take_written(false);
  for (const auto& [address, lanes] : atomics_) {
    kernel_.hottest_address = std::max(kernel_.hottest_address, lanes);
  }
  for (const auto& [address, draws] : draws_) {
    kernel_.hottest_counter = std::max(kernel_.hottest_counter, draws);
  }
  if (!profile.kernels.contains(grid_->kernel)) profile.order.push_back(grid_->kernel);
  profile.kernels[grid_->kernel] += kernel_;
  for (const Tally& tally : *tallies_) {
    if (!tally.counted) continue;
    const bool is_texture = tally.access == Access::kTexture;
    const AccessKey key{grid_->kernel, *tally.array, tally.space,
                        is_texture ? Access::kLoad : tally.access, tally.pc};
    profile.accesses[key] += tally.counts;
  }
}

// --- Lining up ----------------------------------------------------------------------------------

void AccessCount::line_up(unsigned warp) {
  constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  // Of the lanes that have a trail: where they are, and where on it.
  std::uint32_t places[kWarpSize];
  const TrailEntry* entries[kWarpSize];
  unsigned ids[kWarpSize];
  unsigned lanes = 0;
  for (unsigned id = 0; id < kWarpSize; ++id) {
    Trail& trail = trails_[id];
    if (trail.empty()) continue;
    trail.push_back({kNowhere, 0, 0});
    places[lanes] = trail.front().place;
    entries[lanes] = trail.data();
    ids[lanes++] = id;
  }
  if (recorder_ && lanes > 0) recorder_->start_lining_up(*grid_, block_, warp);
  const unsigned all = lanes == kWarpSize ? ~0u : (1u << lanes) - 1;
  std::uint32_t differ = 1;  // 0: all are at the same place, as mostly
  while (lanes > 0) {
    std::uint32_t place = places[0];
    unsigned together = all;
    if (differ) {
      place = *std::min_element(places, places + lanes);
      together = 0;
      for (unsigned i = 0; i < lanes; ++i) together |= (places[i] == place ? 1u : 0u) << i;
    }
    if (place == kNowhere) break;
    if (!entries[std::countr_zero(together)]->tally) touched_.mask = 0;  // a basic block begins
    differ = together ^ all;
    // One instruction may reach several arrays: each gets a request of its own.
    while (together) {
      const std::uint32_t tally = entries[std::countr_zero(together)]->tally;
      std::uintptr_t addresses[kWarpSize];
      unsigned mask = 0;
      for (unsigned rest = together; rest; rest &= rest - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(rest));
        const TrailEntry& entry = *entries[i];
        if (entry.tally != tally) continue;
        addresses[ids[i]] = entry.address;
        mask |= 1u << ids[i];
        together &= ~(1u << i);
        places[i] = (++entries[i])->place;
        differ |= places[i] ^ places[0];
      }
      if (tally) {
        request((*tallies_)[tally - 1], addresses, mask, warp);
      } else if (recorder_) {
        recorder_->step(reinterpret_cast<const void*>(executable_begin + place), mask);
      }
    }
  }
  if (recorder_) recorder_->finish_lining_up();
  for (Trail& trail : trails_) trail.clear();
}

// Counts one request of the lanes in `mask`. A trace has what the request alone adds.
void AccessCount::request(Tally& tally, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask,
                          unsigned warp) {
  if (!recorder_ || tally.space == Space::kNone) {
    count(tally, addresses, mask, warp, nullptr);
  } else {
    AccessCounts& own = recorder_->counts_of_next();
    const AccessCounts before = std::exchange(tally.counts, {});
    count(tally, addresses, mask, warp, &own);
    own += tally.counts;
    tally.counts += before;
  }
  if (recorder_) recorder_->request(tally, addresses, mask);
}

// `own`: counts what the caches lack of this request alone, if it is not null.
void AccessCount::count(Tally& tally, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask,
                        unsigned warp, AccessCounts* own) {
  AccessCounts& counts = tally.counts;
  ++counts.requests;
  const auto lanes = static_cast<unsigned>(std::popcount(mask));
  counts.lanes += lanes;
  if (tally.space == Space::kNone) return;

  ++warps_[warp].requests;
  const bool global_atomic = tally.access == Access::kAtomic && tally.space == Space::kGlobal;
  if (global_atomic && tally.draws) {
    ++kernel_.draws;
    end_item(warps_[warp]);
  }
  std::uintptr_t sorted[kWarpSize];
  unsigned n = 0;
  for_each_lane(mask, [&](unsigned id) {
    ++lane_work_[warp * kWarpSize + id];
    sorted[n++] = addresses[id];
  });
  // Lanes mostly walk upwards, so that the addresses are sorted as they are.
  if (!std::is_sorted(sorted, sorted + n)) std::sort(sorted, sorted + n);

  std::uint64_t sectors[2 * kWarpSize];  // an access of up to 16 bytes may straddle two
  unsigned sector_count = 0;
  std::uint64_t bytes = 0, lines = 0;
  std::uintptr_t end = 0, lines_end = 0, sectors_end = 0;  // of what is counted so far
  std::uint64_t same = 0;
  for (unsigned i = 0; i < n; ++i) {
    const std::uintptr_t begin = sorted[i];
    same = i > 0 && begin == sorted[i - 1] ? same + 1 : 1;
    if (tally.access == Access::kAtomic) {
      counts.max_same_address = std::max(counts.max_same_address, same);
    }
    if (global_atomic && !tally.draws) ++atomics_[begin];
    if (global_atomic && tally.draws && (same == 1 || !tally.merges)) ++draws_[begin];
    if (same > 1) continue;
    ++counts.addresses;
    bytes += begin + tally.size - std::max(begin, end);
    end = begin + tally.size;
    const std::uintptr_t last_sector = (end - 1) / kSectorBytes;
    for (std::uint64_t s = std::max(begin / kSectorBytes, sectors_end); s <= last_sector; ++s) {
      sectors[sector_count++] = s;
    }
    sectors_end = last_sector + 1;
    const std::uintptr_t last_line = (end - 1) / kLineBytes;
    lines += last_line + 1 - std::max(begin / kLineBytes, lines_end);
    lines_end = last_line + 1;
  }
  counts.bytes_used += bytes;
  if (tally.space == Space::kShared) {
    return count_passes(counts, addresses, mask, tally.size);
  }
  counts.sectors += sector_count;
  Touched& last = touched_;
  if (last.mask == mask && last.array == tally.begin && last.access == tally.access) {
    counts.repeated_sectors +=
        std::count_if(sectors, sectors + sector_count, [&](std::uint64_t sector) {
          return std::binary_search(last.sectors.begin(), last.sectors.end(), sector);
        });
  }
  last.mask = mask;
  last.array = tally.begin;
  last.access = tally.access;
  last.sectors.assign(sectors, sectors + sector_count);
  if (tally.access == Access::kTexture) count_fetches(counts, addresses, mask, tally.size);
  counts.ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
  counts.lines += lines;
  counts.ideal_lines += (bytes + kLineBytes - 1) / kLineBytes;
  if (caches_ && tally.space != Space::kPeer)
    caches_->request(warp, tally.access, sectors, sector_count, counts, own);
}

}  // namespace simt
