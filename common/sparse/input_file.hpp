// The text of a file that a user named, a few megabytes at a time, and inflated if it is gzip.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace spmv {

// Throw InputError("NAME: WHAT") and InputError("NAME:LINE: WHAT").
[[noreturn]] void fail_in_file(const std::string& name, const std::string& what);
[[noreturn]] void fail_in_file(const std::string& name, std::size_t line, const std::string& what);

bool is_gzip(std::string_view content);

// A text in pieces of whole lines. Two pieces are in memory: the one in use, and the next, which
// another thread reads meanwhile. The file is read and not mapped: a mapping of a file that becomes
// shorter ends the program with SIGBUS, here it is an InputError.
//
// A fault (damaged gzip, a failed read) is thrown when the lines before it have been given out, so
// that what a user learns of first is the first fault in the file, whatever the pieces.
class TextInPieces {
 public:
  // A piece ends with the last line that ends within `piece_bytes`, or with a longer line.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 23;
  // A line that is longer than this, in bytes, is refused.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // The file or pipe at `path`. Throws InputError when it cannot be opened.
  explicit TextInPieces(const std::filesystem::path& path, std::size_t piece_bytes = kPieceBytes);
  // `content`, which has to outlive this; `name` stands for the file in errors.
  TextInPieces(std::string_view content, std::string name, std::size_t piece_bytes = kPieceBytes);
  ~TextInPieces();

  const std::string& name() const;
  bool is_compressed() const;
  // The text has at most so many bytes: the file's length, or what gzip can make of it. The largest
  // number there is for a pipe.
  std::size_t longest() const;

  // The beginning of the text, before next() is called: a piece, or less where the text ends.
  std::string_view head() const;
  // The next lines, valid until the next call; the last line gets an end if it has none. Empty:
  // there are no more.
  std::string_view next();
  // The lines that next() gave, and more after them if there are any.
  std::string_view extend();
  // Whether the last line of the text lacked its end; known once it was given out.
  bool open_end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spmv
