// What a kernel may call: built-in variables, warp operations, barriers, atomics, cached loads,
// textures and arithmetic, with the meaning that the CUDA C++ Programming Guide gives them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

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
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
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

// Read-modify-write operations, out of line so that the caller's address names the source line.
#define SIMT_ATOMIC(T)                        \
  T atomic_add(T* address, T value) noexcept; \
  T atomic_exchange(T* address, T value) noexcept;
#define SIMT_INTEGER_ATOMIC(T)                \
  SIMT_ATOMIC(T)                              \
  T atomic_min(T* address, T value) noexcept; \
  T atomic_max(T* address, T value) noexcept; \
  T atomic_and(T* address, T value) noexcept; \
  T atomic_or(T* address, T value) noexcept;  \
  T atomic_xor(T* address, T value) noexcept; \
  T atomic_compare_exchange(T* address, T compare, T value) noexcept;
SIMT_INTEGER_ATOMIC(int)
SIMT_INTEGER_ATOMIC(unsigned)
SIMT_INTEGER_ATOMIC(unsigned long long)
SIMT_ATOMIC(float)
SIMT_ATOMIC(double)
#undef SIMT_INTEGER_ATOMIC
#undef SIMT_ATOMIC
unsigned atomic_increment(unsigned* address, unsigned last) noexcept;
unsigned atomic_decrement(unsigned* address, unsigned last) noexcept;

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

// --- Programmatic dependent launch: a kernel that starts before the previous one has completed
// ----

__forceinline__ void cudaGridDependencySynchronize() {
  simt::wait_for_previous_grid();
  simt::no_tail_call();
}
__forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {}

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
// CUDA promises no more than that the caller is in the answer; here it is alone in it.
__forceinline__ unsigned __activemask() {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return 1u << (thread % simt::kWarpSize);
}
__forceinline__ unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return simt::vote(simt::Collective::kReduceAdd, mask, value);
}
__forceinline__ int __reduce_add_sync(unsigned mask, int value) {
  return static_cast<int>(
      simt::vote(simt::Collective::kReduceAdd, mask, static_cast<unsigned>(value)));
}
__forceinline__ unsigned __reduce_min_sync(unsigned mask, unsigned value) {
  return simt::vote(simt::Collective::kReduceMinUnsigned, mask, value);
}
__forceinline__ int __reduce_min_sync(unsigned mask, int value) {
  return static_cast<int>(
      simt::vote(simt::Collective::kReduceMinSigned, mask, static_cast<unsigned>(value)));
}
__forceinline__ unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  return simt::vote(simt::Collective::kReduceMaxUnsigned, mask, value);
}
__forceinline__ int __reduce_max_sync(unsigned mask, int value) {
  return static_cast<int>(
      simt::vote(simt::Collective::kReduceMaxSigned, mask, static_cast<unsigned>(value)));
}
__forceinline__ unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return simt::vote(simt::Collective::kReduceAnd, mask, value);
}
__forceinline__ unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return simt::vote(simt::Collective::kReduceOr, mask, value);
}
__forceinline__ unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return simt::vote(simt::Collective::kReduceXor, mask, value);
}

// --- Atomics ------------------------------------------------------------------------------------

#define SIMT_ATOMIC_FUNCTION(name, operation)                         \
  template <typename T>                                               \
  __forceinline__ T name(T* address, std::type_identity_t<T> value) { \
    const T old = simt::operation(address, value);                    \
    simt::no_tail_call();                                             \
    return old;                                                       \
  }
#define SIMT_ATOMIC(name, operation)            \
  SIMT_ATOMIC_FUNCTION(name, operation)         \
  SIMT_ATOMIC_FUNCTION(name##_block, operation) \
  SIMT_ATOMIC_FUNCTION(name##_system, operation)
SIMT_ATOMIC(atomicAdd, atomic_add)
SIMT_ATOMIC(atomicExch, atomic_exchange)
SIMT_ATOMIC(atomicMin, atomic_min)
SIMT_ATOMIC(atomicMax, atomic_max)
SIMT_ATOMIC(atomicAnd, atomic_and)
SIMT_ATOMIC(atomicOr, atomic_or)
SIMT_ATOMIC(atomicXor, atomic_xor)
#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_FUNCTION
template <typename T>
__forceinline__ T atomicSub(T* address, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA has atomicSub for integers only");
  return atomicAdd(address, static_cast<T>(T{0} - value));
}
template <typename T>
__forceinline__ T atomicCAS(T* address, std::type_identity_t<T> compare,
                            std::type_identity_t<T> value) {
  const T old = simt::atomic_compare_exchange(address, compare, value);
  simt::no_tail_call();
  return old;
}
// Counts up to `last`, then again from 0.
__forceinline__ unsigned atomicInc(unsigned* address, unsigned last) {
  const unsigned old = simt::atomic_increment(address, last);
  simt::no_tail_call();
  return old;
}
// Counts down from `last` to 0, then again from `last`.
__forceinline__ unsigned atomicDec(unsigned* address, unsigned last) {
  const unsigned old = simt::atomic_decrement(address, last);
  simt::no_tail_call();
  return old;
}

// --- Loads and stores with a cache hint, which the CPU has no use for ---------------------------

#define SIMT_LOAD(name)                      \
  template <typename T>                      \
  __forceinline__ T name(const T* address) { \
    return *address;                         \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldcv)
SIMT_LOAD(__ldlu)
#undef SIMT_LOAD
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

// --- Integers and bits --------------------------------------------------------------------------

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= ((x >> bit) & 1u) << (31 - bit);
  return reversed;
}

inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}
inline int __double2hiint(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32);
}
inline int __double2loint(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x));
}
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}

// --- Arithmetic ---------------------------------------------------------------------------------

// Of a number and a NaN, the number.
template <typename T>
requires std::is_arithmetic_v<T>
constexpr T min(T a, T b) {
  return b < a || a != a ? b : a;
}
template <typename T>
requires std::is_arithmetic_v<T>
constexpr T max(T a, T b) {
  return a < b || a != a ? b : a;
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline double __fma_rn(double a, double b, double c) {
  return std::fma(a, b, c);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline double __dadd_rn(double a, double b) {
  return a + b;
}
inline double __dmul_rn(double a, double b) {
  return a * b;
}
