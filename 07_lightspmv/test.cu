#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "device/launch.hpp"
#include "device/texture.hpp"
#include "harness/kernel.hpp"
#include "harness/verify.hpp"
#include "lightspmv.cuh"
#include "lightspmv_counters.cuh"
#include "rules.hpp"
#include "sparse/convert.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"
#include "tests/schedules.hpp"

#ifndef SPMV_CUDA
#include "simt/profile.hpp"
#endif

using namespace spmv;

namespace {

// Row r has length(r) nonzeros, in columns that differ from row to row.
template <typename T, typename Length>
Matrix<T> build(Index rows, Index cols, Length length) {
  Matrix<T> matrix;
  matrix.coo = {rows, cols, {}, {}, {}};
  for (Index row = 0; row < rows; ++row) {
    for (Index k = 0; k < length(row); ++k) {
      const T value = static_cast<T>(1 + (row + 3 * k) % 11) / static_cast<T>(-9);
      matrix.coo.add(row, (row % 7 + k) % cols, value);
    }
  }
  matrix.csr = to_csr(matrix.coo);
  return matrix;
}

// Rows of 0 to 9 nonzeros, and each 300th of 400: long for every vector of less than 32 lanes.
template <typename T>
Matrix<T> uneven(Index rows) {
  return build<T>(rows, 1000, [](Index row) { return row % 300 == 299 ? 400 : row % 10; });
}

const char* const kNames[] = {"lightspmv_vector", "lightspmv_vector_inc", "lightspmv_warp",
                              "lightspmv_counters", "lightspmv_long"};

}  // namespace

TEST_CASE("step 07: every kernel is right on every matrix", "[07]") {
  test::check_kernels_of_step(7);
}

TEST_CASE("step 07: the poster's rule, at its borders", "[07]") {
  // rint(nnz / rows): 1.5 and 2.5 are both nearest to 2, since ties go to the even number.
  const std::pair<int, int> lanes_of_nnz[] = {{0, 2},    {149, 2},   {150, 4},   {199, 4},
                                              {250, 4},  {349, 4},   {350, 8},   {400, 8},
                                              {6349, 8}, {6350, 32}, {6400, 32}, {2000000000, 32}};
  for (const auto& [nnz, lanes] : lanes_of_nnz) {
    CAPTURE(nnz);
    CHECK(poster_lanes(100, nnz) == lanes);
  }
  CHECK(poster_lanes(0, 0) == 2);
  CHECK(poster_lanes(2147483647, 2147483647) == 2);
}

TEST_CASE("step 07: lanes by rows and device", "[07]") {
  constexpr int kThreads = 1000 * 32;
  // Rows enough for all threads: four nonzeros for each lane.
  CHECK(lanes_for_device(1000000, 1000000, kThreads) == 2);
  CHECK(lanes_for_device(1000000, 15999999, kThreads) == 2);
  CHECK(lanes_for_device(1000000, 16000000, kThreads) == 4);
  CHECK(lanes_for_device(1000000, 127999999, kThreads) == 16);
  CHECK(lanes_for_device(1000000, 128000000, kThreads) == 32);
  // Rows few enough for eight iterations: up to a lane for each nonzero.
  CHECK(lanes_for_device(32000, 32000 * 10, kThreads) == 8);
  CHECK(lanes_for_device(32001, 32001 * 10, kThreads) == 4);
  CHECK(lanes_for_device(100, 100 * 8, kThreads) == 8);
  CHECK(lanes_for_device(100, 100 * 8 + 1, kThreads) == 16);
  CHECK(lanes_for_device(100, 100 * 40, kThreads) == 32);
  CHECK(lanes_for_device(100, 100 * 2, kThreads) == 2);
  CHECK(lanes_for_device(0, 0, kThreads) == 2);
}

