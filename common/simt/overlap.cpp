#include "simt/overlap.hpp"

#include <algorithm>

namespace simt {

namespace {

// Calls visit() with each 8 bytes that an access touches, and which of them, as bits.
template <typename Visit>
void for_each_word(std::uintptr_t address, unsigned size, const Visit& visit) {
  for (std::uintptr_t word = address / 8 * 8; word < address + size; word += 8) {
    visit(word, bytes_of_word<8>(word / 8, address, address + size));
  }
}

bool conflict_between(Access a, Access b) {
  if (a == Access::kLoad && b == Access::kLoad) return false;
  return a != Access::kAtomic || b != Access::kAtomic;
}

}  // namespace

void EarlyAccesses::add(std::uintptr_t address, unsigned size, const Touch& touch) {
  for_each_word(address, size, [&](std::uintptr_t word, std::uint8_t bytes) {
    std::vector<Touch>& touches = words_[word];
    const auto is_noted = [&](const Touch& t) {
      return t.access == touch.access && !(bytes & ~t.bytes);
    };
    if (std::any_of(touches.begin(), touches.end(), is_noted)) return;
    touches.push_back(touch);
    touches.back().bytes = bytes;
  });
}

const EarlyAccesses::Touch* EarlyAccesses::conflict(std::uintptr_t address, unsigned size,
                                                    Access access) const {
  const Touch* found = nullptr;
  for_each_word(address, size, [&](std::uintptr_t word, std::uint8_t bytes) {
    const auto touches = words_.find(word);
    if (found || touches == words_.end()) return;
    for (const Touch& t : touches->second) {
      if (t.bytes & bytes && conflict_between(t.access, access)) found = &t;
    }
  });
  return found;
}

EarlyBlocks* EarlyBlocks::waiting_ = nullptr;

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
  waiting_ = this;
}

EarlyBlocks::~EarlyBlocks() {
  release();
  join();
}

void EarlyBlocks::release() {
  if (waiting_ == this) waiting_ = nullptr;
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
