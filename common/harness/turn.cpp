#include "harness/turn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sparse/load.hpp"

namespace spmv {

Turn::Turn(const std::string& file) {
  if (file.empty()) return;
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  // The kernel releases the lock of a process that dies.
  while (file_ >= 0 && flock(file_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    close(file_);
    file_ = -1;
  }
  if (file_ < 0) throw InputError(fmt::format("--turn {}: {}", file, std::strerror(errno)));
  const std::string pid = std::to_string(getpid());
  if (ftruncate(file_, 0) != 0 || pwrite(file_, pid.data(), pid.size(), 0) < 0) {
    throw InputError(fmt::format("--turn {}: {}", file, std::strerror(errno)));
  }
}

void Turn::end() {
  if (file_ < 0) return;
  [[maybe_unused]] const int emptied = ftruncate(file_, 0);
  close(file_);
  file_ = -1;
}

}  // namespace spmv