TEST_CASE("step 07: rows a ticket", "[07]") {
  constexpr int kThreads = 100 * 32;  // of 100 warps
  // An iteration with 8 lanes per row takes 4 rows; 400 iterations are four per warp.
  CHECK(rows_per_ticket(0, 8, kThreads) == 4);
  CHECK(rows_per_ticket(2 * 400 * 4 - 1, 8, kThreads) == 4);
  CHECK(rows_per_ticket(2 * 400 * 4, 8, kThreads) == 8);
  CHECK(rows_per_ticket(1000000, 8, kThreads) == 32);
  CHECK(rows_per_ticket(1000000, 32, kThreads) == 8);
  // The greatest matrix: rows, chunks and tickets, also those without work, stay within 32 bits.
  for (const int lanes : {2, 4, 8, 16, 32}) {
    const std::uint64_t rows = 2147483647, warps = 132 * 64;
    const std::uint64_t ticket = rows_per_ticket(2147483647, lanes, 132 * 2048);
    const std::uint64_t chunks = (rows + ticket - 1) / ticket;
    CHECK((chunks + warps) * ticket < (1ull << 32));
    CHECK(chunks + (warps + 2) * kCounters < (1ull << 32));
    CHECK(rows + 132 * 2048 / lanes < (1ull << 32));  // the poster's counter
  }
}

TEST_CASE("step 07: a texture has a greatest width", "[07]") {
  const std::size_t limit = device::LinearTexture<double>::max_elements();
  REQUIRE(limit < 2147483647);
  for (const std::size_t cols : {limit, limit + 1}) {
    Matrix<double> matrix;
    matrix.csr = {1, static_cast<Index>(cols), {0, 1}, {0}, {1.0}};
    const device::DeviceCsr<double> csr(matrix.csr);
    const Problem<double> problem{matrix, csr};
    for (const std::string name : {"lightspmv_vector", "lightspmv_vector_inc", "lightspmv_warp"}) {
      try {
        find_kernels(name)[0]->set_up(problem);
        CHECK(cols == limit);
      } catch (const Unsuitable& reason) {
        CHECK(cols == limit + 1);
        CHECK(std::string(reason.what()) == "x has " + std::to_string(limit + 1) +
                                                " elements; a texture has at most " +
                                                std::to_string(limit));
      }
    }
    CHECK_NOTHROW(find_kernels("lightspmv_long")[0]->set_up(problem));
  }
}

// More rows than the device has vectors, several products, two x in turn (each has its texture),
// and the same bits however the rows were shared out.
TEMPLATE_TEST_CASE("step 07: product after product, the same bits", "[07]", float, double) {
  using T = TestType;
#ifndef SPMV_CUDA
  const test::SavedSettings restore;
  simt::settings().multiprocessors = 16;  // an eighth of the time
#endif
  const Index rows = device::resident_blocks(lightspmv_kernel<32, 8, false, T>, kLightThreads) *
                         (kLightThreads / 8) * 3 +
                     5;
  const Matrix<T> matrix = uneven<T>(rows);
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr};
  const std::vector<T> x[] = {test_vector<T>(csr.cols, 1), test_vector<T>(csr.cols, 2)};
  std::vector<T> nan(rows, std::numeric_limits<T>::quiet_NaN());
  const Reference references[] = {make_reference(matrix.csr, T{1}, x[0], T{0}, nan),
                                  make_reference(matrix.csr, T{1}, x[1], T{0}, nan)};
  device::Buffer<T> x_device[] = {{"x", x[0]}, {"x", x[1]}};
  device::Buffer<T> y("y", rows);
  for (const char* name : kNames) {
    INFO(name);
    const auto spmv = find_kernels(name)[0]->set_up(problem);
    std::vector<T> first[2];
#ifndef SPMV_CUDA
    const simt::Schedule schedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                        simt::Schedule::kRandom};
