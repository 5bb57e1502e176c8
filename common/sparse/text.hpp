// Text for people: numbers that can be read, quotations.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace spmv {

// 1585478 -> "1,585,478".
inline std::string with_commas(unsigned long long number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t k = 0; k < digits.size(); ++k) {
    if (k > 0 && (digits.size() - k) % 3 == 0) text += ',';
    text += digits[k];
  }
  return text;
}

// "512 bytes", "7.9 KiB".
inline std::string byte_count(double bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{:.0f} bytes", bytes);
  double amount = bytes / 1024;
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

// What a user gave, fit for a message of one line: without control characters, and at most
// `longest` bytes of it.
inline std::string printable(std::string_view text, std::size_t longest = std::string::npos) {
  std::string result(text.substr(0, longest));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text.size() > longest ? result + "..." : result;
}

// A word of a file, which may hold anything.
inline std::string in_quotes(std::string_view word) {
  std::string result = printable(word, 32);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';  // may be half of a UTF-8 sequence
  }
  return "'" + result + "'";
}

}  // namespace spmv
