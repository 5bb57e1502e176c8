// Numbers as a Matrix Market file has them, read as fast as memory delivers their text, and rounded
// once.
//
// A number is first tried by a loop that knows the common shapes and gives up on anything else.
// Only then does std::from_chars look at it, which knows all shapes and takes two to three times as
// long.
//
// Text handed to these functions ends in '\n', the one before `end`, so that a loop over digits
// needs no test for the end. They return where the number ends, which is where its word ends, or
// null when the word is no such number; then the caller has the time to find out why.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "sparse/matrix.hpp"

namespace spmv {

// --- Words ---------------------------------------------------------------------------------------

inline bool is_digit(char c) {
  return static_cast<unsigned char>(c - '0') <= 9;
}

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

inline bool ends_word(char c) {
  return is_blank(c) || c == '\n';
}

inline std::string_view word_at(const char* p) {
  const char* end = p;
  while (!ends_word(*end)) ++end;
  return {p, static_cast<std::size_t>(end - p)};
}

inline bool is_whole_number(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
}

// --- Eight digits at a time ----------------------------------------------------------------------

// Eight characters as one integer, the first in its lowest byte, each less '0': digits become their
// values. (What follows the first character that is no digit is spoiled by borrows.)
inline std::uint64_t eight_characters(const char* p) {
  std::uint64_t characters = 0;
  std::memcpy(&characters, p, sizeof(characters));
  if constexpr (std::endian::native == std::endian::big) {
    characters = __builtin_bswap64(characters);
  }
  return characters - 0x3030303030303030u;
}

// How many of the first eight characters are digits, up to the first that is not.
inline int leading_digits(std::uint64_t characters) {
  // Adding 0x76 takes 10 and more to the top bit; characters below '0' have it after the borrow.
  // Neither carries into a digit's neighbour, so the lowest top bit marks the first that is none.
  const std::uint64_t no_digits =
      (characters | (characters + 0x7676767676767676u)) & 0x8080808080808080u;
  return std::countr_zero(no_digits) / 8;
}

// The number that eight digits make: neighbours are joined to pairs, these to fours, these to
// eight.
inline std::uint64_t join_digits(std::uint64_t digits) {
  digits = digits * (1 + (std::uint64_t{10} << 8)) >> 8 & 0x00ff00ff00ff00ffu;
  digits = digits * (1 + (std::uint64_t{100} << 16)) >> 16 & 0x0000ffff0000ffffu;
  return digits * (1 + (std::uint64_t{10000} << 32)) >> 32;
}

// Adds the digits at `p` to those in `digits`, which wraps around beyond 19.
inline const char* append_digits(const char* p, const char* end, std::uint64_t& digits) {
  while (end - p >= 8) {
    const std::uint64_t characters = eight_characters(p);
    if (leading_digits(characters) != 8) break;
    digits = digits * 100000000 + join_digits(characters);
    p += 8;
  }
  while (is_digit(*p)) digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
  return p;
}

// --- Indices -------------------------------------------------------------------------------------

// An index with a sign or with many zeros.
[[gnu::noinline]] inline const char* parse_odd_index(const char* p, Index limit, Index& index) {
  const std::string_view word = word_at(p);
  const char* const word_end = word.data() + word.size();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(p + word.starts_with('+'), word_end, value);
  if (error != std::errc() || end != word_end) return nullptr;
  if (value - 1 >= static_cast<std::uint64_t>(limit)) return nullptr;
  index = static_cast<Index>(value - 1);
  return word_end;
}

// Reads a 1-based index of at most `limit` and makes it 0-based.
inline const char* parse_index(const char* p, const char* end, Index limit, Index& index) {
  const char* const begin = p;
  std::uint64_t value = 0;
  // The length of an index is hard to predict where columns are random. Up to seven digits are
  // converted without a branch on it: zeros are shifted in before the first.
  if (end - p >= 8) {
    const std::uint64_t characters = eight_characters(p);
    const int count = leading_digits(characters);
    if (count < 8) {
      value = count == 0 ? 0 : join_digits(characters << (64 - 8 * count));
      p += count;
    }
  }
  if (p == begin) {
    while (is_digit(*p)) value = value * 10 + static_cast<unsigned char>(*p++ - '0');
  }
  // 0 wraps around to more than any limit. Longer than 18 digits, `value` may have wrapped too.
  if (value - 1 >= static_cast<std::uint64_t>(limit) || p - begin > 18 || !ends_word(*p)) {
    return parse_odd_index(begin, limit, index);
  }
  index = static_cast<Index>(value - 1);
  return p;
}

// --- The double nearest to a decimal -------------------------------------------------------------

__extension__ typedef unsigned __int128 Uint128;

// 5^k = significand x 2^exponent, where the true significand is from the one here to less than 2
// above it, and the one here is from 2^63 to less than 2^64.
struct PowerOfFive {
  std::uint64_t significand = 0;
  int exponent = 0;
};

inline constexpr int kLargestPowerOfFive = 40;

constexpr PowerOfFive power_of_five(int k) {
  // Calculated with 128 bits, rounded down at each step by less than 2^-124 of the value: 40 steps
  // do not add up to a unit of the 64 bits that are kept, and dropping the others adds one at most.
  Uint128 bits = Uint128{1} << 127;
  int exponent = -127;
  for (int step = 0; step < (k < 0 ? -k : k); ++step) {
    if (k < 0) {
      bits /= 5;
    } else {
      bits = (bits >> 3) * 5;
      exponent += 3;
    }
    for (; bits >> 127 == 0; --exponent) bits <<= 1;
  }
  return {static_cast<std::uint64_t>(bits >> 64), exponent + 64};
}

inline constexpr auto kPowersOfFive = [] {
  std::array<PowerOfFive, 2 * kLargestPowerOfFive + 1> powers{};
  for (int k = -kLargestPowerOfFive; k <= kLargestPowerOfFive; ++k) {
    powers[static_cast<std::size_t>(k + kLargestPowerOfFive)] = power_of_five(k);
  }
  return powers;
}();

// The double nearest to digits x 10^exponent, where `digits` has up to 19 of them. The product of
// two 64-bit numbers, of which one is not exact, bounds the value from both sides; nearly always
// both bounds round to the same double, and then so does what lies between them. (The idea of
// D. Lemire, "Number parsing at a gigabyte per second", 2021, cut down to the case that needs no
// proof.) Returns false where they do not.
inline bool nearest_double(std::uint64_t digits, std::ptrdiff_t exponent, double& value) {
  if (digits == 0) {
    value = 0;
    return true;
  }
  if (exponent < -kLargestPowerOfFive || exponent > kLargestPowerOfFive) return false;
  const PowerOfFive& power =
      kPowersOfFive[static_cast<std::size_t>(exponent + kLargestPowerOfFive)];
  const int shift = std::countl_zero(digits);
  const std::uint64_t shifted = digits << shift;
  const Uint128 low = static_cast<Uint128>(shifted) * power.significand;
  const Uint128 high = low + shifted + shifted;  // the value is from `low` to less than this
  const auto low_word = static_cast<std::uint64_t>(low >> 64);
  const auto high_word = static_cast<std::uint64_t>(high >> 64);

  // 53 bits of the 63 or 64 are kept. Adding half a unit before the rest is dropped rounds halves
  // up; adding one less rounds them down. If both give the same, no half is in between.
  const int dropped = low_word >> 63 == 0 ? 10 : 11;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  // (A sum that wraps around disagrees with the other, or both do, and a top bit is missing.)
  const std::uint64_t significand = (low_word + half - 1) >> dropped;
  if (significand != (high_word + half) >> dropped || significand >> 52 == 0) return false;

  // The significand's top bit, 2^52, adds the 1 that the exponent field lacks here; and if it was
  // rounded up to 2^53, it adds 2, as it should. The range of exponents allows no subnormals.
  const int binary_exponent = dropped + 64 + power.exponent + static_cast<int>(exponent) - shift;
  value = std::bit_cast<double>((static_cast<std::uint64_t>(binary_exponent + 1074) << 52) +
                                significand);
  return true;
}

// --- Values --------------------------------------------------------------------------------------

// A decimal of at most 19 digits (zeros before the first other digit do not count), as nearly all
// are. Returns null when `p` shows anything else. (Not inlined, it would make reading 4% slower.)
[[gnu::always_inline]] inline const char* parse_decimal(const char* p, const char* end,
                                                        double& value) {
  const bool negative = *p == '-';
  p += negative;
  const char* const whole = p;
  while (*p == '0') ++p;
  const char* counted = p;
  std::uint64_t digits = 0;
  while (is_digit(*p)) digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
  bool any = p != whole;
  std::ptrdiff_t count = p - counted;
  std::ptrdiff_t exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    if (count == 0) {
      while (*p == '0') ++p;
    }
    counted = p;
    p = append_digits(p, end, digits);
    any = any || p != fraction;
    count += p - counted;
    exponent = fraction - p;
  }
  if (!any || count > 19) return nullptr;
  if ((*p | 0x20) == 'e') {
    ++p;
    const bool below_one = *p == '-';
    if (below_one || *p == '+') ++p;
    const char* const power_begin = p;
    int power = 0;
    while (is_digit(*p) && p - power_begin < 4) power = power * 10 + (*p++ - '0');
    if (p == power_begin) return nullptr;
    exponent += below_one ? -power : power;
  }
  if (!ends_word(*p) || !nearest_double(digits, exponent, value)) return nullptr;
  if (negative) value = -value;
  return p;
}

