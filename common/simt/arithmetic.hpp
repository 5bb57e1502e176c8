// Arithmetic of CUDA's that C++ has not: bits, and operations that are rounded each for itself.
// Part of builtins.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "simt/types.hpp"

namespace simt {

// To an integer: NaN becomes 0, what is too large the largest, as on the GPU.
template <typename Integer>
Integer to_integer(double whole) {
  using Limits = std::numeric_limits<Integer>;
  if (whole != whole) return 0;
  if (whole >= static_cast<double>(Limits::max())) return Limits::max();
  if (whole <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<Integer>(whole);
}

}  // namespace simt

// --- Bits
// -----------------------------------------------------------------------------------------

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
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
// Four of the eight bytes of x (0 to 3) and y (4 to 7), chosen by the lower three bits of each
// nibble of `selector`; its fourth bit spreads the byte's sign.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i & 15u;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (nibble & 7u)) & 0xffu;
    if (nibble & 8u) byte = byte & 0x80u ? 0xffu : 0;
    result |= byte << 8 * i;
  }
  return result;
}
// The upper (_l) or lower (_r) word of high:low, shifted by `shift` modulo 32; _lc and _rc shift by
// at most 32.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31u));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
// The position of the |offset|-th set bit of `mask` from bit `base` on, upwards or, if `offset` is
// negative, downwards; ~0 if there is none. An offset of 0 asks whether bit `base` is set.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (base > 31) return ~0u;
  if (offset == 0) return mask >> base & 1u ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  int left = offset > 0 ? offset : -offset;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
    if ((mask >> bit & 1u) && --left == 0) return static_cast<unsigned>(bit);
  }
  return ~0u;
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

// --- Integers
// -------------------------------------------------------------------------------------

// The upper halves of products.
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
__extension__ typedef __int128 simt_int128;
__extension__ typedef unsigned __int128 simt_uint128;
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<simt_int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<simt_uint128>(a) * b >> 64);
}
// Products of the lower 24 bits.
inline int __mul24(int a, int b) {
  const auto low = [](int x) { return static_cast<int>(static_cast<unsigned>(x) << 8) >> 8; };
  return static_cast<int>(static_cast<long long>(low(a)) * low(b));
}
inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
// |a - b| + c.
inline unsigned __sad(int a, int b, unsigned c) {
  const long long difference = static_cast<long long>(a) - b;
  return static_cast<unsigned>(difference < 0 ? -difference : difference) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return (a < b ? b - a : a - b) + c;
}

// --- Floating point
// -------------------------------------------------------------------------------

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
inline float rsqrtf(float x) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
}
inline float rsqrt(float x) {
  return rsqrtf(x);
}
inline double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
inline float __saturatef(float x) {  // of a NaN, 0
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float __frsqrt_rn(float x) {
  return rsqrtf(x);
}
// The fast versions are as exact as the others.
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __exp10f(float x) {
  return std::pow(10.0f, x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __log2f(float x) {
  return std::log2(x);
}
inline float __log10f(float x) {
  return std::log10(x);
}
inline float __powf(float x, float y) {
  return std::pow(x, y);
}
inline float __sinf(float x) {
  return std::sin(x);
}
inline float __cosf(float x) {
  return std::cos(x);
}
inline float __tanf(float x) {
  return std::tan(x);
}
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}

// Each rounded once, to nearest: out of line, so that no compiler makes one operation of two.
#define SIMT_ROUNDED(T, prefix, fused)     \
  T __##prefix##add_rn(T a, T b) noexcept; \
  T __##prefix##sub_rn(T a, T b) noexcept; \
  T __##prefix##mul_rn(T a, T b) noexcept; \
  T __##prefix##div_rn(T a, T b) noexcept; \
  T __##prefix##rcp_rn(T a) noexcept;      \
  T __##prefix##sqrt_rn(T a) noexcept;     \
  T fused(T a, T b, T c) noexcept;
SIMT_ROUNDED(float, f, __fmaf_rn)
SIMT_ROUNDED(double, d, __fma_rn)
#undef SIMT_ROUNDED
inline float __double2float_rn(double a) {
  return static_cast<float>(a);
}

// Between integers and floating point.
#define SIMT_TO_INTEGER(name, Integer, suffix, round)   \
  inline Integer __float2##name##_##suffix(float a) {   \
    return simt::to_integer<Integer>(round(double{a})); \
  }                                                     \
  inline Integer __double2##name##_##suffix(double a) { \
    return simt::to_integer<Integer>(round(a));         \
  }
#define SIMT_CONVERSIONS(name, Integer)              \
  SIMT_TO_INTEGER(name, Integer, rn, std::nearbyint) \
  SIMT_TO_INTEGER(name, Integer, rz, std::trunc)     \
  SIMT_TO_INTEGER(name, Integer, ru, std::ceil)      \
  SIMT_TO_INTEGER(name, Integer, rd, std::floor)     \
  inline float __##name##2float_rn(Integer a) {      \
    return static_cast<float>(a);                    \
  }                                                  \
  inline double __##name##2double_rn(Integer a) {    \
    return static_cast<double>(a);                   \
  }
SIMT_CONVERSIONS(int, int)
SIMT_CONVERSIONS(uint, unsigned)
SIMT_CONVERSIONS(ll, long long)
SIMT_CONVERSIONS(ull, unsigned long long)
#undef SIMT_CONVERSIONS
#undef SIMT_TO_INTEGER
