// Counting what warps ask of memory, and checking that they may.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "simt/builtins.hpp"
#include "simt/internal.hpp"
#include "simt/profile.hpp"

namespace simt {
namespace {

constexpr std::size_t kTableSize = 1024;  // instructions of a kernel that touch memory: far fewer

std::mutex profile_mutex;
bool profiling = false;
Profile profile;

// How many distinct values there are; sorts them.
unsigned distinct(std::uintptr_t* values, unsigned n) {
  // Lanes mostly walk upwards, so that the values are sorted as they are.
  if (!std::is_sorted(values, values + n)) std::sort(values, values + n);
  return static_cast<unsigned>(std::unique(values, values + n) - values);
}

template <typename T>
bool within(const T& variable, std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(&variable) < sizeof(T);
}

bool is_builtin_variable(std::uintptr_t address) {
  return within(threadIdx, address) || within(blockIdx, address) || within(blockDim, address) ||
         within(gridDim, address);
}

// Rounds in which 32 banks of 4 bytes serve a warp's accesses of `size` bytes. Lanes that want the
// same word share it; wider accesses are served a half or a quarter of the warp at a time.
unsigned bank_passes(const std::uintptr_t* offsets, unsigned lanes, unsigned size) {
  const unsigned words = std::max(1u, size / 4);
  const unsigned group = std::max(1u, kWarpSize / words);
  unsigned passes = 0;
  for (unsigned first = 0; first < lanes; first += group) {
    std::uintptr_t word[kWarpSize * 4];
    unsigned n = 0;
    for (unsigned i = first; i < std::min(first + group, lanes); ++i) {
      for (unsigned w = 0; w < words; ++w) word[n++] = offsets[i] / 4 + w;
    }
    n = distinct(word, n);
    unsigned load[kWarpSize] = {};
    for (unsigned i = 0; i < n; ++i) ++load[word[i] % kWarpSize];
    passes += *std::max_element(load, load + kWarpSize);
  }
  return passes;
}

}  // namespace

const char* to_string(Access access) {
  switch (access) {
    case Access::kLoad:
      return "load";
    case Access::kStore:
      return "store";
    default:
      return "atomic";
  }
}

const char* to_string(Space space) {
  return space == Space::kGlobal ? "global" : "shared";
}

AccessCounts& AccessCounts::operator+=(const AccessCounts& other) {
  requests += other.requests;
  lanes += other.lanes;
  bytes_used += other.bytes_used;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  passes += other.passes;
  max_same_address = std::max(max_same_address, other.max_same_address);
  return *this;
}

bool is_instrumented() {
#ifdef SIMT_INSTRUMENTED
  return true;
#else
  return false;
#endif
}

void start_profile() {
  const std::lock_guard lock(profile_mutex);
  profiling = is_instrumented();
  profile.clear();
}

Profile stop_profile() {
  const std::lock_guard lock(profile_mutex);
  profiling = false;
  return std::exchange(profile, {});
}

bool profile_active() {
  return profiling;
}

void add_to_profile(Observer& observer) {
  const std::lock_guard lock(profile_mutex);
  observer.merge_into(profile);
}

// --- Observer -----------------------------------------------------------------------------------

void Observer::start(const Grid& grid) {
  grid_ = &grid;
  counting_ = profile_active();
  table_.clear();
  table_.resize(kTableSize);
  sites_.clear();
  touched_.clear();
  shared_ = shared_variables(grid.kernel);
  for (SharedVariable& variable : shared_) {
    if (variable.dynamic) variable.bytes = grid.dynamic_shared_bytes;
  }
}

Observer::Site& Observer::site_for(const void* pc, unsigned size, Access access) {
  const auto key = reinterpret_cast<std::uintptr_t>(pc);
  for (std::size_t slot = (key ^ key >> 10) % kTableSize;; slot = (slot + 1) % kTableSize) {
    std::unique_ptr<Site>& site = table_[slot];
    if (site && site->pc == pc) return *site;
    if (!site) {
      site = std::make_unique<Site>();
      site->pc = pc;
      site->size = size;
      site->access = access;
      sites_.push_back(site.get());
      return *site;
    }
  }
}

// Finds what `address` is part of, or reports that the kernel may not touch it. False if it is the
// lane's own or the program's, which nobody counts.
bool Observer::classify(Lane& lane, Site& site, std::uintptr_t address, unsigned size) {
  const auto settle = [&](std::uintptr_t begin, std::size_t bytes, bool local) {
    site.begin = begin;
    site.end = begin + bytes;
    site.local = local;
    return !local;
  };
  if (lane.block->on_stack(lane, address)) {
    return settle(address, size, true);
  }
  for (const SharedVariable& variable : shared_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(shared_address(variable.offset));
    if (address - begin >= variable.bytes) continue;
    if (address + size > begin + variable.bytes) break;
    site.space = Space::kShared;
    site.array = &variable.name;
    return settle(begin, variable.bytes, false);
  }
  const Allocation* allocation = find_allocation(address);
  if (allocation && allocation->contains(address) &&
      address + size <= allocation->begin + allocation->bytes &&
      can_reach(grid_->device, allocation->device)) {
    site.space = Space::kGlobal;
    site.array = &allocation->name;
    return settle(allocation->begin, allocation->bytes, false);
  }

  const bool is_argument =
      address - reinterpret_cast<std::uintptr_t>(grid_->arguments) < grid_->argument_bytes;
  if (is_argument || is_builtin_variable(address) || is_static_storage(address)) {
    return settle(address, size, true);
  }
  std::string what = site.access == Access::kLoad    ? "reads "
                     : site.access == Access::kStore ? "writes "
                                                     : "updates ";
  what += std::to_string(size) + " bytes at an address that is ";
  const SharedVariable* overrun = nullptr;  // the shared variable that ends nearest below
  std::uintptr_t overrun_begin = 0;
  for (const SharedVariable& variable : shared_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(shared_address(variable.offset));
    if (address >= begin && address - begin < variable.bytes + kMaxSharedBytes &&
        begin >= overrun_begin) {
      overrun = &variable;
      overrun_begin = begin;
    }
  }
  const std::uintptr_t past = allocation ? address - allocation->begin : 0;
  if (address < 4096) {
    what += "null";
  } else if (overrun) {
    what += std::to_string(address - overrun_begin) + " bytes into shared '" + overrun->name +
            "', which has " + std::to_string(overrun->bytes);
  } else if (allocation && allocation->contains(address) &&
             !can_reach(grid_->device, allocation->device)) {
    what += "in '" + allocation->name + "' on device " + std::to_string(allocation->device) +
            "; device " + std::to_string(grid_->device) + " has no peer access to it";
  } else if (allocation && past + size > allocation->bytes &&
             past < allocation->bytes + (1u << 20)) {
    what += std::to_string(past) + " bytes into '" + allocation->name + "', which has " +
            std::to_string(allocation->bytes);
  } else {
    what += "neither device memory nor shared memory of the block (the host's, freed, or wild)";
  }
  lane.block->fail(lane, what, site.pc);
}

void Observer::access(Lane& lane, std::uintptr_t address, unsigned size, Access access,
                      const void* pc) {
  if (!is_instrumented()) return;
  Site& site = site_for(pc, size, access);
  const bool known = address >= site.begin && address + size <= site.end;
  if (known ? site.local : !classify(lane, site, address, size)) return;
  if (!counting_) return;
  // An instruction that goes from one array to another starts a new request with the new one.
  std::vector<std::uintptr_t>& mine = site.addresses[lane.id];
  if (mine.empty() && std::find(touched_.begin(), touched_.end(), &site) == touched_.end()) {
    touched_.push_back(&site);
  }
  mine.push_back(address);
}

void Observer::converge(unsigned mask) {
  for (Site* site : touched_) {
    std::size_t longest = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (mask >> lane & 1u) longest = std::max(longest, site->addresses[lane].size());
    }
    for (std::size_t k = 0; k < longest; ++k) {
      std::uintptr_t addresses[kWarpSize];
      unsigned lanes = 0;
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if (mask >> lane & 1u && site->addresses[lane].size() > k) {
          addresses[lanes++] = site->addresses[lane][k];
        }
      }
      count_request(*site, addresses, lanes);
    }
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (mask >> lane & 1u) site->addresses[lane].clear();
    }
  }
  if (mask == ~0u) touched_.clear();
}

