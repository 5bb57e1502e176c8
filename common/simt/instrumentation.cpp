// The compiler's calls: kernels' sources are compiled with -fsanitize=thread and linked without
// ThreadSanitizer, and these functions stand where its runtime would.
#include <bit>
#include <csignal>
#include <cstring>

#include "simt/block.hpp"

namespace simt {
namespace {

volatile std::sig_atomic_t time_is_up = 0;

void stop_at_once(Lane& lane, const void* pc) {
  const Unobserved unobserved;
  lane.block->fail(
      lane, "does not end in time: a loop that this thread does not leave, or far too much work",
      pc);
}

}  // namespace

void end_soon() noexcept {
  time_is_up = 1;
}

bool is_ending() noexcept {
  return time_is_up != 0;
}

}  // namespace simt

namespace {

// `pc` is the kernel's own: these functions never call each other without passing it on.
void observe(simt::Access access, const void* address, std::size_t size, const void* pc,
             simt::Strength strength = simt::Strength::kPlain) {
  simt::Lane* const lane = simt::current_lane;
  if (!lane) return;  // host code of the same source file
  lane->block->observer().access(*lane, simt::address_of(address), static_cast<unsigned>(size),
                                 access, strength, pc);
}

// A structure is copied piece by piece, of the largest size up to 16 bytes that alignment allows.
void observe_range(simt::Access access, const void* range, std::size_t bytes, const void* pc,
                   simt::Strength strength = simt::Strength::kPlain) {
  const std::uintptr_t begin = simt::address_of(range);
  const std::size_t piece = std::size_t{1} << std::countr_zero(begin | bytes | 16);
  for (std::size_t done = 0; done < bytes; done += piece) {
    observe(access, static_cast<const char*>(range) + done, piece, pc, strength);
  }
}

}  // namespace

extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-declarations"
void __tsan_init() {}
// At the start of each basic block.
void __sanitizer_cov_trace_pc() {
  simt::Lane* const lane = simt::current_lane;
  if (!lane) return;
  if (simt::time_is_up) simt::stop_at_once(*lane, SIMT_CALLER());
  lane->enter_block(simt::address_of(SIMT_CALLER()));
  if (simt::current_trail) simt::current_trail->push_back({simt::place_of(SIMT_CALLER()), 0, 0});
}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#ifdef SIMT_INSTRUMENTED
// With -fsanitize=object-size, where kernels are judged (coursework/kit.mk): an address lies
// outside of the variable that the source names. What the compiler knows of the access:
struct simt_access_outside {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  unsigned char alignment, is_store;
};
void __ubsan_handle_type_mismatch_v1(const simt_access_outside* access, const void*) {
  simt::Lane* const lane = simt::current_lane;
  if (!lane) return;
  lane->block->observer().check.reject_outside(*lane, access->is_store == 1, SIMT_CALLER());
}
#endif

#define SIMT_OBSERVE(name, how, bytes, what, strength)                          \
  void __tsan_##name##bytes(void* p) {                                          \
    how(simt::Access::what, p, bytes, SIMT_CALLER(), simt::Strength::strength); \
  }
#define SIMT_OBSERVE_SIZE(bytes)                                                \
  SIMT_OBSERVE(read, observe, bytes, kLoad, kPlain)                             \
  SIMT_OBSERVE(write, observe, bytes, kStore, kPlain)                           \
  SIMT_OBSERVE(unaligned_read, observe_range, bytes, kLoad, kPlain)             \
  SIMT_OBSERVE(unaligned_write, observe_range, bytes, kStore, kPlain)           \
  SIMT_OBSERVE(volatile_read, observe, bytes, kLoad, kVolatile)                 \
  SIMT_OBSERVE(volatile_write, observe, bytes, kStore, kVolatile)               \
  SIMT_OBSERVE(unaligned_volatile_read, observe_range, bytes, kLoad, kVolatile) \
  SIMT_OBSERVE(unaligned_volatile_write, observe_range, bytes, kStore, kVolatile)
SIMT_OBSERVE_SIZE(1)
SIMT_OBSERVE_SIZE(2)
SIMT_OBSERVE_SIZE(4)
SIMT_OBSERVE_SIZE(8)
SIMT_OBSERVE_SIZE(16)
void __tsan_read_range(void* p, std::size_t size) {
  observe_range(simt::Access::kLoad, p, size, SIMT_CALLER());
}
void __tsan_write_range(void* p, std::size_t size) {
  observe_range(simt::Access::kStore, p, size, SIMT_CALLER());
}

// Later clangs call __tsan_memcpy and the like where others announce a range or copy in silence;
// what kernels' sources call memcpy is simt_memcpy, see builtins.hpp. (One call loads and stores:
// as instructions these two need addresses of their own, both within the call.)
#define SIMT_OBSERVED_COPY(prefix, name)                             \
  void* prefix##name(void* to, const void* from, std::size_t size) { \
    const auto pc = static_cast<const char*>(SIMT_CALLER());         \
    observe_range(simt::Access::kLoad, from, size, pc - 1);          \
    observe_range(simt::Access::kStore, to, size, pc);               \
    return std::name(to, from, size);                                \
  }
#define SIMT_OBSERVED_COPIES_OF(prefix)                           \
  SIMT_OBSERVED_COPY(prefix, memcpy)                              \
  SIMT_OBSERVED_COPY(prefix, memmove)                             \
  void* prefix##memset(void* to, int value, std::size_t size) {   \
    observe_range(simt::Access::kStore, to, size, SIMT_CALLER()); \
    return std::memset(to, value, size);                          \
  }
SIMT_OBSERVED_COPIES_OF(__tsan_)
SIMT_OBSERVED_COPIES_OF(simt_)

// Atomics of the host code that stands in the same sources (reference counts and the like).
#define SIMT_HOST_UPDATE(bits, T, name, builtin)            \
  T __tsan_atomic##bits##_##name(volatile T* p, T v, int) { \
    return __atomic_##builtin(p, v, __ATOMIC_SEQ_CST);      \
  }
#define SIMT_HOST_ATOMIC(bits, T)                                                           \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##bits##_store(volatile T* p, T v, int) {                               \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  SIMT_HOST_UPDATE(bits, T, exchange, exchange_n)                                           \
  SIMT_HOST_UPDATE(bits, T, fetch_add, fetch_add)                                           \
  SIMT_HOST_UPDATE(bits, T, fetch_sub, fetch_sub)                                           \
  SIMT_HOST_UPDATE(bits, T, fetch_and, fetch_and)                                           \
  SIMT_HOST_UPDATE(bits, T, fetch_or, fetch_or)                                             \
  SIMT_HOST_UPDATE(bits, T, fetch_xor, fetch_xor)                                           \
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
