// Text for people: numbers that can be read, quotations, names that were nearly right.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Levenshtein distance, blind to case: insertions, deletions and replacements from one to the
// other.
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(letter) != lower(to[j]));
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// "; did you mean a or b?" with up to three of `names` that are near `wrong` or begin with it, or
// nothing when none is.
inline std::string suggestion(const std::string& wrong, const std::vector<std::string>& names) {
  if (wrong.size() > 64) return {};  // no name is so long
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : names) {
    std::size_t distance = edit_distance(wrong, name);
    if (wrong.size() >= 3 && edit_distance(wrong, name.substr(0, wrong.size())) == 0) distance = 1;
    if (distance <= std::max<std::size_t>(wrong.size() / 3, 1)) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  for (std::size_t k = 0; k < near.size() && k < 3; ++k) {
    text += (k > 0 ? " or " : "; did you mean ") + near[k].second;
  }
  return text.empty() ? text : text + "?";
}

}  // namespace spmv
