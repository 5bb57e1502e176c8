// Programmatic dependent launch: a grid that starts before the previous kernel of its stream has
// completed.
//
// CUDA lets the blocks of such a grid run beside the previous kernel; what they may do before they
// call cudaGridDependencySynchronize() is up to the kernel. Here, where streams are late
// (Settings::late_streams), some blocks of the grid are run up to that call before the previous
// kernel starts: whether, and how many, is drawn from the seed. So a kernel that reads what the
// previous one writes, or writes what it reads, without the call or before it, gets another result.
// In the instrumented build such an access is reported when the previous kernel makes its own, as a
// race of the two.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "simt/internal.hpp"

namespace simt {

// The accesses of early blocks to global memory before the previous grid has completed.
class EarlyAccesses {
 public:
  struct Touch {
    std::uint8_t bytes = 0;  // of eight, as bits
    Access access{};
    const void* pc = nullptr;
    uint3 block{}, thread{};
  };
  void add(std::uintptr_t address, unsigned size, const Touch& touch);
  // One to the same byte, of which either writes, and not both are atomic. Null if there is none.
  const Touch* conflict(std::uintptr_t address, unsigned size, Access access) const;

 private:
  std::unordered_map<std::uintptr_t, std::vector<Touch>> words_;  // by address, of 8 bytes
};

// The blocks of a grid that have been started early, each on a thread of the host of its own, since
// the variables in shared memory belong to the thread.
class EarlyBlocks {
 public:
  // Runs `count` blocks at most, one after the other, until each one's threads all wait for the
  // previous grid or have returned. What grid.arguments points to must outlive this object.
  EarlyBlocks(const Grid& grid, std::uint64_t count);
  ~EarlyBlocks();
  EarlyBlocks(const EarlyBlocks&) = delete;
  EarlyBlocks& operator=(const EarlyBlocks&) = delete;

  GridState& state() { return state_; }
  std::uint64_t count() const { return ends_.size(); }
  // The previous grid has completed: the blocks go on.
  void release();
  // Waits until they are done.
  void join();

  // By the thread of a block: waits for release().
  void wait();

  const Grid& grid() const { return grid_; }
  EarlyAccesses accesses;
  // Those that have been started last and not been released; null if there are none.
  static EarlyBlocks* waiting() { return waiting_; }

 private:
  static EarlyBlocks* waiting_;

  Grid grid_;
  GridState state_;
  DeviceMemoryAccess access_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t stopped_ = 0;  // blocks that wait or are done
  bool released_ = false;
  std::vector<std::future<void>> ends_;  // of the blocks, each on a thread of the host
};

}  // namespace simt
