// Arithmetic of CUDA's that C++ has not: bits, and operations that are rounded each for itself.
// Part of builtins.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/types.hpp"

// A function of one argument, x.
#define SIMT_UNARY(Result, name, T, expression) \
  inline Result name(T x) {                     \
    return expression;                          \
  }

// --- Bits ---------------------------------------------------------------------------------------

SIMT_UNARY(int, __popc, unsigned, std::popcount(x))
SIMT_UNARY(int, __popcll, unsigned long long, std::popcount(x))
SIMT_UNARY(int, __clz, int, std::countl_zero(static_cast<unsigned>(x)))
SIMT_UNARY(int, __clzll, long long, std::countl_zero(static_cast<unsigned long long>(x)))
SIMT_UNARY(int, __ffs, int, __builtin_ffs(x))
SIMT_UNARY(int, __ffsll, long long, __builtin_ffsll(x))
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= ((x >> bit) & 1u) << (31 - bit);
  return reversed;
}
SIMT_UNARY(int, __float_as_int, float, std::bit_cast<int>(x))
SIMT_UNARY(unsigned, __float_as_uint, float, std::bit_cast<unsigned>(x))
SIMT_UNARY(float, __int_as_float, int, std::bit_cast<float>(x))
SIMT_UNARY(float, __uint_as_float, unsigned, std::bit_cast<float>(x))
SIMT_UNARY(long long, __double_as_longlong, double, std::bit_cast<long long>(x))
SIMT_UNARY(double, __longlong_as_double, long long, std::bit_cast<double>(x))
SIMT_UNARY(int, __double2hiint, double, static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32))
SIMT_UNARY(int, __double2loint, double, static_cast<int>(std::bit_cast<std::uint64_t>(x)))
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}

// --- Floating point -----------------------------------------------------------------------------

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
SIMT_UNARY(float, rsqrtf, float, static_cast<float>(1 / std::sqrt(static_cast<double>(x))))
SIMT_UNARY(float, rsqrt, float, rsqrtf(x))
SIMT_UNARY(double, rsqrt, double, 1 / std::sqrt(x))
#undef SIMT_UNARY

// Each rounded once, to nearest: out of line, so that no compiler makes one operation of two.
#define SIMT_ROUNDED(T, add, multiply, fused) \
  T add(T a, T b) noexcept;                   \
  T multiply(T a, T b) noexcept;              \
  T fused(T a, T b, T c) noexcept;
#define SIMT_ALL_ROUNDED(OF_TYPE)                 \
  OF_TYPE(float, __fadd_rn, __fmul_rn, __fmaf_rn) \
  OF_TYPE(double, __dadd_rn, __dmul_rn, __fma_rn)
SIMT_ALL_ROUNDED(SIMT_ROUNDED)
#undef SIMT_ROUNDED
