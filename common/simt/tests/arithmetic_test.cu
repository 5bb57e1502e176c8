// CUDA on the CPU: integer and bit functions, rounding.
#include <bit>
#include <cmath>
#include <limits>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

TEST_CASE("bit operations", "[simt]") {
  CHECK(__brev(0x80000005u) == 0xa0000001u);
  for (int bit = 0; bit < 64; ++bit) {
    CAPTURE(bit);
    const std::uint64_t value = std::uint64_t{5} << bit;  // the upper bit may be shifted out
    const auto word = static_cast<unsigned>(value);
    CHECK(__popcll(value) == (bit < 62 ? 2 : 1));
    CHECK(__clzll(static_cast<long long>(value)) == (bit < 62 ? 61 - bit : 63 - bit));
    CHECK(__ffsll(static_cast<long long>(value)) == bit + 1);
    CHECK(__popc(word) == (bit < 30 ? 2 : bit < 32 ? 1 : 0));
    CHECK(__clz(static_cast<int>(word)) == (bit < 30 ? 29 - bit : bit < 32 ? 31 - bit : 32));
    CHECK(__ffs(static_cast<int>(word)) == (bit < 32 ? bit + 1 : 0));
  }
  Rng random(3);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t value = random.bits64();
    const auto word = static_cast<unsigned>(value);
    const double wide = __longlong_as_double(static_cast<long long>(value));
    const int high = __double2hiint(wide), low = __double2loint(wide);
    CHECK(static_cast<unsigned>(high) == value >> 32);
    CHECK(static_cast<unsigned>(low) == word);
    CHECK(std::bit_cast<std::uint64_t>(__hiloint2double(high, low)) == value);
    CHECK(__double_as_longlong(wide) == static_cast<long long>(value));
    CHECK(__float_as_uint(__uint_as_float(word)) == word);
    CHECK(__float_as_int(__int_as_float(static_cast<int>(word))) == static_cast<int>(word));
  }
}

TEST_CASE("minima, maxima and what is rounded once", "[simt]") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  CHECK(min(3, -4) == -4);
  CHECK(max(3u, 4u) == 4u);
  CHECK(min(3.5, 4.5) == 3.5);
  CHECK(max(1ll << 40, 1ll) == 1ll << 40);
  CHECK(min(none, 1.0f) == 1.0f);
  CHECK(min(1.0f, none) == 1.0f);
  CHECK(max(none, 1.0f) == 1.0f);
  CHECK(max(1.0f, none) == 1.0f);
  CHECK(std::isnan(max(none, none)));
  // Rounded once, not twice: a fused product is not what a product and a sum give.
  CHECK(__fma_rn(0.1, 10.0, -1.0) == std::fma(0.1, 10.0, -1.0));
  CHECK(__dadd_rn(__dmul_rn(0.1, 10.0), -1.0) == 0);
  CHECK(__fadd_rn(__fmul_rn(0.1f, 10.0f), -1.0f) == 0);
}

TEST_CASE("bits and upper halves of products", "[simt]") {
  Rng random(3);
  for (int i = 0; i < 1000; ++i) {
    const unsigned a = random.bits32(), b = random.bits32(),
                   n = static_cast<unsigned>(random.below(80));
    const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
    const unsigned left = n % 32, up = n < 32 ? n : 32;
    CHECK(__funnelshift_l(a, b, n) == static_cast<unsigned>((both << left) >> 32));
    CHECK(__funnelshift_r(a, b, n) == static_cast<unsigned>(both >> left));
    CHECK(__funnelshift_lc(a, b, n) == (up == 32 ? a : static_cast<unsigned>((both << up) >> 32)));
    CHECK(__funnelshift_rc(a, b, n) == (up == 32 ? b : static_cast<unsigned>(both >> up)));
    CHECK(__umulhi(a, b) == static_cast<unsigned>((1ull * a * b) >> 32));
    CHECK(__mulhi(static_cast<int>(a), static_cast<int>(b)) ==
          static_cast<int>((1ll * static_cast<int>(a) * static_cast<int>(b)) >> 32));
    CHECK(__umul64hi(both, 1ull << 40) == both >> 24);
    CHECK(__usad(a, b, 1) == (a < b ? b - a : a - b) + 1);
  }
  CHECK(__mul64hi(-1, 1) == -1);
  CHECK(__byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311);
  CHECK(__byte_perm(0x80ff017f, 0, 0xba98) == 0xffff0000);
  CHECK(__mul24(0xff000003, 5) == 15);
}

