// The runtime's errors, streams and memory, as simt's other parts see them. Not for use outside
// simt.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simt/runtime.hpp"
#include "simt/shared_memory.hpp"

namespace simt {

// Remembers `error` for cudaGetLastError and returns it.
// `why`: what the error's name does not say; see take_reason().
cudaError_t set_error(cudaError_t error, const std::string& why = {});
// The callback that is told of each error, or null.
extern void (*error_listener)(cudaError_t error, const std::string& why);
// The callback that is told of each report.
extern void (*report_listener)();
int current_device();
bool is_device(int device);

// --- Streams -------------------------------------------------------------------------------------

bool is_stream(cudaStream_t stream);
// -1 if there is no such stream, nor for the default stream, which each device has.
int device_of_stream(cudaStream_t stream);
// Whether what `stream` is asked for is not to be done at once: it is captured, or late.
bool is_deferred(cudaStream_t stream);
// What CUDA does not allow while streams are captured, since what they are asked for is not done
// then: to wait, to allocate and to free. Of streams that are captured in the mode global, or of
// all streams of the current device. Returns CUDA's error, and no graph will come of their
// captures.
enum class InCapture : std::uint8_t { kUnsafeCall, kWaitForDevice };
cudaError_t refuse_in_capture(InCapture call = InCapture::kUnsafeCall);
// What a stream is asked for.
using Work = std::function<cudaError_t()>;
// How the runtime tells of the end of a grid.
cudaError_t error_of(Outcome outcome);
// Keeps a cooperative grid, whose arguments are `kept`, until something waits for it.
cudaError_t enqueue_cooperative(cudaStream_t stream, const Grid& grid, std::shared_ptr<void> kept);
// Does `work` now, or keeps it for later.
cudaError_t enqueue(cudaStream_t stream, Work work);
// Does what is late, of a stream, of a device, or all of it; returns the first error.
cudaError_t finish_stream(cudaStream_t stream);
cudaError_t finish_device(int device);
// Of device memory that has not been freed.
std::vector<std::string> names_of_allocations();
cudaError_t finish_all();

// --- Memory --------------------------------------------------------------------------------------

// Which bytes of an array have been written: a mark for each. Threads of the host may use them at
// the same time.
class WrittenBytes {
 public:
  explicit WrittenBytes(std::size_t bytes) : marks_(bytes) {}
  // Whether all of `count` bytes from `offset` on are.
  bool all(std::size_t offset, std::size_t count) const {
    for (std::size_t i = offset; i < offset + count; ++i) {
      if (!std::atomic_ref(marks_[i]).load(std::memory_order_relaxed)) return false;
    }
    return true;
  }
  void add(std::size_t offset, std::size_t count) {
    for (std::size_t i = offset; i < offset + count; ++i) {
      std::atomic_ref(marks_[i]).store(true, std::memory_order_relaxed);
    }
  }
  // Whether every byte is: then none needs to be looked up any more.
  bool complete() const {
    if (!complete_) complete_ = all(0, marks_.size());
    return complete_;
  }
  void clear() { std::fill(marks_.begin(), marks_.end(), false); }
  std::vector<unsigned char> save() const { return marks_; }
  void restore(const std::vector<unsigned char>& saved) {
    marks_ = saved;
    complete_ = false;
  }

 private:
  mutable std::vector<unsigned char> marks_;
  mutable std::atomic<bool> complete_ = false;  // as far as is known
};

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::size_t mapped_bytes = 0;
  int device = 0;
  std::string name;
  bool open = true;
  std::shared_ptr<WrittenBytes> written = nullptr;  // instrumented build

  bool contains(std::uintptr_t address) const { return address - begin < bytes; }
};

// The allocation that holds `address`; null if there is none. Valid until it is freed.
const Allocation* find_allocation(std::uintptr_t address);
// Where `address` is, "12 bytes into 'x', which has 12", for a report; "" if near no allocation.
std::string describe_address(std::uintptr_t address);
// The pinned host memory that holds `address`, which kernels may use as they use a device's.
NamedRange find_pinned(std::uintptr_t address);
// Notes that `bytes` bytes of device memory were written; of what the host copied `from` device
// memory, those that had been written there.
void mark_written(std::uintptr_t to, std::size_t bytes, std::uintptr_t from = 0);
// Whether a kernel on `device` may use memory of `owner`.
bool can_reach(int device, int owner);

// In the instrumented build an allocation can be touched only after open(), and while one of these
// lives. (One by one, as they are needed: changing the protection of much memory takes long.)
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
  // The allocation that holds `address`, if one does.
  static void open(std::uintptr_t address);
};

// From now on a fault in a kernel is a report; on this thread of the host also one for want of
// stack.
enum class Fault : std::uint8_t { kDivision, kAlignment, kAddress, kStack };
void watch_faults();
void watch_faults_of_thread();

}  // namespace simt
