// Step 10: which rows each GPU gets.
//
// Both ways cut between rows, so that no row's sum is made by two GPUs. (He and Gao 2016, section
// 4; PCSR-I and PCSR-II are section 5.3's names for the kernel on the one and on the other.)
#pragma once

#include <algorithm>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::multigpu {

enum class Partition {
  kRows,     // PCSR-I: as many rows each
  kNonzeros  // PCSR-II: as many nonzeros each, as near as whole rows allow
};

// Where part p begins, if there are nonzeros[r] in the rows before the r-th of them all: the row
// border nearest to p / parts of the nonzeros. Counts are of 64 bits: a matrix on several GPUs may
// have more nonzeros than an int holds, as long as no part has.
inline Index border_by_nonzeros(const std::vector<long long>& nonzeros, int p, int parts) {
  const long long wanted = nonzeros.back() / parts * p + nonzeros.back() % parts * p / parts;
  const auto after = std::lower_bound(nonzeros.begin(), nonzeros.end(), wanted);
  const auto border = after - nonzeros.begin();
  const bool before_is_nearer =
      border > 0 && wanted - nonzeros[border - 1] < nonzeros[border] - wanted;
  return static_cast<Index>(border - before_is_nearer);
}

// Part p has the rows from cuts[p] up to, but not including, cuts[p + 1]. Parts may be empty.
// nonzeros: rows + 1, how many there are before each row.
inline std::vector<Index> cut(Partition partition, const std::vector<long long>& nonzeros,
                              int parts) {
  const auto rows = static_cast<long long>(nonzeros.size()) - 1;
  std::vector<Index> cuts{0};
  for (int p = 1; p < parts; ++p) {
    cuts.push_back(partition == Partition::kRows ? static_cast<Index>(rows * p / parts)
                                                 : border_by_nonzeros(nonzeros, p, parts));
  }
  cuts.push_back(static_cast<Index>(rows));
  return cuts;
}

}  // namespace spmv::multigpu
