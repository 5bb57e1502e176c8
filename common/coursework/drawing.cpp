#include "coursework/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sparse/convert.hpp"

namespace spmv::coursework {
namespace {

constexpr Index kMostRows = 12;
constexpr Index kMostColumns = 8;

std::string cell(double value) {
  return fmt::format("{:>8.4g}", value);
}

// All elements of a row, a dot for each that is not stored.
std::string whole_row(const Csr<double>& a, Index row) {
  std::string text;
  Index k = a.row_offsets[row];
  for (Index column = 0; column < a.cols; ++column) {
    const bool stored = k < a.row_offsets[row + 1] && a.column_indices[k] == column;
    text += stored ? cell(a.values[k++]) : fmt::format("{:>8}", ".");
  }
  return text;
}

// The multiple of the largest power of two, of 32 or more, after the first of the nonzeros `begin`
// to `end`: where the work of a warp or of a block may end. Or `end`, if there is none.
Index border_within(Index begin, Index end) {
  for (Index size = Index{1} << 30; size >= 32; size /= 2) {
    const Index multiple = begin / size * size + size;
    if (begin / size < (end - 1) / size) return multiple;
  }
  return end;
}

// Some of its nonzeros, each with its number, column and value: the first, the last, and those
// around a border.
std::string part_of_row(const Csr<double>& a, Index row) {
  const Index begin = a.row_offsets[row], end = a.row_offsets[row + 1];
  std::string text = fmt::format("{:>5} nonzeros", a.row_length(row));
  if (begin == end) return fmt::format("{:<72}", text);
  const Index border = border_within(begin, end);
  Index next = begin;  // that would follow without a gap
  for (Index k = begin; k < end; ++k) {
    if (k != begin && k != border - 1 && k != border && k != end - 1) continue;
    if (k != next) text += "  ...";
    text += fmt::format("  {}: [{}] {:.3g}", k, a.column_indices[k], a.values[k]);
    next = k + 1;
  }
  return fmt::format("{:<72}", text);
}

}  // namespace

std::string draw(const Coo<double>& matrix, const std::vector<double>& x,
                 const std::vector<double>& y0, const std::vector<double>& expected,
                 const std::vector<double>& got, const std::vector<bool>& wrong) {
  const Csr<double> a = to_csr(matrix);
  const bool whole = a.rows <= kMostRows && a.cols <= kMostColumns;
  std::string text = fmt::format("   row  {:<{}}  {}  expected       got\n", "A",
                                 whole ? 8 * a.cols : 72, y0.empty() ? "" : "y before");
  Index shown = 0;
  for (Index row = 0; row < a.rows && shown < kMostRows; ++row) {
    if (!whole && !wrong[row]) continue;
    ++shown;
    text += fmt::format("{:>6}  {}  {}  {}  {}{}\n", row,
                        whole ? whole_row(a, row) : part_of_row(a, row),
                        y0.empty() ? "" : cell(y0[row]), cell(expected[row]), cell(got[row]),
                        !wrong[row]                          ? ""
                        : !y0.empty() && got[row] == y0[row] ? "  <-- wrong: as it was before"
                                                             : "  <-- wrong");
  }
  if (whole && !x.empty()) {
    text += "     x  ";
    for (const double element : x) text += cell(element);
    text += '\n';
  }
  const auto all_wrong = std::count(wrong.begin(), wrong.end(), true);
  if (!whole && all_wrong > shown) {
    text += fmt::format("   and {} more wrong rows\n", all_wrong - shown);
  }
  return text;
}

}  // namespace spmv::coursework
