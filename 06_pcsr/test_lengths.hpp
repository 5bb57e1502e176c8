// Matrices for the tests of step 06, by the lengths of their rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sparse/matrix.hpp"
#include "sparse/rng.hpp"
#include "tests/bits.hpp"

namespace spmv {

using Lengths = std::vector<int>;
using test::same_bits;

inline std::vector<int> offsets_of(const Lengths& lengths, int first = 0) {
  std::vector<int> offsets{first};
  for (const int length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// A matrix with rows of these lengths. Within a row the columns ascend.
template <typename T>
Csr<T> csr_of(const Lengths& lengths) {
  Csr<T> a;
  a.rows = static_cast<Index>(lengths.size());
  a.cols = 1 + *std::max_element(lengths.begin(), lengths.end());
  a.row_offsets = offsets_of(lengths);
  Rng rng(lengths.size());
  for (const int length : lengths) {
    const int first = static_cast<int>(rng.below(static_cast<std::uint64_t>(a.cols - length + 1)));
    for (int column = first; column < first + length; ++column) {
      a.column_indices.push_back(column);
      a.values.push_back(signed_unit_value<T>(rng.bits64()));
    }
  }
  return a;
}

// `count` lengths below `bound`; of every 16 rows one is empty.
inline Lengths random_lengths(int count, int bound, std::uint64_t seed) {
  Rng rng(seed);
  Lengths lengths;
  for (int i = 0; i < count; ++i) {
    const auto length = static_cast<int>(rng.below(static_cast<std::uint64_t>(bound)));
    lengths.push_back(rng.below(16) == 0 ? 0 : length);
  }
  return lengths;
}

inline Lengths joined(Lengths first, const Lengths& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace spmv
