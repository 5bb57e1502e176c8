// The reader works in four stages: the bytes (mapped, or inflated into one buffer), the header,
// the body in pieces that end at line ends, and the mirrored half of a symmetric matrix.
//
// Parsing is what costs: an entry is about 20 bytes of text, and a general-purpose conversion
// spends longer on it than the memory system does. So every number is first tried by a loop that
// knows the common shapes and gives up on anything else; only then does std::from_chars, and the
// code that finds words for an error, look at it.
#include "sparse/matrix_market.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <locale>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace spmv {
namespace {

// ---------------------------------------------------------------------------------------------
// Words for errors
// ---------------------------------------------------------------------------------------------

// What a file holds is quoted in messages that must stay one line of printable characters.
std::string printable(std::string_view text, std::size_t longest) {
  std::string result;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  if (text.size() > longest) result += "...";
  return result;
}

std::string quoted(std::string_view text) {
  std::string result = printable(text, 32);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';  // may be half of a UTF-8 sequence
  }
  return "'" + result + "'";
}

std::string byte_count(std::size_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  double amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", amount, kUnits[unit]);
  return text.data();
}

std::string plural(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw InputError(printable(name, std::string::npos) + ": " + what);
}

[[noreturn]] void fail(const std::string& name, std::size_t line, const std::string& what) {
  throw InputError(printable(name, std::string::npos) + ":" + std::to_string(line) + ": " + what);
}

// A fault at one byte of the body. Counting lines would slow every thread down, so the number of
// the line is found only when there is something to report.
struct Fault {
  const char* where;
  std::string what;
};

// ---------------------------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------------------------

std::size_t available_memory(const LoadOptions& options) {
  if (options.memory_limit_bytes != 0) return options.memory_limit_bytes;
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  unsigned long long kibibytes = 0;
  for (std::string rest; meminfo >> key; std::getline(meminfo, rest)) {
    if (key == "MemAvailable:" && meminfo >> kibibytes) return kibibytes * 1024;
  }
  return std::numeric_limits<std::size_t>::max();  // no Linux: nothing to go by
}

// Asks for large pages for memory that is about to be written for the first time. The parser is so
// fast that taking pages of 4 KiB from the system, one fault each, would be a third of its time.
void prefer_large_pages(void* begin, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kWorthwhile = std::size_t{1} << 22;
  if (bytes < kWorthwhile) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t to_page = (page - address % page) % page;
  // A wish: where it is not granted, nothing is lost.
  ::madvise(static_cast<char*>(begin) + to_page, bytes - to_page, MADV_HUGEPAGE);
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

template <typename Element>
void reserve_large(std::vector<Element>& elements, std::size_t count) {
  elements.reserve(count);
  prefer_large_pages(elements.data(), elements.capacity() * sizeof(Element));
}

// A buffer that grows by realloc(), which moves pages instead of bytes, and that does not fill
// with zeros what is about to be written.
class GrowingText {
 public:
  GrowingText(std::string name, std::size_t limit) : name_(std::move(name)), limit_(limit) {}

  char* end() { return text_.get() + size_; }
  std::size_t room() const { return capacity_ - size_; }
  void append(std::size_t bytes) { size_ += bytes; }
  std::string_view view() const { return {text_.get(), size_}; }

  void reserve(std::size_t capacity) {
    capacity = std::min(capacity, limit_);
    if (capacity <= capacity_) return;
    char* moved = static_cast<char*>(std::realloc(text_.get(), capacity));
    if (!moved) throw std::bad_alloc();
    static_cast<void>(text_.release());  // realloc() has freed or kept it
    text_.reset(moved);
    prefer_large_pages(end(), capacity - size_);
    capacity_ = capacity;
  }

  // There is more to come than there is room for.
  void grow() {
    if (capacity_ >= limit_) {
      fail(name_, "the text needs more than " + byte_count(limit_) + " of memory, and " +
                      byte_count(limit_) +
                      " are available; use a smaller matrix or a machine with more memory");
    }
    reserve(std::max<std::size_t>(capacity_ + capacity_ / 2, std::size_t{1} << 16));
  }

 private:
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  std::unique_ptr<char, Free> text_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::string name_;
  std::size_t limit_;
};

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

class Mapping {
 public:
  Mapping(const FileDescriptor& file, std::size_t size) : size_(size) {
    address_ = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address_ != MAP_FAILED) ::madvise(address_, size, MADV_WILLNEED);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (mapped()) ::munmap(address_, size_);
  }
  bool mapped() const { return address_ != MAP_FAILED; }
  std::string_view view() const { return {static_cast<const char*>(address_), size_}; }

 private:
  void* address_;
  std::size_t size_;
};

