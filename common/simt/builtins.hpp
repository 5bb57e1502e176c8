// What a kernel may call: built-in variables, warp operations, barriers, atomics, cached loads,
// textures and arithmetic, with the meaning that the CUDA C++ Programming Guide gives them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/arithmetic.hpp"
#include "simt/engine.hpp"
#include "simt/types.hpp"

// A thread of the host runs one lane at a time; simt sets these as it goes from lane to lane. (To a
// lane they are constants, as in CUDA; the instrumented build does not report reads of constants.)
extern const constinit thread_local uint3 threadIdx;
extern const constinit thread_local uint3 blockIdx;
extern const constinit thread_local dim3 blockDim;
extern const constinit thread_local dim3 gridDim;
inline constexpr int warpSize = simt::kWarpSize;

namespace simt {

// A value of up to 8 bytes as the bits that travel between lanes, and back.
template <typename T>
std::uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
__forceinline__ T shuffle(Collective kind, unsigned mask, T value, int operand, int width) {
  return from_bits<T>(collective(kind, mask, to_bits(value), operand, width));
}

__forceinline__ unsigned vote(Collective kind, unsigned mask, std::uint64_t value) {
  return static_cast<unsigned>(collective(kind, mask, value, 0, kWarpSize));
}

// Follows a call that may be a kernel's last: as a jump it would leave no address in the kernel.
__forceinline__ void no_tail_call() {
  asm volatile("");
}

// Read-modify-write operations, out of line so that the caller's address names the source line:
// type, name, and what becomes of `a` in memory. (Sums of signed integers wrap on the device; in
// C++ they may not overflow.)
#define SIMT_INTEGER_ATOMICS(OF, T)    \
  OF(T, atomic_exchange, ((void)a, b)) \
  OF(T, atomic_min, (b < a ? b : a))   \
  OF(T, atomic_max, (a < b ? b : a))   \
  OF(T, atomic_and, (a & b))           \
  OF(T, atomic_or, (a | b))            \
  OF(T, atomic_xor, (a ^ b))
#define SIMT_ALL_ATOMICS(OF)                                                 \
  SIMT_INTEGER_ATOMICS(OF, int)                                              \
  SIMT_INTEGER_ATOMICS(OF, unsigned)                                         \
  SIMT_INTEGER_ATOMICS(OF, long long)                                        \
  SIMT_INTEGER_ATOMICS(OF, unsigned long long)                               \
  OF(float, atomic_exchange, ((void)a, b))                                   \
  OF(double, atomic_exchange, ((void)a, b))                                  \
  OF(int, atomic_add, (static_cast<unsigned>(a) + static_cast<unsigned>(b))) \
  OF(unsigned, atomic_add, (a + b))                                          \
  OF(unsigned long long, atomic_add, (a + b))                                \
  OF(float, atomic_add, (a + b))                                             \
  OF(double, atomic_add, (a + b))                                            \
  OF(unsigned, atomic_increment, (a >= b ? 0u : a + 1))                      \
  OF(unsigned, atomic_decrement, (a == 0 || a > b ? b : a - 1))
#define SIMT_ATOMIC(T, name, result) T name(T* address, T b, Scope scope) noexcept;
SIMT_ALL_ATOMICS(SIMT_ATOMIC)
#undef SIMT_ATOMIC
#define SIMT_ALL_COMPARE_EXCHANGES(OF) \
  OF(int) OF(unsigned) OF(long long) OF(unsigned long long) OF(unsigned short)
#define SIMT_COMPARE_EXCHANGE(T) \
  T atomic_compare_exchange(T* address, T compare, T value, Scope scope) noexcept;
SIMT_ALL_COMPARE_EXCHANGES(SIMT_COMPARE_EXCHANGE)
#undef SIMT_COMPARE_EXCHANGE

// Copies `size` bytes that the launch does not write.
void read_only_load(const void* address, void* value, std::size_t size) noexcept;
// Copies element `index`, of `size` bytes, of a linear texture; zeros beyond its end, as CUDA does.
void texture_fetch(unsigned long long texture, int index, void* element, std::size_t size) noexcept;

}  // namespace simt

// --- Barriers, fences ---------------------------------------------------------------------------
//
// All that reaches simt is inlined always: the address that simt returns to tells it the
// instruction.

