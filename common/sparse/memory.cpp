#include "sparse/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

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

void prefer_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kWorthwhile = std::size_t{1} << 22;
  if (bytes < kWorthwhile) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t to_page = (page - reinterpret_cast<std::uintptr_t>(begin) % page) % page;
  // A wish: where it is not granted, nothing is lost.
  ::madvise(static_cast<char*>(begin) + to_page, bytes - to_page, MADV_HUGEPAGE);
#endif
}

}  // namespace spmv
