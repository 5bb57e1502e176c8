// What the warps of a kernel asked of memory, counted as the hardware would.
//
// The instrumented build calls simt at every load, store and basic block of the kernels' sources.
// Each lane leaves a trail of these; simt lines the trails of a warp up (lineup.cpp), and one step
// in which one or more lanes execute an access together is one *request*. Of a request to global
// memory it counts the lanes, the distinct bytes, and the 32-byte sectors and 128-byte lines that
// hold them; of one to shared memory the passes over the banks.
//
// (Nothing here is of CUDA, so that hosts of the CUDA backend can name the counts, too.)
//
// The counts do not depend on the host, the number of its threads or its speed. They say nothing of
// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simt/cache_model.hpp"

namespace simt {

inline constexpr unsigned kSectorBytes = 32;
inline constexpr unsigned kLineBytes = 128;
inline constexpr unsigned kBankBytes = 4;

// The last two are no accesses: they count how often warps met, and with how many lanes.
// (A fetch from a texture is counted as a load, and once more as the texture units do.)
enum class Access : std::uint8_t { kLoad, kStore, kAtomic, kTexture, kBarrier, kWarpOperation };
// kPeer: global memory of another device, so what is counted there crosses the link.
enum class Space : std::uint8_t { kGlobal, kShared, kPeer, kNone };

const char* to_string(Access access);  // "load", ...
const char* to_string(Space space);    // "global", "shared", "peer", "none"

struct AccessCounts {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;       // that took part, over all requests
  std::uint64_t bytes_used = 0;  // distinct bytes, over all requests
  // Global memory, also of a peer.
  std::uint64_t sectors = 0;        // touched
  std::uint64_t ideal_sectors = 0;  // that the bytes used would fill if they lay together
  // Touched just before, too, by the same lanes: parts of one structure or vector of more than 16
  // bytes, which is loaded in several requests. The L1 has these sectors.
  std::uint64_t repeated_sectors = 0;
  std::uint64_t lines = 0;
  std::uint64_t ideal_lines = 0;
  // Shared memory: rounds in which the banks serve the lanes, and those that the size of the
  // elements alone asks for: 1 a request, 2 if of 8 bytes, 4 if of 16. The rest are conflicts.
  std::uint64_t passes = 0;
  std::uint64_t ideal_passes = 0;
  std::uint64_t addresses = 0;         // distinct ones, over all requests
  std::uint64_t max_same_address = 0;  // most lanes of a request on one address (atomics)
  // Loads through the texture units, as those count: a request for every 8 lanes.
  std::uint64_t texture_requests = 0;
  std::uint64_t texture_sectors = 0;
  // By the model of the caches (cache_model.hpp), if one was asked for.
  std::uint64_t l2_sectors = 0;    // that went on to the L2
  std::uint64_t dram_sectors = 0;  // read from DRAM

  bool operator==(const AccessCounts& other) const = default;
  AccessCounts& operator+=(const AccessCounts& other) {
    requests += other.requests;
    lanes += other.lanes;
    bytes_used += other.bytes_used;
    sectors += other.sectors;
    ideal_sectors += other.ideal_sectors;
    repeated_sectors += other.repeated_sectors;
    lines += other.lines;
    ideal_lines += other.ideal_lines;
    passes += other.passes;
    ideal_passes += other.ideal_passes;
    addresses += other.addresses;
    max_same_address = std::max(max_same_address, other.max_same_address);
    texture_requests += other.texture_requests;
    texture_sectors += other.texture_sectors;
    l2_sectors += other.l2_sectors;
    dram_sectors += other.dram_sectors;
    return *this;
  }
};

struct AccessKey {
  const void* kernel;  // function address
  std::string array;  // the buffer's or __shared__ variable's name; the operation's if Space::kNone
  Space space;
  Access access;
  const void* pc;  // the instruction

  auto operator<=>(const AccessKey&) const = default;
};

// How work was spread over `parts` equals: accesses of a lane, requests of a warp or of a block.
struct Spread {
  std::uint64_t parts = 0;
  std::uint64_t total = 0;
  std::uint64_t most = 0;

  void add(std::uint64_t work);
  Spread& operator+=(const Spread& other);
  // How many times the average the busiest has; 1 is even, 0 if there is no work.
  double unevenness() const {
    if (total == 0) return 0;
    return static_cast<double>(most) * static_cast<double>(parts) / static_cast<double>(total);
  }
};

// All launches of one kernel together. A warp that updates an integer of global memory is taken to
// draw its next item of work: on the CPU the first warp may draw all items, on a GPU all warps do.
struct KernelCounts {
  std::uint64_t launches = 0;
  Spread lanes, warps, blocks;
  Spread drawers;                        // those of the warps that draw
  std::uint64_t barriers = 0;            // a block's threads met
  std::uint64_t longest_item = 0;        // most requests of a warp from one draw to the next
  std::uint64_t draws = 0;               // requests that update integers of global memory
  std::uint64_t hottest_counter = 0;     // most updates of one integer, over the launches: one per
                                         // request of additions, which nvcc merges, else per lane
  std::uint64_t hottest_address = 0;     // most lanes' other atomics on one address, likewise
  std::size_t shared_bytes = 0;          // per block
  std::uint64_t dram_write_sectors = 0;  // by the model of the caches; see cache_model.hpp

  KernelCounts& operator+=(const KernelCounts& other);
  // Requests of the busiest warp on a GPU, where warps that draw have equal shares.
  std::uint64_t busiest_warp() const {
    if (drawers.parts == 0) return warps.most;
    return std::max(longest_item, (drawers.total + drawers.parts - 1) / drawers.parts);
  }
};

struct Profile {
  std::map<AccessKey, AccessCounts> accesses;
  std::map<const void*, KernelCounts> kernels;  // by function address
  std::vector<const void*> order;               // kernels, as first launched

  bool empty() const { return accesses.empty() && kernels.empty(); }
};

// True if kernels were built with instrumentation; without it profiles are empty.
bool is_instrumented();

// Counts what kernels do between the two calls; with a `gpu` also what its caches would let
// through. One thread of the host runs them, block after block: where blocks compete for their
// work, what each one does is then the same in every run.
void start_profile(const Gpu* gpu = nullptr);
Profile stop_profile();

}  // namespace simt
