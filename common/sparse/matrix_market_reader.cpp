// Reads Matrix Market files: the header, then the body, a few megabytes at a time, each cut at line
// ends into chunks that threads parse.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sparse/matrix_market.hpp"
#include "sparse/matrix_market_header.hpp"
#include "sparse/memory.hpp"
#include "sparse/parse_number.hpp"
#include "sparse/text.hpp"
#include "sparse/text_file.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

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

template <typename T>
struct Entry {
  Index row, col;
  T value;
};

// Lines of the body that one thread parses.
template <typename T>
struct Chunk {
  std::string_view text;  // ends in '\n'
  std::vector<Entry<T>> entries{};
  std::size_t lines = 0;
  bool failed = false;
};

const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

const char* skip_line(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
}

// Parses the lines of `chunk`. Throws the first fault; one entry more than `most` is one.
template <typename T>
void parse_lines(const Layout& layout, std::size_t most, Chunk<T>& chunk) {
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

  chunk.entries.clear();
  chunk.lines = 0;
  for (; p != end; ++chunk.lines) {
    p = skip_blanks(p);
    if (*p == '\n' || *p == '%') {
      p = skip_line(p, end);
      continue;
    }
    if (chunk.entries.size() == most) throw Fault{p, {}};

    const char* const entry_begin = p;
    Entry<T> entry{0, 0, 1};
    read_index(layout.rows, "row", entry.row);
    read_index(layout.cols, "column", entry.col);
    const char* const value_begin = p;
    if (layout.has_value) read_value(entry.value);
    if (layout.is_complex) {
      T imaginary = 0;
      read_value(imaginary);
    }
    if (*p != '\n') {
      throw Fault{p, fmt::format("unexpected {} after the entry; write {}, one entry a line",
                                 in_quotes(word_at(p)), layout.entry_words())};
    }
    ++p;

    if (layout.is_mirrored && entry.row < entry.col) {
      throw Fault{entry_begin,
                  fmt::format("entry ({}, {}) is above the diagonal, where a {} file stores "
                              "nothing; remove the upper half, or say general",
                              entry.row + 1, entry.col + 1, layout.symmetry)};
    }
    if (layout.is_skew && entry.row == entry.col && !are_zeros(value_begin)) {
      throw Fault{entry_begin,
                  fmt::format("entry ({}, {}) is on the diagonal of a skew-symmetric matrix and "
                              "not zero; remove it, or correct the banner",
                              entry.row + 1, entry.col + 1)};
    }
    chunk.entries.push_back(entry);
  }
}

// Cuts `text` after the first line end at or behind each multiple of `length`.
template <typename T>
std::vector<Chunk<T>> cut(std::string_view text, std::size_t length) {
  std::vector<Chunk<T>> chunks;
  while (!text.empty()) {
    const std::size_t end = text.size() <= length ? text.size() : text.find('\n', length - 1) + 1;
    chunks.push_back({text.substr(0, end)});
    text.remove_prefix(end);
  }
  return chunks;
}

// The length of the chunks that threads take in turn: several per thread, so that a slow one does
// not keep the others waiting, but none so short that taking it costs more than reading it.
std::size_t chunk_length(std::size_t text_size, const LoadOptions& options) {
  constexpr std::size_t kShortest = std::size_t{1} << 18;
  if (options.chunk_bytes != 0) return options.chunk_bytes;
#ifdef _OPENMP
  return std::max(kShortest, text_size / (4 * static_cast<std::size_t>(omp_get_max_threads())) + 1);
#else
  return std::max(kShortest, text_size);
#endif
}

// --- The body ------------------------------------------------------------------------------------

