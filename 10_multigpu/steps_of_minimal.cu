// Step 10: what `spmv steps` records of minimal.cu.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>
#include <utility>
#include <vector>

#include "device/devices.hpp"
#include "steps.hpp"

// Its headers are included above.
namespace minimal {
#include "minimal.cu"
}

namespace spmv::multigpu {
namespace {

// Names in the trace for what minimal.cu has allocated.
void name_memory([[maybe_unused]] const minimal::Part& part) {
#ifndef SPMV_CUDA
  const int g = part.gpu;
  const std::pair<const void*, const char*> names[] = {{part.order, "order"},
                                                       {part.receivers, "receivers"},
                                                       {part.row_offsets, "row_offsets"},
                                                       {part.column_indices, "column_indices"},
                                                       {part.values, "values"},
                                                       {part.x[g], "x"},
                                                       {part.flags[g], "flags"}};
  for (const auto& [memory, name] : names) simt::name_allocation(memory, name);
#endif
}

template <typename T>
std::vector<T> copied(const T* from, std::size_t count) {
  std::vector<T> to(count);
  device::check(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDefault), "copying");
  return to;
}

}  // namespace

Iteration iteration_of_minimal(int gpus, int steps, const Csr<double>& a,
                               const std::vector<double>& x) {
  minimal::Csr csr;
  csr.row_offsets.assign(a.row_offsets.begin(), a.row_offsets.end());
  csr.column_indices.assign(a.column_indices.begin(), a.column_indices.end());
  csr.values.assign(a.values.begin(), a.values.end());
  device::available_devices(gpus);
  const std::vector<int> cuts = minimal::cut_by_nonzeros(csr, gpus);
  const std::vector<minimal::Part> parts = minimal::make_parts(csr, cuts, x);
  Iteration iteration;
  for (const minimal::Part& part : parts) {
    const std::vector<unsigned> receivers = copied(part.receivers, part.columns);
    std::vector<Index> columns(part.columns, -1);
    for (Index i = 0; i < a.cols; ++i) {
      const bool is_own = cuts[part.gpu] <= i && i < cuts[part.gpu + 1];
      if (is_own || (receivers[i] >> part.gpu & 1) != 0) columns[i] = i;
    }
    iteration.parts.push_back({copied(part.order, part.rows), part.boundary_rows, columns});
    for (int peer = 0; peer < gpus; ++peer) device::enable_peer_access(part.gpu, peer);
    name_memory(part);
  }
  iteration.run = [=] { minimal::iterate(parts, cuts, steps); };
  iteration.x_of = [=](int k) {
    std::vector<double> whole;
    for (const minimal::Part& part : parts) {
      const auto own = copied(part.x[part.gpu] + k % 2 * part.columns + cuts[part.gpu], part.rows);
      whole.insert(whole.end(), own.begin(), own.end());
    }
    return whole;
  };
  return iteration;
}

}  // namespace spmv::multigpu
