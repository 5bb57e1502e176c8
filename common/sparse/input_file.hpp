// The bytes of a file that a user named: mapped where that is possible, else read; and inflated if
// they are gzip. Neither takes more memory than it was given.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace spmv {

// Throw InputError("NAME: WHAT") and InputError("NAME:LINE: WHAT").
[[noreturn]] void fail_in_file(const std::string& name, const std::string& what);
[[noreturn]] void fail_in_file(const std::string& name, std::size_t line, const std::string& what);

// Text whose length is not known beforehand. It grows by realloc(), which moves pages and not
// bytes, and does not fill with zeros what is about to be written.
class TextBuffer {
 public:
  std::string_view view() const { return {text_.get(), size_}; }

  char* end() { return text_.get() + size_; }
  std::size_t room() const { return capacity_ - size_; }
  void append(std::size_t bytes) { size_ += bytes; }

  // Makes room for `capacity` bytes of the file `name` in all, or throws InputError.
  void reserve(const std::string& name, std::size_t capacity);
  // Makes room for more, up to `limit` bytes in all; throws InputError beyond.
  void grow(const std::string& name, std::size_t limit);

 private:
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  std::unique_ptr<char, Free> text_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// The content of the file or pipe at `path`. What cannot be mapped may take `limit` bytes. Throws
// InputError when it cannot be read.
class InputFile {
 public:
  InputFile(const std::filesystem::path& path, std::size_t limit);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  std::string_view view() const { return mapping_.data() ? mapping_ : text_.view(); }

 private:
  std::string_view mapping_;
  TextBuffer text_;
};

bool is_gzip(std::string_view content);

// The text of a gzip file, in at most `limit` bytes. Throws InputError, with `name` for the file,
// when the text takes more or is damaged.
TextBuffer inflate_gzip(std::string_view compressed, const std::string& name, std::size_t limit);

// The text of a file, gzip or not, a few megabytes at a time, so that no more of it is in memory.
class TextInPieces {
 public:
  explicit TextInPieces(const std::filesystem::path& path);
  ~TextInPieces();

  // The next whole lines, valid until the next call; the last line gets an end if it has none.
  // Empty: there are no more. `at_least` bytes, if there are as many.
  std::string_view next(std::size_t at_least = 0);

 private:
  bool fill();

  std::string name_;
  InputFile file_;
  std::string_view rest_;  // of the file
  struct Inflater;
  std::unique_ptr<Inflater> inflater_;
  std::string text_;
  std::size_t used_ = 0;  // of text_, by the pieces so far
};

}  // namespace spmv
