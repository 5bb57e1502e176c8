// Half precision: what cuda_fp16.h offers, on numbers of 16 bits. Arithmetic is exact, rounded
// once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/builtins.hpp"

namespace simt {

// To the nearest number of half precision, of two the even one.
inline std::uint16_t half_bits(double x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const double size = std::fabs(x);
  if (x != x) return 0x7fff;
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;  // infinite: half way to what would be next
  int exponent = 0;
  std::frexp(size, &exponent);  // size < 2^exponent
  const int unit = (exponent < -13 ? -13 : exponent) - 11;
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  // With `unit` at its least, numbers are subnormal or of the least exponent; rounding up may carry
  // into the exponent, as it should.
  return static_cast<std::uint16_t>(sign | (units + (static_cast<std::uint32_t>(unit + 24) << 10)));
}

inline float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  float size = 0;
  if (exponent == 31) {
    size = fraction ? std::bit_cast<float>(0x7fffffffu) : HUGE_VALF;
  } else if (exponent == 0) {
    size = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    size = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return bits & 0x8000 ? -size : size;
}

std::uint16_t atomic_add_half(std::uint16_t* address, std::uint16_t value, Scope scope) noexcept;

}  // namespace simt

struct __half_raw {
  unsigned short x;
};

struct __half {
  std::uint16_t bits;

  __half() = default;
  __half(const __half_raw& raw) : bits(raw.x) {}
  __half(float x) : bits(simt::half_bits(x)) {}
  __half(double x) : bits(simt::half_bits(x)) {}
  __half(int x) : bits(simt::half_bits(x)) {}
  __half(unsigned x) : bits(simt::half_bits(x)) {}
  __half(long long x) : bits(simt::half_bits(static_cast<double>(x))) {}
  operator float() const { return simt::half_value(bits); }
};
using half = __half;

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  __half2(__half x_, __half y_) : x(x_), y(y_) {}
  __forceinline__ __half2(const __half2& other) { simt::copy_vector(this, &other); }
  __forceinline__ __half2& operator=(const __half2& other) {
    simt::copy_vector(this, &other);
    return *this;
  }
};
using half2 = __half2;

// --- Conversions
// ----------------------------------------------------------------------------------

inline __half __float2half(float x) {
  return __half(x);
}
inline __half __float2half_rn(float x) {
  return __half(x);
}
inline __half __double2half(double x) {
  return __half(x);
}
inline float __half2float(__half x) {
  return static_cast<float>(x);
}
inline __half __int2half_rn(int x) {
  return __half(x);
}
inline int __half2int_rn(__half x) {
  return __float2int_rn(x);
}
inline int __half2int_rz(__half x) {
  return __float2int_rz(x);
}
inline unsigned short __half_as_ushort(__half x) {
  return x.bits;
}
inline short __half_as_short(__half x) {
  return static_cast<short>(x.bits);
}
inline __half __ushort_as_half(unsigned short bits) {
  return __half_raw{bits};
}
inline __half __short_as_half(short bits) {
  return __half_raw{static_cast<unsigned short>(bits)};
}
inline __half2 make_half2(__half x, __half y) {
  return {x, y};
}
inline __half2 __halves2half2(__half x, __half y) {
  return {x, y};
}
inline __half2 __half2half2(__half x) {
  return {x, x};
}
inline __half2 __float2half2_rn(float x) {
  return {x, x};
}
inline __half2 __floats2half2_rn(float x, float y) {
  return {x, y};
}
inline __half2 __float22half2_rn(float2 v) {
  return {v.x, v.y};
}
inline float2 __half22float2(__half2 v) {
  return {v.x, v.y};
}
inline __half __low2half(__half2 v) {
  return v.x;
}
inline __half __high2half(__half2 v) {
  return v.y;
}
inline float __low2float(__half2 v) {
  return v.x;
}
inline float __high2float(__half2 v) {
  return v.y;
}

// --- Arithmetic
// -----------------------------------------------------------------------------------

