// Reads Matrix Market files in three stages: the header; the body, a few megabytes at a time, each
// cut at line ends into chunks, one per thread; and the mirrored half of a symmetric matrix.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sparse/input_file.hpp"
#include "sparse/matrix_market.hpp"
#include "sparse/matrix_market_header.hpp"
#include "sparse/memory.hpp"
#include "sparse/parse_number.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

// --- What can be wrong with a line ---------------------------------------------------------------

// A fault at one byte of the body.
struct Fault {
  const char* where;
  std::string what;  // empty: an entry more than the size line announces
};

// Why parse_index() refused what stands at `p`.
Fault index_fault(const char* p, Index limit, const char* what, const Layout& layout) {
  const std::string_view word = word_at(p);
  const char* const entry = layout.entry_words();
  if (word.empty()) return {p, fmt::format("the {} index is missing; write {}", what, entry)};
  if (!is_whole_number(word)) {
    return {p, fmt::format("{} index {} is not a whole number; write {}", what, in_quotes(word),
                           entry)};
  }
  if (word.find_first_of("123456789") == std::string_view::npos) {
    return {p, fmt::format("{} index 0; indices start at 1, add 1 to all of them", what)};
  }
  const std::string index = printable(word, 32);
  if (word.front() == '-') {
    return {p, fmt::format("{} index {} is negative; indices start at 1", what, index)};
  }
  return {p, fmt::format("{} index {} is beyond the {} {}{} of the size line; correct the one or "
                         "the other",
                         what, index, limit, what, limit == 1 ? "" : "s")};
}

// Why parse_value() refused what stands at `p`.
Fault value_fault(const char* p, const Layout& layout) {
  const std::string_view word = word_at(p);
  if (word.empty()) return {p, fmt::format("a value is missing; write {}", layout.entry_words())};
  if (layout.is_integer && !is_whole_number(word)) {
    return {p, fmt::format("the value {} is not a whole number; write one, or say real in the "
                           "banner",
                           in_quotes(word))};
  }
  return {p, fmt::format("the value {} is not a number; write {}", in_quotes(word),
                         layout.entry_words())};
}

// Whether the numbers from `p` to the end of the line are zeros as they are written. (1e-60 is not,
// although a float of it is: what is refused must not depend on the precision.)
bool are_zeros(const char* p) {
  for (std::string_view word = word_at(p); !word.empty(); word = word_at(p)) {
    const std::string_view digits = word.substr(0, word.find_first_of("eEdD"));
    if (digits.find_first_not_of("+-0.") != std::string_view::npos) return false;
    p += word.size();
    while (is_blank(*p)) ++p;
  }
  return true;
}

// --- A chunk of the body -------------------------------------------------------------------------

// Lines of the body that one thread reads.
struct Chunk {
  std::string_view text;        // ends in '\n'
  std::size_t first_entry = 0;  // where its entries go
  // Found by parse_chunk():
  std::size_t entries = 0;
  std::size_t off_diagonal = 0;
  std::size_t lines = 0;
  std::optional<Fault> fault{};
};

const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
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