// The number of rows and of columns is backed by nothing in the file, and arrays of that length are
// needed all the same. Where nearly all of them would be empty, somebody has to have meant it.
void check_empty_rows(const std::string& name, const Layout& layout, const LoadOptions& options) {
  constexpr std::size_t kAllowed = std::size_t{1} << 20;
  constexpr std::size_t kAllowedPerEntry = 128;
  const auto longest = static_cast<std::size_t>(std::max(layout.rows, layout.cols));
  const std::size_t stored = layout.stored_entries;
  if (options.memory_limit_bytes != 0 || longest <= std::max(kAllowed, kAllowedPerEntry * stored)) {
    return;
  }
  const auto needed = static_cast<double>(2 * sizeof(Index) * longest);
  fail_in_file(
      name, layout.size_line,
      fmt::format("a matrix of {} x {} with {} needs {} of memory for rows or columns that "
                  "are empty; correct the size line, or give --memory-limit {:.0f}M if it "
                  "is meant",
                  layout.rows, layout.cols, plural(stored, "entry", "entries"), byte_count(needed),
                  1 + std::ceil(needed / (1 << 20))));
}

// A matrix that would not fit in memory from here to the end of to_csr() is refused: both formats
// and what the sort needs. (A matrix of which only the triplets fit is of no use to anyone.)
template <typename T>
void check_memory(const std::string& name, const Layout& layout, std::size_t nonzeros,
                  const LoadOptions& options) {
  const auto longest = static_cast<std::size_t>(std::max(layout.rows, layout.cols));
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
class Body {
 public:
  Body(const std::filesystem::path& path, const LoadOptions& options)
      : file_(path, options.chunk_bytes ? 4 * options.chunk_bytes : TextFile::kPieceBytes),
        options_(options),
        layout_(read_header(file_, text_, options)),
        lines_before_(layout_.size_line) {}

  const Layout& layout() const { return layout_; }
  const TextFile& file() const { return file_; }

  // Calls keep(entry) for all entries, in the order of the file. Throws InputError for the first
  // fault, and when they are not as many as the size line announces.
  template <typename Keep>
  void read(const Keep& keep) {
    std::size_t without_entry = 0;  // bytes since the last piece that held an entry
    if (text_.empty()) text_ = file_.next();
    for (; !text_.empty(); text_ = file_.next()) {
      std::vector<Chunk<T>> chunks = cut<T>(text_, chunk_length(text_.size(), options_));
      const std::size_t had = entries_, most = layout_.stored_entries - had;
#pragma omp parallel for schedule(dynamic)
      for (std::size_t k = 0; k < chunks.size(); ++k) {
        try {
          parse_lines(layout_, most, chunks[k]);
        } catch (...) {
          chunks[k].failed = true;
        }
      }
      for (Chunk<T>& chunk : chunks) {
        check(chunk);
        for (const Entry<T>& entry : chunk.entries) keep(entry);
        entries_ += chunk.entries.size();
        lines_before_ += chunk.lines;
      }
      without_entry = entries_ > had ? 0 : without_entry + text_.size();
      if (without_entry > kLookedAt) {
        fail_in_file(file_.name(), lines_before_,
                     fmt::format("no entry in the {} up to here; check the file",
                                 byte_count(static_cast<double>(without_entry))));
      }
    }
    if (entries_ == layout_.stored_entries) return;
    fail_in_file(file_.name(), layout_.size_line,
                 fmt::format("{}, but the file holds {}; correct the size line, or fetch the file "
                             "again if it is cut short",
                             layout_.announced(), entries_));
  }

 private:
  // How much text is gone through for nothing but a better message. A megabyte of gzip can inflate
  // to a gigabyte.
  static constexpr std::size_t kLookedAt = std::size_t{1} << 23;

  // Reports a fault of `chunk`, all chunks before which have been accounted for.
  void check(Chunk<T>& chunk) {
    const std::size_t most = layout_.stored_entries - entries_;
    if (!chunk.failed && chunk.entries.size() <= most) return;
    try {
      parse_lines(layout_, most, chunk);
    } catch (const Fault& fault) {
      fail_at(chunk, fault);
    }
  }

  [[noreturn]] void fail_at(const Chunk<T>& chunk, const Fault& fault) {
    const std::string_view before =
        chunk.text.substr(0, static_cast<std::size_t>(fault.where - chunk.text.data()));
    const std::string_view behind =
        text_.substr(static_cast<std::size_t>(fault.where - text_.data()));
    const auto line_ends = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    std::string what = fault.what;
    if (what.empty()) {
      what = fmt::format("{} (line {}), but more follow; correct the size line, or remove these",
                         layout_.announced(), layout_.size_line);
    } else if (file_.open_end() && behind.find('\n') == behind.size() - 1) {
      what += ", or fetch the file again if it is cut short here";
    }
    // Damaged gzip data inflate to nonsense before the damage shows.
    for (std::size_t looked_at = 0; file_.is_compressed() && looked_at < kLookedAt;) {
      if ((text_ = file_.next()).empty()) break;
      looked_at += text_.size();
    }
    fail_in_file(file_.name(), lines_before_ + line_ends + 1, what);
  }

  TextFile file_;
  const LoadOptions& options_;
  std::string_view text_;  // the lines that are to be parsed, or are being parsed
  const Layout layout_;
  std::size_t lines_before_;
  std::size_t entries_ = 0;
};

// The rows [first, end); end = -1: all, for which there has to be memory.
template <typename T>
Coo<T> read_rows(const std::filesystem::path& path, Index first, Index end,
                 const LoadOptions& options, std::vector<Index>* lengths) {
  Body<T> body(path, options);
  const Layout& layout = body.layout();
  const std::string& name = body.file().name();
  check_empty_rows(name, layout, options);
  Coo<T> kept;
  kept.cols = layout.cols;
  const bool is_whole = end < 0;
  if (is_whole) {
    end = layout.rows;
    check_memory<T>(name, layout, least_nonzeros(layout), options);
    // Pages that stay unused cost nothing. (What a pipe, or a compressed file, says of its size is
    // not backed by anything.)
    const std::size_t room =
        std::min(layout.stored_entries, layout.most_entries(body.file().longest()));
    const std::size_t capacity = layout.is_mirrored ? 2 * room : room;
    kept.row_indices.reserve(capacity);
    kept.column_indices.reserve(capacity);
    kept.values.reserve(capacity);
  }
  kept.rows = end - first;
  if (lengths) lengths->assign(layout.rows, 0);
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
  body.read([&](const Entry<T>& entry) {
    keep(entry.row, entry.col, entry.value);
    if (!layout.is_mirrored || entry.row == entry.col) return;
    keep(entry.col, entry.row, layout.is_skew ? -entry.value : entry.value);
  });
  if (is_whole) check_memory<T>(name, layout, kept.values.size(), options);
  return kept;
}

}  // namespace

template <typename T>
Coo<T> read_matrix_market(const std::filesystem::path& path, const LoadOptions& options) {
  try {
    return read_rows<T>(path, 0, -1, options, nullptr);
  } catch (const std::bad_alloc&) {
    fail_in_file(path.string(),
                 "not enough memory; use a smaller matrix or a machine with more memory");
  }
}

template <typename T>
Coo<T> read_matrix_market_rows(const std::filesystem::path& path, Index first, Index end,
                               const LoadOptions& options, std::vector<Index>* lengths) {
  return read_rows<T>(path, first, end, options, lengths);
}

template Coo<float> read_matrix_market(const std::filesystem::path&, const LoadOptions&);
template Coo<double> read_matrix_market(const std::filesystem::path&, const LoadOptions&);
template Coo<float> read_matrix_market_rows(const std::filesystem::path&, Index, Index,
                                            const LoadOptions&, std::vector<Index>*);
template Coo<double> read_matrix_market_rows(const std::filesystem::path&, Index, Index,
                                             const LoadOptions&, std::vector<Index>*);

}  // namespace spmv
