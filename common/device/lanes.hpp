// How many lanes of a warp share a row where each row has equally many: step 03, and the rows of
// step 10.
#pragma once

#include <algorithm>

namespace spmv {

// The greatest power of two of which each lane gets at least four nonzeros of a mean row. Fewer
// lanes read less together; with more, the shuffles and the start of each row cost more than that
// saves. Right for large matrices whose rows are alike: as many lanes as a mean row has nonzeros,
// as the library CUSP takes, is half as fast on an H200 on a 27-point stencil. Where rows differ
// much it is too few, as any choice is that looks at the mean alone.
inline int lanes_for(long long rows, long long nnz) {
  int lanes = 2;
  while (lanes < 32 && 4 * (2 * lanes) * std::max(rows, 1LL) <= nnz) lanes *= 2;
  return lanes;
}

}  // namespace spmv
