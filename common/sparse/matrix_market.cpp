#include "sparse/matrix_market.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "sparse/memory.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

// --- Lines ---------------------------------------------------------------------------------------

// The lines of a text file, inflated if it is gzip. It is read and not mapped: a mapping of a file
// that becomes shorter ends the program with SIGBUS. A fault of the file itself (damaged gzip, a
// failed read) is thrown when the lines before it have been given out, so that what a user learns
// of first is the first fault.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& path) : name_(printable(path.string())) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      fail_in_file(errno == ENOENT
                       ? "no such file; check the path"
                       : fmt::format("cannot be opened ({}); check the path and its permissions",
                                     std::strerror(errno)));
    }
    file_.reset(::gzdopen(descriptor, "rb"));  // passes a text through that is not gzip
    if (!file_) throw std::bad_alloc();
    struct ::stat status {};
    ::fstat(descriptor, &status);
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
      fail_in_file(S_ISDIR(status.st_mode)
                       ? "is a directory; give a .mtx or .mtx.gz file in it"
                       : "is neither a file nor a pipe; give a .mtx or .mtx.gz file");
    }
    ::gzbuffer(file_.get(), kPiece);
  }

  // The next line with its end, valid until the next call; the last line gets an end if it has
  // none. Empty: there are no more.
  std::string_view next() {
    std::size_t end;
    while ((end = text_.find('\n', at_)) == std::string::npos && fill()) {
    }
    if (end == std::string::npos) {
      if (!fault_.empty()) fail_in_file(fault_);
      if (at_ == text_.size()) return {};
      text_ += '\n';
      is_open_ = true;
      end = text_.size() - 1;
    }
    ++number_;
    const std::string_view line = std::string_view(text_).substr(at_, end + 1 - at_);
    at_ = end + 1;
    return line;
  }

  // The first bytes of the text, before any line was given out: as many as a format's mark is deep.
  std::string_view beginning() {
    while (text_.size() < 1024 && fill()) {
    }
    return text_;
  }

  // Of the line that was given out last.
  std::size_t number() const { return number_; }

  // Throw InputError("NAME: WHAT") and InputError("NAME:LINE: WHAT").
  [[noreturn]] void fail_in_file(const std::string& what) const {
    throw InputError(name_ + ": " + what);
  }
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw InputError(fmt::format("{}:{}: {}", name_, line, what));
  }
  // A fault of the line that was given out last.
  [[noreturn]] void fail_here(std::string what) {
    const std::size_t line = number_;
    if (is_open_) what += ", or fetch the file again if it is cut short here";
    // Damaged gzip data inflate to nonsense before the damage shows.
    for (std::size_t looked_at = 0; !::gzdirect(file_.get()) && looked_at < kLookedAt;) {
      const std::size_t length = next().size();
      if (length == 0) break;
      looked_at += length;
    }
    fail(line, what);
  }

 private:
  static constexpr unsigned kPiece = 1 << 16;
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;
  static constexpr std::size_t kLookedAt = 8 * kLongestLine;

  // Reads on, behind the line that has begun. False: there is no more.
  bool fill() {
    if (is_ended_) return false;
    text_.erase(0, at_);
    at_ = 0;
    const std::size_t had = text_.size();
    if (had >= kLongestLine) {
      fail_in_file(
          fmt::format("a line is longer than {}; check the file", byte_count(kLongestLine)));
    }
    text_.resize(had + kPiece);
    const int count = ::gzread(file_.get(), text_.data() + had, kPiece);
    text_.resize(had + static_cast<std::size_t>(std::max(count, 0)));
    if (count > 0) return true;
    is_ended_ = true;
    const int reason = errno;
    int error = Z_OK;
    ::gzerror(file_.get(), &error);
    if (error == Z_BUF_ERROR) {
      fault_ = "the gzip data end too early; the file is cut short, fetch it again";
    } else if (error == Z_ERRNO) {
      fault_ = fmt::format("cannot be read ({}); check the file", std::strerror(reason));
    } else if (error < 0) {
      fault_ = "the gzip data are corrupt; fetch the file again";
    }
    return false;
  }

  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };
  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string text_;
  std::size_t at_ = 0;  // how much of text_ was given out
  std::size_t number_ = 0;
  bool is_ended_ = false;
  bool is_open_ = false;  // the last line lacked its end
  std::string fault_;     // behind what is in text_
};