// What cannot be mapped (a pipe, a file system without mappings) is read into memory.
void read_all(const FileDescriptor& file, const std::string& name, GrowingText& text) {
  for (;;) {
    if (text.room() == 0) text.grow();
    const ::ssize_t count = ::read(file.get(), text.end(), text.room());
    if (count == 0) return;
    if (count > 0) {
      text.append(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail(name, std::string("cannot be read (") + std::strerror(errno) + "); check the file");
    }
  }
}

bool is_gzip(std::string_view content) {
  return content.starts_with("\x1f\x8b");
}

class Inflater {
 public:
  Inflater() {
    if (::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream_); }
  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

// A gzip file may be several compressed streams, one after the other ("members"); their texts are
// joined.
void inflate_gzip(std::string_view compressed, const std::string& name, GrowingText& text) {
  constexpr std::size_t kLargestStep = std::size_t{1} << 30;  // zlib counts in 32 bits
  constexpr std::size_t kLargestRatio = 1032;                 // no deflate stream does better

  // The last four bytes tell the length of the last member's text: right for nearly every file,
  // and harmless where it is wrong.
  if (compressed.size() >= 18) {
    std::size_t hint = 0;
    for (std::size_t k = 1; k <= 4; ++k) {
      hint = hint << 8 | static_cast<unsigned char>(compressed[compressed.size() - k]);
    }
    text.reserve(std::min(hint + 1, compressed.size() * kLargestRatio));
  }

  Inflater inflater;
  std::string_view rest = compressed;
  for (;;) {
    const std::size_t offered = std::min(rest.size(), kLargestStep);
    if (text.room() == 0) text.grow();
    const std::size_t room = std::min(text.room(), kLargestStep);
    // zlib's interface takes a pointer to non-const and does not write through it.
    inflater->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    inflater->avail_in = static_cast<uInt>(offered);
    inflater->next_out = reinterpret_cast<Bytef*>(text.end());
    inflater->avail_out = static_cast<uInt>(room);
    const int status = ::inflate(inflater.get(), Z_NO_FLUSH);
    text.append(room - inflater->avail_out);
    rest.remove_prefix(offered - inflater->avail_in);

    if (status == Z_STREAM_END) {
      const std::size_t padding = std::min(rest.find_first_not_of('\0'), rest.size());
      if (padding == rest.size()) return;
      if (!is_gzip(rest)) {
        fail(name, "something that is not gzip follows the compressed text; fetch the file again");
      }
      ::inflateReset(inflater.get());
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail(name, "the gzip data are corrupt; fetch the file again");
    } else if (rest.empty() && inflater->avail_out != 0) {
      fail(name, "the gzip data end too early; the file is cut short, fetch it again");
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Header
// ---------------------------------------------------------------------------------------------

enum class Field { kReal, kInteger, kPattern, kComplex };
enum class Symmetry { kGeneral, kSymmetric, kSkew, kHermitian };

// What the body must look like.
struct Layout {
  bool is_array = false;
  Field field = Field::kReal;
  Symmetry symmetry = Symmetry::kGeneral;
  ComplexPart complex_part = ComplexPart::kRefuse;
  Index rows = 0;
  Index cols = 0;
  std::size_t stored_entries = 0;
  std::size_t size_line = 0;
  std::size_t body_begin = 0;

  bool mirrored() const { return symmetry != Symmetry::kGeneral; }

  const char* symmetry_word() const {
    switch (symmetry) {
      case Symmetry::kSymmetric:
        return "symmetric";
      case Symmetry::kSkew:
        return "skew-symmetric";
      case Symmetry::kHermitian:
        return "hermitian";
      default:
        return "general";
    }
  }

  const char* entry_words() const {
    if (is_array) return field == Field::kComplex ? "REAL IMAGINARY" : "VALUE";
    if (field == Field::kPattern) return "ROW COLUMN";
    return field == Field::kComplex ? "ROW COLUMN REAL IMAGINARY" : "ROW COLUMN VALUE";
  }

  // Length of the shortest line that can hold an entry, its end included.
  std::size_t shortest_entry() const {
    const std::size_t numbers = (is_array ? 0 : 2) + (field == Field::kPattern   ? 0
                                                      : field == Field::kComplex ? 2
                                                                                 : 1);
    return 2 * numbers;
  }
};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The words of a line, one by one; empty after the last.
std::string_view next_word(std::string_view& line) {
  std::size_t begin = 0;
  while (begin < line.size() && is_blank(line[begin])) ++begin;
  std::size_t end = begin;
  while (end < line.size() && !is_blank(line[end])) ++end;
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::string lower_case(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Hands out lines and counts them.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool next(std::string_view& line) {
    if (position_ == text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    line = text_.substr(position_, end - position_);
    position_ = std::min(end + 1, text_.size());
    ++number_;
    return true;
  }
  std::size_t number() const { return number_; }
  std::size_t position() const { return position_; }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t number_ = 0;
};

void read_banner(std::string_view line, const std::string& name, const LoadOptions& options,
                 Layout& layout, MatrixMarketHeader& header) {
  constexpr std::string_view kBomOfUtf8 = "\xef\xbb\xbf";
  if (line.starts_with(kBomOfUtf8)) line.remove_prefix(kBomOfUtf8.size());

  if (lower_case(next_word(line)) != "%%matrixmarket") {
    fail(name, 1, "the file does not begin with %%MatrixMarket; give a Matrix Market file");
  }
  std::array<std::string_view, 4> words;
  for (std::size_t k = 0; k < words.size(); ++k) {
    words[k] = next_word(line);
    if (words[k].empty()) {
      fail(name, 1,
           "the banner has " + std::to_string(k + 1) +
               " of its 5 words; write %%MatrixMarket matrix FORMAT FIELD SYMMETRY");
    }
  }
  if (const std::string_view extra = next_word(line); !extra.empty()) {
    fail(name, 1, "unexpected " + quoted(extra) + " after the banner's 5 words; remove it");
  }

  if (lower_case(words[0]) != "matrix") {
    fail(name, 1, "the object " + quoted(words[0]) + " cannot be read; only 'matrix' can");
  }

  header.format = lower_case(words[1]);
  if (header.format != "coordinate" && header.format != "array") {
    fail(name, 1, "unknown format " + quoted(words[1]) + "; use coordinate or array");
  }
  layout.is_array = header.format == "array";

  header.field = lower_case(words[2]);
  if (header.field == "double") header.field = "real";  // files from before the format settled
  if (header.field == "real") {
    layout.field = Field::kReal;
  } else if (header.field == "integer") {
    layout.field = Field::kInteger;
  } else if (header.field == "pattern") {
    layout.field = Field::kPattern;
  } else if (header.field == "complex") {
    layout.field = Field::kComplex;
  } else {
    fail(name, 1, "unknown field " + quoted(words[2]) + "; use real, integer, pattern or complex");
  }

  header.symmetry = lower_case(words[3]);
  if (header.symmetry == "general") {
    layout.symmetry = Symmetry::kGeneral;
  } else if (header.symmetry == "symmetric") {
    layout.symmetry = Symmetry::kSymmetric;
  } else if (header.symmetry == "skew-symmetric") {
    layout.symmetry = Symmetry::kSkew;
  } else if (header.symmetry == "hermitian") {
    layout.symmetry = Symmetry::kHermitian;
  } else {
    fail(name, 1,
         "unknown symmetry " + quoted(words[3]) +
             "; use general, symmetric, skew-symmetric or hermitian");
  }

  if (layout.field == Field::kPattern && layout.is_array) {
    fail(name, 1, "an array file cannot be pattern, it has no positions; use coordinate");
  }
  if (layout.field == Field::kPattern && layout.symmetry == Symmetry::kSkew) {
    fail(name, 1, "a pattern file cannot be skew-symmetric, it has no signs; use symmetric");
  }
  if (layout.field != Field::kComplex && layout.symmetry == Symmetry::kHermitian) {
    fail(name, 1, "a hermitian file must be complex, not " + header.field + "; use symmetric");
  }
  if (layout.field == Field::kComplex && options.complex_part == ComplexPart::kRefuse) {
    fail(name, 1, "the values are complex; give --complex real or --complex magnitude");
  }
  layout.complex_part = options.complex_part;
}

// One number of the size line.
unsigned long long read_size(std::string_view word, const char* what, unsigned long long largest,
                             const std::string& name, std::size_t line, bool is_array) {
  const char* const remedy = is_array ? "; write ROWS COLUMNS" : "; write ROWS COLUMNS ENTRIES";
  if (word.empty()) fail(name, line, "the " + std::string(what) + " is missing" + remedy);
  const bool negative = word.front() == '-';
  std::string_view digits = word;
  if (negative || word.front() == '+') digits.remove_prefix(1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    fail(name, line,
         "the " + std::string(what) + " " + quoted(word) + " is not a whole number" + remedy);
  }
  unsigned long long value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 10);
  if (negative && (value != 0 || error != std::errc())) {
    fail(name, line,
         "the " + std::string(what) + " " + printable(word, 32) + " is negative" + remedy);
  }
  if (error != std::errc() || value > largest) {
    fail(name, line,
         "the " + std::string(what) + " " + printable(word, 32) + " is more than " +
             std::to_string(largest) +
             ", the most that 32-bit indices allow; use a smaller matrix");
  }
  return value;
}

// Lines of `text` that hold an entry: neither blank nor a comment.
std::size_t count_entries(std::string_view text) {
  std::size_t count = 0;
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p != end) {
    while (p != end && is_blank(*p)) ++p;
    if (p == end) break;
    count += *p != '\n' && *p != '%';
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
    if (!p) break;
    ++p;
  }
  return count;
}

std::string announced(const Layout& layout) {
  if (!layout.is_array) {
    return "the size line announces " + plural(layout.stored_entries, "entry", "entries");
  }
  return "the size line announces " + std::to_string(layout.rows) + " x " +
         std::to_string(layout.cols) + ", which is " +
         plural(layout.stored_entries, "entry", "entries");
}

[[noreturn]] void fail_too_few(const std::string& name, const Layout& layout, std::size_t found) {
  fail(name, layout.size_line,
       announced(layout) + ", but the file holds " + std::to_string(found) +
           "; correct the size line, or fetch the file again if it is cut short");
}

// Bytes that a matrix takes from here to the end of to_csr(): both formats and what the sort needs.
// (A matrix of which only the triplets fit is of no use to anyone.)
template <typename T>
std::size_t bytes_needed(std::size_t nonzeros, Index rows, Index cols) {
  return nonzeros * (4 * sizeof(Index) + 2 * sizeof(T)) +
         2 * sizeof(Index) * static_cast<std::size_t>(std::max(rows, cols));
}

template <typename T>
void require_memory(const std::string& name, const Layout& layout, std::size_t nonzeros,
                    std::size_t available) {
  const std::size_t needed = bytes_needed<T>(nonzeros, layout.rows, layout.cols);
  if (needed <= available) return;
  fail(name, layout.size_line,
       "the matrix needs " + byte_count(needed) + " of memory, and " + byte_count(available) +
           " are available; use a smaller matrix or a machine with more memory");
}

// How many nonzeros what the size line announces becomes when expanded, if no position of the
// diagonal is stored twice: every other entry has a mirror image.
std::size_t least_nonzeros(const Layout& layout) {
  const std::size_t stored = layout.stored_entries;
  const std::size_t on_diagonal =
      layout.symmetry == Symmetry::kSkew ? 0 : static_cast<std::size_t>(layout.rows);
  return stored + (layout.mirrored() && stored > on_diagonal ? stored - on_diagonal : 0);
}

void check_nonzeros(const std::string& name, const Layout& layout, std::size_t nonzeros) {
  if (nonzeros <= static_cast<std::size_t>(kMaxNonzeros)) return;
  std::string what = announced(layout);
  if (nonzeros != layout.stored_entries) {
    what += " and so a matrix of " + std::to_string(nonzeros) + " nonzeros";
  }
  fail(name, layout.size_line,
       what + ", more than " + std::to_string(kMaxNonzeros) +
           ", the most that 32-bit indices allow; use a smaller matrix");
}

void read_size_line(std::string_view text, const std::string& name, const LoadOptions& options,
                    Layout& layout, MatrixMarketHeader& header) {
  LineReader lines(text);
  std::string_view line;
  lines.next(line);
  read_banner(line, name, options, layout, header);

  const char* const remedy =
      layout.is_array ? "add ROWS COLUMNS" : "add ROWS COLUMNS ENTRIES after the banner";
  std::string_view word;
  do {
    if (!lines.next(line)) {
      fail(name, lines.number(), std::string("the file ends before the size line; ") + remedy);
    }
    word = next_word(line);
  } while (word.empty() || word.front() == '%');

  layout.size_line = lines.number();
  layout.body_begin = lines.position();
  const auto size = [&](std::string_view text_of_size, const char* what) {
    return read_size(text_of_size, what, static_cast<unsigned long long>(kMaxNonzeros), name,
                     layout.size_line, layout.is_array);
  };
  layout.rows = static_cast<Index>(size(word, "number of rows"));
  layout.cols = static_cast<Index>(size(next_word(line), "number of columns"));
  if (!layout.is_array) layout.stored_entries = size(next_word(line), "number of entries");
  if (const std::string_view extra = next_word(line); !extra.empty()) {
    fail(name, layout.size_line,
         "unexpected " + quoted(extra) + " after the sizes; " +
             (layout.is_array ? "write ROWS COLUMNS" : "write ROWS COLUMNS ENTRIES"));
  }

  if (layout.mirrored() && layout.rows != layout.cols) {
    fail(name, layout.size_line,
         "a " + header.symmetry + " matrix must be square, and this one is " +
             std::to_string(layout.rows) + " x " + std::to_string(layout.cols) +
             "; correct the size line, or say general in the banner");
  }

  const auto rows = static_cast<std::size_t>(layout.rows);
  const auto cols = static_cast<std::size_t>(layout.cols);
  if (layout.is_array) {
    layout.stored_entries = !layout.mirrored()                   ? rows * cols
                            : layout.symmetry == Symmetry::kSkew ? (rows * rows - rows) / 2
                                                                 : (rows * rows + rows) / 2;
  }
  check_nonzeros(name, layout, least_nonzeros(layout));
  header.rows = layout.rows;
  header.cols = layout.cols;
  header.stored_entries = static_cast<long long>(layout.stored_entries);
}

// ---------------------------------------------------------------------------------------------
// Numbers. Text handed to these functions ends in '\n', so that a loop over digits needs no test
// for the end.
// ---------------------------------------------------------------------------------------------

bool is_digit(char c) {
  return static_cast<unsigned char>(c - '0') <= 9;
}

const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

bool ends_word(char c) {
  return is_blank(c) || c == '\n';
}

std::string_view word_at(const char* p) {
  const char* end = p;
  while (!ends_word(*end)) ++end;
  return {p, static_cast<std::size_t>(end - p)};
}

// An index that the loop in parse_index() did not like: finds its value after all, or the reason.
[[gnu::noinline]] const char* parse_odd_index(const char* p, Index limit, const char* what,
                                              const char* entry_words, Index& index) {
  const std::string_view word = word_at(p);
  std::string_view digits = word;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (word.empty()) {
    throw Fault{p, "the " + std::string(what) + " index is missing; write " + entry_words};
  }
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    throw Fault{p, std::string(what) + " index " + quoted(word) + " is not a whole number; write " +
                       entry_words};
  }
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) {
    throw Fault{p, std::string(what) + " index 0; indices start at 1, add 1 to all of them"};
  }
  if (negative) {
    throw Fault{p, std::string(what) + " index " + printable(word, 32) +
                       " is negative; indices start at 1"};
  }
  unsigned long long value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 10);
  if (error != std::errc() || value > static_cast<unsigned long long>(limit)) {
    throw Fault{p, std::string(what) + " index " + printable(word, 32) + " is beyond the " +
                       plural(static_cast<std::size_t>(limit), what, what) +
                       (limit == 1 ? "" : "s") + " of the size line; correct the one or the other"};
  }
  index = static_cast<Index>(value - 1);
  return word.data() + word.size();
}

// Eight characters as one integer, the first in its lowest byte, each less '0': digits become their
// values. (What follows the first character that is no digit is spoiled by borrows.)
inline std::uint64_t eight_characters(const char* p) {
  std::uint64_t characters = 0;
  std::memcpy(&characters, p, sizeof(characters));
  if constexpr (std::endian::native == std::endian::big) {
    characters = __builtin_bswap64(characters);
  }
  return characters - 0x3030303030303030u;
}

// How many of the first eight characters are digits, up to the first that is not.
inline int leading_digits(std::uint64_t characters) {
  // Adding 0x76 takes 10 and more to the top bit; characters below '0' have it after the borrow.
  // Neither carries into a digit's neighbour, so the lowest top bit marks the first that is none.
  const std::uint64_t no_digits =
      (characters | (characters + 0x7676767676767676u)) & 0x8080808080808080u;
  return std::countr_zero(no_digits) / 8;
}

// The number that eight digits make: neighbours are joined to pairs, these to fours, these to
// eight.
inline std::uint64_t join_digits(std::uint64_t digits) {
  digits = digits * (1 + (std::uint64_t{10} << 8)) >> 8 & 0x00ff00ff00ff00ffu;
  digits = digits * (1 + (std::uint64_t{100} << 16)) >> 16 & 0x0000ffff0000ffffu;
  return digits * (1 + (std::uint64_t{10000} << 32)) >> 32;
}

// Reads a 1-based index of at most `limit` and makes it 0-based. Returns where it ends. `end` is
// where the text ends.
inline const char* parse_index(const char* p, const char* end, Index limit, const char* what,
                               const char* entry_words, Index& index) {
  const char* const begin = p;
  std::uint64_t value = 0;
  // The length of an index is hard to predict where columns are random. Up to seven digits are
  // converted without a branch on it: zeros are shifted in before the first.
  if (end - p >= 8) {
    const std::uint64_t characters = eight_characters(p);
    const int count = leading_digits(characters);
    if (count < 8) {
      value = count == 0 ? 0 : join_digits(characters << (64 - 8 * count));
      p += count;
    }
  }
  if (p == begin) {
    while (is_digit(*p)) value = value * 10 + static_cast<unsigned char>(*p++ - '0');
  }
  // 0 wraps around to more than any limit. Longer than 18 digits, `value` may have wrapped too.
  if (value - 1 >= static_cast<std::uint64_t>(limit) || p - begin > 18 || !ends_word(*p)) {
    return parse_odd_index(begin, limit, what, entry_words, index);
  }
  index = static_cast<Index>(value - 1);
  return p;
}

// The value of `text` (known to be a number) when its exponent is out of T's range, for which
// from_chars leaves no result.
template <typename T>
T parse_out_of_range(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  T value = 0;
  if (stream >> value) return value;  // too close to zero
  return text.front() == '-' ? -std::numeric_limits<T>::infinity()
                             : std::numeric_limits<T>::infinity();
}

// A value that parse_value() did not like.
template <typename T>
[[gnu::noinline]] const char* parse_odd_value(const char* p, bool is_integer,
                                              const char* entry_words, T& value) {
  const std::string_view word = word_at(p);
  if (word.empty()) {
    throw Fault{p, std::string("a value is missing; write ") + entry_words};
  }
  std::string_view number = word;
  if (number.front() == '+' && !number.starts_with("+-")) number.remove_prefix(1);

  if (is_integer) {
    std::string_view digits = number;
    if (digits.starts_with('-')) digits.remove_prefix(1);
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
      throw Fault{p, "the value " + quoted(word) +
                         " is not a whole number; write one, or say real in the banner"};
    }
  }

  auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec == std::errc() && result.ptr == number.data() + number.size()) {
    return word.data() + word.size();
  }

  // Fortran writes double-precision exponents as 1.5D+03.
  std::string text(number);
  if (const std::size_t mark = text.find_first_of("dD");
      mark != std::string::npos && mark > 0 &&
      (is_digit(text[mark - 1]) || text[mark - 1] == '.')) {
    text[mark] = 'e';
  }
  result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::invalid_argument || result.ptr != text.data() + text.size()) {
    throw Fault{p, "the value " + quoted(word) + " is not a number; write " + entry_words};
  }
  if (result.ec == std::errc::result_out_of_range) value = parse_out_of_range<T>(text);
  return word.data() + word.size();
}

