// Step 08: see padding.hpp. (nvcc does not compile fmt.)
#include <fmt/format.h>

#include <cmath>

#include "harness/kernel.hpp"
#include "padding.hpp"

namespace spmv {

void check_padding(const std::string& format, double stored, Index nnz, double limit) {
  if (!(stored > limit * nnz)) return;  // nor if it is infinity by 0
  throw Unsuitable(fmt::format(
      "{} would store {:.0f} entries for {} nonzeros, {:.1f} for each, and the limit is {:g}; "
      "--padding-limit {:.0f} allows it",
      format, stored, nnz, stored / nnz, limit, std::ceil(stored / nnz)));
}

void check_memory(const std::string& format, double bytes) {
  std::size_t free = 0, total = 0;
  device::check(cudaMemGetInfo(&free, &total), "free memory");
  if (bytes <= static_cast<double>(free)) return;
  throw Unsuitable(fmt::format("{} would take {:.1f} GB of memory; the device has {:.1f} GB left",
                               format, bytes / 1e9, static_cast<double>(free) / 1e9));
}

std::string padding_text(double stored, Index nnz) {
  return nnz == 0 ? "" : fmt::format("padding {:.2f}x", stored / nnz);
}

}  // namespace spmv
