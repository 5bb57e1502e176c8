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

std::uint64_t atomic_load(const void* address, unsigned size, bool acquire) noexcept;
void atomic_store(void* address, std::uint64_t value, unsigned size, bool release,
                  Scope scope) noexcept;
// All blocks of the grid meet, which has to be launched as a cooperative one.
void grid_sync() noexcept;

}  // namespace simt

namespace cuda {

using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

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

template <typename T, thread_scope scope = thread_scope_system>
class atomic_ref {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");

 public:
  __forceinline__ explicit atomic_ref(T& object) : object_(&object) {}
  __forceinline__ T load(memory_order order = memory_order_seq_cst) const {
    const T value =
        simt::from_bits<T>(simt::atomic_load(object_, sizeof(T), order != memory_order_relaxed));
    simt::no_tail_call();
    return value;
  }
  __forceinline__ void store(T value, memory_order order = memory_order_seq_cst) const {
    simt::atomic_store(const_cast<std::remove_const_t<T>*>(object_), simt::to_bits(value),
                       sizeof(T), order != memory_order_relaxed, simt_scope(scope));
    simt::no_tail_call();
  }
  __forceinline__ T fetch_add(T value, memory_order order = memory_order_seq_cst) const {
    if (order != memory_order_relaxed && order != memory_order_acquire) {
      simt::fence(simt_scope(scope));
    }
    return atomicAdd(object_, value);
  }
  __forceinline__ T operator+=(T value) const { return fetch_add(value) + value; }

 private:
  T* object_;
};

}  // namespace cuda