#endif
    for (int product = 0; product < 6; ++product) {
#ifndef SPMV_CUDA
      simt::settings().schedule = schedules[product / 2];
      simt::settings().workers = product == 5 ? 7 : 0;
#endif
      const int which = product % 2;
      y.upload(nan);
      spmv->multiply(1, x_device[which].data(), 0, y.data(), nullptr);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      const std::vector<T> got = y.download();
      const Verdict verdict = verify(got, references[which]);
      INFO(product << ": " << verdict.describe());
      REQUIRE(verdict.ok);
      if (product < 2) first[which] = got;
      CHECK(std::memcmp(got.data(), first[which].data(), rows * sizeof(T)) == 0);
    }
  }
}

// Without that, a product after the first would leave out rows, or pass by its first ticket.
TEST_CASE("step 07: the counters end as they begin", "[07]") {
  const std::vector<unsigned> zeros(kCounters * kCounterStride);
  device::Buffer<unsigned> counters("row_counters", zeros);
  device::Buffer<double> x("x", test_vector<double>(1000, 1));
  for (const Index rows : {1, 3, 4, 5, 31, 32, 33, 1000, 1023, 1024, 1025, 5000}) {
    const Matrix<double> matrix = uneven<double>(rows);
    const device::DeviceCsr<double> csr(matrix.csr);
    device::Buffer<double> y("y", rows);
    for (const unsigned blocks : {1, 2, 15, 16, 17, 40}) {
      for (const unsigned rows_a_ticket : {4u, 12u}) {
        device::launch(lightspmv_counters_kernel<8, double>, {blocks, kCountersThreads},
                       static_cast<unsigned>(rows), csr.row_offsets.data(),
                       csr.column_indices.data(), csr.values.data(), 1.0, x.data(), 0.0, y.data(),
                       rows_a_ticket, 100u, counters.data());
        CAPTURE(rows, blocks, rows_a_ticket);
        CHECK(counters.download() == zeros);
      }
    }
  }
}

#ifndef SPMV_CUDA
TEST_CASE("step 07: long rows are read from border to border", "[07]") {
  if (!simt::is_instrumented()) return;
  // Rows begin anywhere. Still no sector of the values is asked for twice for a row.
  const Matrix<double> matrix = build<double>(50, 400, [](Index row) { return 100 + 7 * row; });
  constexpr int kOfSector = simt::kSectorBytes / sizeof(double);
  std::uint64_t sectors = 0;
  for (Index row = 0; row < 50; ++row) {
    sectors += (matrix.csr.row_offsets[row + 1] - 1) / kOfSector -
               matrix.csr.row_offsets[row] / kOfSector + 1;
  }
  for (const char* name : kNames) {
    CAPTURE(name);
    CHECK(test::traffic_of(name, matrix, "load", "values").sectors == sectors);
  }
}

TEST_CASE("step 07: what the counters are asked", "[07]") {
  if (!simt::is_instrumented()) return;
  const test::SavedSettings restore;
  simt::settings().multiprocessors = 16;
  // 8 lanes per row by either rule: 32 blocks of 128 vectors, 128 blocks of 8 warps.
  constexpr std::uint64_t kRows = 12000;
  const Matrix<double> matrix = build<double>(kRows, 100, [](Index) { return 40; });
  const auto atomics = [&](const std::string& kernel, const std::string& counter) {
    return test::traffic_of(kernel, matrix, "atomic", counter).lanes;
  };
  // A row each, and a last fetch per vector that finds none.
  CHECK(atomics("lightspmv_vector", "row_counter") == kRows + 32 * 128);
  CHECK(atomics("lightspmv_vector_inc", "row_counter") == kRows + 32 * 128);
  // Four rows each, and a last fetch per warp that finds none.
  CHECK(atomics("lightspmv_warp", "row_counter") == kRows / 4 + 32 * 32);
  // The same, but the first four rows of each warp cost nothing.
  CHECK(atomics("lightspmv_counters", "row_counters") == kRows / 4);
}
#endif
