// CUDA on the CPU: integer and bit functions, rounding.
#include <cmath>
#include <limits>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

TEST_CASE("bits and upper halves of products", "[simt]") {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const unsigned a = random.bits(), b = random.bits(), n = random.below(80);
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

TEST_CASE("arithmetic rounds to nearest, conversions to integers as they are asked to", "[simt]") {
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    const auto draw = [&] { return static_cast<float>(static_cast<int>(random.bits())) / 1024; };
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
