#include "simt/cache_model.hpp"

#include <algorithm>
#include <utility>

#include "simt/engine.hpp"
#include "simt/profile.hpp"

namespace simt {

const Gpu* find_gpu(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kGpus), std::end(kGpus),
                                         [&](const Gpu& g) { return name == g.name; });
  return found == std::end(kGpus) ? nullptr : found;
}

// The sectors of a cache in the order of their last use: entries in a ring, from the newest to the
// oldest, that begins and ends with entry 0, and lists of those whose sectors have the same hash. 0
// ends a list.
class CacheModel::Cache {
 public:
  explicit Cache(std::size_t bytes) { resize(bytes); }

  // It is empty then.
  void resize(std::size_t bytes) {
    capacity_ = std::max<std::size_t>(bytes / kSectorBytes, 1);
    written_back_ = 0;
    if (entries_.size() > 1) std::fill(lists_.begin(), lists_.end(), 0);
    entries_.assign(1, {});
  }

  // True if the sector was there. It is now, as the last one used.
  bool touch(std::uint64_t sector, bool write) {
    std::uint32_t at = list_of(sector);
    while (at != 0 && entries_[at].sector != sector) at = entries_[at].next;
    const bool found = at != 0;
    if (found) {
      take_out(at);
    } else {
      at = free_entry();
      entries_[at] = {.sector = sector, .next = std::exchange(list_of(sector), at)};
    }
    Entry &entry = entries_[at], &ring = entries_[0];
    entry.dirty |= write;
    entry.newer = 0;
    entry.older = std::exchange(ring.older, at);
    entries_[entry.older].newer = at;
    return found;
  }

  std::uint64_t take_written_back() { return std::exchange(written_back_, 0); }
  std::uint64_t clean() {
    std::uint64_t dirty = 0;
    for (Entry& entry : entries_) dirty += std::exchange(entry.dirty, false);
    return dirty;
  }

 private:
  struct Entry {
    std::uint64_t sector = 0;
    std::uint32_t next = 0, newer = 0, older = 0;
    bool dirty = false;
  };

  std::uint32_t& list_of(std::uint64_t sector) {
    return lists_[(sector * 0x9e3779b97f4a7c15u >> 32) & (lists_.size() - 1)];
  }
  void take_out(std::uint32_t at) {
    entries_[entries_[at].newer].older = entries_[at].older;
    entries_[entries_[at].older].newer = entries_[at].newer;
  }
  // If the cache is full, that which has not been used for longest.
  std::uint32_t free_entry() {
    if (entries_.size() <= capacity_) {
      if (entries_.size() == lists_.size()) {
        lists_.assign(4 * lists_.size(), 0);
        for (std::uint32_t i = 1; i < entries_.size(); ++i) {
          entries_[i].next = std::exchange(list_of(entries_[i].sector), i);
        }
      }
      entries_.emplace_back();
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const std::uint32_t oldest = entries_[0].newer;
    written_back_ += entries_[oldest].dirty;
    take_out(oldest);
    std::uint32_t* link = &list_of(entries_[oldest].sector);
    while (*link != oldest) link = &entries_[*link].next;
    *link = entries_[oldest].next;
    return oldest;
  }

  std::size_t capacity_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> lists_ = std::vector<std::uint32_t>(64);
  std::uint64_t written_back_ = 0;
};

CacheModel::CacheModel(const Gpu& gpu) : gpu_(gpu), l2_(std::make_unique<Cache>(gpu.l2_bytes)) {
  for (unsigned i = 0; i < gpu.multiprocessors; ++i) l1_.push_back(std::make_unique<Cache>(0));
}

CacheModel::~CacheModel() = default;

void CacheModel::start_grid(unsigned threads_per_block, std::size_t shared_bytes_per_block) {
  warps_per_block_ = (threads_per_block + kWarpSize - 1) / kWarpSize;
  std::size_t blocks =
      std::min(gpu_.blocks, gpu_.threads / std::min(gpu_.threads, warps_per_block_ * kWarpSize));
  if (shared_bytes_per_block > 0) {
    blocks = std::min(blocks, gpu_.shared_bytes / shared_bytes_per_block);
  }
  blocks = std::max<std::size_t>(blocks, 1);
  wave_blocks_ = blocks * gpu_.multiprocessors;
  const std::size_t shared = gpu_.shared_is_of_l1 ? blocks * shared_bytes_per_block : 0;
  for (auto& l1 : l1_) l1->resize(gpu_.l1_bytes - std::min(gpu_.l1_bytes, shared));
}

void CacheModel::start_block() {
  // What the GPU holds at once, as far as the host has room for it.
  constexpr std::size_t kMostSectors = std::size_t{1} << 24;
  if (blocks_ == wave_blocks_ || held_ > kMostSectors) replay();
  ++blocks_;
  warps_.resize(blocks_ * warps_per_block_);
}

void CacheModel::request(unsigned warp, Access access, const std::uint64_t* sectors, unsigned count,
                         AccessCounts& counts, AccessCounts* own) {
  WarpRequests& w = warps_[(blocks_ - 1) * warps_per_block_ + warp];
  w.requests.push_back({&counts, own, count, access});
  w.sectors.insert(w.sectors.end(), sectors, sectors + count);
  held_ += count;
}

std::uint64_t CacheModel::take_written(bool at_end) {
  replay();
  return l2_->take_written_back() + (at_end ? l2_->clean() : 0);
}

// Serves all requests that were gathered: in each round every warp that has one makes its next.
void CacheModel::replay() {
  std::vector<std::size_t> active(warps_.size());
  for (std::size_t i = 0; i < active.size(); ++i) active[i] = i;
  while (!active.empty()) {
    std::erase_if(active, [this](std::size_t i) {
      WarpRequests& warp = warps_[i];
      if (warp.next_request == warp.requests.size()) return true;
      serve(*l1_[i / warps_per_block_ % l1_.size()], warp);
      return false;
    });
  }
  warps_.clear();
  blocks_ = 0;
  held_ = 0;
}

void CacheModel::serve(Cache& l1, WarpRequests& warp) {
  const Request& request = warp.requests[warp.next_request++];
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const std::uint64_t sector = warp.sectors[warp.next_sector++];
    const bool loads = request.access == Access::kLoad || request.access == Access::kTexture;
    if (loads && l1.touch(sector, false)) continue;
    ++request.counts->l2_sectors;
    if (request.own) ++request.own->l2_sectors;
    // A sector that is stored is taken to be overwritten as a whole, in the end: it is not read.
    const bool found = l2_->touch(sector, !loads);
    if (found || request.access == Access::kStore) continue;
    ++request.counts->dram_sectors;
    if (request.own) ++request.own->dram_sectors;
  }
}

}  // namespace simt
