// Step 10: how many GPUs a kernel is told of.
#pragma once

namespace spmv::multigpu {

inline constexpr int kMaxGpus = 16;  // of one host

}  // namespace spmv::multigpu
