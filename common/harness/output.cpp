#include "harness/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "sparse/matrix.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail_to_write(const std::string& path, int reason) {
  throw InputError(
      fmt::format("{}: cannot be written ({}); check the path, its permissions and the space left",
                  printable(path), std::strerror(reason)));
}

}  // namespace

void prepare_output() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // Takes the lowest number that is free. Read-only: what is written there is still lost, and
    // check_output() says so.
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
  }
}

void check_output() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout && !std::ferror(stdout)) return;
  const std::string reason = errno != 0 ? fmt::format(" ({})", std::strerror(errno)) : "";
  throw InputError("standard output: cannot be written" + reason +
                   "; check the space left, or where it goes");
}

void append_lines(const std::string& path, const std::string& lines) {
  const Descriptor file{
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666)};
  // A pipe or a device may allow no reading.
  const Descriptor only_written{
      file.number < 0 ? ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY) : -1};
  const int number = file.number >= 0 ? file.number : only_written.number;
  if (number < 0) fail_to_write(path, errno);
  struct ::stat status {};
  const bool is_file =
      ::flock(number, LOCK_EX) == 0 && ::fstat(number, &status) == 0 && S_ISREG(status.st_mode);
  char last = '\n';
  if (is_file && status.st_size > 0 && ::pread(number, &last, 1, status.st_size - 1) == 1 &&
      last != '\n') {
    throw InputError(printable(path) +
                     ": ends within a line, so that a record would be lost; remove that line, or "
                     "give another file");
  }
  for (std::size_t done = 0; done < lines.size();) {
    const ::ssize_t count = ::write(number, lines.data() + done, lines.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int reason = errno;
      if (is_file && ::ftruncate(number, status.st_size) != 0) {
        fmt::print(stderr, "{}: the half of a record is left at its end\n", printable(path));
      }
      fail_to_write(path, reason);
    }
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace spmv
