// Read-modify-write operations of kernels, on the host's own atomics: blocks run on several cores.
#include <atomic>
#include <cstdint>

#include "simt/builtins.hpp"
#include "simt/cooperative.hpp"
#include "simt/internal.hpp"

namespace simt {
namespace {

template <typename T, typename Combine>
T update(T* address, Combine combine, const void* pc) {
  Lane& lane = *current_lane;
  lane.block->observer().access(lane, reinterpret_cast<std::uintptr_t>(address), sizeof(T),
                                Access::kAtomic, pc);
  if (Gang* const gang = lane.block->gang()) {
    gang->forward(lane.block->seat(), reinterpret_cast<std::uintptr_t>(address), sizeof(T));
  }
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  T replacement;
  do {
    replacement = combine(old);
  } while (!target.compare_exchange_weak(old, replacement, std::memory_order_relaxed));
  if (to_bits(replacement) == to_bits(old)) {
    lane.block->polled(lane, pc);
  } else {
    lane.polls = 0;
    lane.block->changed();
  }
  return old;
}

}  // namespace

// Out of line, so that the return address is the kernel's.
#define SIMT_OPERATION(T, name, expression)                                                     \
  T name(T* address, T b) noexcept {                                                            \
    return update(                                                                              \
        address, [b](T a) { return static_cast<T>(expression); }, __builtin_return_address(0)); \
  }
#define SIMT_INTEGER_ATOMICS(T)                                                               \
  SIMT_OPERATION(T, atomic_exchange, ((void)a, b))                                            \
  SIMT_OPERATION(T, atomic_min, b < a ? b : a)                                                \
  SIMT_OPERATION(T, atomic_max, a < b ? b : a)                                                \
  SIMT_OPERATION(T, atomic_and, (a) & (b))                                                    \
  SIMT_OPERATION(T, atomic_or, a | b)                                                         \
  SIMT_OPERATION(T, atomic_xor, a ^ b)                                                        \
  T atomic_compare_exchange(T* address, T compare, T value) noexcept {                        \
    return update(                                                                            \
        address, [=](T a) { return a == compare ? value : a; }, __builtin_return_address(0)); \
  }
SIMT_INTEGER_ATOMICS(int)
SIMT_INTEGER_ATOMICS(unsigned)
SIMT_INTEGER_ATOMICS(unsigned long long)
// Sums of signed integers wrap on the device; in C++ they may not overflow.
SIMT_OPERATION(int, atomic_add, static_cast<unsigned>(a) + static_cast<unsigned>(b))
SIMT_OPERATION(unsigned, atomic_add, a + b)
SIMT_OPERATION(unsigned long long, atomic_add, a + b)
SIMT_OPERATION(float, atomic_add, a + b)
SIMT_OPERATION(double, atomic_add, a + b)
SIMT_OPERATION(float, atomic_exchange, ((void)a, b))
SIMT_OPERATION(double, atomic_exchange, ((void)a, b))
SIMT_OPERATION(unsigned, atomic_increment, a >= b ? 0u : a + 1)
SIMT_OPERATION(unsigned, atomic_decrement, a == 0 || a > b ? b : a - 1)

}  // namespace simt
