// Reads Matrix Market files in three stages: the header, the body in pieces that end at line ends,
// one thread a piece, and the mirrored half of a symmetric matrix.
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

// A fault at one byte of the body. Counting lines would slow every thread down, so the number of
// the line is found only when there is something to report.
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
    return {p,
            fmt::format("{} index {} is not a whole number; write {}", what, quoted(word), entry)};
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
                           quoted(word))};
  }
  return {
      p, fmt::format("the value {} is not a number; write {}", quoted(word), layout.entry_words())};
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

// --- One piece of the body -----------------------------------------------------------------------

// Lines of the body that one thread reads.
struct Piece {
  std::string_view text;        // ends in '\n'
  std::size_t offset = 0;       // of `text` in the whole file
  std::size_t first_entry = 0;  // in the whole file
  // Found by parse_piece():
  std::size_t entries = 0;
  std::size_t off_diagonal = 0;
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

// Reads the entries of `piece` into coo's elements from the piece's first entry on; of an array
// file only the values. There is one element for each entry that the size line announces; an entry
// more is a fault, and is thrown.
template <typename T>
void parse_lines(const Layout& layout, ComplexPart complex_part, Piece& piece, Coo<T>& coo) {
  // Copies: the compiler must assume that what is written through `row_indices` changes them.
  const Index rows = layout.header.rows;
  const Index cols = layout.header.cols;
  const std::size_t room = coo.values.size();
  Index* const row_indices = coo.row_indices.data();
  Index* const column_indices = coo.column_indices.data();
  T* const values = coo.values.data();
  const char* p = piece.text.data();
  const char* const end = p + piece.text.size();

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

  std::size_t entry = piece.first_entry;
  std::size_t off_diagonal = 0;
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
                                 quoted(word_at(p)), layout.entry_words())};
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
  piece.entries = entry - piece.first_entry;
  piece.off_diagonal = off_diagonal;
}

template <typename T>
void parse_piece(const Layout& layout, ComplexPart complex_part, Piece& piece, Coo<T>& coo) {
  try {
    parse_lines(layout, complex_part, piece, coo);
  } catch (Fault& fault) {
    piece.fault = std::move(fault);
  }
}

// --- All pieces ----------------------------------------------------------------------------------

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

// The length of the pieces that threads take in turn: several a thread, so that one that is slow
// does not keep the others waiting, but none so short that taking it costs more than reading it.
std::size_t piece_length(std::size_t body_size, unsigned threads, const LoadOptions& options) {
  constexpr std::size_t kShortestPiece = std::size_t{1} << 19;
  constexpr std::size_t kPiecesPerThread = 8;
  if (options.chunk_bytes != 0) return options.chunk_bytes;
  if (threads == 1) return std::max<std::size_t>(body_size, 1);
  return std::max(kShortestPiece, body_size / (threads * kPiecesPerThread) + 1);
}