// digits x 10^exponent is what a decimal says; these find the double nearest to it.

inline constexpr std::array<double, 23> kPowersOfTen = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

__extension__ typedef unsigned __int128 Uint128;

// 5^k = significand x 2^exponent, where the true significand is from the one here to less than 2
// above it, and the one here is from 2^63 to less than 2^64.
struct PowerOfFive {
  std::uint64_t significand = 0;
  int exponent = 0;
};

inline constexpr int kLargestPowerOfFive = 40;

constexpr PowerOfFive power_of_five(int k) {
  // Calculated with 128 bits, rounded down at each step by less than 2^-124 of the value: 40 steps
  // do not add up to a unit of the 64 bits that are kept, and dropping the others adds one at most.
  Uint128 bits = Uint128{1} << 127;
  int exponent = -127;
  for (int step = 0; step < (k < 0 ? -k : k); ++step) {
    if (k < 0) {
      bits /= 5;
    } else {
      bits = (bits >> 3) * 5;
      exponent += 3;
    }
    for (; bits >> 127 == 0; --exponent) bits <<= 1;
  }
  return {static_cast<std::uint64_t>(bits >> 64), exponent + 64};
}

inline constexpr auto kPowersOfFive = [] {
  std::array<PowerOfFive, 2 * kLargestPowerOfFive + 1> powers{};
  for (int k = -kLargestPowerOfFive; k <= kLargestPowerOfFive; ++k) {
    powers[static_cast<std::size_t>(k + kLargestPowerOfFive)] = power_of_five(k);
  }
  return powers;
}();

