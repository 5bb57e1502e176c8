// Programmatic dependent launch: a grid that starts before the previous kernel of its stream has
// completed.
//
// CUDA lets the blocks of such a grid run beside the previous kernel; what they may do before they
// call cudaGridDependencySynchronize() is up to the kernel. Here, where streams are late
// (Settings::late_streams), some blocks of the grid are run up to that call before the previous
// kernel starts: whether, and how many, is drawn from the seed. So a kernel that reads what the
// previous one writes, or writes what it reads, without the call or before it, gets another result.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "simt/internal.hpp"

namespace simt {

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

 private:
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
