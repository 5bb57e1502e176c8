// A table for the screen.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace spmv {

// Three digits: "0.042", "1.25", "17.3", "482".
inline std::string number(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const int digits =
      std::clamp(2 - static_cast<int>(std::floor(std::log10(std::fabs(value)))), 0, 4);
  return fmt::format("{:.{}f}", value, std::min(digits, 3));
}

// Text columns to the left, numbers to the right, widths from the content.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // `titles`, if any, stand above the header: each begins where its column does.
  void print(std::ostream& out, std::size_t left_columns,
             const std::vector<std::string>& titles = {}) const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string above;
    for (std::size_t c = 0, begin = 0; c < titles.size(); begin += widths[c++] + 2) {
      if (titles[c].empty()) continue;
      above.resize(begin, ' ');
      above += titles[c];
    }
    if (!above.empty()) out << above << '\n';
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::string line;
      for (std::size_t c = 0; c < rows_[r].size(); ++c) {
        const std::string cell = c < left_columns ? fmt::format("{:<{}}", rows_[r][c], widths[c])
                                                  : fmt::format("{:>{}}", rows_[r][c], widths[c]);
        line += (c ? "  " : "") + cell;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out << line << '\n';
      if (r == 0) {
        std::size_t total = 0;
        for (const std::size_t width : widths) total += width + 2;
        out << std::string(total - 2, '-') << '\n';
      }
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace spmv
