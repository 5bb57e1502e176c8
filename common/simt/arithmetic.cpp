#include "simt/arithmetic.hpp"

#include <cfenv>
#include <type_traits>

namespace simt {
namespace {

// Calls compute() with another rounding mode. What it reads and writes is volatile, which a
// compiler that knows nothing of rounding modes moves no more than the two calls around it.
template <typename Compute>
auto rounded(Rounding rounding, Compute compute) {
  constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
  const int mode = kModes[static_cast<int>(rounding)];
  const int before = std::fegetround();
  if (mode != before) std::fesetround(mode);
  volatile auto result = compute();
  if (mode != before) std::fesetround(before);
  return static_cast<std::remove_volatile_t<decltype(result)>>(result);
}

}  // namespace

#define SIMT_ROUNDED(T)                                                   \
  T add(T a, T b, Rounding rounding) noexcept {                           \
    volatile T x = a, y = b;                                              \
    return rounded(rounding, [&] { return static_cast<T>(x + y); });      \
  }                                                                       \
  T multiply(T a, T b, Rounding rounding) noexcept {                      \
    volatile T x = a, y = b;                                              \
    return rounded(rounding, [&] { return static_cast<T>(x * y); });      \
  }                                                                       \
  T divide(T a, T b, Rounding rounding) noexcept {                        \
    volatile T x = a, y = b;                                              \
    return rounded(rounding, [&] { return static_cast<T>(x / y); });      \
  }                                                                       \
  T multiply_add(T a, T b, T c, Rounding rounding) noexcept {             \
    volatile T x = a, y = b, z = c;                                       \
    return rounded(rounding, [&] { return std::fma(T{x}, T{y}, T{z}); }); \
  }                                                                       \
  T square_root(T a, Rounding rounding) noexcept {                        \
    volatile T x = a;                                                     \
    return rounded(rounding, [&] { return std::sqrt(T{x}); });            \
  }
SIMT_ROUNDED(float)
SIMT_ROUNDED(double)
#undef SIMT_ROUNDED

#define SIMT_CONVERSION(name, To, From)                           \
  To name(From a, Rounding rounding) noexcept {                   \
    volatile From x = a;                                          \
    return rounded(rounding, [&] { return static_cast<To>(x); }); \
  }
SIMT_CONVERSION(to_float, float, double)
SIMT_CONVERSION(to_float, float, long long)
SIMT_CONVERSION(to_double, double, long long)
#undef SIMT_CONVERSION
// (A compiler converts an unsigned one in two steps, which do not round alike.)
float to_float(unsigned long long a, Rounding rounding) noexcept {
  return a >> 63 ? 2 * to_float(static_cast<long long>(a >> 1 | (a & 1)), rounding)
                 : to_float(static_cast<long long>(a), rounding);
}
double to_double(unsigned long long a, Rounding rounding) noexcept {
  return a >> 63 ? 2 * to_double(static_cast<long long>(a >> 1 | (a & 1)), rounding)
                 : to_double(static_cast<long long>(a), rounding);
}

double to_integral(double a, Rounding rounding) noexcept {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(a);
    case Rounding::kUp:
      return std::ceil(a);
    case Rounding::kDown:
      return std::floor(a);
    case Rounding::kNearest:
      break;
  }
  return std::nearbyint(a);
}

}  // namespace simt
