#include "sparse/row_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace spmv {
namespace {

// x^(sixteenths / 16) for x in [0, 1]. Products and square roots are rounded alike by everything
// that follows IEEE 754, which cannot be said of pow().
double power_of_sixteenths(double x, int sixteenths) {
  double power = 1;
  for (int k = 0; k < sixteenths / 16; ++k) power *= x;
  double root = x;
  for (int bit = 8; bit > 0; bit /= 2) {
    root = std::sqrt(root);
    if (sixteenths & bit) power *= root;
  }
  return power;
}

// Lengths between `low` and `high` that fall with the rank r as
//   low + (high - low) * (c / (c + r))^exponent.
// c makes their sum come out, the exponent their spread: a small one gives a few long rows above
// many that are nearly equal, a large one rows of all lengths.
class LengthCurve {
 public:
  LengthCurve(long long count, long long total, long long low, long long high)
      : count_(count),
        excess_(total - count * low),
        low_(low),
        range_(static_cast<double>(std::min(high - low, excess_)) * 65536) {}

  // Chooses c for `exponent`, in sixteenths.
  void fit_sum(int exponent) {
    exponent_ = exponent;
    const std::uint64_t target = static_cast<std::uint64_t>(excess_) << 16;
    double below = 0x1p-60, above = 0x1p60;
    for (int step = 0; step < 40; ++step) {
      scale_ = std::sqrt(below) * std::sqrt(above);
      std::uint64_t sum = 0;
      for_ranks([&](std::uint64_t rank, std::uint64_t weight) {
        sum += excess_at(rank) * weight;
        return sum < target;
      });
      (sum < target ? below : above) = scale_;
    }
    scale_ = below;
  }

  // Chooses the exponent, too, such that the squares of the lengths add up to about `target`.
  void fit_squares(double target) {
    int below = 1, above = 128;
    while (below < above) {
      const int middle = (below + above) / 2;
      fit_sum(middle);
      double squares = 0;
      for_ranks([&](std::uint64_t rank, std::uint64_t weight) {
        const std::uint64_t length = static_cast<std::uint64_t>(low_) + (excess_at(rank) >> 16);
        squares += static_cast<double>(length * length * weight);
        return true;
      });
      if (squares < target) {
        below = middle + 1;
      } else {
        above = middle;
      }
    }
    fit_sum(below);
  }

  // The lengths, longest first; their sum is exact.
  std::vector<Index> lengths() const {
    std::vector<Index> lengths(count_, static_cast<Index>(low_));
    const auto highest = static_cast<Index>(low_ + static_cast<long long>(range_ / 65536));
    std::uint64_t carry = 0;  // passing fractions on from rank to rank keeps the sum
    long long missing = excess_;
    for (std::uint64_t rank = 0; rank < lengths.size(); ++rank) {
      carry += excess_at(rank);
      const auto whole = static_cast<Index>(carry >> 16);
      carry &= 0xFFFF;
      lengths[rank] += whole;
      missing -= whole;
    }
    while (missing != 0) {
      const Index step = missing > 0 ? 1 : -1;
      for (std::size_t rank = 1; rank < lengths.size() && missing != 0; ++rank) {
        const Index changed = lengths[rank] + step;
        if (changed < low_ || changed > highest) continue;
        lengths[rank] = changed;
        missing -= step;
      }
    }
    return lengths;
  }

 private:
  // What the row of this rank has above `low`, in 1/65536.
  std::uint64_t excess_at(std::uint64_t rank) const {
    const double ratio = scale_ / (scale_ + static_cast<double>(rank));
    return static_cast<std::uint64_t>(range_ * power_of_sixteenths(ratio, exponent_));
  }

  // Past the first few thousand ranks the curve is smooth enough to look at some only.
  template <typename Visit>
  void for_ranks(const Visit& visit) const {
    const auto stride = static_cast<std::uint64_t>(count_ / 65536 + 1);
    for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(count_);) {
      const std::uint64_t weight = rank < 4096 ? 1 : stride;
      if (!visit(rank, weight)) return;
      rank += weight;
    }
  }

  long long count_;
  long long excess_;
  long long low_;
  double range_;  // in 1/65536
  int exponent_ = 16;
  double scale_ = 1;
};

}  // namespace

std::vector<Index> descending_row_lengths(const Specification& spec, long long rows,
                                          long long cols) {
  const long long empty = rows * spec.get("empty") / 100;
  const long long filled = rows - empty;
  const long long nnz = spec.get("nnz", filled * std::min(8ll, cols));
  const long long min_row = spec.get("min_row", filled ? std::min({1ll, nnz / filled, cols}) : 0);
  const long long max_row =
      spec.get("max_row", filled ? std::min(cols, std::max(100 * (nnz / filled), 1ll)) : 0);
  if (min_row > max_row)
    spec.fail(fmt::format("min_row = {} is above max_row = {}", min_row, max_row));
  if (max_row > cols)
    spec.fail(fmt::format("max_row = {} does not fit in {} columns", max_row, cols));
  if (nnz < filled * min_row ||
      static_cast<double>(nnz) > static_cast<double>(filled) * static_cast<double>(max_row)) {
    spec.fail(fmt::format("nnz = {} cannot be spread over {} rows of {} to {}", nnz, filled,
                          min_row, max_row));
  }
  spec.check_size(static_cast<double>(rows), static_cast<double>(cols), static_cast<double>(nnz));

  std::vector<Index> lengths;
  if (filled > 0) {
    LengthCurve curve(filled, nnz, min_row, max_row);
    const double stddev = spec.real("stddev", -1);
    if (stddev < 0) {
      curve.fit_sum(16);
    } else {
      const double mean = static_cast<double>(nnz) / static_cast<double>(rows);
      const double mean_square = mean * mean;
      curve.fit_squares((mean_square + stddev * stddev) * static_cast<double>(rows));
    }
    lengths = curve.lengths();
  }
  lengths.resize(rows, 0);
  return lengths;
}

}  // namespace spmv
