#include "sparse/memory.hpp"

#include <cmath>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "sparse/text.hpp"

namespace spmv {

std::size_t available_memory() {
  // Counts what the page cache would give back, which sysconf() does not.
  std::ifstream meminfo("/proc/meminfo");
  std::string field;
  std::size_t kibibytes = 0;
  while (meminfo >> field >> kibibytes) {
    if (field == "MemAvailable:") return kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<std::size_t>::max();
}

std::size_t default_memory_limit() {
  return available_memory() / 4;
}

std::string more_than_limit(double needed, double limit) {
  return fmt::format(
      "needs {} of memory, more than the limit of {}; use a smaller matrix, or give --memory-limit "
      "{:.0f}M if this machine has as much",
      byte_count(needed), byte_count(limit), std::ceil(needed / (1 << 20)));
}

}  // namespace spmv
