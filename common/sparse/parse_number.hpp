// Numbers as a Matrix Market file has them, rounded once.
//
// Text handed to these functions ends in '\n', the one before `end`, so that a loop over characters
// needs no test for the end. They return where the number ends, which is where its word ends, or
// null when the word is no such number; then the caller has the time to find out why.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "sparse/matrix.hpp"

namespace spmv {

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

// Reads an index from 1 to `limit`; `index` counts from 0.
inline const char* parse_index(const char* p, const char* end, Index limit, Index& index) {
  std::uint64_t value = 0;
  const auto [word_end, error] = std::from_chars(p + (*p == '+'), end, value);
  // 0 wraps around to more than any limit.
  const bool is_good =
      error == std::errc() && ends_word(*word_end) && value - 1 < static_cast<std::uint64_t>(limit);
  if (!is_good) return nullptr;
  index = static_cast<Index>(value - 1);
  return word_end;
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

// A value in a notation that from_chars does not know: "+5", Fortran's 1.5D+03, 1e400.
template <typename T>
[[gnu::noinline]] const char* parse_odd_value(std::string_view word, T& value) {
  std::string text(word.substr(word.starts_with('+') && !word.starts_with("+-")));
  if (const std::size_t mark = text.find_first_of("dD");
      mark != std::string::npos && mark > 0 &&
      (is_digit(text[mark - 1]) || text[mark - 1] == '.')) {
    text[mark] = 'e';
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return nullptr;
  if (error == std::errc::result_out_of_range) value = parse_out_of_range<T>(text);
  return word.data() + word.size();
}

// Reads a value, rounded once from its decimal digits to T; those too large for T become infinite.
template <typename T>
const char* parse_value(const char* p, const char* end, bool is_integer, T& value) {
  if (is_integer && !is_whole_number(word_at(p))) return nullptr;
  const auto [word_end, error] = std::from_chars(p, end, value);
  if (error == std::errc() && ends_word(*word_end)) return word_end;
  return parse_odd_value(word_at(p), value);
}

}  // namespace spmv