// Whether the double nearest to a decimal can be rounded again, to T, and give the T nearest to the
// decimal. For float this goes wrong only if the double is exactly halfway between two floats (the
// bits that float lacks are 100...0), or where float lacks more bits than that or has no values.
template <typename T>
bool rounds_once(double nearest) {
  if constexpr (sizeof(T) == sizeof(double)) return true;
  constexpr std::uint64_t kDropped = (std::uint64_t{1} << 29) - 1;
  constexpr std::uint64_t kHalfway = std::uint64_t{1} << 28;
  const double size = std::fabs(nearest);
  const bool normal = size >= static_cast<double>(std::numeric_limits<T>::min()) &&
                      size <= static_cast<double>(std::numeric_limits<T>::max());
  return size == 0 || (normal && (std::bit_cast<std::uint64_t>(nearest) & kDropped) != kHalfway);
}

// The value of `text` (known to be a number) when its exponent is out of T's range, for which
// from_chars leaves no result.
template <typename T>
T parse_out_of_range(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  T value = 0;
  if (stream >> value) return value;  // too close to zero
  return text.front() == '-' ? -std::numeric_limits<T>::infinity()
                             : std::numeric_limits<T>::infinity();
}

// A value in any notation: many digits, "nan", "+5", Fortran's 1.5D+03.
template <typename T>
[[gnu::noinline]] const char* parse_odd_value(const char* p, bool is_integer, T& value) {
  const std::string_view word = word_at(p);
  const char* const word_end = word.data() + word.size();
  if (is_integer && !is_whole_number(word)) return nullptr;
  std::string_view number = word;
  if (number.starts_with('+') && !number.starts_with("+-")) number.remove_prefix(1);
  auto result = std::from_chars(number.data(), word_end, value);
  if (result.ec == std::errc() && result.ptr == word_end) return word_end;

  std::string text(number);
  if (const std::size_t mark = text.find_first_of("dD");
      mark != std::string::npos && mark > 0 &&
      (is_digit(text[mark - 1]) || text[mark - 1] == '.')) {
    text[mark] = 'e';
  }
  result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::invalid_argument || result.ptr != text.data() + text.size()) {
    return nullptr;
  }
  if (result.ec == std::errc::result_out_of_range) value = parse_out_of_range<T>(text);
  return word_end;
}

// Reads a value, rounded once from its decimal digits to T; those too large for T become infinite.
template <typename T>
inline const char* parse_value(const char* p, const char* end, bool is_integer, T& value) {
  if (is_integer) {
    const bool negative = *p == '-';
    const char* const begin = p + negative;
    const char* q = begin;
    std::int64_t integer = 0;
    while (is_digit(*q) && q - begin < 18) integer = integer * 10 + (*q++ - '0');
    if (q != begin && ends_word(*q)) {
      value = static_cast<T>(negative ? -integer : integer);
      return q;
    }
  } else {
    double nearest = 0;
    const char* const word_end = parse_decimal(p, end, nearest);
    if (word_end && rounds_once<T>(nearest)) {
      value = static_cast<T>(nearest);
      return word_end;
    }
  }
  return parse_odd_value(p, is_integer, value);
}

}  // namespace spmv