__forceinline__ void __syncthreads() {
  simt::barrier(simt::Barrier::kPlain, 0);
  simt::no_tail_call();
}
__forceinline__ int __syncthreads_or(int predicate) {
  return simt::barrier(simt::Barrier::kOr, predicate);
}
__forceinline__ int __syncthreads_and(int predicate) {
  return simt::barrier(simt::Barrier::kAnd, predicate);
}
__forceinline__ int __syncthreads_count(int predicate) {
  return simt::barrier(simt::Barrier::kCount, predicate);
}
__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) {
  simt::vote(simt::Collective::kSyncWarp, mask, 0);
  simt::no_tail_call();
}
__forceinline__ void __threadfence() {
  simt::fence(simt::Scope::kDevice);
  simt::no_tail_call();
}
__forceinline__ void __threadfence_block() {
  simt::fence(simt::Scope::kBlock);
  simt::no_tail_call();
}
__forceinline__ void __threadfence_system() {
  simt::fence(simt::Scope::kSystem);
  simt::no_tail_call();
}
__forceinline__ void __nanosleep(unsigned) {
  simt::yield();
  simt::no_tail_call();
}

// --- Programmatic dependent launch: kernels that start before the previous one has completed ----

__forceinline__ void cudaGridDependencySynchronize() {
  simt::wait_for_previous_grid();
  simt::no_tail_call();
}
__forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {}

// Ends the launch with an error.
__forceinline__ void __trap() {
  simt::trap();
}
// A virtual clock, which advances by 100 whenever it is read: no kernel does other things on a
// slower machine. (clock() is the C library's.)
__forceinline__ long long clock64() {
  return simt::nanoseconds();
}

// Copies of memory by a kernel are observed, whatever the compiler knows of their sizes.
#ifdef SIMT_OBSERVED_COPIES
extern "C" {
void* memcpy(void* to, const void* from, std::size_t bytes) noexcept asm("simt_memcpy");
void* memmove(void* to, const void* from, std::size_t bytes) noexcept asm("simt_memmove");
void* memset(void* to, int value, std::size_t bytes) noexcept asm("simt_memset");
}
#endif

// --- Warp operations ----------------------------------------------------------------------------

template <typename T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  return simt::shuffle(simt::Collective::kShuffle, mask, value, source, width);
}
template <typename T>
__forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return simt::shuffle(simt::Collective::kShuffleUp, mask, value, static_cast<int>(delta), width);
}
template <typename T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return simt::shuffle(simt::Collective::kShuffleDown, mask, value, static_cast<int>(delta), width);
}
template <typename T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  return simt::shuffle(simt::Collective::kShuffleXor, mask, value, lane_mask, width);
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  return simt::vote(simt::Collective::kBallot, mask, predicate != 0);
}
__forceinline__ int __any_sync(unsigned mask, int predicate) {
  return static_cast<int>(simt::vote(simt::Collective::kAny, mask, predicate != 0));
}
__forceinline__ int __all_sync(unsigned mask, int predicate) {
  return static_cast<int>(simt::vote(simt::Collective::kAll, mask, predicate != 0));
}
template <typename T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value) {
  return simt::vote(simt::Collective::kMatchAny, mask, simt::to_bits(value));
}
template <typename T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* predicate) {
  const unsigned lanes = simt::vote(simt::Collective::kMatchAll, mask, simt::to_bits(value));
  *predicate = lanes != 0;
  return lanes;
}
// The lanes that arrive here together, as on a GPU whose lanes meet again after a branch. CUDA
// promises no more than that the caller is one of them.
__forceinline__ unsigned __activemask() {
  return simt::vote(simt::Collective::kActiveMask, ~0u, 0);
}
#define SIMT_REDUCTION(T, name, kind)                                                              \
  __forceinline__ T name(unsigned mask, T value) {                                                 \
    return static_cast<T>(simt::vote(simt::Collective::kind, mask, static_cast<unsigned>(value))); \
  }
SIMT_REDUCTION(unsigned, __reduce_add_sync, kReduceAdd)
SIMT_REDUCTION(int, __reduce_add_sync, kReduceAdd)
SIMT_REDUCTION(unsigned, __reduce_min_sync, kReduceMinUnsigned)
SIMT_REDUCTION(int, __reduce_min_sync, kReduceMinSigned)
SIMT_REDUCTION(unsigned, __reduce_max_sync, kReduceMaxUnsigned)
SIMT_REDUCTION(int, __reduce_max_sync, kReduceMaxSigned)
SIMT_REDUCTION(unsigned, __reduce_and_sync, kReduceAnd)
SIMT_REDUCTION(unsigned, __reduce_or_sync, kReduceOr)
SIMT_REDUCTION(unsigned, __reduce_xor_sync, kReduceXor)
#undef SIMT_REDUCTION

// --- Atomics ------------------------------------------------------------------------------------