// --- Words and numbers ---------------------------------------------------------------------------
//
// Every line ends in '\n', so that loops over it need no test for its end.

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool ends_word(char c) {
  return is_blank(c) || c == '\n';
}

const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

std::string_view word_at(const char* p) {
  const char* end = p;
  while (!ends_word(*end)) ++end;
  return {p, static_cast<std::size_t>(end - p)};
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const char* p = skip_blanks(line.data()); *p != '\n';) {
    words.push_back(word_at(p));
    p = skip_blanks(p + words.back().size());
  }
  return words;
}

// Reads a whole number from `low` to `high`. Returns where it ends, which is where its word ends,
// or null if the word is no such number.
const char* parse_whole(const char* p, const char* end, long long low, long long high,
                        Index& number) {
  long long value = 0;
  const auto [word_end, error] = std::from_chars(p + (*p == '+' && p[1] != '-'), end, value);
  if (error != std::errc() || !ends_word(*word_end) || value < low || value > high) return nullptr;
  number = static_cast<Index>(value);
  return word_end;
}

// A value in a notation that from_chars does not know: "+5", Fortran's 1.5D+03, 1e400.
template <typename T>
[[gnu::noinline]] const char* parse_odd_value(std::string_view word, T& value) {
  std::string text(word);
  if (text.empty() || text.find_first_of("xX(\v\f") != std::string::npos) return nullptr;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
  char* end = nullptr;
  if constexpr (sizeof(T) == 4) {
    value = std::strtof(text.c_str(), &end);
  } else {
    value = std::strtod(text.c_str(), &end);
  }
  return end == text.c_str() + text.size() ? word.data() + word.size() : nullptr;
}

// Reads a value, rounded once from its decimal digits to T; those too large for T become infinite.
template <typename T>
const char* parse_value(const char* p, const char* end, bool is_integer, T& value) {
  if (is_integer) {
    const std::string_view digits = word_at(*p == '-' || *p == '+' ? p + 1 : p);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
      return nullptr;
    }
  }
  const auto [word_end, error] = std::from_chars(p, end, value);
  if (error == std::errc() && ends_word(*word_end)) return word_end;
  return parse_odd_value(word_at(p), value);
}

// --- The header ----------------------------------------------------------------------------------

// What a file says of itself, and what its body must look like.
struct Layout {
  std::string field, symmetry;
  Index rows = 0, cols = 0, entries = 0;
  bool is_integer = false;
  bool is_complex = false;
  bool has_value = true;     // false: a pattern
  bool is_mirrored = false;  // only one triangle is stored
  bool is_skew = false;
  std::size_t size_line = 0;  // its number

  // What a line of the body holds.
  const char* entry_words() const {
    if (!has_value) return "ROW COLUMN";
    return is_complex ? "ROW COLUMN REAL IMAGINARY" : "ROW COLUMN VALUE";
  }
  std::string announced() const {
    return fmt::format("the size line announces {} entr{}", entries, entries == 1 ? "y" : "ies");
  }
  // What it becomes when expanded, if no position of the diagonal is stored twice: every other
  // entry has a mirror image.
  long long least_nonzeros() const {
    return entries + (is_mirrored ? std::max(entries - (is_skew ? 0 : rows), 0) : 0LL);
  }
};

