// Step 10: a number that tells whether two results have the same bits, whoever holds which rows.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sparse/rng.hpp"

namespace spmv::multigpu {

// y[i] is row first_row + i. Checksums of parts add up to that of the whole.
template <typename T>
std::uint64_t checksum_of(const std::vector<T>& y, std::uint64_t first_row) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += mix64(mix64(first_row + i) ^ std::bit_cast<Bits>(y[i]));
  }
  return sum;
}

}  // namespace spmv::multigpu
