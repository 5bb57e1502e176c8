// What the host decides before a kernel of step 07 runs.
#pragma once

#include <algorithm>
#include <cmath>

namespace spmv {

// The poster's rule for the lanes of a vector: 2, 4, 8 or 32, from the mean row length.
inline int poster_lanes(int rows, int nnz) {
  const double mean = rows == 0 ? 0 : std::rint(static_cast<double>(nnz) / rows);
  return mean < 2 ? 2 : mean < 4 ? 4 : mean < 64 ? 8 : 32;
}

// The rule of lightspmv_long, whose long rows need no care: as in step 03 four nonzeros of a mean
// row for each lane; but where a device that holds `resident_threads` would have lanes without a
// row, as many as there are for each row, up to one for each nonzero of the mean row.
inline int lanes_for_device(int rows, int nnz, int resident_threads) {
  const double mean = rows == 0 ? 0 : static_cast<double>(nnz) / rows;
  const double spare = rows == 0 ? 0 : static_cast<double>(resident_threads) / rows;
  const double wanted = std::max(mean / 4, std::min(spare, mean));
  int lanes = 2;
  while (lanes < 32 && 2 * lanes <= wanted) lanes *= 2;
  return lanes;
}

// Rows that a warp takes with one ticket: one turn's 32 / lanes, or up to eight turns' where that
// leaves each warp some four tickets.
inline unsigned rows_per_ticket(int rows, int lanes, int resident_threads) {
  const int rows_a_turn = 32 / lanes;
  const int turns = rows / rows_a_turn / (4 * std::max(resident_threads / 32, 1));
  return static_cast<unsigned>(rows_a_turn * std::clamp(turns, 1, 8));
}

}  // namespace spmv