// What else a file may be that somebody has downloaded, and what to do with it; null: nothing that
// is known here.
const char* other_format(std::string_view text) {
  using namespace std::string_view_literals;
  const auto is_at = [text](std::size_t place, std::string_view mark) {
    return text.size() > place && text.substr(place).starts_with(mark);
  };
  struct Known {
    std::size_t place;
    std::string_view mark;
    const char* what;
  };
  static constexpr Known kKnown[] = {
      {257, "ustar"sv,
       "a tar archive, as SuiteSparse has them; tar xf FILE, and give the .mtx in it"},
      {0, "PK\x03\x04"sv, "a ZIP archive; unzip FILE, and give the .mtx in it"},
      {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive; 7z x FILE, and give the .mtx in it"},
      {0, "Rar!"sv, "a RAR archive; unrar x FILE, and give the .mtx in it"},
      {0, "BZh"sv, "compressed by bzip2; bunzip2 FILE (of an archive: tar xf FILE)"},
      {0, "\xfd\x37zXZ"sv, "compressed by xz; unxz FILE (of an archive: tar xf FILE)"},
      {0, "\x28\xb5\x2f\xfd"sv,
       "compressed by Zstandard; unzstd FILE (of an archive: tar xf FILE)"},
      {0, "\x04\x22\x4d\x18"sv, "compressed by LZ4; unlz4 FILE (of an archive: tar xf FILE)"},
      {0, "\x5d\0\0"sv, "compressed by LZMA; unlzma FILE (of an archive: tar xf FILE)"},
      {0, "LZIP"sv, "compressed by lzip; lzip -d FILE (of an archive: tar xf FILE)"},
      {0, "\x1f\x9d"sv, "compressed by compress; uncompress FILE (of an archive: tar xf FILE)"},
      {0, "\x1f\x8b"sv, "compressed by gzip twice; gunzip FILE"},
      {0, "MATLAB"sv, "a MATLAB file; mmwrite() of MATLAB or SciPy writes Matrix Market"},
      {0, "\x89HDF"sv,
       "an HDF5 file (MATLAB 7.3); mmwrite() of MATLAB or SciPy writes Matrix Market"},
      {0, "version https://git-lfs"sv, "a pointer of Git LFS in place of the file; git lfs pull"},
      {0, "\xff\xfe"sv, "a text in UTF-16; iconv -f UTF-16 -t UTF-8 FILE"},
      {0, "\xfe\xff"sv, "a text in UTF-16; iconv -f UTF-16 -t UTF-8 FILE"},
  };
  for (const Known& known : kKnown) {
    if (is_at(known.place, known.mark)) return known.what;
  }
  // Harwell-Boeing and Rutherford-Boeing: a title, a line of numbers, then such as "RUA  10  10
  // 30".
  std::size_t line = 0;
  for (int number = 1; number < 3 && line != std::string_view::npos; ++number) {
    line = text.find('\n', line);
    if (line != std::string_view::npos) ++line;
  }
  const auto one_of = [&](std::size_t at, std::string_view letters) {
    return at < text.size() && letters.find(text[at]) != std::string_view::npos;
  };
  if (line != std::string_view::npos && one_of(line, "RCPIQrcpiq") &&
      one_of(line + 1, "SUHZRsuhzr") && one_of(line + 2, "AEae") && one_of(line + 3, " \t") &&
      one_of(text.find_first_not_of(" \t", line + 3), "0123456789")) {
    return "a Harwell-Boeing file; SuiteSparse has the same as Matrix Market, and SciPy's "
           "hb_read() "
           "and mmwrite() convert it";
  }
  return nullptr;
}

Layout read_banner(Lines& lines, const LoadOptions& options) {
  if (const char* const what = other_format(lines.beginning())) {
    lines.fail_in_file(std::string("is ") + what);
  }
  std::string_view line = lines.next();
  if (line.empty()) lines.fail_in_file("the file is empty; fetch it again");
  constexpr std::string_view kBomOfUtf8 = "\xef\xbb\xbf";
  if (line.starts_with(kBomOfUtf8)) line.remove_prefix(kBomOfUtf8.size());
  std::vector<std::string> words;
  for (const std::string_view word : words_of(line)) {
    std::string& lower = words.emplace_back(word);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (words.empty() || words[0] != "%%matrixmarket") {
    lines.fail_here("the file does not begin with %%MatrixMarket; give a Matrix Market file");
  }
  if (words.size() != 5) {
    lines.fail_here(
        "the banner has not 5 words; write %%MatrixMarket matrix coordinate FIELD SYMMETRY");
  }
  const auto check = [&](std::size_t at, const char* what, const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), words[at]) != known.end()) return;
    lines.fail_here(fmt::format("the {} {} cannot be read; only {} can", what, in_quotes(words[at]),
                                fmt::join(known, ", ")));
  };
  check(1, "object", {"matrix"});
  check(2, "format", {"coordinate"});
  check(3, "field", {"real", "double", "integer", "pattern", "complex"});
  check(4, "symmetry", {"general", "symmetric", "skew-symmetric", "hermitian"});

  Layout layout;
  layout.field = words[3];
  layout.symmetry = words[4];
  layout.is_integer = layout.field == "integer";
  layout.is_complex = layout.field == "complex";
  layout.has_value = layout.field != "pattern";
  layout.is_mirrored = layout.symmetry != "general";
  layout.is_skew = layout.symmetry == "skew-symmetric";
  if ((!layout.has_value && layout.is_skew) ||
      (!layout.is_complex && layout.symmetry == "hermitian")) {
    lines.fail_here(
        fmt::format("a {} file cannot be {}; use symmetric", layout.field, layout.symmetry));
  }
  if (layout.is_complex && !options.real_part) {
    lines.fail_here("the values are complex; give --complex real to read their real parts");
  }
  return layout;
}

