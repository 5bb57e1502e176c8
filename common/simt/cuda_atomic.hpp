// libcu++'s <cuda/atomic>, as far as kernels here use it: atomic_ref and fences, with the scope at
// which they order.
//
// The CPU runs one lane at a time, so an order means something only for stores that are late: see
// cooperative.hpp.
#pragma once

#include <atomic>
#include <type_traits>

#include "simt/builtins.hpp"

namespace simt {

std::uint64_t atomic_load(const void* address, unsigned size, bool acquire, Scope scope) noexcept;
void atomic_store(void* address, std::uint64_t value, unsigned size, bool release,
                  Scope scope) noexcept;
// All blocks of the grid meet, which has to be launched as a cooperative one.
void grid_sync() noexcept;

}  // namespace simt

namespace cuda {

using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

enum thread_scope {
  thread_scope_system = 0,
  thread_scope_device = 1,
  thread_scope_block = 2,
  thread_scope_thread = 10
};

constexpr simt::Scope simt_scope(thread_scope scope) {
  return scope == thread_scope_system   ? simt::Scope::kSystem
         : scope == thread_scope_device ? simt::Scope::kDevice
                                        : simt::Scope::kBlock;
}

__forceinline__ void atomic_thread_fence(memory_order order,
                                         thread_scope scope = thread_scope_system) {
  if (order != memory_order_relaxed) simt::fence(simt_scope(scope));
  simt::no_tail_call();
}

namespace detail {
// What an operation of this order does beside itself.
__forceinline__ void before(memory_order order, thread_scope scope) {
  if (order != memory_order_relaxed && order != memory_order_acquire) {
    simt::fence(simt_scope(scope));
  }
}
__forceinline__ void after(memory_order order, thread_scope scope) {
  if (order != memory_order_relaxed && order != memory_order_release) {
    simt::acquire(simt_scope(scope));
    simt::no_tail_call();
  }
}
// What atomic_ref and atomic can do to the T at which their object() points.
template <typename Self, typename T, thread_scope scope>
class operations {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  __forceinline__ T* object() const { return static_cast<const Self*>(this)->object(); }

 public:
  __forceinline__ T load(memory_order order = memory_order_seq_cst) const {
    const T value = simt::from_bits<T>(
        simt::atomic_load(object(), sizeof(T), order != memory_order_relaxed, simt_scope(scope)));
    simt::no_tail_call();
    return value;
  }
  __forceinline__ void store(T value, memory_order order = memory_order_seq_cst) const {
    simt::atomic_store(const_cast<::std::remove_const_t<T>*>(object()), simt::to_bits(value),
                       sizeof(T), order != memory_order_relaxed, simt_scope(scope));
    simt::no_tail_call();
  }
#define SIMT_MEMBER(name, operation)                                                 \
  __forceinline__ T name(T value, memory_order order = memory_order_seq_cst) const { \
    before(order, scope);                                                            \
    const T old = simt::operation(object(), value, simt_scope(scope));               \
    simt::no_tail_call();                                                            \
    after(order, scope);                                                             \
    return old;                                                                      \
  }
  SIMT_MEMBER(exchange, atomic_exchange)
  SIMT_MEMBER(fetch_add, atomic_add)
  SIMT_MEMBER(fetch_and, atomic_and)
  SIMT_MEMBER(fetch_or, atomic_or)
  SIMT_MEMBER(fetch_xor, atomic_xor)
  SIMT_MEMBER(fetch_min, atomic_min)
  SIMT_MEMBER(fetch_max, atomic_max)
#undef SIMT_MEMBER
  __forceinline__ T fetch_sub(T value, memory_order order = memory_order_seq_cst) const {
    return fetch_add(static_cast<T>(T{0} - value), order);
  }
  // Whether it was `expected`, which then becomes `desired`; else `expected` is what it was.
  __forceinline__ bool compare_exchange_strong(T& expected, T desired, memory_order success,
                                               memory_order failure) const {
    before(success, scope);
    // (Compared bit by bit, numbers of floating point, too.)
    using Bits = ::std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    const Bits wanted = __builtin_bit_cast(Bits, expected);
    const Bits old =
        simt::atomic_compare_exchange(reinterpret_cast<Bits*>(object()), wanted,
                                      __builtin_bit_cast(Bits, desired), simt_scope(scope));
    simt::no_tail_call();
    const bool exchanged = old == wanted;
    after(exchanged ? success : failure, scope);
    expected = __builtin_bit_cast(T, old);
    return exchanged;
  }
  __forceinline__ bool compare_exchange_strong(T& expected, T desired,
                                               memory_order order = memory_order_seq_cst) const {
    return compare_exchange_strong(expected, desired, order,
                                   order == memory_order_release   ? memory_order_relaxed
                                   : order == memory_order_acq_rel ? memory_order_acquire
                                                                   : order);
  }
  template <typename... Orders>
  __forceinline__ bool compare_exchange_weak(T& expected, T desired, Orders... orders) const {
    return compare_exchange_strong(expected, desired, orders...);
  }
  __forceinline__ T operator+=(T value) const {
    return fetch_add(value) + value;
  }
  __forceinline__ T operator++() const {
    return fetch_add(T{1}) + T{1};
  }
  __forceinline__ T operator++(int) const {
    return fetch_add(T{1});
  }
  __forceinline__ operator T() const {
    return load();
  }
  __forceinline__ T operator=(T value) const {
    store(value);
    return value;
  }
};

}  // namespace detail

template <typename T, thread_scope scope = thread_scope_system>
class atomic_ref : public detail::operations<atomic_ref<T, scope>, T, scope> {
 public:
  __forceinline__ explicit atomic_ref(T& object) : object_(&object) {}
  using detail::operations<atomic_ref, T, scope>::operator=;
  __forceinline__ T* object() const { return object_; }

 private:
  T* object_;
};

// A variable that is only touched so.
template <typename T, thread_scope scope = thread_scope_system>
class atomic : public detail::operations<atomic<T, scope>, T, scope> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  __forceinline__ T operator=(T value) { return this->store(value), value; }
  __forceinline__ T* object() const { return const_cast<T*>(&value_); }

 private:
  T value_;
};

}  // namespace cuda