// Of two numbers with 11 bits, float has enough bits for each of these to be rounded twice as if
// once; a * b + c is rounded to odd in double before it is rounded to half.
inline __half __hadd(__half a, __half b) {
  return static_cast<float>(a) + static_cast<float>(b);
}
inline __half __hsub(__half a, __half b) {
  return static_cast<float>(a) - static_cast<float>(b);
}
inline __half __hmul(__half a, __half b) {
  return static_cast<float>(a) * static_cast<float>(b);
}
inline __half __hdiv(__half a, __half b) {
  return static_cast<float>(a) / static_cast<float>(b);
}
inline __half __hfma(__half a, __half b, __half c) {
  const double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
  const double addend = static_cast<float>(c);
  const double sum = product + addend;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - product;
  const double rest = (product - (sum - part)) + (addend - part);  // what `sum` lacks
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (rest != 0 && bits % 2 == 0) bits += (rest > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}
inline __half __hneg(__half a) {
  return __half_raw{static_cast<unsigned short>(a.bits ^ 0x8000)};
}
inline __half __habs(__half a) {
  return __half_raw{static_cast<unsigned short>(a.bits & 0x7fff)};
}
inline __half hsqrt(__half a) {
  return std::sqrt(static_cast<double>(a));
}
inline __half hrsqrt(__half a) {
  return rsqrt(static_cast<double>(a));
}
inline __half hrcp(__half a) {
  return 1 / static_cast<double>(a);
}
inline __half hexp(__half a) {
  return std::exp(static_cast<double>(a));
}
inline __half hlog(__half a) {
  return std::log(static_cast<double>(a));
}
inline bool __hisnan(__half a) {
  return std::isnan(static_cast<float>(a));
}
inline int __hisinf(__half a) {
  return std::isinf(static_cast<float>(a)) ? (a.bits & 0x8000 ? -1 : 1) : 0;
}
inline __half __hmin(__half a, __half b) {
  return min(static_cast<float>(a), static_cast<float>(b));
}
inline __half __hmax(__half a, __half b) {
  return max(static_cast<float>(a), static_cast<float>(b));
}
#define SIMT_COMPARE(name, operation)                             \
  inline bool name(__half a, __half b) {                          \
    return static_cast<float>(a) operation static_cast<float>(b); \
  }
SIMT_COMPARE(__heq, ==)
SIMT_COMPARE(__hne, !=)
SIMT_COMPARE(__hlt, <)
SIMT_COMPARE(__hle, <=)
SIMT_COMPARE(__hgt, >)
SIMT_COMPARE(__hge, >=)
SIMT_COMPARE(operator==, ==)
SIMT_COMPARE(operator!=, !=)
SIMT_COMPARE(operator<, <)
SIMT_COMPARE(operator<=, <=)
SIMT_COMPARE(operator>, >)
SIMT_COMPARE(operator>=, >=)
#undef SIMT_COMPARE
#define SIMT_ARITHMETIC(symbol, name)                         \
  inline __half operator symbol(__half a, __half b) {         \
    return name(a, b);                                        \
  }                                                           \
  inline __half& operator symbol##=(__half& a, __half b) {    \
    return a = name(a, b);                                    \
  }                                                           \
  inline __half2 name##2(__half2 a, __half2 b) {              \
    return {name(a.x, b.x), name(a.y, b.y)};                  \
  }                                                           \
  inline __half2 operator symbol(__half2 a, __half2 b) {      \
    return name##2(a, b);                                     \
  }                                                           \
  inline __half2& operator symbol##=(__half2& a, __half2 b) { \
    return a = name##2(a, b);                                 \
  }
SIMT_ARITHMETIC(+, __hadd)
SIMT_ARITHMETIC(-, __hsub)
SIMT_ARITHMETIC(*, __hmul)
#undef SIMT_ARITHMETIC
inline __half operator/(__half a, __half b) {
  return __hdiv(a, b);
}
inline __half& operator/=(__half& a, __half b) {
  return a = __hdiv(a, b);
}
inline __half operator-(__half a) {
  return __hneg(a);
}
inline __half2 __h2div(__half2 a, __half2 b) {
  return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)};
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half2 __hneg2(__half2 a) {
  return {__hneg(a.x), __hneg(a.y)};
}
inline __half2 __hmin2(__half2 a, __half2 b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
inline __half2 __hmax2(__half2 a, __half2 b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}

// --- Atomics
// --------------------------------------------------------------------------------------

__forceinline__ __half atomicAdd(__half* address, __half value) {
  const std::uint16_t old = simt::atomic_add_half(&address->bits, value.bits, simt::Scope::kDevice);
  simt::no_tail_call();
  return __half_raw{old};
}
