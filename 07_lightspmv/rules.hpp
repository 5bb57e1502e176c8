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

// The rule of lightspmv_long, which treats long rows separately. As in step 03, four nonzeros of a
// mean row per lane. But where a device that holds `resident_threads` needs at most eight
// iterations, it is latency-bound, not bandwidth-bound, and neighbouring long rows should go to
// different warps: there up to one lane per nonzero.
inline int lanes_for_device(int rows, int nnz, int resident_threads) {
  const double mean = rows == 0 ? 0 : static_cast<double>(nnz) / rows;
  const auto short_run = [&](double lanes) { return lanes * rows <= 8.0 * resident_threads; };
  int lanes = 2;
  while (lanes < 32 && (4 * (2 * lanes) <= mean || (lanes < mean && short_run(2 * lanes)))) {
    lanes *= 2;
  }
  return lanes;
}

// Rows per ticket: those of one iteration, 32 / lanes, or of up to eight where that leaves each
// warp some four tickets.
inline unsigned rows_per_ticket(int rows, int lanes, int resident_threads) {
  const int rows_a_turn = 32 / lanes;
  const int turns = rows / rows_a_turn / (4 * std::max(resident_threads / 32, 1));
  return static_cast<unsigned>(rows_a_turn * std::clamp(turns, 1, 8));
}

}  // namespace spmv