// The banner, the comments behind it and the size line.
Layout read_header(Lines& lines, const LoadOptions& options) {
  Layout layout = read_banner(lines, options);
  std::string_view line;
  do {
    line = lines.next();
    if (line.empty()) {
      lines.fail(lines.number(),
                 "the file ends before the size line; add ROWS COLUMNS ENTRIES after the banner");
    }
  } while (*skip_blanks(line.data()) == '\n' || *skip_blanks(line.data()) == '%');
  layout.size_line = lines.number();

  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 3) {
    lines.fail_here("the size line has not 3 numbers; write ROWS COLUMNS ENTRIES");
  }
  const char* const end = line.data() + line.size();
  Index* const sizes[] = {&layout.rows, &layout.cols, &layout.entries};
  for (std::size_t k = 0; k < 3; ++k) {
    if (parse_whole(words[k].data(), end, 0, kMaxNonzeros, *sizes[k])) continue;
    lines.fail_here(
        fmt::format("{} is not a whole number from 0 to {}, the most that 32-bit indices allow; "
                    "write ROWS COLUMNS ENTRIES",
                    in_quotes(words[k]), kMaxNonzeros));
  }
  if (layout.is_mirrored && layout.rows != layout.cols) {
    lines.fail_here(
        fmt::format("a {} matrix must be square, and this one is {} x {}; correct the size line, "
                    "or say general in the banner",
                    layout.symmetry, layout.rows, layout.cols));
  }
  if (layout.least_nonzeros() > kMaxNonzeros) {
    lines.fail_here(
        fmt::format("{} and so a matrix of {} nonzeros, more than {}, the most that "
                    "32-bit indices allow; use a smaller matrix",
                    layout.announced(), layout.least_nonzeros(), kMaxNonzeros));
  }
  return layout;
}

// --- The body ------------------------------------------------------------------------------------

template <typename T>
struct Entry {
  Index row, col;
  T value = 1;
};

// Whether `line` holds an entry and is no comment. Throws if it is neither.
template <typename T>
bool read_entry(Lines& lines, const Layout& layout, std::string_view line, Entry<T>& entry) {
  const char* p = skip_blanks(line.data());
  const char* const end = line.data() + line.size();
  if (*p == '\n' || *p == '%') return false;

  const auto read_index = [&](const char* what, Index limit, Index& index) {
    const char* const index_end = parse_whole(p, end, 1, limit, index);
    if (!index_end) {
      const std::string_view word = word_at(p);
      lines.fail_here(
          word.empty()
              ? fmt::format("the {} index is missing; write {}", what, layout.entry_words())
              : fmt::format("{} index {} is not a whole number from 1 to {}, the {}s of the "
                            "size line; correct the one or the other",
                            what, in_quotes(word), limit, what));
    }
    --index;
    p = skip_blanks(index_end);
  };
  const auto read_value = [&](T& value) {
    const char* const value_end = parse_value(p, end, layout.is_integer, value);
    if (!value_end) {
      const std::string_view word = word_at(p);
      lines.fail_here(
          word.empty()
              ? fmt::format("a value is missing; write {}", layout.entry_words())
              : fmt::format("the value {} is not of the field {}; correct the one or the other",
                            in_quotes(word), layout.field));
    }
    p = skip_blanks(value_end);
  };
  read_index("row", layout.rows, entry.row);
  read_index("column", layout.cols, entry.col);
  if (layout.has_value) read_value(entry.value);
  T imaginary = 0;
  if (layout.is_complex) read_value(imaginary);
  if (*p != '\n') {
    lines.fail_here(fmt::format("unexpected {} after the entry; write {}, one entry a line",
                                in_quotes(word_at(p)), layout.entry_words()));
  }
  if (layout.is_mirrored && entry.row < entry.col) {
    lines.fail_here(
        fmt::format("entry ({}, {}) is above the diagonal, where a {} file stores "
                    "nothing; remove the upper half, or say general",
                    entry.row + 1, entry.col + 1, layout.symmetry));
  }
  if (layout.is_skew && entry.row == entry.col && (entry.value != 0 || imaginary != 0)) {
    lines.fail_here(
        fmt::format("entry ({}, {}) is on the diagonal of a skew-symmetric matrix and "
                    "not zero; remove it, or correct the banner",
                    entry.row + 1, entry.col + 1));
  }
  return true;
}

