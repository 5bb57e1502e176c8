#include "simt/arithmetic.hpp"

#define SIMT_ROUNDED(T, add, sub, mul, div, rcp, root, fused) \
  T add(T a, T b) noexcept {                                  \
    return a + b;                                             \
  }                                                           \
  T sub(T a, T b) noexcept {                                  \
    return a - b;                                             \
  }                                                           \
  T mul(T a, T b) noexcept {                                  \
    return a * b;                                             \
  }                                                           \
  T div(T a, T b) noexcept {                                  \
    return a / b;                                             \
  }                                                           \
  T rcp(T a) noexcept {                                       \
    return 1 / a;                                             \
  }                                                           \
  T root(T a) noexcept {                                      \
    return std::sqrt(a);                                      \
  }                                                           \
  T fused(T a, T b, T c) noexcept {                           \
    return std::fma(a, b, c);                                 \
  }
SIMT_ALL_ROUNDED(SIMT_ROUNDED)
#undef SIMT_ROUNDED
