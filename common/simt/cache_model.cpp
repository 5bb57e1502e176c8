#include "simt/cache_model.hpp"

#include <algorithm>
#include <list>
#include <unordered_map>
#include <utility>

#include "simt/engine.hpp"
#include "simt/profile.hpp"

namespace simt {

const Gpu* find_gpu(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kGpus), std::end(kGpus),
                                         [&](const Gpu& g) { return name == g.name; });
  return found == std::end(kGpus) ? nullptr : found;
}

// The sectors of a cache in the order of their last use.
class CacheModel::Cache {
 public:
  explicit Cache(std::size_t bytes) { resize(bytes); }

  // It is empty then.
  void resize(std::size_t bytes) {
    capacity_ = std::max<std::size_t>(bytes / kSectorBytes, 1);
    place_.clear();
    entries_.clear();
    written_back_ = 0;
  }

  // True if the sector was there. It is now, as the last one used.
  bool touch(std::uint64_t sector, bool write) {
    const auto [it, is_new] = place_.try_emplace(sector);
    if (!is_new) {
      entries_.splice(entries_.begin(), entries_, it->second);
    } else if (entries_.size() < capacity_) {
      entries_.push_front({sector, false});
    } else {  // in the place of the one that has not been used for longest
      place_.erase(entries_.back().sector);
      written_back_ += entries_.back().dirty;
      entries_.splice(entries_.begin(), entries_, std::prev(entries_.end()));
      entries_.front() = {sector, false};
    }
    it->second = entries_.begin();
    entries_.front().dirty |= write;
    return !is_new;
  }

  std::uint64_t take_written_back() { return std::exchange(written_back_, 0); }
  std::uint64_t clean() {
    std::uint64_t dirty = 0;
    for (Entry& entry : entries_) dirty += std::exchange(entry.dirty, false);
    return dirty;
  }

 private:
  struct Entry {
    std::uint64_t sector;
    bool dirty;
  };
  std::size_t capacity_ = 0;
  std::list<Entry> entries_;
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> place_;
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
  Warp& w = warps_[(blocks_ - 1) * warps_per_block_ + warp];
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
      Warp& warp = warps_[i];
      if (warp.next_request == warp.requests.size()) return true;
      serve(*l1_[i / warps_per_block_ % l1_.size()], warp);
      return false;
    });
  }
  warps_.clear();
  blocks_ = 0;
  held_ = 0;
}

void CacheModel::serve(Cache& l1, Warp& warp) {
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
