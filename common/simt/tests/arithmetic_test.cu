// CUDA on the CPU: vector types, integer and bit functions, rounding, copies of memory in kernels,
// __trap.
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

TEST_CASE("vectors have the sizes and alignments of CUDA", "[simt]") {
  CHECK((sizeof(char2) == 2 && alignof(char2) == 2 && sizeof(uchar4) == 4 && alignof(uchar4) == 4));
  CHECK((sizeof(short2) == 4 && alignof(short2) == 4 && sizeof(ushort4) == 8));
  CHECK((sizeof(float3) == 12 && alignof(float3) == 4 && sizeof(double3) == 24));
  CHECK((sizeof(char3) == 3 && alignof(char3) == 1 && sizeof(longlong2) == 16));
  CHECK((sizeof(double4) == 32 && alignof(double4) == 16 && sizeof(int4) == 16));
  const float3 v = make_float3(1, 2, 3);
  CHECK(v.x + 10 * v.y + 100 * v.z == 321);
  const uchar4 bytes = make_uchar4(1, 2, 3, 4), copy = bytes;
  CHECK((copy.x == 1 && copy.y == 2 && copy.z == 3 && copy.w == 4));
  const short2 pair = make_short2(-1, 7);
  CHECK((pair.x == -1 && pair.y == 7));
}

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

__global__ void copy_bytes_kernel(const int* from, int* to, int bytes) {
  std::memcpy(to + 4 * threadIdx.x, from + 4 * threadIdx.x, static_cast<std::size_t>(bytes));
}
__global__ void copy_24_kernel(const int* from, int* to) {
  memcpy(to + 6 * threadIdx.x, from + 6 * threadIdx.x, 24);
}
__global__ void set_bytes_kernel(int* to, int bytes) {
  memset(to + 4 * threadIdx.x, 0, static_cast<std::size_t>(bytes));
}

TEST_CASE("copies of memory in kernels are observed", "[simt]") {
  Buffer<int> from("from", std::vector<int>(64, 5)), to("to", 64);
  launch(copy_bytes_kernel, {1, 16}, from.data(), to.data(), 16);
  CHECK(to.download() == std::vector<int>(64, 5));
  launch(copy_24_kernel, {1, 10}, from.data(), to.data());
  if (!simt::is_instrumented()) return;
  CHECK(contains(failure_of(copy_24_kernel, {1, 11}, from.data(), to.data()),
                 "256 bytes into 'from', which has 256"));
  CHECK(contains(failure_of(copy_bytes_kernel, {1, 16}, from.data(), to.data(), 24), "'from'"));
  CHECK(contains(failure_of(copy_bytes_kernel, {1, 8}, from.data(), to.data(), 20), "race: "));
  CHECK(contains(failure_of(set_bytes_kernel, {1, 8}, to.data(), 20), "race: writes"));
  CHECK(contains(failure_of(set_bytes_kernel, {1, 16}, to.data(), 20),
                 "256 bytes into 'to', which has 256"));
  Buffer<int> unwritten("unwritten", 64);
  CHECK(contains(failure_of(copy_bytes_kernel, {1, 1}, unwritten.data(), to.data(), 12),
                 "into 'unwritten', that was not written"));
}

__global__ void trap_kernel(int* out) {
  if (threadIdx.x == 3) __trap();
  out[threadIdx.x] = static_cast<int>(clock64() > 0);
}

TEST_CASE("__trap ends a launch", "[simt]") {
  Buffer<int> out("out", 32);
  CHECK(contains(failure_of(trap_kernel, {1, 32}, out.data()), "thread (3,0,0): __trap()"));
  CHECK(failure_of(trap_kernel, {1, 3}, out.data()).empty());
}

__global__ void assert_kernel(int* out) {
  assert(blockDim.x < 32 || threadIdx.x != 3);
  out[threadIdx.x] = 1;
}

TEST_CASE("an assertion that fails ends the launch and no more", "[simt]") {
  Buffer<int> out("out", 32);
  const std::string report = failure_of(assert_kernel, {1, 32}, out.data());
  CHECK(contains(report, "thread (3,0,0): assertion 'blockDim.x < 32 || threadIdx.x != 3' failed"));
  CHECK(failure_of(assert_kernel, {1, 3}, out.data()).empty());
}

}  // namespace
}  // namespace simt_test
