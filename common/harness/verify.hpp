// Nothing counts until it is verified: the reference, and the comparison with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// `n` values, signed, in (-1, 1), none of them small, no two neighbours alike, that float and
// double hold exactly. The same on every machine.
template <typename T>
std::vector<T> test_vector(std::size_t n, std::uint64_t seed);

// What y must be, and how far from it each element may lie.
struct Reference {
  std::vector<double> y;       // rows
  std::vector<double> bound;   // rows; not negative
  std::vector<Index> lengths;  // rows: terms that were added up
};

// y = alpha A x + beta y0 in long double, with the bound (length + 8) epsilon(T) (|alpha| sum
// |a||x| + |beta||y0|), which any order of summation meets, and, as products may underflow, one
// smallest number for each of them. y0 may be empty when beta is 0.
template <typename T>
Reference make_reference(const Csr<T>& a, T alpha, const std::vector<T>& x, T beta,
                         const std::vector<T>& y0);

struct Verdict {
  bool ok = true;
  // The element that is wrong by the largest multiple of its bound; meaningless if ok.
  std::size_t worst_row = 0;
  Index worst_length = 0;
  double expected = 0, got = 0, bound = 0;
  std::size_t wrong_rows = 0;

  // "row 17 (23 nonzeros): expected 1.5, got nan; 3 of 100 rows are wrong"
  std::string describe() const;
  std::size_t rows = 0;
};

// An element passes if |y - reference| <= bound, so that NaN fails; where the reference itself is
// not finite, it must be NaN, or the same infinity.
template <typename T>
Verdict verify(const std::vector<T>& y, const Reference& reference);

// How far two results of one product are from the same bits.
struct Difference {
  std::size_t rows = 0;        // whose bits differ; two NaNs do not
  std::uint64_t max_ulps = 0;  // units in the last place, at most; not of rows that are NaN in one
  double max_of_bound = 0;     // |a - b| over what verify() allows, at most
};

// a and b have the same length. `bounds` are a Reference's; empty: nothing is compared with them.
template <typename T>
Difference compare_bits(const std::vector<T>& a, const std::vector<T>& b,
                        const std::vector<double>& bounds = {});

}  // namespace spmv