// Up to 19 digits. The product of two 64-bit numbers, of which one is not exact, bounds the value
// from both sides; nearly always both bounds round to the same double, and then so does what lies
// between them. (The idea of D. Lemire, "Number parsing at a gigabyte per second", 2021, cut down
// to the case that needs no proof.) Returns false where they do not.
inline bool nearest_by_bounds(std::uint64_t digits, std::ptrdiff_t exponent, double& value) {
  if (digits == 0 || exponent < -kLargestPowerOfFive || exponent > kLargestPowerOfFive) {
    return false;
  }
  const PowerOfFive& power =
      kPowersOfFive[static_cast<std::size_t>(exponent + kLargestPowerOfFive)];
  const int shift = std::countl_zero(digits);
  const std::uint64_t shifted = digits << shift;
  const Uint128 low = static_cast<Uint128>(shifted) * power.significand;
  const Uint128 high = low + shifted + shifted;  // the value is from `low` to less than this
  const auto low_word = static_cast<std::uint64_t>(low >> 64);
  const auto high_word = static_cast<std::uint64_t>(high >> 64);

  // 53 bits of the 63 or 64 are kept. Adding half a unit before the rest is dropped rounds halves
  // up; adding one less rounds them down. If both give the same, no half is in between.
  const int dropped = low_word >> 63 == 0 ? 10 : 11;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  // (A sum that wraps around disagrees with the other, or both do, and a top bit is missing.)
  const std::uint64_t significand = (low_word + half - 1) >> dropped;
  if (significand != (high_word + half) >> dropped || significand >> 52 == 0) return false;

  // The significand's top bit, 2^52, adds the 1 that the exponent field lacks here; and if it was
  // rounded up to 2^53, it adds 2, as it should. The range of exponents allows no subnormals.
  const int binary_exponent = dropped + 64 + power.exponent + static_cast<int>(exponent) - shift;
  value = std::bit_cast<double>((static_cast<std::uint64_t>(binary_exponent + 1074) << 52) +
                                significand);
  return true;
}