#define SIMT_ATOMIC_OF_SCOPE(name, operation, scope)                  \
  template <typename T>                                               \
  __forceinline__ T name(T* address, std::type_identity_t<T> value) { \
    const T old = simt::operation(address, value, scope);             \
    simt::no_tail_call();                                             \
    return old;                                                       \
  }
#define SIMT_SUBTRACTION(name, addition)                                          \
  template <typename T>                                                           \
  __forceinline__ T name(T* address, std::type_identity_t<T> value) {             \
    static_assert(std::is_integral_v<T>, "CUDA has " #name " for integers only"); \
    return addition(address, static_cast<T>(T{0} - value));                       \
  }
#define SIMT_COMPARE_EXCHANGE(name, scope)                                       \
  template <typename T>                                                          \
  __forceinline__ T name(T* address, std::type_identity_t<T> compare,            \
                         std::type_identity_t<T> value) {                        \
    const T old = simt::atomic_compare_exchange(address, compare, value, scope); \
    simt::no_tail_call();                                                        \
    return old;                                                                  \
  }
// atomicInc counts up to `value`, then again from 0; atomicDec down from it to 0, then again from
// it.
#define SIMT_ATOMICS(suffix, scope)                                \
  SIMT_ATOMIC_OF_SCOPE(atomicAdd##suffix, atomic_add, scope)       \
  SIMT_ATOMIC_OF_SCOPE(atomicExch##suffix, atomic_exchange, scope) \
  SIMT_ATOMIC_OF_SCOPE(atomicMin##suffix, atomic_min, scope)       \
  SIMT_ATOMIC_OF_SCOPE(atomicMax##suffix, atomic_max, scope)       \
  SIMT_ATOMIC_OF_SCOPE(atomicAnd##suffix, atomic_and, scope)       \
  SIMT_ATOMIC_OF_SCOPE(atomicOr##suffix, atomic_or, scope)         \
  SIMT_ATOMIC_OF_SCOPE(atomicXor##suffix, atomic_xor, scope)       \
  SIMT_ATOMIC_OF_SCOPE(atomicInc##suffix, atomic_increment, scope) \
  SIMT_ATOMIC_OF_SCOPE(atomicDec##suffix, atomic_decrement, scope) \
  SIMT_SUBTRACTION(atomicSub##suffix, atomicAdd##suffix)           \
  SIMT_COMPARE_EXCHANGE(atomicCAS##suffix, scope)
SIMT_ATOMICS(, simt::Scope::kDevice)
SIMT_ATOMICS(_block, simt::Scope::kBlock)
SIMT_ATOMICS(_system, simt::Scope::kSystem)
#undef SIMT_ATOMICS
#undef SIMT_COMPARE_EXCHANGE
#undef SIMT_SUBTRACTION
#undef SIMT_ATOMIC_OF_SCOPE

// --- Loads and stores with a cache hint, which the CPU has no use for ---------------------------

// Of what no thread of the launch writes: that is checked.
template <typename T>
__forceinline__ T __ldg(const T* address) {
  T value;
  simt::read_only_load(address, &value, sizeof(T));
  return value;
}
#define SIMT_LOAD(name)                      \
  template <typename T>                      \
  __forceinline__ T name(const T* address) { \
    return *address;                         \
  }
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
#undef SIMT_LOAD
// From the L2, which all threads share, or anew each time: as for a volatile. (A rule of simt: to
// PTX these are weak loads. nvcc's are `asm volatile`, or clobber memory, and so are not merged.)
template <typename T>
__forceinline__ T __ldcv(const T* address) {
  if constexpr (std::is_arithmetic_v<T>) {
    return *const_cast<const volatile T*>(address);
  } else {
    return *address;
  }
}
template <typename T>
__forceinline__ T __ldcg(const T* address) {
  return __ldcv(address);
}
#define SIMT_STORE(name)                                                 \
  template <typename T>                                                  \
  __forceinline__ void name(T* address, std::type_identity_t<T> value) { \
    *address = value;                                                    \
  }
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwb)
SIMT_STORE(__stwt)
#undef SIMT_STORE

// --- Textures -----------------------------------------------------------------------------------

using cudaTextureObject_t = unsigned long long;

template <typename T>
__forceinline__ T tex1Dfetch(cudaTextureObject_t texture, int index) {
  T element;
  simt::texture_fetch(texture, index, &element, sizeof(T));
  return element;
}
template <typename T>
__forceinline__ void tex1Dfetch(T* element, cudaTextureObject_t texture, int index) {
  *element = tex1Dfetch<T>(texture, index);
}
