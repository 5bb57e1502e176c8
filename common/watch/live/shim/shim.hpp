// What the C++20 library of emscripten 3.1.6 lacks and the project uses.
#pragma once

#include <strings.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <compare>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <version>

namespace std {

#ifndef __cpp_lib_bit_cast
template <typename To, typename From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
#endif

#ifndef __cpp_lib_smart_ptr_for_overwrite
template <typename T>
unique_ptr<T> make_unique_for_overwrite(size_t count) {
  return unique_ptr<T>(new remove_extent_t<T>[count]);
}
#endif

#ifndef __cpp_lib_atomic_ref
// Of a program of one thread.
template <typename T>
class atomic_ref {
 public:
  explicit atomic_ref(T& object) : object_(object) {}
  T load(memory_order = memory_order_seq_cst) const { return object_; }
  void store(T value, memory_order = memory_order_seq_cst) const { object_ = value; }
  T exchange(T value, memory_order = memory_order_seq_cst) const {
    const T old = object_;
    object_ = value;
    return old;
  }
  bool compare_exchange_weak(T& expected, T value, memory_order = memory_order_seq_cst) const {
    const bool equal = object_ == expected;
    (equal ? object_ : expected) = equal ? value : object_;
    return equal;
  }
  T fetch_add(T value, memory_order = memory_order_seq_cst) const {
    const T old = object_;
    object_ += value;
    return old;
  }

 private:
  T& object_;
};
#endif

#ifndef __cpp_lib_to_chars
// By strtod(), of a copy of the characters that a number can have.
template <typename T>
requires is_floating_point_v<T> from_chars_result from_chars(const char* first, const char* last,
                                                             T& value) {
  const auto is_part = [](char c) {
    return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
  };
  const char* const digits = first + (first != last && *first == '-');
  const char* end = digits;
  if (end != last && *end != '+' && *end != '-') end = find_if_not(digits, last, is_part);
  for (const char* const word : {"inf", "infinity", "nan"}) {
    const size_t length = string_view(word).size();
    if (static_cast<size_t>(last - digits) < length) continue;
    if (strncasecmp(digits, word, length) == 0) end = digits + length;
  }
  const string text(first, end);
  char* text_end = nullptr;
  errno = 0;
  const double found =
      is_same_v<T, float> ? strtof(text.c_str(), &text_end) : strtod(text.c_str(), &text_end);
  if (text_end == text.c_str()) return {first, errc::invalid_argument};
  const from_chars_result result{first + (text_end - text.c_str()),
                                 errno == ERANGE ? errc::result_out_of_range : errc{}};
  if (result.ec == errc{}) value = static_cast<T>(found);
  return result;
}
#endif

#ifndef __cpp_lib_three_way_comparison
inline strong_ordering operator<=>(const string& a, const string& b) noexcept {
  return a.compare(b) <=> 0;
}
#endif

}  // namespace std
