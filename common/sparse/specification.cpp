#include "sparse/specification.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "sparse/memory.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

// "a,b,,c" -> a, b, "", c.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int size_count(const Generator& generator) {
  if (*generator.sizes == '\0') return 0;
  const std::string_view sizes = generator.sizes;
  return static_cast<int>(std::count(sizes.begin(), sizes.end(), 'x')) + 1;
}

}  // namespace

std::string Key::text_of(double value) const {
  return words ? std::string(split(words, ',')[static_cast<std::size_t>(value)])
               : fmt::format("{}", value);
}

const Generator* find_generator(std::string_view name) {
  for (const Generator& generator : all_generators()) {
    if (generator.name == name) return &generator;
  }
  return nullptr;
}

Specification::Specification(const std::string& text, std::size_t value_bytes,
                             std::uint64_t memory_limit)
    : text_(text), value_bytes_(value_bytes), memory_limit_(memory_limit) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  generator_ = find_generator(name);
  if (!generator_) {
    std::string names;
    for (const Generator& generator : all_generators()) {
      names += (names.empty() ? "" : ", ") + std::string(generator.name);
    }
    fail(fmt::format("no generator is called {}; there are {}", in_quotes(name), names));
  }
  for (const Key& key : generator_->keys) values_.push_back(key.fallback);
  given_.assign(values_.size(), false);

  std::vector<std::string_view> parts;  // between commas
  if (colon != std::string::npos) parts = split(std::string_view(text).substr(colon + 1), ',');
  std::size_t first_key = 0;
  if (size_count(*generator_) > 0) {
    parse_sizes(parts.empty() ? std::string_view() : parts[0]);
    first_key = 1;
  } else if (parts.size() == 1 && parts[0].empty()) {
    first_key = 1;  // "rmat:"
  }
  for (std::size_t k = first_key; k < parts.size(); ++k) parse_key(parts[k]);
}

void Specification::fail(const std::string& what) const {
  throw InputError(printable(text_, 200) + ": " + what);
}

long long Specification::parse_number(std::string_view text, const std::string& what) const {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) fail(fmt::format("{} must be a whole number, not {}", what, in_quotes(text)));
  if (text.size() > 18)
    fail(fmt::format("{} = {} is too large; 32-bit indices end at {}", what, printable(text, 32),
                     with_commas(kMaxNonzeros)));
  return std::stoll(std::string(text));
}

double Specification::parse_decimal(std::string_view text, const Key& key) const {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(fmt::format("{} must be a number such as 0.25, not {}", key.name, in_quotes(text)));
  }
  return number;
}

long long Specification::parse_word(std::string_view text, const Key& key) const {
  const std::vector<std::string_view> words = split(key.words, ',');
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    fail(fmt::format("{} must be {}, not {}", key.name, fmt::join(words, " or "), in_quotes(text)));
  }
  return found - words.begin();
}

void Specification::parse_sizes(std::string_view text) {
  const int expected = size_count(*generator_);
  const std::vector<std::string_view> parts = split(text, 'x');
  if (static_cast<int>(parts.size()) != expected || text.empty() ||
      text.find('=') != std::string_view::npos) {
    fail(fmt::format("needs {} after the colon, as in {}:{}",
                     expected == 1 ? "one size" : fmt::format("{} sizes", expected),
                     generator_->name, generator_->sizes));
  }
  for (const std::string_view part : parts) {
    const long long size = parse_number(part, "a size");
    if (size > kMaxNonzeros)
      fail(fmt::format("a size of {} is too large; 32-bit indices end at {}", with_commas(size),
                       with_commas(kMaxNonzeros)));
    sizes_.push_back(size);
  }
}

void Specification::parse_key(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    fail(fmt::format("{} is not of the form key=value", in_quotes(text)));
  const std::string_view name = text.substr(0, equals);
  std::string names;
  for (std::size_t k = 0; k < values_.size(); ++k) {
    const Key& key = generator_->keys[k];
    names += (k ? ", " : "") + std::string(key.name);
    if (key.name != name) continue;
    if (given_[k]) fail(fmt::format("{} is given twice", name));
    const std::string_view given = text.substr(equals + 1);
    const double value = key.words      ? static_cast<double>(parse_word(given, key))
                         : key.is_whole ? static_cast<double>(parse_number(given, key.name))
                                        : parse_decimal(given, key);
    if (!(value >= key.low && value <= key.high)) {  // nor NaN
      fail(fmt::format("{} must be between {} and {}, not {}", key.name, key.text_of(key.low),
                       key.text_of(key.high), key.text_of(value)));
    }
    values_[k] = value;
    given_[k] = true;
    return;
  }
  fail(fmt::format("no key is called {}; {} takes {}", in_quotes(name), generator_->name, names));
}

std::string Specification::full() const {
  std::string full = text_;
  for (std::size_t k = 0; k < values_.size(); ++k) {
    if (given_[k] || values_[k] == kDerived) continue;
    if (full.back() != ':') full += full.find(':') == std::string::npos ? ':' : ',';
    const Key& key = generator_->keys[k];
    full += fmt::format("{}={}", key.name, key.text_of(values_[k]));
  }
  return full;
}

void Specification::check_nonzeros(std::size_t count) const {
  if (count <= static_cast<std::size_t>(kMaxNonzeros)) return;
  fail(fmt::format("has more than {} nonzeros, which 32-bit indices do not allow",
                   with_commas(kMaxNonzeros)));
}

void Specification::check_size(double rows, double cols, double nnz, double more_bytes) const {
  // One less, since row offsets are one more than the rows.
  constexpr auto kMaxSize = static_cast<double>(kMaxNonzeros - 1);
  const auto refuse_above = [this](double limit, double count, const char* what) {
    if (count <= limit) return;
    fail(fmt::format("would have {} {}; 32-bit indices allow {}",
                     count < 1e18 ? with_commas(static_cast<unsigned long long>(count))
                                  : fmt::format("{:.1e}", count),
                     what, with_commas(static_cast<unsigned long long>(limit))));
  };
  refuse_above(kMaxSize, rows, "rows");
  refuse_above(kMaxSize, cols, "columns");
  if (is_part_) return;
  refuse_above(static_cast<double>(kMaxNonzeros), nnz, "nonzeros");
  const double bytes = nnz * static_cast<double>(sizeof(Index) + value_bytes_) +
                       (rows + 1) * static_cast<double>(sizeof(Index)) + more_bytes;
  const auto limit = static_cast<double>(memory_limit_);
  if (bytes > limit) fail(more_than_limit(bytes, limit));
}

}  // namespace spmv
