#include <functional>
#include <string>

#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "sparse/convert.hpp"
#include "sparse/load.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#endif

using namespace spmv;

namespace {

// rows x cols and dense. The value at (row, column) is value(row, column); triplets stand row by
// row or column by column.
enum class Order { kRows, kColumns };
template <typename T>
Matrix<T> dense(Index rows, Index cols, Order order, const std::function<T(Index, Index)>& value) {
  Matrix<T> matrix;
  matrix.coo = {rows, cols, {}, {}, {}};
  for (Index k = 0; k < rows * cols; ++k) {
    const Index row = order == Order::kRows ? k / cols : k % rows;
    const Index column = order == Order::kRows ? k % cols : k / rows;
    matrix.coo.add(row, column, value(row, column));
  }
  matrix.csr = to_csr(matrix.coo);
  return matrix;
}

}  // namespace

TEST_CASE("step 04: every kernel is right on every matrix", "[04]") {
  test::check_kernels_of_step(4);
}

TEST_CASE("step 04: triplets keep the order of the file unless some were merged", "[04]") {
  Matrix<double> matrix;
  matrix.coo = {2, 3, {1, 0, 1}, {2, 0, 0}, {1, 2, 3}};
  matrix.csr = to_csr(matrix.coo);
  CHECK(triplets_of(matrix).row_indices == std::vector<Index>{1, 0, 1});
  CHECK(triplets_of(matrix).column_indices == std::vector<Index>{2, 0, 0});

  matrix.coo = {2, 3, {1, 0, 1, 1}, {2, 0, 0, 2}, {1, 2, 3, 4}};
  matrix.csr = to_csr(matrix.coo, &matrix.duplicates);
  REQUIRE(matrix.duplicates == 1);
  CHECK(triplets_of(matrix).row_indices == std::vector<Index>{0, 1, 1});
  CHECK(triplets_of(matrix).values == std::vector<double>{2, 3, 5});

  matrix.coo = {};  // not kept
  CHECK(triplets_of(matrix).values == std::vector<double>{2, 3, 5});
  CHECK(triplets_of(matrix).rows == 2);

  matrix = {};
  matrix.csr = {4, 0, {0, 0, 0, 0, 0}, {}, {}};
  CHECK(triplets_of(matrix).rows == 4);
}

#ifndef SPMV_CUDA
namespace {

// The rows of y, multiplied on one core in the order of `schedule`.
template <typename T>
std::vector<T> product(const std::string& kernel, const Matrix<T>& matrix,
                       simt::Schedule schedule) {
  const simt::Settings before = simt::settings();
  simt::settings().schedule = schedule;
  simt::settings().workers = 1;
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr};
  const device::Buffer<T> x("x", test_vector<T>(matrix.csr.cols, 1));
  device::Buffer<T> y("y", matrix.csr.rows);
  find_kernels(kernel)[0]->set_up(problem)->multiply(1, x.data(), 0, y.data(), nullptr);
  simt::settings() = before;
  return y.download();
}

}  // namespace

TEST_CASE("step 04: atomics and the lanes that share an address, counted by hand", "[04]") {
  if (!simt::is_instrumented()) {
    WARN("skipped: only the instrumented build (COUNT=1) counts");
    return;
  }
  const auto value = [](Index row, Index column) { return 1.0 + row - 2.0 * column; };
  // 256 nonzeros are what one warp takes.
  struct Case {
    std::string kernel;
    Index rows, cols;
    Order order;
    std::uint64_t requests, atomics, addresses, most;
  };
  const auto by_row = Order::kRows, by_column = Order::kColumns;
  for (const Case& c : {
           Case{"atomic_coo", 32, 8, by_row, 8, 256, 32, 8},        // 4 rows a request
           Case{"atomic_coo", 32, 8, by_column, 8, 256, 256, 1},    // all 32 rows a request
           Case{"atomic_coo", 1, 256, by_row, 8, 256, 8, 32},       // one address
           Case{"atomic_coo_sorted", 32, 8, by_row, 1, 32, 32, 1},  // a row a thread
           Case{"atomic_coo_sorted", 32, 8, by_column, 1, 32, 32, 1},
           Case{"atomic_coo_sorted", 64, 4, by_row, 2, 64, 64, 1},   // two rows a thread
           Case{"atomic_coo_sorted", 1, 256, by_row, 1, 32, 1, 32},  // all threads in one row
           Case{"atomic_coo_sorted_runs", 32, 8, by_column, 1, 32, 32, 1},
           Case{"atomic_coo_sorted_runs", 1, 256, by_row, 1, 32, 1, 32},
           Case{"atomic_coo_warp", 32, 8, by_row, 8, 32, 32, 1},  // 4 rows a request
           Case{"atomic_coo_warp", 32, 8, by_column, 8, 32, 32, 1},
           Case{"atomic_coo_warp", 1, 256, by_row, 8, 8, 8, 1},  // a lane a request
       }) {
    CAPTURE(c.kernel, c.rows, c.cols);
    const auto matrix = dense<double>(c.rows, c.cols, c.order, value);
    const simt::AccessCounts got = test::traffic_of(c.kernel, matrix, "atomic", "y");
    CHECK(got.requests == c.requests);
    CHECK(got.lanes == c.atomics);
    CHECK(got.addresses == c.addresses);
    CHECK(got.max_same_address == c.most);
  }
}

TEST_CASE("step 04: runs interleaved over lanes are read coalesced, runs in a row are not",
          "[04]") {
  if (!simt::is_instrumented()) {
    WARN("skipped: only the instrumented build (COUNT=1) counts");
    return;
  }
  const auto matrix =
      dense<double>(32, 8, Order::kRows, [](Index row, Index column) { return row - column + .5; });
  const auto sectors_of_values = [&](const std::string& kernel) {
    return test::traffic_of(kernel, matrix, "load", "values").sectors;
  };
  CHECK(sectors_of_values("atomic_coo_sorted") == 256 * 8 / 32);
  CHECK(sectors_of_values("atomic_coo_sorted_runs") == 256);  // every lane a sector of its own
}

TEST_CASE("step 04: the order of atomics shows in the last bits", "[04]") {
  // 1/3, 2/3, ... have no end in binary: every sum of three or more rounds, and how depends on the
  // order. Two sums cannot differ: 0 + a + b = 0 + b + a.
  const auto thirds = [](Index row, Index column) { return (row + 2.0 * column + 1) / 3; };
  const auto differs = [&](const std::string& kernel, Index rows, Index cols) {
    const Matrix<double> matrix = dense<double>(rows, cols, Order::kRows, thirds);
    const auto forward = product(kernel, matrix, simt::Schedule::kForward);
    CHECK(compare_bits(forward, product(kernel, matrix, simt::Schedule::kForward)).rows == 0);
    return compare_bits(forward, product(kernel, matrix, simt::Schedule::kReverse)).rows > 0;
  };
  CHECK(differs("atomic_coo", 64, 8));
  CHECK_FALSE(differs("atomic_coo", 256, 2));
  // A row within one thread, or within the lanes of one request, is added once.
  CHECK_FALSE(differs("atomic_coo_sorted", 64, 8));
  CHECK_FALSE(differs("atomic_coo_warp", 64, 8));
  // Rows over many of them.
  CHECK(differs("atomic_coo_sorted", 8, 400));
  CHECK(differs("atomic_coo_warp", 8, 400));
}
#endif