// Reads the entries of `chunk` into coo's elements from the chunk's first entry on; of an array
// file only the values. An entry for which coo has no element is more than the size line announces:
// a fault, and thrown.
template <typename T>
void parse_lines(const Layout& layout, ComplexPart complex_part, Chunk& chunk, Coo<T>& coo) {
  // Copies: the compiler must assume that what is written through `row_indices` changes them.
  const Index rows = layout.header.rows;
  const Index cols = layout.header.cols;
  const std::size_t room = coo.values.size();
  Index* const row_indices = coo.row_indices.data();
  Index* const column_indices = coo.column_indices.data();
  T* const values = coo.values.data();
  const char* p = chunk.text.data();
  const char* const end = p + chunk.text.size();

  const auto read_index = [&](Index limit, const char* what, Index& index) {
    const char* const index_end = parse_index(p, end, limit, index);
    if (!index_end) throw index_fault(p, limit, what, layout);
    p = skip_blanks(index_end);
  };
  const auto read_value = [&](T& value) {
    const char* const value_end = parse_value(p, end, layout.is_integer, value);
    if (!value_end) throw value_fault(p, layout);
    p = skip_blanks(value_end);
  };

  std::size_t entry = chunk.first_entry;
  std::size_t off_diagonal = 0;
  std::size_t lines = 0;
  for (; p != end; ++lines) {
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
    Index row = 0;
    Index col = 0;
    if (!layout.is_array) {
      read_index(rows, "row", row);
      read_index(cols, "column", col);
    }
    const char* const value_begin = p;
    T value = 1;
    if (layout.has_value) read_value(value);
    if (layout.is_complex) {
      T imaginary = 0;
      read_value(imaginary);
      if (complex_part == ComplexPart::kMagnitude) value = std::hypot(value, imaginary);
    }
    if (*p != '\n') {
      throw Fault{p, fmt::format("unexpected {} after the entry; write {}, one entry a line",
                                 in_quotes(word_at(p)), layout.entry_words())};
    }
    ++p;

    if (layout.is_mirrored && !layout.is_array) {
      if (row < col) {
        throw Fault{entry_begin,
                    fmt::format("entry ({}, {}) is above the diagonal, where a {} file stores "
                                "nothing; remove the upper half, or say general",
                                row + 1, col + 1, layout.header.symmetry)};
      }
      if (layout.is_skew && row == col && !are_zeros(value_begin)) {
        throw Fault{entry_begin,
                    fmt::format("entry ({}, {}) is on the diagonal of a skew-symmetric matrix and "
                                "not zero; remove it, or correct the banner",
                                row + 1, col + 1)};
      }
      off_diagonal += row != col;
    }
    row_indices[entry] = row;
    column_indices[entry] = col;
    values[entry] = value;
    ++entry;
  }
  chunk.entries = entry - chunk.first_entry;
  chunk.off_diagonal = off_diagonal;
  chunk.lines = lines;
}

template <typename T>
void parse_chunk(const Layout& layout, ComplexPart complex_part, Chunk& chunk, Coo<T>& coo) {
  try {
    parse_lines(layout, complex_part, chunk, coo);
  } catch (Fault& fault) {
    chunk.fault = std::move(fault);
  }
}

// --- All chunks ----------------------------------------------------------------------------------

// Cuts `text` after the first line end at or behind each multiple of `length`.
std::vector<Chunk> cut(std::string_view text, std::size_t length) {
  std::vector<Chunk> chunks;
  while (!text.empty()) {
    const std::size_t end = text.size() <= length ? text.size() : text.find('\n', length - 1) + 1;
    chunks.push_back({text.substr(0, end)});
    text.remove_prefix(end);
  }
  return chunks;
}

unsigned thread_count(const LoadOptions& options) {
  return std::max(options.threads != 0 ? options.threads : std::thread::hardware_concurrency(), 1u);
}

// The length of the chunks that threads take in turn: several per thread, so that a slow one does
// not keep the others waiting, but none so short that taking it costs more than reading it.
std::size_t chunk_length(std::size_t text_size, unsigned threads, const LoadOptions& options) {
  constexpr std::size_t kShortest = std::size_t{1} << 18;
  constexpr std::size_t kPerThread = 4;
  if (options.chunk_bytes != 0) return options.chunk_bytes;
  if (threads == 1) return text_size;
  return std::max(kShortest, text_size / (threads * kPerThread) + 1);
}

// The length of the pieces in which the file is read: chunks for all threads.
std::size_t piece_length(const LoadOptions& options) {
  constexpr std::size_t kLongest = std::size_t{1} << 25;
  if (options.chunk_bytes != 0) return 4 * std::min(options.chunk_bytes, kLongest);
  return std::clamp(thread_count(options) * (std::size_t{1} << 21), TextInPieces::kPieceBytes,
                    kLongest);
}

// Calls task(0) ... task(count - 1) from up to `threads` threads, in this order of starting.
template <typename Task>
void for_each_chunk(std::size_t count, unsigned threads, const Task& task) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t k = next++; k < count; k = next++) task(k);
  };
  std::vector<std::future<void>> helpers;
  try {
    while (helpers.size() + 1 < std::min<std::size_t>(threads, count)) {
      helpers.push_back(std::async(std::launch::async, work));
    }
  } catch (const std::system_error&) {
    // The system grants no more threads: those there are do the work.
  }
  work();
  for (std::future<void>& helper : helpers) helper.get();
}

// --- What the lines do not say -------------------------------------------------------------------

