// The text of a file that a user named, a few megabytes at a time, and inflated if it is gzip.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace spmv {

// Throw InputError("NAME: WHAT") and InputError("NAME:LINE: WHAT").
[[noreturn]] void fail_in_file(const std::string& name, const std::string& what);
[[noreturn]] void fail_in_file(const std::string& name, std::size_t line, const std::string& what);

// A text in pieces of whole lines, one of which is in memory. The file is read and not mapped: a
// mapping of a file that becomes shorter ends the program with SIGBUS.
//
// A fault (damaged gzip, a failed read) is thrown when the lines before it have been given out, so
// that what a user learns of first is the first fault in the file.
class TextFile {
 public:
  // A piece has at least so many bytes, unless the text ends.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 23;
  // A line that does not fit into a piece and has more bytes than this is refused.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // The file or pipe at `path`. Throws InputError when it cannot be opened.
  explicit TextFile(const std::filesystem::path& path, std::size_t piece_bytes = kPieceBytes);

  const std::string& name() const { return name_; }
  bool is_compressed() const { return ::gzdirect(file_.get()) == 0; }
  // The text has at most so many bytes: the file's length, or what gzip can make of it. The largest
  // number there is for a pipe.
  std::size_t longest() const;

  // The beginning of the text, before next() is called: a piece, or less where the text ends.
  std::string_view head() const { return buffer_; }
  // The next lines, valid until the next call; the last line gets an end if it has none. Empty:
  // there are no more.
  std::string_view next();
  // Whether the last line of the text lacked its end; known once it was given out.
  bool open_end() const { return open_end_; }

 private:
  // Appends to buffer_ what follows it in the text, or finds the text's end.
  void fill();

  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };

  std::string name_;
  std::size_t piece_bytes_;
  std::size_t file_bytes_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string buffer_;
  std::size_t given_ = 0;  // how much of buffer_ was given out
  bool ended_ = false;
  bool open_end_ = false;
  std::string fault_;  // behind what is in buffer_
};

}  // namespace spmv
