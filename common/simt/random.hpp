// Random numbers that are the same on every machine.
#pragma once

#include <cstdint>

namespace simt {

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014):
// mix64(state), where the state grows by kGoldenGamma from one number to the next.
inline constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15u;

constexpr std::uint64_t mix64(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
  return state ^ (state >> 31);
}

// Bits that follow from `seed`.
constexpr std::uint64_t mix(std::uint64_t seed) {
  return mix64(seed + kGoldenGamma);
}

}  // namespace simt
