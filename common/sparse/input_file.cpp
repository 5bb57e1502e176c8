#include "sparse/input_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "sparse/matrix.hpp"
#include "sparse/memory.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void fail_in_file(const std::string& name, const std::string& what) {
  throw InputError(printable(name) + ": " + what);
}

void fail_in_file(const std::string& name, std::size_t line, const std::string& what) {
  throw InputError(fmt::format("{}:{}: {}", printable(name), line, what));
}

void TextBuffer::reserve(const std::string& name, std::size_t capacity) {
  char* const moved = static_cast<char*>(std::realloc(text_.get(), capacity));
  if (!moved) {
    fail_in_file(name, "not enough memory; use a smaller matrix or a machine with more memory");
  }
  static_cast<void>(text_.release());  // realloc() has freed or kept it
  text_.reset(moved);
  capacity_ = capacity;
  prefer_large_pages(end(), room());
}

void TextBuffer::grow(const std::string& name, std::size_t limit) {
  if (capacity_ >= limit) {
    fail_in_file(name, fmt::format("the text needs more than {0} of memory, and {0} are available; "
                                   "use a smaller matrix or a machine with more memory",
                                   byte_count(limit)));
  }
  const std::size_t capacity = std::max(capacity_ + capacity_ / 2, std::size_t{1} << 16);
  reserve(name, std::min(capacity, limit));
}

InputFile::InputFile(const std::filesystem::path& path, std::size_t limit) {
  const std::string name = path.string();
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    if (errno == ENOENT) fail_in_file(name, "no such file; check the path");
    fail_in_file(name, fmt::format("cannot be opened ({}); check the path and its permissions",
                                   std::strerror(errno)));
  }
  struct ::stat status {};
  if (::fstat(::fileno(file.get()), &status) != 0) {
    fail_in_file(name,
                 fmt::format("cannot be examined ({}); check the path", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) {
    fail_in_file(name, "is a directory; give a .mtx or .mtx.gz file in it");
  }
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    fail_in_file(name, "is neither a file nor a pipe; give a .mtx or .mtx.gz file");
  }

  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, ::fileno(file.get()), 0);
    if (address != MAP_FAILED) {
      ::madvise(address, size, MADV_WILLNEED);
      mapping_ = {static_cast<const char*>(address), size};
      return;
    }
  }
  // A pipe, or a file system without mappings.
  for (;;) {
    if (text_.room() == 0) text_.grow(name, limit);
    const std::size_t count = std::fread(text_.end(), 1, text_.room(), file.get());
    text_.append(count);
    if (std::ferror(file.get())) {
      fail_in_file(name, fmt::format("cannot be read ({}); check the file", std::strerror(errno)));
    }
    if (count == 0) return;
  }
}

InputFile::~InputFile() {
  if (mapping_.data()) ::munmap(const_cast<char*>(mapping_.data()), mapping_.size());
}

bool is_gzip(std::string_view content) {
  return content.starts_with("\x1f\x8b");
}

