// Return addresses of a student's functions are not written to: who writes to one could go on
// behind the call that announces an access, and hide it.
//
// The linker puts these functions between the compiler's announcements of stores and simt
// (--wrap, kit.mk). Kernels are compiled with frame pointers, so that the frames on a lane's stack
// are a list, and the place of each return address is known.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "simt/internal.hpp"

#if defined(__GNUC__) && !defined(__clang__)
namespace {

// `frame`: of the function that was called; at its beginning stand the caller's frame and a return
// address, as they do in each frame.
inline __attribute__((always_inline)) void guard(const void* place, std::size_t bytes,
                                                 const void* frame) {
  const simt::Lane* const lane = simt::current_lane;
  if (!lane) return;  // host code of the same source file
  const auto stack = reinterpret_cast<std::uintptr_t>(lane->fiber->stack);
  const auto begin = reinterpret_cast<std::uintptr_t>(place);
  if (begin - stack >= simt::kStackBytes) return;
  auto at = reinterpret_cast<std::uintptr_t>(frame);
  while (at - stack < simt::kStackBytes && at < begin + bytes) {
    if (begin < at + 2 * sizeof(void*)) std::abort();
    const std::uintptr_t next = *reinterpret_cast<const std::uintptr_t*>(at);
    if (next <= at) return;
    at = next;
  }
}

}  // namespace

// (A jump, not a call, so that simt sees the kernel's own return address.)
#define SPMV_GUARD(result, name, bytes, parameters, ...)              \
  extern "C" result __real_##name parameters;                         \
  extern "C" __attribute__((optimize("O2", "no-omit-frame-pointer"))) \
  result __wrap_##name parameters {                                   \
    guard(to, bytes, __builtin_frame_address(0));                     \
    return __real_##name(to __VA_OPT__(, ) __VA_ARGS__);              \
  }
#define SPMV_GUARD_STORES(bytes)                                     \
  SPMV_GUARD(void, __tsan_write##bytes, bytes, (void* to))           \
  SPMV_GUARD(void, __tsan_unaligned_write##bytes, bytes, (void* to)) \
  SPMV_GUARD(void, __tsan_volatile_write##bytes, bytes, (void* to))  \
  SPMV_GUARD(void, __tsan_unaligned_volatile_write##bytes, bytes, (void* to))
SPMV_GUARD_STORES(1)
SPMV_GUARD_STORES(2)
SPMV_GUARD_STORES(4)
SPMV_GUARD_STORES(8)
SPMV_GUARD_STORES(16)
SPMV_GUARD(void, __tsan_write_range, bytes, (void* to, std::size_t bytes), bytes)
SPMV_GUARD(void*, simt_memcpy, bytes, (void* to, const void* from, std::size_t bytes), from, bytes)
SPMV_GUARD(void*, simt_memmove, bytes, (void* to, const void* from, std::size_t bytes), from, bytes)
SPMV_GUARD(void*, simt_memset, bytes, (void* to, int value, std::size_t bytes), value, bytes)
#endif
