#include "harness/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sparse/rng.hpp"

namespace spmv {

template <typename T>
std::vector<T> test_vector(std::size_t n, std::uint64_t seed) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = Rng(seed, i).bits64();
    // 20 random bits after the binary point: +-[0.25, 1).
    const double magnitude = 0.25 + 0.75 * static_cast<double>(bits & 0xfffff) / 0x100000;
    values[i] = static_cast<T>(bits >> 63 ? -magnitude : magnitude);
  }
  return values;
}

template <typename T>
Reference make_reference(const Csr<T>& a, T alpha, const std::vector<T>& x, T beta,
                         const std::vector<T>& y0) {
  Reference reference;
  reference.y.resize(a.rows);
  reference.bound.resize(a.rows);
  reference.lengths.resize(a.rows);
  const double epsilon = std::numeric_limits<T>::epsilon();
#pragma omp parallel for schedule(dynamic, 1024) if (a.nnz() > 100000)
  for (Index row = 0; row < a.rows; ++row) {
    long double sum = 0;
    long double magnitude = 0;
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      const long double product =
          static_cast<long double>(a.values[k]) * static_cast<long double>(x[a.column_indices[k]]);
      sum += product;
      magnitude += std::fabs(product);
    }
    sum *= static_cast<long double>(alpha);
    magnitude *= std::fabs(static_cast<long double>(alpha));
    if (beta != T{0}) {
      const long double old = static_cast<long double>(beta) * static_cast<long double>(y0[row]);
      sum += old;
      magnitude += std::fabs(old);
    }
    reference.y[row] = static_cast<double>(sum);
    reference.lengths[row] = a.row_length(row);
    // Below the smallest normal number an error is no share of the result.
    const double underflow = std::numeric_limits<T>::denorm_min();
    reference.bound[row] =
        (a.row_length(row) + 8) * epsilon * static_cast<double>(magnitude) +
        underflow * (a.row_length(row) * std::max(1.0, std::fabs(static_cast<double>(alpha))) +
                     (beta != T{0}));
  }
  return reference;
}

template <typename T>
Verdict verify(const std::vector<T>& y, const Reference& reference) {
  Verdict verdict;
  verdict.rows = reference.y.size();
  double worst = -1;
  for (std::size_t row = 0; row < reference.y.size(); ++row) {
    const double expected = reference.y[row];
    const double got =
        row < y.size() ? static_cast<double>(y[row]) : std::numeric_limits<double>::quiet_NaN();
    const double error = std::fabs(got - expected);
    bool ok = error <= reference.bound[row];
    if (!std::isfinite(expected)) ok = std::isnan(expected) ? std::isnan(got) : got == expected;
    if (ok) continue;
    ++verdict.wrong_rows;
    // NaN is worse than any number, and an error where none is allowed worse than one in bounds.
    double excess = error / reference.bound[row];
    if (std::isnan(excess)) excess = std::numeric_limits<double>::infinity();
    if (excess > worst) {
      worst = excess;
      verdict.ok = false;
      verdict.worst_row = row;
      verdict.worst_length = reference.lengths[row];
      verdict.expected = expected;
      verdict.got = got;
      verdict.bound = reference.bound[row];
    }
  }
  return verdict;
}

std::string Verdict::describe() const {
  if (ok) return fmt::format("all {} rows are right", rows);
  const std::string row = fmt::format("row {} ({} nonzeros): expected {:.17g}, got ", worst_row,
                                      worst_length, expected);
  const std::string all = fmt::format("; {} of {} rows are wrong", wrong_rows, rows);
  // y is filled with NaN before a product.
  if (std::isnan(got)) return row + "NaN: never written, or computed from NaN" + all;
  return row +
         fmt::format("{:.17g}, which is off by {:.3g} where {:.3g} is allowed", got,
                     std::fabs(got - expected), bound) +
         all;
}

namespace {

// Neighbouring numbers become neighbouring integers, and both zeros 0.
template <typename T>
std::int64_t place(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  const auto bits = std::bit_cast<Bits>(value);
  return bits < 0 ? std::numeric_limits<Bits>::min() - bits : bits;
}

}  // namespace

template <typename T>
Difference compare_bits(const std::vector<T>& a, const std::vector<T>& b,
                        const std::vector<double>& bounds) {
  Difference difference;
  for (std::size_t row = 0; row < a.size(); ++row) {
    const bool nan_in_a = std::isnan(a[row]), nan_in_b = std::isnan(b[row]);
    if (nan_in_a || nan_in_b) {
      difference.rows += nan_in_a != nan_in_b;
      continue;
    }
    if (a[row] == b[row] && std::signbit(a[row]) == std::signbit(b[row])) continue;
    ++difference.rows;
    const auto [low, high] = std::minmax({place(a[row]), place(b[row])});
    const std::uint64_t ulps = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    difference.max_ulps = std::max(difference.max_ulps, ulps);
    if (row < bounds.size() && bounds[row] > 0) {
      const double distance = std::fabs(static_cast<double>(a[row]) - static_cast<double>(b[row]));
      difference.max_of_bound = std::max(difference.max_of_bound, distance / bounds[row]);
    }
  }
  return difference;
}

template Difference compare_bits(const std::vector<float>&, const std::vector<float>&,
                                 const std::vector<double>&);
template Difference compare_bits(const std::vector<double>&, const std::vector<double>&,
                                 const std::vector<double>&);
template std::vector<float> test_vector(std::size_t, std::uint64_t);
template std::vector<double> test_vector(std::size_t, std::uint64_t);
template Reference make_reference(const Csr<float>&, float, const std::vector<float>&, float,
                                  const std::vector<float>&);
template Reference make_reference(const Csr<double>&, double, const std::vector<double>&, double,
                                  const std::vector<double>&);
template Verdict verify(const std::vector<float>&, const Reference&);
template Verdict verify(const std::vector<double>&, const Reference&);

}  // namespace spmv
