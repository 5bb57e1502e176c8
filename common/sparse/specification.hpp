// A generator's line of text, taken apart: used by generators.cpp alone.
//
//   name:SIZExSIZE,key=value,key=value
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv {

// The default of a key whose value follows from the sizes and other keys.
inline constexpr double kDerived = -1;

// `key=value` in a specification.
struct Key {
  const char* name;
  double fallback;
  double low;
  double high;
  const char* meaning;
  // "drop,wrap": the key takes one of these words, and its value is the word's place, from 0.
  const char* words = nullptr;
  bool is_whole = true;

  std::string text_of(double value) const;
};

// The positions of the nonzeros; values are filled in last, so that only they depend on T.
struct Pattern {
  Index rows = 0;  // of the matrix, also where only some of them are made
  Index cols = 0;
  std::vector<Index> row_offsets;
  std::vector<Index> column_indices;
  std::vector<double> values;  // where they follow from the positions; else empty: they are drawn
  // Whether a column may stand several times, one after the other, in a row: values are then added.
  bool repeats = false;
};

class Specification;

struct Generator {
  const char* name;
  const char* sizes;  // "NXxNY": how many sizes there are, and what they are called
  const char* summary;
  std::vector<Key> keys;
  Pattern (*make)(const Specification&);
  // Whether it takes a part of the time to make a part of the rows (Specification::only_rows).
  bool by_rows = true;
};

// The table in generators.cpp.
const std::vector<Generator>& all_generators();

// Null when there is none of that name.
const Generator* find_generator(std::string_view name);

// A specification, taken apart and checked against its generator's keys.
class Specification {
 public:
  // A matrix of `value_bytes` a nonzero that needs more than `memory_limit` bytes is refused.
  Specification(const std::string& text, std::size_t value_bytes, std::uint64_t memory_limit);

  const Generator& generator() const { return *generator_; }
  // The text, with every default that it leaves out written out.
  std::string full() const;
  long long size(std::size_t which) const { return sizes_[which]; }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(get("seed")); }

  // Of a key that need not be whole.
  double real(std::string_view key, double derived = 0) const {
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (generator_->keys[k].name == key) return values_[k] == kDerived ? derived : values_[k];
    }
    throw std::logic_error(std::string(generator_->name) + " has no key " + std::string(key));
  }
  long long get(std::string_view key) const { return static_cast<long long>(real(key, kDerived)); }
  long long get(std::string_view key, long long derived) const {
    const long long value = get(key);
    return value == kDerived ? derived : value;
  }

  // The generator shall make no rows but [first, end). `of_whole`: the others are made, too, by
  // others, so that the matrix as a whole must have a size that can be used.
  void only_rows(long long first, long long end, bool of_whole) {
    first_row_ = first;
    end_row_ = end;
    is_part_ = !of_whole;
  }
  // Which rows of a matrix of `rows` rows are to be made.
  long long first_row() const { return first_row_; }
  long long end_row(long long rows) const { return end_row_ < 0 ? rows : end_row_; }

  // What `find` returns: what a generator has to find out before it makes any row. It is called
  // once for all copies of this, in which the rows are made by several threads.
  template <typename Find>
  const auto& once(const Find& find) const {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->found.has_value()) shared_->found = find();
    return *std::any_cast<std::invoke_result_t<Find>>(&shared_->found);
  }

  // Throws unless a matrix of this size can be indexed with 32 bits and held in memory; of a part
  // only rows and columns are known, and PatternBuilder counts the nonzeros. `more_bytes`: what
  // making it takes.
  void check_size(double rows, double cols, double nnz, double more_bytes = 0) const;

  // Throws if so many nonzeros were made.
  void check_nonzeros(std::size_t count) const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  long long parse_number(std::string_view text, const std::string& what) const;
  double parse_decimal(std::string_view text, const Key& key) const;
  long long parse_word(std::string_view text, const Key& key) const;
  void parse_sizes(std::string_view text);
  void parse_key(std::string_view text);

  std::string text_;
  const Generator* generator_ = nullptr;
  std::size_t value_bytes_;
  std::uint64_t memory_limit_;
  std::vector<long long> sizes_;
  std::vector<double> values_;  // one for each of generator_->keys
  std::vector<bool> given_;
  long long first_row_ = 0;
  long long end_row_ = -1;  // all
  bool is_part_ = false;
  struct Shared {
    std::mutex mutex;
    std::any found;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace spmv