void Observer::count_request(Site& site, std::uintptr_t* addresses, unsigned lanes) {
  AccessCounts* counts = nullptr;
  for (auto& [array, existing] : site.counts) {
    if (array == site.array) counts = &existing;
  }
  if (!counts) counts = &site.counts.emplace_back(site.array, AccessCounts{}).second;

  ++counts->requests;
  counts->lanes += lanes;
  if (site.space == Space::kShared) {
    for (unsigned i = 0; i < lanes; ++i) {
      addresses[i] -= reinterpret_cast<std::uintptr_t>(shared_address(0));
    }
    counts->passes += bank_passes(addresses, lanes, site.size);
  }
  std::sort(addresses, addresses + lanes);
  if (site.access == Access::kAtomic) {
    unsigned run = 0;
    for (unsigned i = 0; i < lanes; ++i) {
      run = i > 0 && addresses[i] == addresses[i - 1] ? run + 1 : 1;
      counts->max_same_address = std::max<std::uint64_t>(counts->max_same_address, run);
    }
  }
  const unsigned unique = distinct(addresses, lanes);
  const std::uint64_t bytes = std::uint64_t{unique} * site.size;
  counts->bytes_used += bytes;
  if (site.space == Space::kGlobal) {
    // Aligned accesses lie within a sector each, or fill whole ones.
    const unsigned spread = std::max(1u, site.size / kSectorBytes);
    for (unsigned i = 0; i < unique; ++i) addresses[i] /= kSectorBytes;
    counts->sectors += std::uint64_t{distinct(addresses, unique)} * spread;
    counts->ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
  }
}

