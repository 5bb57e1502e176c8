// Takes down what a run does, for trace.hpp. Not for use outside simt.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/runtime.hpp"
#include "simt/trace.hpp"

namespace simt {

struct Lane;

// An instruction, and an array that it touches.
struct Target {
  const void* pc;
  unsigned size;
  Access access;
  Space space;
  const std::string* array;   // its name, or that of a barrier or warp operation
  std::uintptr_t begin, end;  // 0: of none
};

// The hooks are called by the Observer, which also says when a lane's accesses become requests: the
// values are noted when a lane makes an access, and written down when the warp is lined up.
class Recorder {
 public:
  explicit Recorder(std::size_t limit) : limit_(limit) {}

  // `grid` begins, on the stream that OnStream names. Grids that are resident together begin one
  // after the other.
  void start_launch(const Grid& grid);
  // The running lane is about to access memory, respectively waits at a barrier or warp operation,
  // which then has a result.
  void access(const Lane& lane, std::uintptr_t address, unsigned size, Access access);
  void meet(const Lane& lane, Access access);
  void complete(const Lane& lane);
  // The running lane's store has been made, and its value is in memory, where it may not stay; or
  // it will be made, of `value`, after others have run.
  void finish_store();
  void finish_store(std::uint64_t value);
  void block_synchronized() { write("[\"barrier\"]"); }

  // While the lanes of a warp are lined up: those in `mask` are at `pc`; they make a request.
  void start_lining_up(const Grid& grid, std::uint64_t block, unsigned warp);
  void finish_lining_up();
  void step(const void* pc, unsigned mask);
  void request(const Target& target, const std::uintptr_t (&addresses)[kWarpSize], unsigned mask);
  // Of the next request to memory. What the caches lack of it is known after the launch.
  AccessCounts& counts_of_next() { return counts_.emplace_back(); }

  // `bytes` bytes were copied, on that stream; null for memory of the host.
  void copy(const void* to, const void* from, std::size_t bytes);
  // A stream of `device` records an event; a stream waits for what was recorded.
  void record_event(cudaEvent_t event, cudaStream_t stream, int device);
  void wait_for_event(cudaStream_t stream, int device, cudaEvent_t event);
  void failure(const std::string& what);

  Trace take();

 private:
  static constexpr std::uint8_t kNoLane = 255;
  // What a lane's access read, and what it left: the value before and after for an atomic, the
  // operand and the result of a warp operation; an access of up to 16 bytes has two words.
  struct Note {
    std::array<std::uint64_t, 2> words = {};
    bool has_result = false;
    std::uint8_t source = kNoLane;  // of a shuffle: the lane whose operand is the result
  };
  // How the bits of a value are to be written.
  enum class Form : std::uint8_t { kFourBytes, kEightBytes, kMask };

  std::size_t stream(cudaStream_t stream, int device);
  std::size_t place(const void* pc);
  int array(std::uintptr_t begin, std::size_t bytes, Space space, const std::string& name);
  std::size_t instruction(const Target& target);
  std::size_t value(std::uint64_t bits, Form form);
  std::size_t sources(const Note* const* notes, unsigned mask);
  static Form form(std::uint64_t bits);
  void write_launch(std::size_t number);
  void write(std::string_view event);
  void append(std::string_view event);

  std::size_t limit_;
  std::mutex mutex_;
  Trace trace_;
  std::unordered_map<const void*, std::size_t> places_;
  std::map<std::tuple<std::uintptr_t, std::size_t, std::string>, int> arrays_;
  std::map<std::tuple<const void*, unsigned, int>, std::size_t> instructions_;
  std::unordered_map<std::uint64_t, std::size_t> values_[3];  // by Form
  // The last one of each form: neighbouring lanes often have the same.
  const std::pair<const std::uint64_t, std::size_t>* last_value_[3] = {};
  std::map<std::pair<unsigned, std::array<std::uint8_t, kWarpSize>>, std::size_t> sources_;
  fmt::memory_buffer event_;         // the one that is being written
  std::deque<AccessCounts> counts_;  // of each request to memory
  std::size_t counted_ = 0;          // of these, those whose events were written

  std::vector<Note> notes_[kWarpSize];
  std::size_t next_note_[kWarpSize] = {};
  // A store or atomic of the running lane whose value is read when the lane's next access begins or
  // another lane runs: its instruction has been executed by then, and nothing else has.
  struct Store {
    std::uintptr_t address = 0;  // 0: none
    unsigned size = 0;
    unsigned lane = 0;
    bool atomic = false;
  } store_;
  std::map<std::pair<cudaStream_t, int>, std::size_t> streams_;
  std::map<cudaEvent_t, std::size_t> events_;
  std::unordered_map<const Grid*, std::size_t> launch_of_;  // numbers of the running grids
  // Those of the last event.
  std::size_t launch_ = 0;
  std::uint64_t block_ = ~std::uint64_t{0};
  unsigned warp_ = ~0u;
};

// Names the stream of what this thread of the host runs, as long as it lives.
class OnStream {
 public:
  explicit OnStream(cudaStream_t stream) : before_(std::exchange(current, stream)) {}
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;
  ~OnStream() { current = before_; }
  static constinit thread_local cudaStream_t current;

 private:
  cudaStream_t before_;
};

// The recorder of the trace that is being taken; null if there is none.
Recorder* active_recorder();

}  // namespace simt