TextBuffer inflate_gzip(std::string_view compressed, const std::string& name, std::size_t limit) {
  constexpr std::size_t kLargestStep = std::size_t{1} << 30;  // zlib counts in 32 bits
  constexpr std::size_t kLargestRatio = 1032;                 // no deflate stream does better
  TextBuffer text;
  // The last four bytes tell the length of the last stream's text: right for nearly every file, and
  // harmless where it is wrong.
  if (compressed.size() >= 18) {
    std::size_t length = 0;
    for (std::size_t k = 1; k <= 4; ++k) {
      length = length << 8 | static_cast<unsigned char>(compressed[compressed.size() - k]);
    }
    text.reserve(name, std::min({length + 1, compressed.size() * kLargestRatio, limit}));
  }

  z_stream stream{};
  if (::inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&::inflateEnd)> ended_at_return(&stream, ::inflateEnd);
  std::string_view rest = compressed;
  for (;;) {
    if (text.room() == 0) text.grow(name, limit);
    const std::size_t offered = std::min(rest.size(), kLargestStep);
    const std::size_t room = std::min(text.room(), kLargestStep);
    // zlib's interface takes a pointer to non-const and does not write through it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream.avail_in = static_cast<uInt>(offered);
    stream.next_out = reinterpret_cast<Bytef*>(text.end());
    stream.avail_out = static_cast<uInt>(room);
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    text.append(room - stream.avail_out);
    rest.remove_prefix(offered - stream.avail_in);

    if (status == Z_STREAM_END) {
      // A file may be several compressed streams, one after the other: their texts are joined.
      const bool only_padding = rest.find_first_not_of('\0') == std::string_view::npos;
      if (only_padding) return text;
      if (!is_gzip(rest)) {
        fail_in_file(
            name, "something that is not gzip follows the compressed text; fetch the file again");
      }
      ::inflateReset(&stream);
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail_in_file(name, "the gzip data are corrupt; fetch the file again");
    } else if (rest.empty() && stream.avail_out != 0) {
      fail_in_file(name, "the gzip data end too early; the file is cut short, fetch it again");
    }
  }
}

// --- In pieces ----------------------------------------------------------------------------------

struct TextInPieces::Inflater {
  z_stream stream{};
  bool ended = false;
  Inflater() {
    if (::inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream); }
};

namespace {
constexpr std::size_t kPieceBytes = std::size_t{1} << 23;
}

TextInPieces::TextInPieces(const std::filesystem::path& path)
    : name_(path.string()), file_(path, std::size_t{1} << 40), rest_(file_.view()) {
  if (is_gzip(rest_)) inflater_ = std::make_unique<Inflater>();
}
TextInPieces::~TextInPieces() = default;

// Puts more of the text behind what there is. False: there is no more.
bool TextInPieces::fill() {
  if (inflater_ ? inflater_->ended : rest_.empty()) return false;
  const std::size_t had = text_.size();
  if (!inflater_) {
    text_ += rest_.substr(0, kPieceBytes);
    rest_.remove_prefix(text_.size() - had);
    return true;
  }
  text_.resize(had + kPieceBytes);
  z_stream& stream = inflater_->stream;
  const std::size_t offered = std::min(rest_.size(), kPieceBytes);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
  stream.avail_in = static_cast<uInt>(offered);
  stream.next_out = reinterpret_cast<Bytef*>(text_.data() + had);
  stream.avail_out = static_cast<uInt>(kPieceBytes);
  const int status = ::inflate(&stream, Z_NO_FLUSH);
  text_.resize(had + kPieceBytes - stream.avail_out);
  rest_.remove_prefix(offered - stream.avail_in);
  if (status == Z_STREAM_END) {
    inflater_->ended = rest_.find_first_not_of('\0') == std::string_view::npos;
    if (!inflater_->ended && !is_gzip(rest_)) {
      fail_in_file(name_,
                   "something that is not gzip follows the compressed text; fetch the file again");
    }
    ::inflateReset(&stream);
  } else if (status == Z_MEM_ERROR) {
    throw std::bad_alloc();
  } else if (status != Z_OK && status != Z_BUF_ERROR) {
    fail_in_file(name_, "the gzip data are corrupt; fetch the file again");
  } else if (rest_.empty() && stream.avail_out != 0) {
    fail_in_file(name_, "the gzip data end too early; the file is cut short, fetch it again");
  }
  return true;
}

std::string_view TextInPieces::next(std::size_t at_least) {
  text_.erase(0, used_);
  used_ = 0;
  while (true) {
    const std::size_t end = text_.rfind('\n') + 1;  // npos + 1 is 0
    if (end > 0 && text_.size() >= at_least) {
      used_ = end;
      return std::string_view(text_).substr(0, used_);
    }
    if (fill()) continue;
    if (!text_.empty() && text_.back() != '\n') text_ += '\n';
    used_ = text_.size();
    return text_;
  }
}

}  // namespace spmv