void Observer::merge_into(Profile& profile_) {
  for (const Site* site : sites_) {
    for (const auto& [array, counts] : site->counts) {
      profile_[{grid_->kernel, *array, site->space, site->access, site->pc}] += counts;
    }
  }
}

}  // namespace simt

// --- The compiler's calls -----------------------------------------------------------------------
//
// Kernels' sources are compiled with -fsanitize=thread and linked without ThreadSanitizer: these
// functions stand where its runtime would.

namespace {

template <simt::Access access>
__attribute__((always_inline)) inline void observe(const void* address, unsigned size) {
  simt::Lane* const lane = simt::current_lane;
  if (!lane) return;  // host code of the same source file
  lane->block->observer().access(*lane, reinterpret_cast<std::uintptr_t>(address), size, access,
                                 __builtin_return_address(0));
}

}  // namespace

extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-declarations"
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define SIMT_OBSERVE(size)                     \
  void __tsan_read##size(void* p) {            \
    observe<simt::Access::kLoad>(p, size);     \
  }                                            \
  void __tsan_write##size(void* p) {           \
    observe<simt::Access::kStore>(p, size);    \
  }                                            \
  void __tsan_unaligned_read##size(void* p) {  \
    observe<simt::Access::kLoad>(p, size);     \
  }                                            \
  void __tsan_unaligned_write##size(void* p) { \
    observe<simt::Access::kStore>(p, size);    \
  }
SIMT_OBSERVE(1)
SIMT_OBSERVE(2)
SIMT_OBSERVE(4)
SIMT_OBSERVE(8)
SIMT_OBSERVE(16)
void __tsan_read_range(void* p, std::size_t size) {
  observe<simt::Access::kLoad>(p, static_cast<unsigned>(size));
}
void __tsan_write_range(void* p, std::size_t size) {
  observe<simt::Access::kStore>(p, static_cast<unsigned>(size));
}

// Atomics of the host code that stands in the same sources (reference counts and the like).
#define SIMT_HOST_ATOMIC(bits, T)                                                           \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##bits##_store(volatile T* p, T v, int) {                               \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) {                               \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) {                              \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_sub(volatile T* p, T v, int) {                              \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_and(volatile T* p, T v, int) {                              \
    return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_or(volatile T* p, T v, int) {                               \
    return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                       \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_xor(volatile T* p, T v, int) {                              \
    return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* e, T v, int, int) {   \
    return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* e, T v, int, int) {     \
    return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                         \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T e, T v, int, int) {         \
    __atomic_compare_exchange_n(p, &e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return e;                                                                               \
  }
SIMT_HOST_ATOMIC(8, std::uint8_t)
SIMT_HOST_ATOMIC(16, std::uint16_t)
SIMT_HOST_ATOMIC(32, std::uint32_t)
SIMT_HOST_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
#pragma GCC diagnostic pop
}
