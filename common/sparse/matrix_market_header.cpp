#include "sparse/matrix_market_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "sparse/parse_number.hpp"
#include "sparse/text.hpp"
#include "sparse/text_file.hpp"

namespace spmv {
namespace {

constexpr std::string_view kBomOfUtf8 = "\xef\xbb\xbf";
constexpr std::string_view kMagic = "%%matrixmarket";  // in either case

// The words of a line, one by one; empty after the last.
std::string_view next_word(std::string_view& line) {
  const auto* const begin = std::find_if_not(line.begin(), line.end(), is_blank);
  const auto* const end = std::find_if(begin, line.end(), is_blank);
  const std::string_view word(begin, static_cast<std::size_t>(end - begin));
  line.remove_prefix(static_cast<std::size_t>(end - line.begin()));
  return word;
}

std::string lower_case(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

void read_banner(std::string_view line, const std::string& name, const LoadOptions& options,
                 Layout& layout) {
  const auto fail = [&](const std::string& what) { fail_in_file(name, 1, what); };
  if (line.starts_with(kBomOfUtf8)) line.remove_prefix(kBomOfUtf8.size());

  if (lower_case(next_word(line)) != kMagic) {
    fail("the file does not begin with %%MatrixMarket; give a Matrix Market file");
  }
  std::array<std::string_view, 4> words;
  for (std::size_t k = 0; k < words.size(); ++k) {
    words[k] = next_word(line);
    if (words[k].empty()) {
      fail(
          fmt::format("the banner has {} of its 5 words; write %%MatrixMarket matrix FORMAT FIELD "
                      "SYMMETRY",
                      k + 1));
    }
  }
  if (const std::string_view extra = next_word(line); !extra.empty()) {
    fail(fmt::format("unexpected {} after the banner's 5 words; remove it", in_quotes(extra)));
  }

  if (lower_case(words[0]) != "matrix") {
    fail(fmt::format("the object {} cannot be read; only 'matrix' can", in_quotes(words[0])));
  }

  const std::string format = lower_case(words[1]);
  if (format == "array") {
    fail("an array file lists every position, zeros too; write its nonzeros as coordinate");
  }
  if (format != "coordinate") {
    fail(fmt::format("unknown format {}; use coordinate", in_quotes(words[1])));
  }
  std::string field = lower_case(words[2]);
  if (field == "double") field = "real";  // files from before the format settled
  if (field != "real" && field != "integer" && field != "pattern" && field != "complex") {
    fail(fmt::format("unknown field {}; use real, integer, pattern or complex",
                     in_quotes(words[2])));
  }
  const std::string symmetry = lower_case(words[3]);
  if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric" &&
      symmetry != "hermitian") {
    fail(fmt::format("unknown symmetry {}; use general, symmetric, skew-symmetric or hermitian",
                     in_quotes(words[3])));
  }

  layout.is_integer = field == "integer";
  layout.is_complex = field == "complex";
  layout.has_value = field != "pattern";
  layout.is_mirrored = symmetry != "general";
  layout.is_skew = symmetry == "skew-symmetric";
  layout.symmetry = symmetry;

  if (!layout.has_value && layout.is_skew) {
    fail("a pattern file cannot be skew-symmetric, it has no signs; use symmetric");
  }
  if (!layout.is_complex && symmetry == "hermitian") {
    fail(fmt::format("a hermitian file must be complex, not {}; use symmetric", field));
  }
  if (layout.is_complex && !options.real_part) {
    fail("the values are complex; give --complex real to read their real parts");
  }
}

// One number of the size line.
Index read_size(std::string_view word, const char* what, const std::string& name,
                const Layout& layout) {
  const auto fail = [&](const std::string& why) {
    fail_in_file(name, layout.size_line, fmt::format("the {} {}", what, why));
  };
  if (word.empty()) fail("is missing; write ROWS COLUMNS ENTRIES");
  if (!is_whole_number(word)) {
    fail(fmt::format("{} is not a whole number; write ROWS COLUMNS ENTRIES", in_quotes(word)));
  }
  const bool negative = word.starts_with('-');
  const bool has_sign = negative || word.starts_with('+');
  unsigned long long value = 0;
  const std::errc error =
      std::from_chars(word.data() + has_sign, word.data() + word.size(), value).ec;
  const bool too_large = error != std::errc() || value > kMaxNonzeros;
  if (negative && (value != 0 || too_large)) {
    fail(fmt::format("{} is negative; write ROWS COLUMNS ENTRIES", printable(word, 32)));
  }
  if (too_large) {
    fail(fmt::format("{} is more than {}, the most that 32-bit indices allow; use a smaller matrix",
                     printable(word, 32), kMaxNonzeros));
  }
  return static_cast<Index>(value);
}

}  // namespace

const char* Layout::entry_words() const {
  if (!has_value) return "ROW COLUMN";
  return is_complex ? "ROW COLUMN REAL IMAGINARY" : "ROW COLUMN VALUE";
}

std::size_t Layout::most_entries(std::size_t bytes) const {
  const std::size_t values = !has_value ? 0 : is_complex ? 2 : 1;
  const std::size_t shortest = 2 * (2 + values);  // a digit and a blank or line end each
  return bytes / shortest + (bytes % shortest + 1 == shortest);  // the last end may be lacking
}

std::string Layout::announced() const {
  return "the size line announces " + plural(stored_entries, "entry", "entries");
}

std::size_t least_nonzeros(const Layout& layout) {
  const std::size_t stored = layout.stored_entries;
  const auto on_diagonal = static_cast<std::size_t>(layout.is_skew ? 0 : layout.rows);
  return stored + (layout.is_mirrored && stored > on_diagonal ? stored - on_diagonal : 0);
}

void check_nonzeros(const std::string& name, const Layout& layout, std::size_t nonzeros) {
  if (nonzeros <= static_cast<std::size_t>(kMaxNonzeros)) return;
  std::string what = layout.announced();
  if (nonzeros != layout.stored_entries) {
    what += fmt::format(" and so a matrix of {} nonzeros", nonzeros);
  }
  fail_in_file(name, layout.size_line,
               fmt::format("{}, more than {}, the most that 32-bit indices allow; use a smaller "
                           "matrix",
                           what, kMaxNonzeros));
}

namespace {

// How far into a text the size line is looked for.
constexpr std::size_t kHeaderBytes = std::size_t{1} << 22;

// What is no Matrix Market file may have no line end for gigabytes, or take gigabytes to inflate: a
// look at its first bytes is enough.
void check_beginning(std::string_view head, const std::string& name) {
  head = head.substr(0, 64);
  if (head.starts_with(kBomOfUtf8)) head.remove_prefix(kBomOfUtf8.size());
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r"), head.size()));
  const std::string_view magic = kMagic.substr(0, head.size());
  if (lower_case(head.substr(0, magic.size())) != magic) {
    fail_in_file(name, 1, "the file does not begin with %%MatrixMarket; give a Matrix Market file");
  }
}

}  // namespace

Layout read_header(TextFile& file, std::string_view& text, const LoadOptions& options) {
  const std::string& name = file.name();
  check_beginning(file.head(), name);
  Layout layout;
  std::size_t header_bytes = 0;
  // False: there are no more.
  const auto next_line = [&](std::string_view& line) {
    if (text.empty()) text = file.next();
    if (text.empty()) return false;
    line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    header_bytes += line.size() + 1;
    ++layout.size_line;
    return true;
  };
  std::string_view line;
  if (!next_line(line)) fail_in_file(name, "the file is empty; fetch it again");
  read_banner(line, name, options, layout);

  std::string_view word;
  do {
    if (header_bytes > kHeaderBytes) {
      fail_in_file(name, fmt::format("no size line follows within {}; check the file",
                                     byte_count(kHeaderBytes)));
    }
    if (!next_line(line)) {
      fail_in_file(name, layout.size_line,
                   "the file ends before the size line; add ROWS COLUMNS ENTRIES after the banner");
    }
    word = next_word(line);
  } while (word.empty() || word.front() == '%');

  layout.rows = read_size(word, "number of rows", name, layout);
  layout.cols = read_size(next_word(line), "number of columns", name, layout);
  layout.stored_entries =
      static_cast<std::size_t>(read_size(next_word(line), "number of entries", name, layout));
  if (const std::string_view extra = next_word(line); !extra.empty()) {
    fail_in_file(
        name, layout.size_line,
        fmt::format("unexpected {} after the sizes; write ROWS COLUMNS ENTRIES", in_quotes(extra)));
  }

  if (layout.is_mirrored && layout.rows != layout.cols) {
    fail_in_file(
        name, layout.size_line,
        fmt::format("a {} matrix must be square, and this one is {} x {}; correct the size line, "
                    "or say general in the banner",
                    layout.symmetry, layout.rows, layout.cols));
  }
  check_nonzeros(name, layout, least_nonzeros(layout));

  // (A body that is short by a few entries is read all the same, which tells more.)
  constexpr std::size_t kFew = 1024;
  const std::size_t room =
      layout.most_entries(file.longest() - std::min(file.longest(), header_bytes));
  if (layout.stored_entries > kFew && layout.stored_entries - kFew > room) {
    fail_in_file(name, layout.size_line,
                 fmt::format("{}, but the file is so short that it holds {} at the most; correct "
                             "the size line, or fetch the file again if it is cut short",
                             layout.announced(), room));
  }
  return layout;
}

}  // namespace spmv
