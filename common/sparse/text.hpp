// Text for people: numbers that can be read, names that were nearly right.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
