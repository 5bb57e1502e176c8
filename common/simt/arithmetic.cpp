#include "simt/arithmetic.hpp"

#define SIMT_ROUNDED(T, prefix, fused)      \
  T __##prefix##add_rn(T a, T b) noexcept { \
    return a + b;                           \
  }                                         \
  T __##prefix##sub_rn(T a, T b) noexcept { \
    return a - b;                           \
  }                                         \
  T __##prefix##mul_rn(T a, T b) noexcept { \
    return a * b;                           \
  }                                         \
  T __##prefix##div_rn(T a, T b) noexcept { \
    return a / b;                           \
  }                                         \
  T __##prefix##rcp_rn(T a) noexcept {      \
    return 1 / a;                           \
  }                                         \
  T __##prefix##sqrt_rn(T a) noexcept {     \
    return std::sqrt(a);                    \
  }                                         \
  T fused(T a, T b, T c) noexcept {         \
    return std::fma(a, b, c);               \
  }
SIMT_ROUNDED(float, f, __fmaf_rn)
SIMT_ROUNDED(double, d, __fma_rn)
#undef SIMT_ROUNDED