// Calls task(0) ... task(count - 1) from up to `threads` threads, in this order of starting.
template <typename Task>
void for_each_piece(std::size_t count, unsigned threads, const Task& task) {
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

// Refuses a matrix that would not fit in memory from here to the end of to_csr(): both formats and
// what the sort needs. (A matrix of which only the triplets fit is of no use to anyone.)
template <typename T>
void require_memory(const std::string& name, const Layout& layout, std::size_t nonzeros,
                    std::size_t available) {
  const auto longest = static_cast<std::size_t>(std::max(layout.header.rows, layout.header.cols));
  const std::size_t needed =
      nonzeros * (4 * sizeof(Index) + 2 * sizeof(T)) + 2 * sizeof(Index) * longest;
  if (needed <= available) return;
  fail_in_file(name, layout.size_line,
               fmt::format("the matrix needs {} of memory, and {} are available; use a smaller "
                           "matrix or a machine with more memory",
                           byte_count(needed), byte_count(available)));
}

[[noreturn]] void fail_too_few(const std::string& name, const Layout& layout, std::size_t found) {
  fail_in_file(name, layout.size_line,
               fmt::format("{}, but the file holds {}; correct the size line, or fetch the file "
                           "again if it is cut short",
                           layout.announced(), found));
}

// Reports the fault of `piece`.
[[noreturn]] void fail_at(const Piece& piece, std::string_view text, const std::string& name,
                          const Layout& layout) {
  const std::string_view from_fault =
      text.substr(piece.offset + static_cast<std::size_t>(piece.fault->where - piece.text.data()));
  const auto line_ends_before = std::count(text.begin(), from_fault.begin(), '\n');
  std::string what = piece.fault->what;
  if (what.empty()) {
    const std::size_t found = layout.stored_entries() + count_entries(from_fault);
    what = fmt::format(
        "{} (line {}), but the file holds {}; correct the size line, or remove what "
        "follows",
        layout.announced(), layout.size_line, found);
  } else if (piece.text.data() != text.data() + piece.offset) {
    // A copy, so it is the last line, which lacks its end.
    what += ", or fetch the file again if it is cut short here";
  }
  fail_in_file(name, static_cast<std::size_t>(line_ends_before) + 1, what);
}

template <typename T>
Coo<T> read_body(std::string_view text, const std::string& name, const Layout& layout,
                 const LoadOptions& options, std::size_t available) {
  const std::string_view body = text.substr(layout.body_begin);

  // A size line can say anything. When the body is too short for what it says, the file is faulty
  // for certain; it is read all the same, as far as it goes, to find what its first fault is.
  const std::size_t stored = layout.stored_entries();
  const bool too_short = stored > (body.size() + 1) / layout.shortest_entry();
  const std::size_t room = too_short ? std::min(stored, count_entries(body)) : stored;
  if (!too_short) {
    require_memory<T>(name, layout, least_nonzeros(layout), available);
  } else if (room > available / (2 * sizeof(Index) + sizeof(double))) {  // whatever T is
    fail_too_few(name, layout, room);
  }

  // The last line may lack its end. It is copied, so that all lines that are parsed have one.
  const std::string_view complete = body.substr(0, body.rfind('\n') + 1);  // npos + 1 is 0
  std::string last_line;
  if (body.size() - complete.size() > available) {
    fail_in_file(name,
                 fmt::format("the last line is {} long, and {} of memory are available; "
                             "check the file",
                             byte_count(body.size() - complete.size()), byte_count(available)));
  }
  last_line = body.substr(complete.size());
  if (!last_line.empty()) last_line += '\n';

  Coo<T> coo;
  coo.rows = layout.header.rows;
  coo.cols = layout.header.cols;
  // Room to expand in place; pages that stay unused cost nothing.
  const std::size_t capacity = layout.is_mirrored ? 2 * room : room;
  reserve_large(coo.row_indices, capacity);
  reserve_large(coo.column_indices, capacity);
  reserve_large(coo.values, capacity);
  coo.row_indices.resize(room);
  coo.column_indices.resize(room);
  coo.values.resize(room);

  const unsigned threads =
      std::max(options.threads != 0 ? options.threads : std::thread::hardware_concurrency(), 1u);
  std::vector<Piece> pieces =
      cut(complete, layout.body_begin, piece_length(complete.size(), threads, options));
  if (pieces.size() > 1) {
    // Entries must land in the order of the file: a first pass finds where each piece's begin.
    for_each_piece(pieces.size(), threads,
                   [&](std::size_t k) { pieces[k].entries = count_entries(pieces[k].text); });
    for (std::size_t k = 1; k < pieces.size(); ++k) {
      const std::size_t first_entry = pieces[k - 1].first_entry + pieces[k - 1].entries;
      pieces[k].first_entry = std::min(first_entry, room);
    }
  }
  for_each_piece(pieces.size(), threads,
                 [&](std::size_t k) { parse_piece(layout, options.complex_part, pieces[k], coo); });

  std::size_t entries = 0;
  std::size_t off_diagonal = 0;
  const auto account = [&](const Piece& piece) {
    if (piece.fault) fail_at(piece, text, name, layout);
    entries += piece.entries;
    off_diagonal += piece.off_diagonal;
  };
  for (const Piece& piece : pieces) account(piece);
  Piece last{last_line, layout.body_begin + complete.size(), entries};
  parse_piece(layout, options.complex_part, last, coo);
  account(last);
  if (entries < stored) fail_too_few(name, layout, entries);
  if (layout.is_array) off_diagonal = fill_positions(layout, coo);

  if (off_diagonal != 0) {
    const std::size_t nonzeros = stored + off_diagonal;
    check_nonzeros(name, layout, nonzeros);
    // `available` dates from before the stored half was allocated, so this counts all of it.
    require_memory<T>(name, layout, nonzeros, available);
    const bool negate =
        layout.is_skew && !(layout.is_complex && options.complex_part == ComplexPart::kMagnitude);
    expand(nonzeros, negate, coo);
  }
  return coo;
}

std::size_t memory_for(const LoadOptions& options) {
  return options.memory_limit_bytes != 0 ? options.memory_limit_bytes : available_memory();
}

}  // namespace

