// Random numbers that are the same on every machine and with every compiler.
//
// The standard library's engines are portable but its distributions are not, so both are here:
// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), whose
// state is a counter, and a multiply-and-shift map to a range.
#pragma once

#include <cstdint>

namespace spmv {

inline constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15ull;

// Mixes 64 bits so that every bit of the result depends on every bit of `bits`.
constexpr std::uint64_t mix64(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
}

class Rng {
 public:
  // Streams of one seed are independent: one for each row lets rows be drawn in any order.
  constexpr explicit Rng(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix64(mix64(seed) + stream * kGoldenGamma)) {}

  constexpr std::uint64_t bits64() { return mix64(state_ += kGoldenGamma); }
  constexpr std::uint32_t bits32() { return static_cast<std::uint32_t>(bits64() >> 32); }

  // As if `count` numbers had been drawn.
  constexpr void skip(std::uint64_t count) { state_ += count * kGoldenGamma; }

  // Uniform in [0, bound) for 0 < bound <= 2^32. The bias, below bound / 2^32, is no concern here.
  constexpr std::uint64_t below(std::uint64_t bound) { return (bits32() * bound) >> 32; }

 private:
  std::uint64_t state_;
};

// A multiple of 2^-20 in [-1, 1], never 0: exact in float, so float and double hold the same.
template <typename T>
constexpr T signed_unit_value(std::uint64_t bits) {
  const auto magnitude = static_cast<std::int32_t>(bits >> 44) + 1;  // 1 .. 2^20
  return static_cast<T>((bits & 1) ? -magnitude : magnitude) / static_cast<T>(1 << 20);
}

}  // namespace spmv
