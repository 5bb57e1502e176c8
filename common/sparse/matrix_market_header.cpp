#include "sparse/matrix_market_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "sparse/input_file.hpp"
#include "sparse/parse_number.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

// The words of a line, one by one; empty after the last.
std::string_view next_word(std::string_view& line) {
  const auto* const begin = std::find_if_not(line.begin(), line.end(), is_blank);
  const auto* const end = std::find_if(begin, line.end(), is_blank);
  const std::string_view word(begin, end);
  line = {end, line.end()};
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
  constexpr std::string_view kBomOfUtf8 = "\xef\xbb\xbf";
  if (line.starts_with(kBomOfUtf8)) line.remove_prefix(kBomOfUtf8.size());

  if (lower_case(next_word(line)) != "%%matrixmarket") {
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
    fail(fmt::format("unexpected {} after the banner's 5 words; remove it", quoted(extra)));
  }

  if (lower_case(words[0]) != "matrix") {
    fail(fmt::format("the object {} cannot be read; only 'matrix' can", quoted(words[0])));
  }

  const std::string format = lower_case(words[1]);
  if (format != "coordinate" && format != "array") {
    fail(fmt::format("unknown format {}; use coordinate or array", quoted(words[1])));
  }
  std::string field = lower_case(words[2]);
  if (field == "double") field = "real";  // files from before the format settled
  if (field != "real" && field != "integer" && field != "pattern" && field != "complex") {
    fail(fmt::format("unknown field {}; use real, integer, pattern or complex", quoted(words[2])));
  }
  const std::string symmetry = lower_case(words[3]);
  if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric" &&
      symmetry != "hermitian") {
    fail(fmt::format("unknown symmetry {}; use general, symmetric, skew-symmetric or hermitian",
                     quoted(words[3])));
  }

  layout.is_array = format == "array";
  layout.is_integer = field == "integer";
  layout.is_complex = field == "complex";
  layout.has_value = field != "pattern";
  layout.is_mirrored = symmetry != "general";
  layout.is_skew = symmetry == "skew-symmetric";
  layout.header.format = format;
  layout.header.field = field;
  layout.header.symmetry = symmetry;

  if (!layout.has_value && layout.is_array) {
    fail("an array file cannot be pattern, it has no positions; use coordinate");
  }
  if (!layout.has_value && layout.is_skew) {
    fail("a pattern file cannot be skew-symmetric, it has no signs; use symmetric");
  }
  if (!layout.is_complex && symmetry == "hermitian") {
    fail(fmt::format("a hermitian file must be complex, not {}; use symmetric", field));
  }
  if (layout.is_complex && options.complex_part == ComplexPart::kRefuse) {
    fail("the values are complex; give --complex real or --complex magnitude");
  }
}

// One number of the size line.
Index read_size(std::string_view word, const char* what, const std::string& name,
                const Layout& layout) {
  const auto fail = [&](const std::string& why) {
    fail_in_file(name, layout.size_line, fmt::format("the {} {}", what, why));
  };
  const char* const remedy = layout.is_array ? "write ROWS COLUMNS" : "write ROWS COLUMNS ENTRIES";
  if (word.empty()) fail(fmt::format("is missing; {}", remedy));
  if (!is_whole_number(word)) {
    fail(fmt::format("{} is not a whole number; {}", quoted(word), remedy));
  }
  const bool negative = word.starts_with('-');
  const bool has_sign = negative || word.starts_with('+');
  unsigned long long value = 0;
  const std::errc error =
      std::from_chars(word.data() + has_sign, word.data() + word.size(), value).ec;
  const bool too_large = error != std::errc() || value > kMaxNonzeros;
  if (negative && (value != 0 || too_large)) {
    fail(fmt::format("{} is negative; {}", printable(word, 32), remedy));
  }
  if (too_large) {
    fail(fmt::format("{} is more than {}, the most that 32-bit indices allow; use a smaller matrix",
                     printable(word, 32), kMaxNonzeros));
  }
  return static_cast<Index>(value);
}

}  // namespace

