// Writes Matrix Market files.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sparse/matrix_market.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

// A file that appears under its name only when it is complete.
class ReplacementFile {
 public:
  explicit ReplacementFile(const std::filesystem::path& path) : path_(path) {
    // The process and a counter in the name: two writers of one file must not share it.
    static std::atomic<unsigned> counter{0};
    temporary_ = path;
    temporary_ += "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
    const int descriptor =
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      const int reason = errno;
      temporary_.clear();
      fail_to_write(reason);
    }
    file_ = ::gzdopen(descriptor, path.extension() == ".gz" ? "wb6" : "wbT");  // T: as it is
    if (!file_) {
      ::close(descriptor);
      ::unlink(temporary_.c_str());
      throw std::bad_alloc();
    }
  }
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;
  ~ReplacementFile() {
    if (file_) ::gzclose(file_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  void write(std::string_view text) {
    if (text.empty()) return;
    errno = 0;
    const auto size = static_cast<unsigned>(text.size());
    if (::gzwrite(file_, text.data(), size) != static_cast<int>(size)) fail_to_write(errno);
  }

  void commit() {
    errno = 0;
    const bool closed = ::gzclose(std::exchange(file_, nullptr)) == Z_OK;
    if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(errno);
    temporary_.clear();
  }

 private:
  [[noreturn]] void fail_to_write(int reason) const {
    throw std::runtime_error(printable(path_.string()) + ": cannot be written (" +
                             (reason != 0 ? std::strerror(reason) : "compression failed") +
                             "); check the path, its permissions and the space left");
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  gzFile file_ = nullptr;
};

// Characters that append_number() may need: the longest double has 24.
constexpr std::size_t kLongestNumber = 32;

template <typename Number>
void append_number(std::string& text, Number number) {
  std::array<char, kLongestNumber> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), result.ptr);
}

}  // namespace

template <typename T>
void write_matrix_market(const std::filesystem::path& path, const Coo<T>& coo,
                         const std::string& comment) {
  constexpr std::size_t kBufferSize = std::size_t{1} << 20;
  const std::size_t nnz = coo.values.size();
  if (coo.row_indices.size() != nnz || coo.column_indices.size() != nnz) {
    throw std::runtime_error(path.string() + ": not written, the matrix has " +
                             std::to_string(nnz) + " values but not as many indices");
  }

  ReplacementFile file(path);
  std::string text = "%%MatrixMarket matrix coordinate real general\n";
  std::istringstream comment_lines(comment);
  for (std::string line; std::getline(comment_lines, line);) text += "% " + line + "\n";
  append_number(text, coo.rows);
  text += ' ';
  append_number(text, coo.cols);
  text += ' ';
  append_number(text, nnz);
  text += '\n';

  text.reserve(kBufferSize + 4 * kLongestNumber);
  for (std::size_t k = 0; k < nnz; ++k) {
    const Index row = coo.row_indices[k];
    const Index col = coo.column_indices[k];
    if (row < 0 || row >= coo.rows || col < 0 || col >= coo.cols) {
      throw std::runtime_error(path.string() + ": not written, entry " + std::to_string(k) +
                               " of the matrix lies outside it");
    }
    append_number(text, static_cast<long long>(row) + 1);
    text += ' ';
    append_number(text, static_cast<long long>(col) + 1);
    text += ' ';
    append_number(text, coo.values[k]);
    text += '\n';
    if (text.size() >= kBufferSize) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text);
  file.commit();
}

template void write_matrix_market(const std::filesystem::path&, const Coo<float>&,
                                  const std::string&);
template void write_matrix_market(const std::filesystem::path&, const Coo<double>&,
                                  const std::string&);

}  // namespace spmv
