#include "simt/overlap.hpp"

#include <algorithm>

namespace simt {

EarlyBlocks::EarlyBlocks(const Grid& grid, std::uint64_t count) : grid_(grid), state_(grid_) {
  const std::uint64_t all = 1ull * grid_.grid.x * grid_.grid.y * grid_.grid.z;
  count = std::min(count, all);
  for (std::uint64_t i = 0; i < count && !state_.failed(); ++i) {
    ends_.push_back(on_thread([this, i, all] {
      std::unique_ptr<Block> block = take_block();
      block->start_early(this);
      block->start_grid(state_);
      block->run(scheduled_block(i, all, state_.schedule));
      block->end_grid();
      block->start_early(nullptr);
      give_block(std::move(block));
      const std::lock_guard lock(mutex_);
      ++stopped_;
      changed_.notify_all();
    }));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, i] { return stopped_ > i; });
  }
}

EarlyBlocks::~EarlyBlocks() {
  release();
  join();
}

void EarlyBlocks::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

void EarlyBlocks::join() {
  for (std::future<void>& end : ends_) {
    if (end.valid()) end.get();
  }
}

void EarlyBlocks::wait() {
  std::unique_lock lock(mutex_);
  ++stopped_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return released_; });
}

}  // namespace simt