const char* Layout::entry_words() const {
  if (is_array) return is_complex ? "REAL IMAGINARY" : "VALUE";
  if (!has_value) return "ROW COLUMN";
  return is_complex ? "ROW COLUMN REAL IMAGINARY" : "ROW COLUMN VALUE";
}

std::size_t Layout::shortest_entry() const {
  const std::size_t indices = is_array ? 0 : 2;
  const std::size_t values = !has_value ? 0 : is_complex ? 2 : 1;
  return 2 * (indices + values);
}

std::string Layout::announced() const {
  std::string result = "the size line announces ";
  if (is_array) result += fmt::format("{} x {}, which is ", header.rows, header.cols);
  return result + plural(stored_entries(), "entry", "entries");
}

std::size_t least_nonzeros(const Layout& layout) {
  const std::size_t stored = layout.stored_entries();
  const auto on_diagonal = static_cast<std::size_t>(layout.is_skew ? 0 : layout.header.rows);
  return stored + (layout.is_mirrored && stored > on_diagonal ? stored - on_diagonal : 0);
}

void check_nonzeros(const std::string& name, const Layout& layout, std::size_t nonzeros) {
  if (nonzeros <= static_cast<std::size_t>(kMaxNonzeros)) return;
  std::string what = layout.announced();
  if (nonzeros != layout.stored_entries()) {
    what += fmt::format(" and so a matrix of {} nonzeros", nonzeros);
  }
  fail_in_file(name, layout.size_line,
               fmt::format("{}, more than {}, the most that 32-bit indices allow; use a smaller "
                           "matrix",
                           what, kMaxNonzeros));
}

Layout read_header(std::string_view text, const std::string& name, const LoadOptions& options) {
  if (text.empty()) fail_in_file(name, "the file is empty; fetch it again");
  Layout layout;
  std::string_view rest = text;
  std::size_t line_number = 0;
  const auto next_line = [&] {
    const std::string_view first = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(first.size() + 1, rest.size()));
    ++line_number;
    return first;
  };
  read_banner(next_line(), name, options, layout);

  std::string_view line;
  std::string_view word;
  do {
    if (rest.empty()) {
      fail_in_file(name, line_number,
                   fmt::format("the file ends before the size line; add ROWS COLUMNS{}",
                               layout.is_array ? "" : " ENTRIES after the banner"));
    }
    line = next_line();
    word = next_word(line);
  } while (word.empty() || word.front() == '%');
  layout.size_line = line_number;
  layout.body_begin = text.size() - rest.size();

  MatrixMarketHeader& header = layout.header;
  header.rows = read_size(word, "number of rows", name, layout);
  header.cols = read_size(next_word(line), "number of columns", name, layout);
  if (!layout.is_array) {
    header.stored_entries = read_size(next_word(line), "number of entries", name, layout);
  }
  if (const std::string_view extra = next_word(line); !extra.empty()) {
    fail_in_file(name, layout.size_line,
                 fmt::format("unexpected {} after the sizes; write ROWS COLUMNS{}", quoted(extra),
                             layout.is_array ? "" : " ENTRIES"));
  }

  if (layout.is_mirrored && header.rows != header.cols) {
    fail_in_file(
        name, layout.size_line,
        fmt::format("a {} matrix must be square, and this one is {} x {}; correct the size line, "
                    "or say general in the banner",
                    header.symmetry, header.rows, header.cols));
  }
  if (layout.is_array) {
    const long long rows = header.rows;
    header.stored_entries = !layout.is_mirrored ? rows * header.cols
                            : layout.is_skew    ? (rows * rows - rows) / 2
                                                : (rows * rows + rows) / 2;
  }
  check_nonzeros(name, layout, least_nonzeros(layout));
  return layout;
}

}  // namespace spmv
