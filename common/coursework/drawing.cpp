#include "coursework/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sparse/convert.hpp"

namespace spmv::coursework {
namespace {

constexpr Index kMostRows = 12;
constexpr Index kMostColumns = 8;

std::string cell(double value, int digits = 4) {
  return fmt::format("{:>8.{}g}", value, digits);
}

// As many digits as tell the two apart.
int digits_of(double a, double b) {
  int digits = 4;
  while (a != b && digits < 17 && cell(a, digits) == cell(b, digits)) ++digits;
  return digits;
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

// `matrix` without its rows, columns or nonzeros from `begin` up to `end`.
enum Part { kRows, kColumns, kNonzeros };
Coo<double> without(const Coo<double>& matrix, Part part, Index begin, Index end) {
  const auto number = [=](Part of, Index before) {
    return part == of && before >= end ? before - (end - begin) : before;
  };
  Coo<double> kept;
  kept.rows = number(kRows, matrix.rows);
  kept.cols = number(kColumns, matrix.cols);
  for (Index k = 0; k < matrix.nnz(); ++k) {
    const Index row = matrix.row_indices[k], column = matrix.column_indices[k];
    const Index index = part == kRows ? row : part == kColumns ? column : k;
    if (index >= begin && index < end) continue;
    kept.row_indices.push_back(number(kRows, row));
    kept.column_indices.push_back(number(kColumns, column));
    kept.values.push_back(matrix.values[k]);
  }
  return kept;
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// Rows whose sums are looked for in the place of another.
constexpr Index kNearRows = 64;

// A row of a wrong product, and what its element of y would be if one of the usual mistakes had
// been made.
struct WrongRow {
  const WrongProduct& p;
  const Csr<double>& a;
  Index row;

  WrongRow at(Index other) const { return {p, a, other}; }
  Index begin() const { return a.row_offsets[row]; }
  Index end() const { return a.row_offsets[row + 1]; }
  double got() const { return p.got[row]; }
  double product(Index k) const { return a.values[k] * p.x[a.column_indices[k]]; }
  double sum(Index from, Index to) const {
    double total = 0;
    for (Index k = from; k < to; ++k) total += product(k);
    return total;
  }
  double whole() const { return sum(begin(), end()); }
  double before() const { return p.beta != 0 ? p.beta * p.y0[row] : 0.0; }
  // Whether y came out as if the sum of the row's products were this.
  bool as_if(double of_row) const {
    return std::abs(got() - (p.alpha * of_row + before())) <= 4 * p.bound[row];
  }
  bool some_product(const auto& fits) const {
    for (Index k = begin(); k < end(); ++k) {
      if (fits(product(k))) return true;
    }
    return false;
  }
  bool some_beginning(const auto& fits) const {
    double first = 0;
    for (Index k = begin(); k + 1 < end(); ++k) {
      first += product(k);
      if (fits(first)) return true;
    }
    return false;
  }
};

struct Look {
  const char* text;
  bool (*fits)(const WrongRow&);
};

const Look kLooks[] = {
    {"y is NaN: not written, or computed from uninitialised memory",
     [](const WrongRow& r) { return std::isnan(r.got()); }},
    {"rows are not written: y is as it was before",
     [](const WrongRow& r) { return same(r.got(), r.p.y0[r.row]); }},
    {"enormous: computed from a variable that was not initialised",
     [](const WrongRow& r) { return std::abs(r.got()) > (r.p.single ? 1e37 : 1e300); }},
    {"beta y is missing",
     [](const WrongRow& r) {
       return r.p.beta != 0 && r.as_if(r.whole() - r.before() / r.p.alpha);
     }},
    {"alpha is missing",
     [](const WrongRow& r) { return r.p.alpha != 1 && r.as_if(r.whole() / r.p.alpha); }},
    {"the products of the rows are missing, or became 0 in an int",
     [](const WrongRow& r) { return r.as_if(0); }},
    {"the last nonzero of each row is missing",
     [](const WrongRow& r) {
       return r.begin() < r.end() && r.as_if(r.sum(r.begin(), r.end() - 1));
     }},
    {"the first nonzero of each row is missing",
     [](const WrongRow& r) {
       return r.begin() < r.end() && r.as_if(r.sum(r.begin() + 1, r.end()));
     }},
    {"the first nonzero of the next row is added, too",
     [](const WrongRow& r) {
       return r.end() < r.a.nnz() && r.as_if(r.sum(r.begin(), r.end() + 1));
     }},
    {"one product alone has arrived in y: the others are lost, as where threads write to the same "
     "element, or add to it without an atomic operation",
     [](const WrongRow& r) { return r.some_product([&](double one) { return r.as_if(one); }); }},
    {"one product of each row is missing: an addition is lost, as where threads add to the same "
     "element without an atomic operation",
     [](const WrongRow& r) {
       return r.some_product([&](double one) { return r.as_if(r.whole() - one); });
     }},
    {"one product of each row is added twice",
     [](const WrongRow& r) {
       return r.some_product([&](double one) { return r.as_if(r.whole() + one); });
     }},
    {"only every n-th product of a row has arrived: those of some lanes are missing",
     [](const WrongRow& r) {
       if (r.end() - r.begin() < 2) return false;
       for (Index lanes = 2; lanes <= 32; lanes *= 2) {
         std::vector<double> of_lane(lanes);
         for (Index k = r.begin(); k < r.end(); ++k)
           of_lane[(k - r.begin()) % lanes] += r.product(k);
         for (const double part : of_lane) {
           if (r.as_if(part) || r.as_if(r.whole() - part)) return true;
         }
       }
       return false;
     }},
    {"the first products of rows are missing, as where a carry is lost",
     [](const WrongRow& r) {
       return r.some_beginning([&](double first) { return r.as_if(r.whole() - first); });
     }},
    {"the last products of rows are missing",
     [](const WrongRow& r) {
       return r.as_if(0) || r.some_beginning([&](double first) { return r.as_if(first); });
     }},
    {"whole numbers: a sum is kept in an int",
     [](const WrongRow& r) { return r.p.beta == 0 && r.got() == std::round(r.got()); }},
    {"right to seven digits: something is kept in a float",
     [](const WrongRow& r) {
       return !r.p.single &&
              std::abs(r.got() - r.p.expected[r.row]) <= r.p.bound[r.row] * (1 << 29);
     }},
    {"sums of other rows are added, too, or in their place",
     [](const WrongRow& r) {
       for (Index other = std::max(r.row - kNearRows, 0);
            other < std::min(r.row + kNearRows, r.a.rows); ++other) {
         if (other == r.row || r.at(other).begin() == r.at(other).end()) continue;
         if (r.as_if(r.at(other).whole()) || r.as_if(r.whole() + r.at(other).whole())) return true;
       }
       return false;
     }},
};

}  // namespace

Coo<double> shrink(Coo<double> matrix, const std::function<bool(const Coo<double>&)>& fails,
                   int attempts) {
  for (bool smaller = true; std::exchange(smaller, false);) {
    for (const Part part : {kRows, kColumns, kNonzeros}) {
      const auto size = [&] {
        return part == kRows ? matrix.rows : part == kColumns ? matrix.cols : matrix.nnz();
      };
      // Large pieces first, then smaller ones, from the end to the beginning.
      for (Index piece = size(); piece > 0; piece /= 2) {
        for (Index begin, end = size(); end > 0; end = begin) {
          if (attempts-- == 0) return matrix;
          begin = std::max(end - piece, Index{0});
          Coo<double> candidate = without(matrix, part, begin, end);
          if (!fails(candidate)) continue;
          matrix = std::move(candidate);
          smaller = true;
        }
      }
    }
  }
  return matrix;
}

std::string draw(const Coo<double>& matrix, const std::vector<double>& x,
                 const std::vector<double>& y0, const std::vector<double>& expected,
                 const std::vector<double>& got, const std::vector<bool>& wrong) {
  const Csr<double> a = to_csr(matrix);
  const bool whole = a.rows <= kMostRows && a.cols <= kMostColumns;
  std::string text = fmt::format("   row  {:<{}}  {}  expected       got\n", "A",
                                 whole ? 8 * a.cols : 14, y0.empty() ? "" : "y before");
  Index shown = 0;
  for (Index row = 0; row < a.rows && shown < kMostRows; ++row) {
    if (!whole && !wrong[row]) continue;
    ++shown;
    const int digits = digits_of(expected[row], got[row]);
    text += fmt::format(
        "{:>6}  {}  {}  {}  {}{}\n", row,
        whole ? whole_row(a, row) : fmt::format("{:>5} nonzeros", a.row_length(row)),
        y0.empty() ? "" : cell(y0[row]), cell(expected[row], digits), cell(got[row], digits),
        !wrong[row]                              ? ""
        : std::isnan(got[row])                   ? "  <-- wrong: NaN"
        : !y0.empty() && same(got[row], y0[row]) ? "  <-- wrong: as it was before"
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

std::vector<std::string> diagnose(const WrongProduct& p) {
  const Csr<double> a = to_csr(p.matrix);
  std::vector<std::string> fitting;
  for (const auto& [text, fits] : kLooks) {
    bool all = true;
    for (Index row = 0; row < a.rows && all; ++row) all = !p.wrong[row] || fits({p, a, row});
    if (all) fitting.push_back(text);
  }
  return fitting;
}

}  // namespace spmv::coursework