// Refuses what does not fit in memory from here to the end of to_csr(): both formats and what the
// sort needs. Nothing in the file backs the numbers of its size line.
void check_memory(const Lines& lines, const Layout& layout, long long nonzeros,
                  std::size_t value_bytes, const LoadOptions& options) {
  const auto needed =
      static_cast<double>(nonzeros) * static_cast<double>(4 * sizeof(Index) + 2 * value_bytes) +
      2.0 * sizeof(Index) * std::max(layout.rows, layout.cols);
  const auto limit = static_cast<double>(options.memory_limit());
  if (needed > limit) lines.fail(layout.size_line, "the matrix " + more_than_limit(needed, limit));
}

}  // namespace

template <typename T>
Coo<T> read_matrix_market(const std::filesystem::path& path, const LoadOptions& options,
                          Index first, Index end, std::vector<Index>* lengths) {
  Lines lines(path);
  const Layout layout = read_header(lines, options);
  const bool is_whole = end < 0;
  check_memory(lines, layout, is_whole ? layout.least_nonzeros() : 0, sizeof(T), options);
  if (is_whole) end = layout.rows;
  Coo<T> kept;
  kept.rows = end - first;
  kept.cols = layout.cols;
  kept.is_expanded = layout.is_mirrored;
  if (is_whole) {  // pages that stay unused cost nothing
    const auto capacity = static_cast<std::size_t>(layout.least_nonzeros());
    kept.row_indices.reserve(capacity);
    kept.column_indices.reserve(capacity);
    kept.values.reserve(capacity);
  }
  if (lengths) lengths->assign(layout.rows, 0);
  const auto keep = [&](Index row, Index column, T value) {
    if (lengths) ++(*lengths)[row];
    if (row < first || row >= end) return;
    kept.add(row - first, column, value);
    if (kept.values.size() > static_cast<std::size_t>(kMaxNonzeros)) {
      lines.fail_in_file(fmt::format("rows {} to {} have more than {} nonzeros; use more parts",
                                     first + 1, end, kMaxNonzeros));
    }
  };
  Index count = 0;
  Entry<T> entry{};
  for (std::string_view line; !(line = lines.next()).empty();) {
    if (!read_entry(lines, layout, line, entry)) continue;
    if (count++ == layout.entries) {
      lines.fail_here(
          fmt::format("{} (line {}), but more follow; correct the size line, or remove these",
                      layout.announced(), layout.size_line));
    }
    keep(entry.row, entry.col, entry.value);
    if (!layout.is_mirrored || entry.row == entry.col) continue;
    keep(entry.col, entry.row, layout.is_skew ? -entry.value : entry.value);
  }
  if (count != layout.entries) {
    lines.fail(layout.size_line,
               fmt::format("{}, but the file holds {}; correct the size line, or fetch the file "
                           "again if it is cut short",
                           layout.announced(), count));
  }
  return kept;
}

template Coo<float> read_matrix_market(const std::filesystem::path&, const LoadOptions&, Index,
                                       Index, std::vector<Index>*);
template Coo<double> read_matrix_market(const std::filesystem::path&, const LoadOptions&, Index,
                                        Index, std::vector<Index>*);

}  // namespace spmv
