// What the warps of a kernel asked of memory, counted as the hardware would.
//
// The instrumented build calls simt at every load and store of the kernels' sources. simt lines the
// lanes of a warp up: the k-th time that one instruction is executed since the lanes last converged
// (at a warp operation, a barrier or the start) is one *request*, whichever lanes take part. Of a
// request to global memory it counts the lanes, the distinct bytes, and the 32-byte sectors that
// hold them, which is what the memory system moves.
//
// The counts do not depend on the host, the number of its threads or its speed. They say nothing of
// caches or time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace simt {

inline constexpr unsigned kSectorBytes = 32;

enum class Access : std::uint8_t { kLoad, kStore, kAtomic };
enum class Space : std::uint8_t { kGlobal, kShared };

const char* to_string(Access access);  // "load", ...
const char* to_string(Space space);    // "global", ...

struct AccessCounts {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;          // that took part, over all requests
  std::uint64_t bytes_used = 0;     // distinct bytes, over all requests
  std::uint64_t sectors = 0;        // touched (global)
  std::uint64_t ideal_sectors = 0;  // that the bytes used would fill if they lay together (global)
  // That the 32 banks need (shared): without conflicts 1 a request, 2 if of 8 bytes, 4 if of 16.
  std::uint64_t passes = 0;
  std::uint64_t addresses = 0;  // distinct ones, over all requests: lanes / addresses share one
  std::uint64_t max_same_address = 0;  // most lanes of a request on one address (atomics)

  AccessCounts& operator+=(const AccessCounts& other);
};

struct AccessKey {
  const void* kernel;  // function address
  std::string array;   // the buffer's or __shared__ variable's name
  Space space;
  Access access;
  const void* pc;  // the instruction

  auto operator<=>(const AccessKey&) const = default;
};

using Profile = std::map<AccessKey, AccessCounts>;

// True if kernels were built with instrumentation; without it profiles are empty.
bool is_instrumented();

// Counts what kernels do between the two calls. One thread of the host runs them, block after
// block: where blocks compete for their work, what each one does is then the same in every run.
void start_profile();
Profile stop_profile();

}  // namespace simt