TEST_CASE("means of integers, rounded down and up, without overflow", "[simt]") {
  Rng random(3);
  for (int i = 0; i < 1000; ++i) {
    const unsigned a = random.bits32(), b = random.bits32();
    const int c = static_cast<int>(a), d = static_cast<int>(b);
    CHECK(__uhadd(a, b) == std::floor((double{1} * a + b) / 2));
    CHECK(__urhadd(a, b) == std::ceil((double{1} * a + b) / 2));
    CHECK(__hadd(c, d) == std::floor((double{1} * c + d) / 2));
    CHECK(__rhadd(c, d) == std::ceil((double{1} * c + d) / 2));
  }
  const int most = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  CHECK(__hadd(most, most) == most);
  CHECK(__rhadd(least, least) == least);
  CHECK(__hadd(-1, 0) == -1);
  CHECK(__rhadd(-1, 0) == 0);
}

TEST_CASE("bit positions, square roots and saturation", "[simt]") {
  CHECK(__fns(0b10110, 0, 1) == 1);
  CHECK(__fns(0b10110, 0, 3) == 4);
  CHECK(__fns(0b10110, 4, -2) == 2);
  CHECK(__fns(0b10110, 2, 0) == 2);
  CHECK(__fns(0b10110, 0, 0) == ~0u);
  CHECK(__fns(0b10110, 0, 4) == ~0u);
  CHECK(__saturatef(-1.0f) == 0);
  CHECK(__saturatef(0.25f) == 0.25f);
  CHECK(__saturatef(3.0f) == 1);
  CHECK(__saturatef(NAN) == 0);
  CHECK(rsqrt(4.0) == 0.5);
  CHECK(rsqrtf(16.0f) == 0.25f);
}

TEST_CASE("min and max of two types, and what kind of number one is", "[simt]") {
  using namespace std;
  CHECK(min(1u, -1) == 1u);
  CHECK(max(1l, 3ul) == 3);
  CHECK(max(2.0f, 3.0) == 3.0);
  CHECK(min(NAN, 2.0f) == 2.0f);
  CHECK(::isnan(NAN));
  CHECK((::isinf(-INFINITY) && ::signbit(-INFINITY)));
  CHECK_FALSE(::isfinite(INFINITY));
}

TEST_CASE("arithmetic rounds to nearest, conversions to integers as they are asked to", "[simt]") {
  Rng random(5);
  for (int i = 0; i < 500; ++i) {
    const auto draw = [&] { return static_cast<float>(static_cast<int>(random.bits32())) / 1024; };
    const float a = draw(), b = draw(), c = draw();
    const double x = a, y = b;
    CHECK(__fmul_rn(a, b) == static_cast<float>(x * y));
    CHECK(__fadd_rn(a, b) == static_cast<float>(x + y));
    CHECK(__fsub_rn(a, b) == static_cast<float>(x - y));
    CHECK(__fdiv_rn(a, b) == static_cast<float>(x / y));
    CHECK(__fmaf_rn(a, b, c) == static_cast<float>(static_cast<long double>(a) * b + c));
    const double third = x / 3;
    CHECK(__double2float_rn(third) == static_cast<float>(third));
    CHECK(__double2int_rd(third) == static_cast<int>(std::floor(third)));
    CHECK(__double2int_ru(third) == static_cast<int>(std::ceil(third)));
    CHECK(__double2int_rz(third) == static_cast<int>(third));
    CHECK(__double2int_rn(third) == static_cast<int>(std::nearbyint(third)));
  }
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rn(NAN) == 0);
  CHECK(__float2int_rz(1e20f) == std::numeric_limits<int>::max());
  CHECK(__float2uint_rz(-5.0f) == 0);
}

}  // namespace
}  // namespace simt_test
