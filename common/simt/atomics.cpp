// Read-modify-write operations of kernels, on the host's own atomics: blocks run on several cores.
#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "simt/block.hpp"
#include "simt/builtins.hpp"
#include "simt/cooperative.hpp"

namespace simt {
namespace {

template <typename T, typename Combine>
T update(T* address, Strength strength, std::string_view name, Combine combine, const void* pc) {
  Lane& lane = *current_lane;
  if constexpr (std::is_integral_v<T>) lane.block->draw(lane, address, pc);
  std::atomic_ref<T> target(*address);
  const auto changes = [&] {
    const T now = target.load(std::memory_order_relaxed);
    return to_bits(combine(now)) != to_bits(now);
  };
  lane.update = &changes;
  lane.changes = [](const void* f) { return (*static_cast<const decltype(changes)*>(f))(); };
  lane.block->observer().access(lane, address_of(address), sizeof(T), Access::kAtomic, strength,
                                pc);
  if constexpr (std::is_integral_v<T>) {
    lane.block->observer().note_draw(pc, sizeof(T), name == "atomic_add");
  }
  if (Gang* const gang = lane.block->gang()) {
    gang->forward(lane.block->seat(), address_of(address), sizeof(T));
  }
  T old = target.load(std::memory_order_relaxed);
  T replacement;
  do {
    replacement = combine(old);
  } while (!target.compare_exchange_weak(old, replacement, std::memory_order_relaxed));
  if (to_bits(replacement) == to_bits(old)) {
    // (What reads one word after the other so waits for nothing.)
    if (!lane.finds_again(address, to_bits(old))) lane.block->changed();
    lane.block->polled(lane, pc, address, to_bits(old), sizeof(T));
  } else {
    lane.polls = 0;
    lane.block->changed();
  }
  return old;
}

Strength strength_of(Scope scope, Strength wide) {
  return scope == Scope::kBlock ? Strength::kBlock : wide;
}

}  // namespace

// Out of line, so that the return address is the kernel's.
#define SIMT_OPERATION(T, name, result)                              \
  T name(T* address, T b, Scope scope) noexcept {                    \
    return update(                                                   \
        address, strength_of(scope, Strength::kPlain), #name,        \
        [b](T a) { return static_cast<T>(result); }, SIMT_CALLER()); \
  }
SIMT_ALL_ATOMICS(SIMT_OPERATION)
#define SIMT_COMPARE_EXCHANGE(T)                                                    \
  T atomic_compare_exchange(T* address, T compare, T value, Scope scope) noexcept { \
    const void* const pc = SIMT_CALLER();                                           \
    const T old = update(                                                           \
        address, strength_of(scope, Strength::kCompare), "compare_exchange",        \
        [=](T a) { return a == compare ? value : a; }, pc);                         \
    current_lane->failed_exchange = old == compare ? nullptr : pc;                  \
    return old;                                                                     \
  }
SIMT_ALL_COMPARE_EXCHANGES(SIMT_COMPARE_EXCHANGE)

}  // namespace simt