// Gives the values of an array file their positions: down each column, from the diagonal (or below
// it) on if only a triangle is stored. Returns how many entries have a mirror image.
template <typename T>
std::size_t fill_positions(const Layout& layout, Coo<T>& coo) {
  std::size_t entry = 0;
  for (Index col = 0; entry < coo.values.size(); ++col) {
    const Index first_row = !layout.is_mirrored ? 0 : layout.is_skew ? col + 1 : col;
    for (Index row = first_row; row < coo.rows; ++row) {
      coo.row_indices[entry] = row;
      coo.column_indices[entry] = col;
      ++entry;
    }
  }
  if (!layout.is_mirrored) return 0;
  return layout.is_skew ? entry : entry - static_cast<std::size_t>(coo.rows);
}

bool negates_mirror(const Layout& layout, const LoadOptions& options) {
  return layout.is_skew && !(layout.is_complex && options.complex_part == ComplexPart::kMagnitude);
}

// Turns what is stored of a symmetric matrix into all of it, in place: from the last entry to the
// first, because an entry's place in the result never comes before its place now. `negate` changes
// the sign of the mirror images.
template <typename T>
void expand(std::size_t nonzeros, bool negate, Coo<T>& coo) {
  const std::size_t stored = coo.values.size();
  std::size_t to = nonzeros;
  coo.row_indices.resize(nonzeros);
  coo.column_indices.resize(nonzeros);
  coo.values.resize(nonzeros);
  for (std::size_t from = stored; from-- > 0;) {
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

// --- The body ------------------------------------------------------------------------------------

// The number of rows and of columns is backed by nothing in the file, and arrays of that length are
// needed all the same. Where nearly all of them would be empty, somebody has to have meant it.
void check_empty_rows(const std::string& name, const Layout& layout, const LoadOptions& options) {
  constexpr std::size_t kAllowed = std::size_t{1} << 20;
  constexpr std::size_t kAllowedPerEntry = 128;
  const auto longest = static_cast<std::size_t>(std::max(layout.header.rows, layout.header.cols));
  const std::size_t stored = layout.stored_entries();
  if (options.memory_limit_bytes != 0 || longest <= std::max(kAllowed, kAllowedPerEntry * stored)) {
    return;
  }
  const auto needed = static_cast<double>(2 * sizeof(Index) * longest);
  fail_in_file(
      name, layout.size_line,
      fmt::format("a matrix of {} x {} with {} needs {} of memory for rows or columns that "
                  "are empty; correct the size line, or give --memory-limit {:.0f}M if it "
                  "is meant",
                  layout.header.rows, layout.header.cols, plural(stored, "entry", "entries"),
                  byte_count(needed), 1 + std::ceil(needed / (1 << 20))));
}

// A matrix that would not fit in memory from here to the end of to_csr() is refused: both formats
// and what the sort needs. (A matrix of which only the triplets fit is of no use to anyone.)
template <typename T>
void check_memory(const std::string& name, const Layout& layout, std::size_t nonzeros,
                  const LoadOptions& options) {
  const auto longest = static_cast<std::size_t>(std::max(layout.header.rows, layout.header.cols));
  const auto needed = static_cast<double>(nonzeros * (4 * sizeof(Index) + 2 * sizeof(T)) +
                                          2 * sizeof(Index) * longest);
  const auto limit = static_cast<double>(
      options.memory_limit_bytes != 0 ? options.memory_limit_bytes : default_memory_limit());
  if (needed > limit) {
    fail_in_file(name, layout.size_line, "the matrix " + more_than_limit(needed, limit));
  }
}

// The entries of a file, a piece of its text at a time.
template <typename T>
class BodyReader {
 public:
  BodyReader(TextInPieces& pieces, const LoadOptions& options)
      : pieces_(pieces), options_(options), layout_(read_header(pieces, text_, options)) {
    lines_before_ = layout_.size_line;
  }

  const Layout& layout() const { return layout_; }
  // Of the entries so far, those that are not on the diagonal.
  std::size_t off_diagonal() const { return off_diagonal_; }

  // Appends the entries of the next piece to `coo`. False: there are no more, and there were as
  // many as the size line announces. Throws InputError for the first fault.
  bool next(Coo<T>& coo) {
    if (!is_first_ || text_.empty()) text_ = pieces_.next();
    is_first_ = false;
    if (text_.empty()) {
      if (entries_ < layout_.stored_entries()) fail_too_few();
      return false;
    }
    const std::size_t had = coo.values.size();
    // Room for a line more than the text can hold entries: if there are so many lines, one of them,
    // or one before, is too short, and is what will be reported.
    resize(coo, had + std::min(layout_.stored_entries() - entries_,
                               layout_.most_entries(text_.size()) + 1));
    const unsigned threads = thread_count(options_);
    std::vector<Chunk> chunks = cut(text_, chunk_length(text_.size(), threads, options_));
    chunks.front().first_entry = had;
    if (chunks.size() > 1) {
      // Entries must land in the order of the file: a first pass finds where each chunk's begin.
      for_each_chunk(chunks.size(), threads,
                     [&](std::size_t k) { chunks[k].entries = count_entries(chunks[k].text); });
      for (std::size_t k = 1; k < chunks.size(); ++k) {
        chunks[k].first_entry =
            std::min(chunks[k - 1].first_entry + chunks[k - 1].entries, coo.values.size());
      }
    }
    for_each_chunk(chunks.size(), threads, [&](std::size_t k) {
      parse_chunk(layout_, options_.complex_part, chunks[k], coo);
    });
    std::size_t found = 0;
    for (const Chunk& chunk : chunks) {
      if (chunk.fault) fail_at(chunk);
      found += chunk.entries;
      off_diagonal_ += chunk.off_diagonal;
      lines_before_ += chunk.lines;
    }
    resize(coo, had + found);
    entries_ += found;
    without_entry_ = found > 0 ? 0 : without_entry_ + text_.size();
    if (without_entry_ > kLookedAt) {
      fail_in_file(pieces_.name(), lines_before_,
                   fmt::format("no entry in the {} up to here; check the file",
                               byte_count(static_cast<double>(without_entry_))));
    }
    return true;
  }

 private:
  // How much text is gone through for nothing but a better message. A megabyte of gzip can inflate
  // to a gigabyte.
  static constexpr std::size_t kLookedAt = std::size_t{1} << 23;

  static void resize(Coo<T>& coo, std::size_t size) {
    coo.row_indices.resize(size);
    coo.column_indices.resize(size);
    coo.values.resize(size);
  }

  [[noreturn]] void fail_too_few() const {
    fail_in_file(pieces_.name(), layout_.size_line,
                 fmt::format("{}, but the file holds {}; correct the size line, or fetch the file "
                             "again if it is cut short",
                             layout_.announced(), entries_));
  }

  // Reports the fault of `chunk`, all chunks before which have been accounted for.
  [[noreturn]] void fail_at(const Chunk& chunk) {
    const char* const where = chunk.fault->where;
    const std::string_view before(chunk.text.data(),
                                  static_cast<std::size_t>(where - chunk.text.data()));
    const std::string_view behind(where,
                                  static_cast<std::size_t>(text_.data() + text_.size() - where));
    const auto line_ends = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    std::string what = chunk.fault->what;
    if (what.empty()) {
      std::size_t found = layout_.stored_entries() + count_entries(behind);
      std::size_t looked_at = 0;
      while (looked_at < kLookedAt && !(text_ = pieces_.next()).empty()) {
        found += count_entries(text_);
        looked_at += text_.size();
      }
      what = fmt::format(
          "{} (line {}), but the file holds {}{}; correct the size line, or remove what follows",
          layout_.announced(), layout_.size_line, looked_at < kLookedAt ? "" : "at least ", found);
    } else if (pieces_.open_end() && behind.find('\n') == behind.size() - 1) {
      what += ", or fetch the file again if it is cut short here";
    }
    // Damaged gzip data inflate to nonsense before the damage shows.
    for (std::size_t looked_at = 0; pieces_.is_compressed() && looked_at < kLookedAt;) {
      if ((text_ = pieces_.next()).empty()) break;
      looked_at += text_.size();
    }
    fail_in_file(pieces_.name(), lines_before_ + line_ends + 1, what);
  }

  TextInPieces& pieces_;
  const LoadOptions& options_;
  std::string_view text_;  // the lines that are to be parsed, or are being parsed
  const Layout layout_;
  bool is_first_ = true;
  std::size_t lines_before_ = 0;
  std::size_t entries_ = 0;
  std::size_t off_diagonal_ = 0;
  std::size_t without_entry_ = 0;  // bytes since the last piece that held an entry
};

template <typename T>
MatrixMarketFile<T> read_all(TextInPieces& pieces, const LoadOptions& options) {
  const std::string& name = pieces.name();
  try {
    BodyReader<T> body(pieces, options);
    const Layout& layout = body.layout();
    check_empty_rows(name, layout, options);
    check_memory<T>(name, layout, least_nonzeros(layout), options);
    Coo<T> coo;
    coo.rows = layout.header.rows;
    coo.cols = layout.header.cols;
    // Room to expand in place; pages that stay unused cost nothing. (What a pipe, or a compressed
    // file, says of its size is not backed by anything.)
    const std::size_t room =
        std::min(layout.stored_entries(), layout.most_entries(pieces.longest()));
    const std::size_t capacity = layout.is_mirrored ? 2 * room : room;
    reserve_large(coo.row_indices, capacity);
    reserve_large(coo.column_indices, capacity);
    reserve_large(coo.values, capacity);
    while (body.next(coo)) {
    }
    std::size_t off_diagonal = body.off_diagonal();
    if (layout.is_array) off_diagonal = fill_positions(layout, coo);
    if (off_diagonal != 0) {
      const std::size_t nonzeros = layout.stored_entries() + off_diagonal;
      check_nonzeros(name, layout, nonzeros);
      check_memory<T>(name, layout, nonzeros, options);
      expand(nonzeros, negates_mirror(layout, options), coo);
    }
    return {layout.header, std::move(coo)};
  } catch (const std::bad_alloc&) {
    fail_in_file(name, "not enough memory; use a smaller matrix or a machine with more memory");
  }
}

}  // namespace

template <typename T>
MatrixMarketFile<T> parse_matrix_market(std::string_view content, const std::string& name,
                                        const LoadOptions& options) {
  TextInPieces pieces(content, name, piece_length(options));
  return read_all<T>(pieces, options);
}

template <typename T>
MatrixMarketFile<T> read_matrix_market(const std::filesystem::path& path,
                                       const LoadOptions& options) {
  TextInPieces pieces(path, piece_length(options));
  return read_all<T>(pieces, options);
}

template <typename T>
Coo<T> read_matrix_market_rows(const std::filesystem::path& path, Index first, Index end,
                               const LoadOptions& options, std::vector<Index>* lengths) {
  TextInPieces pieces(path, piece_length(options));
  BodyReader<T> body(pieces, options);
  const Layout& layout = body.layout();
  check_empty_rows(pieces.name(), layout, options);
  Coo<T> kept;
  kept.rows = end - first;
  kept.cols = layout.header.cols;
  if (lengths) lengths->assign(layout.header.rows, 0);
  const auto keep = [&](Index row, Index column, T value) {
    if (lengths) ++(*lengths)[row];
    if (row < first || row >= end) return;
    kept.row_indices.push_back(row - first);
    kept.column_indices.push_back(column);
    kept.values.push_back(value);
    if (kept.values.size() > static_cast<std::size_t>(kMaxNonzeros)) {
      fail_in_file(pieces.name(),
                   fmt::format("rows {} to {} have more than {} nonzeros; use more parts",
                               first + 1, end, kMaxNonzeros));
    }
  };
  const bool negate = negates_mirror(layout, options);
  const auto keep_with_mirror = [&](Index row, Index column, T value) {
    keep(row, column, value);
    if (layout.is_mirrored && row != column) keep(column, row, negate ? -value : value);
  };

  Index array_row = layout.is_skew ? 1 : 0, array_column = 0;
  Coo<T> some;
  while (body.next(some)) {
    for (std::size_t k = 0; k < some.values.size(); ++k) {
      if (!layout.is_array) {
        keep_with_mirror(some.row_indices[k], some.column_indices[k], some.values[k]);
        continue;
      }
      keep_with_mirror(array_row, array_column, some.values[k]);
      if (++array_row < layout.header.rows) continue;
      ++array_column;
      array_row = !layout.is_mirrored ? 0 : layout.is_skew ? array_column + 1 : array_column;
    }
    some.row_indices.clear();
    some.column_indices.clear();
    some.values.clear();
  }
  return kept;
}

template Coo<float> read_matrix_market_rows(const std::filesystem::path&, Index, Index,
                                            const LoadOptions&, std::vector<Index>*);
template Coo<double> read_matrix_market_rows(const std::filesystem::path&, Index, Index,
                                             const LoadOptions&, std::vector<Index>*);
template MatrixMarketFile<float> parse_matrix_market(std::string_view, const std::string&,
                                                     const LoadOptions&);
template MatrixMarketFile<double> parse_matrix_market(std::string_view, const std::string&,
                                                      const LoadOptions&);
template MatrixMarketFile<float> read_matrix_market(const std::filesystem::path&,
                                                    const LoadOptions&);
template MatrixMarketFile<double> read_matrix_market(const std::filesystem::path&,
                                                     const LoadOptions&);

}  // namespace spmv