inline bool nearest_double(std::uint64_t digits, std::ptrdiff_t exponent, double& value) {
  constexpr std::uint64_t kLargestExact = std::uint64_t{1} << 53;
  if (digits > kLargestExact || exponent < -22 || exponent > 22) {
    return nearest_by_bounds(digits, exponent, value);
  }
  // Both numbers are exact as double, so their product or quotient is rounded once (W. D. Clinger,
  // "How to read floating point numbers accurately", 1990).
  value = static_cast<double>(digits);
  value = exponent < 0 ? value / kPowersOfTen[static_cast<std::size_t>(-exponent)]
                       : value * kPowersOfTen[static_cast<std::size_t>(exponent)];
  return true;
}

// Adds the digits at `p` to those in `digits`, which wraps around beyond 19.
inline const char* append_digits(const char* p, const char* end, std::uint64_t& digits) {
  while (end - p >= 8) {
    const std::uint64_t characters = eight_characters(p);
    if (leading_digits(characters) != 8) break;
    digits = digits * 100000000 + join_digits(characters);
    p += 8;
  }
  while (is_digit(*p)) digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
  return p;
}

// A decimal of at most 19 digits (zeros before the first other digit do not count), as nearly all
// are. Returns null when `p` shows anything else.
inline const char* parse_decimal(const char* p, const char* end, double& value) {
  const bool negative = *p == '-';
  p += negative;
  const char* const whole = p;
  while (*p == '0') ++p;
  const char* counted = p;
  std::uint64_t digits = 0;
  while (is_digit(*p)) digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
  bool any = p != whole;
  std::ptrdiff_t count = p - counted;
  std::ptrdiff_t exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    if (count == 0) {
      while (*p == '0') ++p;
    }
    counted = p;
    p = append_digits(p, end, digits);
    any = any || p != fraction;
    count += p - counted;
    exponent = fraction - p;
  }
  if (!any || count > 19) return nullptr;
  if ((*p | 0x20) == 'e') {
    ++p;
    const bool below_one = *p == '-';
    if (below_one || *p == '+') ++p;
    const char* const power_begin = p;
    int power = 0;
    while (is_digit(*p) && p - power_begin < 4) power = power * 10 + (*p++ - '0');
    if (p == power_begin) return nullptr;
    exponent += below_one ? -power : power;
  }
  if (!ends_word(*p) || !nearest_double(digits, exponent, value)) return nullptr;
  if (negative) value = -value;
  return p;
}

