#include "sparse/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "sparse/matrix.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// zlib passes a text through that is not gzip.
gzFile open_text(const std::string& name, std::size_t& bytes) {
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) fail_in_file(name, "no such file; check the path");
    fail_in_file(name, fmt::format("cannot be opened ({}); check the path and its permissions",
                                   std::strerror(errno)));
  }
  struct ::stat status {};
  const bool is_known = ::fstat(descriptor, &status) == 0;
  const bool is_file = is_known && S_ISREG(status.st_mode);
  if (!is_file && !S_ISFIFO(status.st_mode)) {
    ::close(descriptor);
    fail_in_file(name, S_ISDIR(status.st_mode)
                           ? "is a directory; give a .mtx or .mtx.gz file in it"
                           : "is neither a file nor a pipe; give a .mtx or .mtx.gz file");
  }
  // (Files that the system makes up, as in /proc, have length 0.)
  bytes = is_file && status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : kUnknown;
  const gzFile file = ::gzdopen(descriptor, "rb");
  if (!file || ::gzbuffer(file, 1 << 18) != 0) throw std::bad_alloc();
  return file;
}

}  // namespace

void fail_in_file(const std::string& name, const std::string& what) {
  throw InputError(printable(name) + ": " + what);
}

void fail_in_file(const std::string& name, std::size_t line, const std::string& what) {
  throw InputError(fmt::format("{}:{}: {}", printable(name), line, what));
}

TextFile::TextFile(const std::filesystem::path& path, std::size_t piece_bytes)
    : name_(path.string()),
      piece_bytes_(std::clamp<std::size_t>(piece_bytes, 64, std::size_t{1} << 30)),
      file_(open_text(name_, file_bytes_)) {
  if (longest() < piece_bytes_) piece_bytes_ = longest() + 1;  // which shows that no more is left
  fill();
}

std::size_t TextFile::longest() const {
  constexpr std::size_t kLargestRatio = 1032;  // no deflate stream does better
  if (!is_compressed()) return file_bytes_;
  return file_bytes_ > kUnknown / kLargestRatio ? kUnknown : file_bytes_ * kLargestRatio;
}

void TextFile::fill() {
  const std::size_t had = buffer_.size();
  const std::size_t wanted = had < piece_bytes_ ? piece_bytes_ - had : piece_bytes_;
  buffer_.resize(had + wanted);
  const int count = ::gzread(file_.get(), buffer_.data() + had, static_cast<unsigned>(wanted));
  buffer_.resize(had + static_cast<std::size_t>(std::max(count, 0)));
  if (count > 0) return;
  ended_ = true;
  const int reason = errno;
  int error = Z_OK;
  ::gzerror(file_.get(), &error);
  if (error == Z_MEM_ERROR) throw std::bad_alloc();
  if (error == Z_BUF_ERROR) {
    fault_ = "the gzip data end too early; the file is cut short, fetch it again";
  } else if (error == Z_ERRNO) {
    fault_ = fmt::format("cannot be read ({}); check the file", std::strerror(reason));
  } else if (error < 0) {
    fault_ = "the gzip data are corrupt; fetch the file again";
  }
}

std::string_view TextFile::next() {
  buffer_.erase(0, given_);
  given_ = 0;
  bool has_line = buffer_.find('\n') != std::string::npos;
  while (!ended_ && (buffer_.size() < piece_bytes_ || !has_line)) {
    if (buffer_.size() >= std::max(piece_bytes_, kLongestLine)) {
      fail_in_file(
          name_, fmt::format("a line is longer than {}; check the file", byte_count(kLongestLine)));
    }
    const std::size_t had = buffer_.size();
    fill();
    has_line = has_line || buffer_.find('\n', had) != std::string::npos;
  }
  if (ended_ && fault_.empty() && !buffer_.empty() && buffer_.back() != '\n') {
    buffer_ += '\n';
    open_end_ = true;
  }
  given_ = buffer_.rfind('\n') + 1;  // npos + 1 is 0
  if (given_ == 0 && !fault_.empty()) fail_in_file(name_, fault_);
  return std::string_view(buffer_).substr(0, given_);
}

}  // namespace spmv
