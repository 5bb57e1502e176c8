// Counting what warps ask of memory, and checking that they may.
#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "simt/builtins.hpp"
#include "simt/internal.hpp"
#include "simt/profile.hpp"

namespace simt {
namespace {

std::mutex profile_mutex;
bool profiling = false;
Profile profile;

template <typename T>
bool within(const T& variable, std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(&variable) < sizeof(T);
}

bool is_builtin_variable(std::uintptr_t address) {
  return within(threadIdx, address) || within(blockIdx, address) || within(blockDim, address) ||
         within(gridDim, address);
}

// Rounds in which 32 banks of 4 bytes serve a warp's accesses of `size` bytes to shared memory; 0
// stands for a lane that takes no part. Lanes that want the same word share it. Wider accesses are
// served half a warp or a quarter of it at a time.
unsigned bank_passes(const std::uintptr_t (&addresses)[kWarpSize], unsigned size) {
  const unsigned words = std::max(1u, size / 4);
  const unsigned group = kWarpSize / words;
  const auto base = reinterpret_cast<std::uintptr_t>(shared_address(0));
  unsigned passes = 0;
  for (unsigned first = 0; first < kWarpSize; first += group) {
    std::uintptr_t wanted[kWarpSize];
    unsigned n = 0;
    for (unsigned lane = first; lane < first + group; ++lane) {
      if (!addresses[lane]) continue;
      for (unsigned w = 0; w < words; ++w) wanted[n++] = (addresses[lane] - base) / 4 + w;
    }
    std::sort(wanted, wanted + n);
    unsigned load[kWarpSize] = {};
    unsigned most = 0;
    for (unsigned i = 0; i < n; ++i) {
      if (i > 0 && wanted[i] == wanted[i - 1]) continue;
      most = std::max(most, ++load[wanted[i] % kWarpSize]);
    }
    passes += most;
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
  addresses += other.addresses;
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

void Observer::start(const Grid& grid, const std::vector<SharedVariable>& shared) {
  grid_ = &grid;
  shared_ = &shared;
  counting_ = profile_active();
  table_.assign(std::max<std::size_t>(table_.size(), 64), {});
  instructions_ = 0;
  tallies_.clear();
  touched_.clear();
}

Observer::Instruction& Observer::find_instruction(const void* pc, unsigned size, Access access) {
  const std::size_t last_slot = table_.size() - 1;
  const auto key = reinterpret_cast<std::uintptr_t>(pc);
  for (std::size_t slot = (key ^ key >> 6) & last_slot;; slot = (slot + 1) & last_slot) {
    Instruction& instruction = table_[slot];
    if (instruction.pc == pc && instruction.size == size) return instruction;
    if (instruction.pc) continue;
    if (instructions_ > last_slot / 2) {
      grow();
      return find_instruction(pc, size, access);
    }
    ++instructions_;
    instruction.pc = pc;
    instruction.size = size;
    instruction.access = access;
    return instruction;
  }
}

void Observer::grow() {
  std::vector<Instruction> old(2 * table_.size());
  std::swap(old, table_);
  instructions_ = 0;
  for (const Instruction& i : old) {
    if (i.pc) find_instruction(i.pc, i.size, i.access) = i;
  }
}

void Observer::access(Lane& lane, std::uintptr_t address, unsigned size, Access access,
                      const void* pc) {
  if (!is_instrumented()) return;
  Instruction& instruction = find_instruction(pc, size, access);
  if (address < instruction.begin || address + size > instruction.end) {
    classify(lane, instruction, address);
  }
  if (!instruction.tally) return;
  if (counting_) {
    Tally& tally = *instruction.tally;
    if (!tally.pending) touched_.push_back(&tally);
    tally.pending |= 1u << lane.id;
    tally.addresses[lane.id].push_back(address);
  }
  if (access == Access::kLoad && address == instruction.last) {
    lane.block->polled(lane, pc);
  } else if (access != Access::kAtomic) {
    lane.polls = 0;
    instruction.last = address;
  }
}

// Finds what `address` is part of, or reports that the kernel may not touch it.
void Observer::classify(Lane& lane, Instruction& instruction, std::uintptr_t address) {
  const auto is_in = [&](std::uintptr_t begin, std::size_t bytes) {
    if (address - begin >= bytes || bytes - (address - begin) < instruction.size) return false;
    instruction.begin = begin;
    instruction.end = begin + bytes;
    return true;
  };
  instruction.tally = nullptr;
  if (is_in(reinterpret_cast<std::uintptr_t>(lane.fiber->stack), kStackBytes)) return;
  for (Tally* tally = instruction.tallies; tally; tally = tally->next) {
    if (is_in(tally->begin, tally->end - tally->begin)) {
      instruction.tally = tally;
      return;
    }
  }
  for (const SharedVariable& variable : *shared_) {
    if (is_in(reinterpret_cast<std::uintptr_t>(shared_address(variable.offset)), variable.bytes)) {
      add_tally(instruction, Space::kShared, variable.name);
      return;
    }
  }
  const Allocation* allocation = find_allocation(address);
  if (allocation && can_reach(grid_->device, allocation->device) &&
      is_in(allocation->begin, allocation->bytes)) {
    DeviceMemoryAccess::open(address);
    add_tally(instruction, Space::kGlobal, allocation->name);
    return;
  }
  if (const PinnedRange pinned = find_pinned(address); is_in(pinned.begin, pinned.bytes)) return;
  // The lane's arguments, and what the program keeps for itself.
  if (is_in(reinterpret_cast<std::uintptr_t>(grid_->arguments), grid_->argument_bytes)) return;
  if (is_builtin_variable(address) || is_program_storage(address)) {
    is_in(address, instruction.size);
    return;
  }
  reject(lane, instruction, address);
}

void Observer::reject(Lane& lane, const Instruction& instruction, std::uintptr_t address) {
  const SharedVariable* overrun = nullptr;  // the shared variable that begins nearest below
  std::uintptr_t overrun_begin = 0;
  for (const SharedVariable& variable : *shared_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(shared_address(variable.offset));
    if (address >= begin && address - begin < variable.bytes + kMaxSharedBytes &&
        begin >= overrun_begin) {
      overrun = &variable;
      overrun_begin = begin;
    }
  }
  const Allocation* const allocation = find_allocation(address);
  const std::uintptr_t past = allocation ? address - allocation->begin : 0;

  constexpr const char* kVerbs[] = {"reads ", "writes ", "updates "};
  std::string what = kVerbs[static_cast<int>(instruction.access)] +
                     std::to_string(instruction.size) + " bytes at an address that is ";
  const auto into = [&](std::uintptr_t offset, const std::string& name, std::size_t bytes) {
    what += std::to_string(offset) + " bytes into " + name + ", which has " + std::to_string(bytes);
  };
  if (address < 4096) {
    what += "null";
  } else if (lane.block->on_a_stack(address)) {
    what += "another thread's own";
  } else if (overrun) {
    into(address - overrun_begin, "shared '" + overrun->name + "'", overrun->bytes);
  } else if (allocation && allocation->contains(address) &&
             !can_reach(grid_->device, allocation->device)) {
    what += "in '" + allocation->name + "' on device " + std::to_string(allocation->device) +
            "; device " + std::to_string(grid_->device) + " has no peer access to it";
  } else if (allocation && past < allocation->bytes + (1u << 20)) {
    into(past, "'" + allocation->name + "'", allocation->bytes);
  } else {
    what += "neither device memory nor shared memory of the block (the host's, freed, or wild)";
  }
  lane.block->fail(lane, std::move(what), instruction.pc, Outcome::kIllegalAddress);
}

void Observer::add_tally(Instruction& instruction, Space space, const std::string& array) {
  instruction.tallies = &tallies_.emplace_back(
      Tally{instruction.pc, instruction.size, instruction.access, space, &array, instruction.begin,
            instruction.end, instruction.tallies});
  instruction.tally = instruction.tallies;
}

void Observer::converge(unsigned mask) {
  std::erase_if(touched_, [mask](Tally* tally) {
    if (tally->pending & ~mask) {
      // Others may yet take part in these requests; the lanes in `mask` go on in step.
      std::size_t longest = 0;
      for (unsigned rest = mask; rest; rest &= rest - 1) {
        longest = std::max(longest, tally->addresses[std::countr_zero(rest)].size());
      }
      for (unsigned rest = mask; rest && longest; rest &= rest - 1) {
        tally->addresses[std::countr_zero(rest)].resize(longest, 0);
      }
      return false;
    }
    count(*tally);
    return true;
  });
}

// Counts the requests of a tally whose lanes have converged, and empties it.
void Observer::count(Tally& tally) {
  std::size_t requests = 0;
  for (const auto& addresses : tally.addresses) requests = std::max(requests, addresses.size());
  AccessCounts& counts = tally.counts;
  counts.requests += requests;
  for (std::size_t k = 0; k < requests; ++k) {
    std::uintptr_t of_lane[kWarpSize];
    std::uintptr_t sorted[kWarpSize];
    unsigned lanes = 0;
    for (unsigned id = 0; id < kWarpSize; ++id) {
      const auto& addresses = tally.addresses[id];
      of_lane[id] = k < addresses.size() ? addresses[k] : 0;
      if (of_lane[id]) sorted[lanes++] = of_lane[id];
    }
    counts.lanes += lanes;
    if (tally.space == Space::kShared) counts.passes += bank_passes(of_lane, tally.size);
    // Lanes mostly walk upwards, so that the addresses are sorted as they are.
    if (!std::is_sorted(sorted, sorted + lanes)) std::sort(sorted, sorted + lanes);
    std::uint64_t bytes = 0, sectors = 0;
    std::uintptr_t end = 0, sectors_end = 0;  // of what is counted so far
    unsigned same = 0;
    for (unsigned i = 0; i < lanes; ++i) {
      const std::uintptr_t begin = sorted[i];
      same = i > 0 && begin == sorted[i - 1] ? same + 1 : 1;
      if (tally.access == Access::kAtomic) {
        counts.max_same_address = std::max<std::uint64_t>(counts.max_same_address, same);
      }
      if (same > 1) continue;
      ++counts.addresses;
      bytes += begin + tally.size - std::max(begin, end);
      end = begin + tally.size;
      const std::uintptr_t last_sector = (end - 1) / kSectorBytes;
      sectors += last_sector + 1 - std::max(begin / kSectorBytes, sectors_end);
      sectors_end = last_sector + 1;
    }
    counts.bytes_used += bytes;
    if (tally.space == Space::kGlobal) {
      counts.sectors += sectors;
      counts.ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
    }
  }
  for (auto& addresses : tally.addresses) addresses.clear();
  tally.pending = 0;
}

void Observer::merge_into(Profile& merged) const {
  for (const Tally& tally : tallies_) {
    merged[{grid_->kernel, *tally.array, tally.space, tally.access, tally.pc}] += tally.counts;
  }
}

}  // namespace simt

// --- The compiler's calls -----------------------------------------------------------------------
//
// Kernels' sources are compiled with -fsanitize=thread and linked without ThreadSanitizer: these
// functions stand where its runtime would.

namespace {

// `pc` is the kernel's own: these functions never call each other without passing it on.
void observe(simt::Access access, const void* address, std::size_t size, const void* pc) {
  simt::Lane* const lane = simt::current_lane;
  if (!lane) return;  // host code of the same source file
  lane->block->observer().access(*lane, reinterpret_cast<std::uintptr_t>(address),
                                 static_cast<unsigned>(size), access, pc);
}

// A structure is copied piece by piece, of the largest size up to 16 bytes that alignment allows.
void observe_range(simt::Access access, const void* range, std::size_t bytes, const void* pc) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range);
  const std::size_t piece = std::size_t{1} << std::countr_zero(begin | bytes | 16);
  for (std::size_t done = 0; done < bytes; done += piece) {
    observe(access, static_cast<const char*>(range) + done, piece, pc);
  }
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

#define SIMT_OBSERVE(name, bytes, what)                                 \
  void __tsan_##name(void* p) {                                         \
    observe(simt::Access::what, p, bytes, __builtin_return_address(0)); \
  }
#define SIMT_OBSERVE_SIZE(bytes)                    \
  SIMT_OBSERVE(read##bytes, bytes, kLoad)           \
  SIMT_OBSERVE(write##bytes, bytes, kStore)         \
  SIMT_OBSERVE(unaligned_read##bytes, bytes, kLoad) \
  SIMT_OBSERVE(unaligned_write##bytes, bytes, kStore)
SIMT_OBSERVE_SIZE(1)
SIMT_OBSERVE_SIZE(2)
SIMT_OBSERVE_SIZE(4)
SIMT_OBSERVE_SIZE(8)
SIMT_OBSERVE_SIZE(16)
void __tsan_read_range(void* p, std::size_t size) {
  observe_range(simt::Access::kLoad, p, size, __builtin_return_address(0));
}
void __tsan_write_range(void* p, std::size_t size) {
  observe_range(simt::Access::kStore, p, size, __builtin_return_address(0));
}

// Later clangs call these where others announce a range or copy in silence.
void* __tsan_memcpy(void* to, const void* from, std::size_t size) {
  observe_range(simt::Access::kLoad, from, size, __builtin_return_address(0));
  observe_range(simt::Access::kStore, to, size, __builtin_return_address(0));
  return std::memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, std::size_t size) {
  observe_range(simt::Access::kLoad, from, size, __builtin_return_address(0));
  observe_range(simt::Access::kStore, to, size, __builtin_return_address(0));
  return std::memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, std::size_t size) {
  observe_range(simt::Access::kStore, to, size, __builtin_return_address(0));
  return std::memset(to, value, size);
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