// Whether the double nearest to a decimal can be rounded again, to T, and give the T nearest to the
// decimal. For float this goes wrong only if the double is exactly halfway between two floats (the
// bits that float lacks are 100...0), or where float lacks more bits than that or has no values.
template <typename T>
inline bool rounds_once(double nearest) {
  if constexpr (sizeof(T) == sizeof(double)) return true;
  constexpr std::uint64_t kDropped = (std::uint64_t{1} << 29) - 1;
  constexpr std::uint64_t kHalfway = std::uint64_t{1} << 28;
  const double size = std::fabs(nearest);
  const bool normal = size >= static_cast<double>(std::numeric_limits<T>::min()) &&
                      size <= static_cast<double>(std::numeric_limits<T>::max());
  return size == 0 || (normal && (std::bit_cast<std::uint64_t>(nearest) & kDropped) != kHalfway);
}

// Reads a value, rounded once from its decimal digits to T. Returns where it ends.
template <typename T>
inline const char* parse_value(const char* p, const char* end, bool is_integer,
                               const char* entry_words, T& value) {
  if (is_integer) {
    const bool negative = *p == '-';
    const char* const begin = p + negative;
    const char* q = begin;
    std::int64_t integer = 0;
    while (is_digit(*q) && q - begin < 18) integer = integer * 10 + (*q++ - '0');
    if (q != begin && ends_word(*q)) {
      value = static_cast<T>(negative ? -integer : integer);
      return q;
    }
  } else {
    double nearest = 0;
    const char* const word_end = parse_decimal(p, end, nearest);
    if (word_end && rounds_once<T>(nearest)) {
      value = static_cast<T>(nearest);
      return word_end;
    }
  }
  return parse_odd_value(p, is_integer, entry_words, value);
}

// ---------------------------------------------------------------------------------------------
// Body
// ---------------------------------------------------------------------------------------------

// Lines of the body that one thread reads. `text` ends in '\n'.
struct Piece {
  std::string_view text;
  std::size_t offset = 0;  // of text in the whole file
};

struct PieceResult {
  std::size_t entries = 0;
  std::size_t off_diagonal = 0;
  struct Problem {
    std::size_t offset = 0;  // in the whole file
    bool surplus = false;    // one entry more than announced; what is empty
    std::string what;
  };
  std::optional<Problem> problem;
};

// Walks over the positions of an array file: down each column, from the diagonal (or below it) on
// if only a triangle is stored.
class ArrayPosition {
 public:
  ArrayPosition(const Layout& layout, std::size_t entry)
      : rows_(layout.rows),
        mirrored_(layout.mirrored()),
        below_diagonal_(layout.symmetry == Symmetry::kSkew ? 1 : 0) {
    if (!layout.is_array || layout.stored_entries == 0) return;
    if (!mirrored_) {
      col_ = static_cast<Index>(entry / static_cast<std::size_t>(rows_));
      row_ = static_cast<Index>(entry % static_cast<std::size_t>(rows_));
      return;
    }
    row_ = below_diagonal_;
    for (;;) {
      const auto length = static_cast<std::size_t>(rows_ - row_);
      if (entry < length || length == 0) break;
      entry -= length;
      next_column();
    }
    row_ += static_cast<Index>(entry);
  }

  Index row() const { return row_; }
  Index col() const { return col_; }
  void advance() {
    if (++row_ >= rows_) next_column();
  }

 private:
  void next_column() {
    ++col_;
    row_ = mirrored_ ? col_ + below_diagonal_ : 0;
  }

  Index rows_;
  bool mirrored_;
  Index below_diagonal_;
  Index row_ = 0;
  Index col_ = 0;
};

// Reads the entries of `piece` into coo's elements from `first_entry` on. There is one element for
// each entry that the size line announces; an entry more is a fault.
template <typename T>
void parse_lines(const Piece& piece, const Layout& layout, std::size_t first_entry, Coo<T>& coo,
                 PieceResult& result) {
  // Copies: the compiler must assume that what is written through `row_indices` changes a member
  // of the same type.
  const bool is_array = layout.is_array;
  const bool is_integer = layout.field == Field::kInteger;
  const bool has_value = layout.field != Field::kPattern;
  const bool is_complex = layout.field == Field::kComplex;
  const bool magnitude = layout.complex_part == ComplexPart::kMagnitude;
  const bool mirrored = layout.mirrored();
  const bool skew = layout.symmetry == Symmetry::kSkew;
  const Index rows = layout.rows;
  const Index cols = layout.cols;
  const std::size_t room = coo.values.size();
  const char* const entry_words = layout.entry_words();
  Index* const row_indices = coo.row_indices.data();
  Index* const column_indices = coo.column_indices.data();
  T* const values = coo.values.data();

  ArrayPosition position(layout, first_entry);
  std::size_t entry = first_entry;
  const char* p = piece.text.data();
  const char* const end = p + piece.text.size();
  while (p != end) {
    p = skip_blanks(p);
    if (*p == '\n') {
      ++p;
      continue;
    }
    if (*p == '%') {
      p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
      continue;
    }
    if (entry == room) throw Fault{p, {}};

    const char* const entry_begin = p;
    Index row = position.row();
    Index col = position.col();
    if (is_array) {
      position.advance();
    } else {
      p = skip_blanks(parse_index(p, end, rows, "row", entry_words, row));
      p = skip_blanks(parse_index(p, end, cols, "column", entry_words, col));
    }
    T value = 1;
    if (has_value) {
      p = skip_blanks(parse_value(p, end, is_integer, entry_words, value));
      if (is_complex) {
        T imaginary = 0;
        p = skip_blanks(parse_value(p, end, is_integer, entry_words, imaginary));
        if (magnitude) value = std::hypot(value, imaginary);
      }
    }
    if (*p != '\n') {
      throw Fault{p, "unexpected " + quoted(word_at(p)) + " after the entry; write " +
                         std::string(entry_words) + ", one entry a line"};
    }
    ++p;

    if (mirrored) {
      if (row < col) {
        throw Fault{entry_begin, "entry (" + std::to_string(row + 1) + ", " +
                                     std::to_string(col + 1) + ") is above the diagonal, where a " +
                                     layout.symmetry_word() +
                                     " file stores nothing; remove the upper half, or say general"};
      }
      if (skew && row == col && value != 0) {
        throw Fault{entry_begin, "entry (" + std::to_string(row + 1) + ", " +
                                     std::to_string(col + 1) +
                                     ") is on the diagonal of a skew-symmetric matrix and not " +
                                     "zero; remove it, or correct the banner"};
      }
      result.off_diagonal += row != col;
    }
    row_indices[entry] = row;
    column_indices[entry] = col;
    values[entry] = value;
    ++entry;
  }
  result.entries = entry - first_entry;
}

