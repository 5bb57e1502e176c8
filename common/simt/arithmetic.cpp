#include "simt/arithmetic.hpp"

#define SIMT_ROUNDED(T, add, multiply, fused) \
  T add(T a, T b) noexcept {                  \
    return a + b;                             \
  }                                           \
  T multiply(T a, T b) noexcept {             \
    return a * b;                             \
  }                                           \
  T fused(T a, T b, T c) noexcept {           \
    return std::fma(a, b, c);                 \
  }
SIMT_ALL_ROUNDED(SIMT_ROUNDED)
#undef SIMT_ROUNDED