template <typename T>
MatrixMarketFile<T> parse_matrix_market(std::string_view content, const std::string& name,
                                        const LoadOptions& options) {
  try {
    std::size_t available = memory_for(options);
    TextBuffer inflated;
    std::string_view text = content;
    if (is_gzip(content)) {
      inflated = inflate_gzip(content, name, available);
      text = inflated.view();
      available -= text.size();
    }
    const Layout layout = read_header(text, name, options);
    return {layout.header, read_body<T>(text, name, layout, options, available)};
  } catch (const std::bad_alloc&) {
    fail_in_file(name, "not enough memory; use a smaller matrix or a machine with more memory");
  }
}

template <typename T>
MatrixMarketFile<T> read_matrix_market(const std::filesystem::path& path,
                                       const LoadOptions& options) {
  const InputFile file(path, memory_for(options));
  return parse_matrix_market<T>(file.view(), path.string(), options);
}

template <typename T>
Coo<T> read_matrix_market_rows(const std::filesystem::path& path, Index first, Index end,
                               const LoadOptions& options, std::vector<Index>* lengths) {
  constexpr std::size_t kHeaderBytes = std::size_t{1} << 22;
  const std::string name = path.string();
  TextInPieces pieces(path);
  std::string_view text = pieces.next(kHeaderBytes);
  const Layout layout = read_header(text, name, options);
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
      fail_in_file(name, fmt::format("rows {} to {} have more than {} nonzeros; use more parts",
                                     first + 1, end, kMaxNonzeros));
    }
  };
  const bool negate =
      layout.is_skew && !(layout.is_complex && options.complex_part == ComplexPart::kMagnitude);
  const auto keep_with_mirror = [&](Index row, Index column, T value) {
    keep(row, column, value);
    if (layout.is_mirrored && row != column) keep(column, row, negate ? -value : value);
  };

  auto lines_before =
      static_cast<std::size_t>(std::count(text.begin(), text.begin() + layout.body_begin, '\n'));
  text.remove_prefix(layout.body_begin);
  std::size_t entries = 0;
  Index array_row = layout.is_skew ? 1 : 0, array_column = 0;
  for (bool is_first = true; is_first || !text.empty(); is_first = false, text = pieces.next()) {
    Coo<T> some;
    some.rows = layout.header.rows;
    some.cols = layout.header.cols;
    const std::size_t count = count_entries(text);
    some.row_indices.resize(count);
    some.column_indices.resize(count);
    some.values.resize(count);
    Piece piece{text};
    parse_piece(layout, options.complex_part, piece, some);
    if (piece.fault) {
      const auto line = std::count(text.data(), piece.fault->where, '\n');
      fail_in_file(name, lines_before + static_cast<std::size_t>(line) + 1, piece.fault->what);
    }
    entries += count;
    if (entries > layout.stored_entries()) break;
    for (std::size_t k = 0; k < count; ++k) {
      if (!layout.is_array) {
        keep_with_mirror(some.row_indices[k], some.column_indices[k], some.values[k]);
        continue;
      }
      keep_with_mirror(array_row, array_column, some.values[k]);
      if (++array_row < some.rows) continue;
      ++array_column;
      array_row = !layout.is_mirrored ? 0 : layout.is_skew ? array_column + 1 : array_column;
    }
    lines_before += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  if (entries < layout.stored_entries()) fail_too_few(name, layout, entries);
  if (entries > layout.stored_entries()) {
    fail_in_file(name, layout.size_line,
                 layout.announced() +
                     ", but the file holds more; correct the size line, or remove "
                     "what follows");
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