template <typename T>
PieceResult parse_piece(const Piece& piece, const Layout& layout, std::size_t first_entry,
                        Coo<T>& coo) {
  PieceResult result;
  try {
    parse_lines(piece, layout, first_entry, coo, result);
  } catch (Fault& fault) {
    const auto offset = static_cast<std::size_t>(fault.where - piece.text.data());
    result.problem = {piece.offset + offset, fault.what.empty(), std::move(fault.what)};
  }
  return result;
}

// Calls task(0) ... task(count - 1) from up to `threads` threads, in this order of starting.
template <typename Task>
void for_each_piece(std::size_t count, unsigned threads, const Task& task) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&]() noexcept {
    try {
      for (std::size_t k = next++; k < count; k = next++) task(k);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t wanted = std::min<std::size_t>(threads, count);
    helpers.reserve(wanted);
    try {
      while (helpers.size() + 1 < wanted) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // The system grants no more threads: those there are do the work.
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

// Cuts `text` (which ends in '\n', or is empty) after the first line end at or behind each
// multiple of `length`.
std::vector<Piece> cut(std::string_view text, std::size_t offset, std::size_t length) {
  std::vector<Piece> pieces;
  while (!text.empty()) {
    const std::size_t end = text.size() <= length ? text.size() : text.find('\n', length - 1) + 1;
    pieces.push_back({text.substr(0, end), offset});
    text.remove_prefix(end);
    offset += end;
  }
  return pieces;
}

// Threads, and the length of the pieces that they take in turn: several a thread, so that one that
// is slow does not keep the others waiting, but none so short that taking it costs more than
// reading it.
struct Plan {
  unsigned threads = 1;
  std::size_t piece_length = 0;
};

Plan plan_for(std::size_t body_size, const LoadOptions& options) {
  constexpr std::size_t kShortestPiece = std::size_t{1} << 19;
  constexpr std::size_t kPiecesPerThread = 8;
  Plan plan;
  plan.threads = options.threads != 0 ? options.threads : std::thread::hardware_concurrency();
  plan.threads = std::max(plan.threads, 1u);
  plan.piece_length = options.chunk_bytes;
  if (plan.piece_length == 0) {
    plan.piece_length =
        plan.threads == 1
            ? std::max<std::size_t>(body_size, 1)
            : std::max(kShortestPiece, body_size / (plan.threads * kPiecesPerThread) + 1);
  }
  return plan;
}

// Turns what is stored of a symmetric matrix into all of it, in place: from the last entry to the
// first, because an entry's place in the result never comes before its place now.
template <typename T>
void expand(const Layout& layout, std::size_t nonzeros, Coo<T>& coo) {
  const bool negate =
      layout.symmetry == Symmetry::kSkew &&
      !(layout.field == Field::kComplex && layout.complex_part == ComplexPart::kMagnitude);
  std::size_t to = nonzeros;
  coo.row_indices.resize(nonzeros);
  coo.column_indices.resize(nonzeros);
  coo.values.resize(nonzeros);
  for (std::size_t from = layout.stored_entries; from-- > 0;) {
    const Index row = coo.row_indices[from];
    const Index col = coo.column_indices[from];
    const T value = coo.values[from];
    if (row != col) {
      --to;
      coo.row_indices[to] = col;
      coo.column_indices[to] = row;
      coo.values[to] = negate ? -value : value;
    }
    --to;
    coo.row_indices[to] = row;
    coo.column_indices[to] = col;
    coo.values[to] = value;
  }
}

// Reads the body into `coo`.
template <typename T>
void read_body(std::string_view text, const std::string& name, const Layout& layout,
               const LoadOptions& options, std::size_t available, Coo<T>& coo) {
  const std::string_view body = text.substr(layout.body_begin);

  // A size line can say anything. When the body is too short for what it says, the file is faulty
  // for certain; it is read all the same, as far as it goes, to find what its first fault is.
  const std::size_t stored = layout.stored_entries;
  const bool too_short = stored > (body.size() + 1) / layout.shortest_entry();
  const std::size_t room = too_short ? std::min(stored, count_entries(body)) : stored;
  if (!too_short) {
    require_memory<T>(name, layout, least_nonzeros(layout), available);
  } else if (room > available / (2 * sizeof(Index) + sizeof(T))) {
    fail_too_few(name, layout, room);
  }

  // The last line may lack its end. It is copied, so that all lines that are parsed have one.
  const std::size_t complete = body.rfind('\n') + 1;  // npos + 1 is 0
  std::string last_line;
  if (body.size() - complete > available) {
    fail(name, "the last line is " + byte_count(body.size() - complete) + " long, and " +
                   byte_count(available) + " of memory are available; check the file");
  }
  last_line.assign(body.substr(complete));
  if (!last_line.empty()) last_line += '\n';

  coo.rows = layout.rows;
  coo.cols = layout.cols;
  // Room to expand in place; pages that stay unused cost nothing.
  const std::size_t capacity = layout.mirrored() ? 2 * room : room;
  reserve_large(coo.row_indices, capacity);
  reserve_large(coo.column_indices, capacity);
  reserve_large(coo.values, capacity);
  coo.row_indices.resize(room);
  coo.column_indices.resize(room);
  coo.values.resize(room);

  const Plan plan = plan_for(complete, options);
  const std::vector<Piece> pieces =
      cut(body.substr(0, complete), layout.body_begin, plan.piece_length);
  std::vector<std::size_t> first_entry(pieces.size() + 1, 0);
  std::vector<PieceResult> results(pieces.size());
  if (pieces.size() > 1) {
    // Entries must land in the order of the file: a first pass finds where each piece's begin.
    for_each_piece(pieces.size(), plan.threads,
                   [&](std::size_t k) { first_entry[k + 1] = count_entries(pieces[k].text); });
    std::partial_sum(first_entry.begin(), first_entry.end(), first_entry.begin());
  }
  std::atomic<std::size_t> first_bad{pieces.size()};
  for_each_piece(pieces.size(), plan.threads, [&](std::size_t k) {
    if (k > first_bad) return;  // only the first fault will be reported
    results[k] = parse_piece(pieces[k], layout, std::min(first_entry[k], room), coo);
    if (results[k].problem) {
      std::size_t known = first_bad;
      while (k < known && !first_bad.compare_exchange_weak(known, k)) {
      }
    }
  });

  std::size_t entries = 0;
  std::size_t off_diagonal = 0;
  const auto account = [&](const PieceResult& result) {
    if (result.problem) {
      const std::size_t offset = result.problem->offset;
      const auto line = static_cast<std::size_t>(
          1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
      if (!result.problem->surplus) fail(name, line, result.problem->what);
      const std::size_t found = stored + count_entries(text.substr(offset));
      fail(name, line,
           announced(layout) + " (line " + std::to_string(layout.size_line) +
               "), but the file holds " + std::to_string(found) +
               "; correct the size line, or remove what follows");
    }
    entries += result.entries;
    off_diagonal += result.off_diagonal;
  };
  for (const PieceResult& result : results) account(result);
  PieceResult last = parse_piece({last_line, layout.body_begin + complete}, layout, entries, coo);
  if (last.problem && !last.problem->surplus) {
    last.problem->what += ", or fetch the file again if it is cut short here";
  }
  account(last);
  if (entries < stored) fail_too_few(name, layout, entries);

  if (off_diagonal != 0) {
    const std::size_t nonzeros = stored + off_diagonal;
    check_nonzeros(name, layout, nonzeros);
    // `available` dates from before the stored half was allocated, so this counts all of it.
    require_memory<T>(name, layout, nonzeros, available);
    expand(layout, nonzeros, coo);
  }
}

template <typename T>
MatrixMarketFile<T> parse_text(std::string_view text, const std::string& name,
                               const LoadOptions& options, std::size_t available) {
  if (text.empty()) fail(name, "the file is empty; fetch it again");
  MatrixMarketFile<T> file;
  Layout layout;
  read_size_line(text, name, options, layout, file.header);
  read_body(text, name, layout, options, available, file.coo);
  return file;
}

}  // namespace

template <typename T>
MatrixMarketFile<T> parse_matrix_market(std::string_view content, const std::string& name,
                                        const LoadOptions& options) {
  try {
    if (!is_gzip(content)) {
      return parse_text<T>(content, name, options, available_memory(options));
    }
    GrowingText text(name, available_memory(options));
    inflate_gzip(content, name, text);
    const std::size_t text_size = text.view().size();
    const std::size_t available = available_memory(options);
    // What the machine has available has already shrunk by the text; a limit that was given has
    // not.
    return parse_text<T>(
        text.view(), name, options,
        options.memory_limit_bytes == 0 ? available : available - std::min(available, text_size));
  } catch (const std::bad_alloc&) {
    fail(name, "not enough memory; use a smaller matrix or a machine with more memory");
  } catch (const std::length_error&) {
    fail(name, "not enough memory; use a smaller matrix or a machine with more memory");
  }
}

template <typename T>
MatrixMarketFile<T> read_matrix_market(const std::filesystem::path& path,
                                       const LoadOptions& options) {
  const std::string name = path.string();
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) fail(name, "no such file; check the path");
    fail(name, std::string("cannot be opened (") + std::strerror(errno) +
                   "); check the path and its permissions");
  }
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) {
    fail(name, std::string("cannot be examined (") + std::strerror(errno) + "); check the path");
  }
  if (S_ISDIR(status.st_mode)) {
    fail(name, "is a directory; give a .mtx or .mtx.gz file in it");
  }
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    fail(name, "is neither a file nor a pipe; give a .mtx or .mtx.gz file");
  }
  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    const Mapping mapping(file, static_cast<std::size_t>(status.st_size));
    if (mapping.mapped()) return parse_matrix_market<T>(mapping.view(), name, options);
  }
  try {
    GrowingText text(name, available_memory(options));
    read_all(file, name, text);
    return parse_matrix_market<T>(text.view(), name, options);
  } catch (const std::bad_alloc&) {
    fail(name, "not enough memory; use a smaller matrix or a machine with more memory");
  }
}

