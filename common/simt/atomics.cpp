// Read-modify-write operations of kernels, on the host's own atomics: blocks run on several cores.
#include <atomic>
#include <cstdint>

#include "simt/builtins.hpp"
#include "simt/internal.hpp"

namespace simt {
namespace {

// More than a lane does for other reasons than waiting for another lane.
constexpr unsigned kPollsBeforeYield = 16384;

// Counts the access, and lets other lanes run now and then: a loop around an atomic may wait for
// one of them.
template <typename T>
void before_atomic(T* address, const void* pc) {
  Lane& lane = *current_lane;
  Block& block = *lane.block;
  block.observer().access(lane, reinterpret_cast<std::uintptr_t>(address), sizeof(T),
                          Access::kAtomic, pc);
  if (++lane.polls >= kPollsBeforeYield) {
    lane.pc = pc;
    block.yield(lane);
  }
}

template <typename T, typename Combine>
T fetch_and(T* address, T value, Combine combine) {
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(old, combine(old, value), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace

#define SIMT_OPERATION(T, name, expression)                                                \
  T name(T* address, T value) noexcept {                                                   \
    before_atomic(address, __builtin_return_address(0));                                   \
    return fetch_and(address, value, [](T a, T b) { return static_cast<T>(expression); }); \
  }
#define SIMT_ATOMIC(T)                 \
  SIMT_OPERATION(T, atomic_add, a + b) \
  SIMT_OPERATION(T, atomic_exchange, ((void)a, b))
#define SIMT_INTEGER_ATOMIC(T)                                            \
  SIMT_ATOMIC(T)                                                          \
  SIMT_OPERATION(T, atomic_min, b < a ? b : a)                            \
  SIMT_OPERATION(T, atomic_max, a < b ? b : a)                            \
  SIMT_OPERATION(T, atomic_and, (a) & (b))                                \
  SIMT_OPERATION(T, atomic_or, a | b)                                     \
  SIMT_OPERATION(T, atomic_xor, a ^ b)                                    \
  T atomic_compare_exchange(T* address, T compare, T value) noexcept {    \
    before_atomic(address, __builtin_return_address(0));                  \
    std::atomic_ref<T>(*address).compare_exchange_strong(compare, value); \
    return compare;                                                       \
  }
SIMT_INTEGER_ATOMIC(unsigned)
SIMT_INTEGER_ATOMIC(unsigned long long)
SIMT_ATOMIC(float)
SIMT_ATOMIC(double)

// Sums of signed integers wrap on the device; here they would overflow.
int atomic_add(int* address, int value) noexcept {
  before_atomic(address, __builtin_return_address(0));
  return std::atomic_ref<int>(*address).fetch_add(value);
}
SIMT_OPERATION(int, atomic_exchange, ((void)a, b))
SIMT_OPERATION(int, atomic_min, b < a ? b : a)
SIMT_OPERATION(int, atomic_max, a < b ? b : a)
SIMT_OPERATION(int, atomic_and, (a) & (b))
SIMT_OPERATION(int, atomic_or, a | b)
SIMT_OPERATION(int, atomic_xor, a ^ b)
int atomic_compare_exchange(int* address, int compare, int value) noexcept {
  before_atomic(address, __builtin_return_address(0));
  std::atomic_ref<int>(*address).compare_exchange_strong(compare, value);
  return compare;
}

}  // namespace simt
