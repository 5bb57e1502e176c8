// Step 10: the vector that an iteration begins with, the factor that keeps it bounded, and a
// checksum of the one it ends with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/verify.hpp"
#include "sparse/matrix.hpp"
#include "sparse/rng.hpp"

namespace spmv::multigpu {

// Throws InputError, which begins with `what`, unless the matrix is square.
inline void require_square(const std::string& what, Index rows, Index cols) {
  if (rows == cols) return;
  throw InputError(what + " has " + std::to_string(rows) + " rows and " + std::to_string(cols) +
                   " columns; only of a square matrix y can be the next x");
}

// The x of step 0: test_vector()'s, divided by 3 so that it has all the digits of T. (With few
// digits a row's sum is exact in every order, and its bits would show nothing.)
template <typename T>
std::vector<T> first_x(Index cols, std::uint64_t seed) {
  std::vector<T> x = test_vector<T>(static_cast<std::size_t>(cols), seed);
  for (T& value : x) value /= 3;
  return x;
}

// The largest power of two that is not above the norm; 1 if that is 0, too large or no number.
template <typename T>
double power_of_norm(const std::vector<T>& x) {
  double squares = 0;
  for (const T value : x) squares += static_cast<double>(value) * static_cast<double>(value);
  if (!(squares > 0) || squares > 1e300) return 1;
  return std::ldexp(1.0, std::ilogb(std::sqrt(squares)));
}

// A checksum of the bits.
template <typename T>
std::uint64_t checksum_of(const std::vector<T>& y) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += mix64(mix64(i) ^ std::bit_cast<Bits>(y[i]));
  return sum;
}

}  // namespace spmv::multigpu