// ---------------------------------------------------------------------------------------------
// Writer
// ---------------------------------------------------------------------------------------------

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
    if (path.extension() == ".gz") {
      compressed_ = ::gzdopen(descriptor, "wb6");
    } else {
      plain_ = ::fdopen(descriptor, "wb");
    }
    if (!compressed_ && !plain_) {
      ::close(descriptor);
      ::unlink(temporary_.c_str());
      throw std::bad_alloc();
    }
  }
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;
  ~ReplacementFile() {
    if (compressed_) ::gzclose(compressed_);
    if (plain_) std::fclose(plain_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  void write(std::string_view text) {
    if (text.empty()) return;
    errno = 0;
    const bool written =
        compressed_ ? ::gzwrite(compressed_, text.data(), static_cast<unsigned>(text.size())) ==
                          static_cast<int>(text.size())
                    : std::fwrite(text.data(), 1, text.size(), plain_) == text.size();
    if (!written) fail_to_write(errno);
  }

  void commit() {
    errno = 0;
    const bool closed = compressed_ ? ::gzclose(std::exchange(compressed_, nullptr)) == Z_OK
                                    : std::fclose(std::exchange(plain_, nullptr)) == 0;
    if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(errno);
    temporary_.clear();
  }

 private:
  [[noreturn]] void fail_to_write(int reason) const {
    throw std::runtime_error(printable(path_.string(), std::string::npos) +
                             ": cannot be written (" +
                             (reason != 0 ? std::strerror(reason) : "compression failed") +
                             "); check the path, its permissions and the space left");
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::FILE* plain_ = nullptr;
  gzFile compressed_ = nullptr;
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

template MatrixMarketFile<float> parse_matrix_market(std::string_view, const std::string&,
                                                     const LoadOptions&);
template MatrixMarketFile<double> parse_matrix_market(std::string_view, const std::string&,
                                                      const LoadOptions&);
template MatrixMarketFile<float> read_matrix_market(const std::filesystem::path&,
                                                    const LoadOptions&);
template MatrixMarketFile<double> read_matrix_market(const std::filesystem::path&,
                                                     const LoadOptions&);
template void write_matrix_market(const std::filesystem::path&, const Coo<float>&,
                                  const std::string&);
template void write_matrix_market(const std::filesystem::path&, const Coo<double>&,
                                  const std::string&);

}  // namespace spmv
