#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "diagonal_formats.hpp"
#include "harness/run.hpp"
#include "row_formats.hpp"
#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/rng.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"
#include "tests/schedules.hpp"

using namespace spmv;

namespace {

constexpr double kAnyPadding = std::numeric_limits<double>::infinity();

// Rows of 0 to `longest` nonzeros in random columns, and on each of `diagonals` a nonzero in nine
// rows of ten.
template <typename T>
Csr<T> random_matrix(Index rows, Index cols, Index longest, const std::vector<Index>& diagonals,
                     std::uint64_t seed) {
  Rng rng(seed);
  const auto below = [&](Index n) { return static_cast<Index>(rng.below(std::max<Index>(n, 1))); };
  Coo<T> coo{rows, cols, {}, {}, {}};
  std::map<std::pair<Index, Index>, T> entries;
  for (Index row = 0; row < rows; ++row) {
    for (Index left = cols > 0 ? below(longest + 1) : 0; left > 0; --left) {
      entries[{row, below(cols)}] = signed_unit_value<T>(rng.bits64());
    }
    for (const Index offset : diagonals) {
      const Index column = row + offset;
      if (column < 0 || column >= cols || below(10) == 0) continue;
      entries[{row, column}] = signed_unit_value<T>(rng.bits64());
    }
  }
  for (const auto& [place, value] : entries) coo.add(place.first, place.second, value);
  return to_csr(coo);
}

template <typename T>
Matrix<T> matrix_of(Csr<T> csr) {
  Matrix<T> matrix;
  matrix.csr = std::move(csr);
  return matrix;
}

template <typename T>
Record run(const std::string& kernel, const Matrix<T>& matrix, double padding_limit = 3) {
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr, padding_limit};
  const Bench<T> bench(problem, {.alpha = 0.75, .beta = -0.5, .measure = false});
  return bench.run(*find_kernels(kernel).front());
}

}  // namespace

TEST_CASE("step 08: every kernel is right on every matrix", "[08]") {
  test::check_kernels_of_step(8, 10);
}

TEST_CASE("step 08: every format of rows and diagonals at random, whatever the padding", "[08]") {
  for (int i = 0; i < 100; ++i) {
    Rng rng(77 + static_cast<std::uint64_t>(i));
    const auto rows = static_cast<Index>(rng.below(i % 10 == 0 ? 300 : 40));
    const auto cols = static_cast<Index>(rng.below(i % 7 == 0 ? 300 : 50));
    const auto longest = static_cast<Index>(rng.below(i % 3 == 0 ? 20 : 4));
    const std::vector<Index> diagonals =
        i % 2 == 0 ? std::vector<Index>{}
                   : std::vector<Index>{-7, -1, 0, static_cast<Index>(i % 30)};
    const auto check = [&](const auto& matrix) {
      for (const Kernel* kernel : find_kernels("coo,ell,hyb,dia*,sell*")) {
        const Record record = run(kernel->info.name, matrix, kAnyPadding);
        INFO(i << " " << kernel->info.name << ": " << record.failure);
        CHECK(record.verified);
      }
    };
    if (i % 4 < 2) {
      check(matrix_of(random_matrix<float>(rows, cols, longest, diagonals, rng.bits64())));
    } else {
      check(matrix_of(random_matrix<double>(rows, cols, longest, diagonals, rng.bits64())));
    }
  }
}

TEST_CASE("step 08: the scan over several tiles", "[08]") {
  for (const int count : {0, 1, kScanTile - 1, kScanTile, kScanTile + 1, 5 * kScanTile + 7}) {
    Rng rng(5);
    std::vector<int> counts(count);
    for (int& n : counts) n = static_cast<int>(rng.below(100));
    std::vector<long long> expected{0};
    for (const int n : counts) expected.push_back(expected.back() + n);
    const device::Buffer<int> on_device("counts", counts);
    device::Buffer<long long> begins("begins", expected.size());
    exclusive_scan(on_device.data(), count, begins.data());
    CHECK(begins.download() == expected);
  }
}

TEST_CASE("step 08: CUSP's rule for the width of HYB", "[08]") {
  const auto width = [](std::vector<int> histogram) {
    Index rows = 0;
    for (const int n : histogram) rows += n;
    return hyb_width(histogram, rows);
  };
  CHECK(hyb_width({0}, 0) == 0);
  CHECK(width({0, 0, 0, 0, 5000}) == 4);     // all alike
  CHECK(width({0, 0, 0, 0, 4095}) == 0);     // too few rows for any
  CHECK(width({0, 0, 20000, 10000}) == 3);   // a third goes on
  CHECK(width({0, 0, 20001, 9999}) == 2);    // less than a third does
  CHECK(width({0, 8000, 0, 0, 4096}) == 4);  // a third, and 4096 rows
  CHECK(width({0, 8000, 0, 0, 4095}) == 1);  // fewer than 4096
  CHECK(width({20000, 0, 0, 9999}) == 0);    // most rows are empty
}

TEST_CASE("step 08: HYB with both of its parts", "[08]") {
  // So many rows that 4500 of them have more than two nonzeros.
  const Csr<double> a = random_matrix<double>(9000, 500, 5, {}, 3);
  const device::DeviceCsr<double> csr(a);
  const int width = hyb_width(csr);
  CHECK(width == 3);
  Index rest = 0;
  for (Index row = 0; row < a.rows; ++row) rest += std::max(a.row_length(row) - width, 0);
  CHECK(coo_from(csr, width).nnz == rest);
  const Matrix<double> matrix = matrix_of(a);
  test::under_every_schedule([&] {
    const Record record = run("hyb", matrix);
    INFO(record.failure);
    CHECK(record.verified);
    CHECK(record.choice.find("width 3, ") == 0);
  });
}

TEST_CASE("step 08: padding is counted, and refused before it is stored", "[08]") {
  // 99 rows of 1 and one of 101: 100 x 101 places for 200 nonzeros.
  Coo<double> coo{100, 101, {}, {}, {}};
  for (Index row = 0; row < 99; ++row) coo.add(row, row, 1.0);
  for (Index column = 0; column < 101; ++column) coo.add(99, column, 1.0);
  const Matrix<double> matrix = matrix_of(to_csr(coo));

  Record record = run("ell", matrix);
  CHECK(record.unsuitable);
  CHECK(record.failure.find("10100 entries for 200 nonzeros, 50.5 for each, and the limit is 3; "
                            "--padding-limit 51") != std::string::npos);
  record = run("ell", matrix, 51);
  CHECK(record.verified);
  CHECK(record.choice == "padding 50.50x");

  // 101 diagonals.
  record = run("dia", matrix);
  CHECK(record.unsuitable);
  CHECK(record.failure.find("10100 entries for 200 nonzeros") != std::string::npos);
  record = run("dia", matrix, 51);
  CHECK(record.verified);
  CHECK(record.choice == "101 diagonals, padding 50.50x");

  // Three slices of 32 rows and width 1, one of 4 rows and width 101. Sorted, the long row is in
  // the first slice.
  CHECK(run("sell", matrix).choice == "32 warps per slice, padding 2.50x");
  record = run("sell_sorted", matrix, 16);
  CHECK(record.unsuitable);
  CHECK(record.failure.find("3300 entries") != std::string::npos);
  CHECK(run("sell_sorted", matrix, 17).choice == "32 warps per slice, padding 16.50x");

  // The main diagonal as such, the long row as CSR; nothing is padded but two places.
  record = run("dia_csr", matrix);
  CHECK(record.verified);
  CHECK(record.choice == "1 diagonal, 50% in CSR of 16 bits, padding 1.00x");
}

TEST_CASE("step 08: rows alike after sorting need no padding", "[08]") {
  // In each slice one row of 9 among rows of 1.
  Coo<float> coo{1024, 1024, {}, {}, {}};
  for (Index row = 0; row < 1024; ++row) {
    for (Index j = 0; j < (row % 32 == 5 ? 9 : 1); ++j) coo.add(row, (row + 50 * j) % 1024, 1.0f);
  }
  const device::DeviceCsr<float> csr(to_csr(coo));
  CHECK(SlicedEll<float>(csr, Rows::kAsTheyStand, 100, ColumnBits::k32).columns.size() == 9 * 1024);
  // In a window of 256 one slice of 9, seven of 1.
  CHECK(SlicedEll<float>(csr, Rows::kSortedInWindows, 100, ColumnBits::k32).columns.size() ==
        (9 + 7) * 128);
}

// With so many warps per slice, and with 2, 4, ... times as many, up to 32.
template <int warps, typename T>
void check_sell(const Csr<T>& a, const std::vector<T>& x, const std::vector<T>& expected) {
  const device::DeviceCsr<T> csr(a);
  const device::Buffer<T> x_on_device("x", x);
  const auto rows = static_cast<unsigned>(a.rows);
  const dim3 block(kSlice, warps, slices_per_block(warps));
  const auto check = [&](const SlicedEll<T>& sell, auto columns) {
    using Columns = decltype(columns);
    for (const auto kernel :
         {sell_kernel<T, warps, false, Columns>, sell_kernel<T, warps, true, Columns>}) {
      device::Buffer<T> y("y", std::vector<T>(a.rows, 99));
      device::launch(kernel, {dim3(device::divide_up(rows, kSlice * block.z)), block}, rows,
                     sell.slice_begins.data(), sell.places.data(), columns, sell.values.data(),
                     T{2}, x_on_device.data(), T{0}, y.data());
      CAPTURE(warps);
      CHECK(y.download() == expected);
    }
  };
  for (const Rows order : {Rows::kAsTheyStand, Rows::kSortedInWindows}) {
    for (const ColumnBits bits : {ColumnBits::k32, ColumnBits::k16}) {
      const SlicedEll<T> sell(csr, order, 100, bits);
      sell.with_columns([&](auto columns) { check(sell, columns); });
    }
  }
  if constexpr (warps < 32) check_sell<2 * warps>(a, x, expected);
}

// Of small integers, sums are exact in any order.
TEMPLATE_TEST_CASE("step 08: sliced ELL with any number of warps per slice", "[08]", float,
                   double) {
  const Index cols = GENERATE(500, 200000);  // of which hardly a tile fits into 16 bits
  Csr<TestType> a = random_matrix<TestType>(777, cols, 9, {0, 3}, 5);
  for (std::size_t k = 0; k < a.values.size(); ++k) a.values[k] = static_cast<int>(k % 5) - 2;
  std::vector<TestType> x(a.cols), expected(a.rows, 0);
  for (Index j = 0; j < a.cols; ++j) x[j] = j % 7 - 3;
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      expected[row] += 2 * a.values[k] * x[a.column_indices[k]];
    }
  }
  check_sell<1>(a, x, expected);
}

TEMPLATE_TEST_CASE("step 08: 16 bits of a column where 32 of them are near", "[08]", float,
                   double) {
  using T = TestType;
  // In the first column of two slices the last row lies `span` columns after the others; in the
  // second the columns are near, and the last row has none. Slice 1 has rows without any.
  for (const Index span : {0, 65533, 65534, 65535, 65536, 131072}) {
    Coo<T> coo{70, 200000, {}, {}, {}};
    for (Index row = 0; row < 64; ++row) {
      if (row / 32 == 1 && row % 3 == 1) continue;
      const bool last = row % 32 == 31;
      coo.add(row, last ? 65535 + span : 65535, T{1});
      if (!last) coo.add(row, 190000 + row, T(row + 1));
    }
    coo.add(66, 131071, T{3});  // alone in the last slice, which has 6 rows
    const Csr<T> a = to_csr(coo);
    CAPTURE(span);
    const bool wide = span > 65534;
    const SlicedEll<T> sell(device::DeviceCsr<T>(a), Rows::kAsTheyStand, 100, ColumnBits::k16);
    CHECK(sell.wide_columns == (wide ? 4 : 0));  // those of two slices of three
    CHECK(sell.high.size() == (wide ? 5 * 32 : 0));
    // Four offsets, 5 columns of slices, the last one of 6 entries. Which slices are wide, their
    // high halves and one base; or five bases.
    CHECK(sell.bytes() ==
          4 * 8 + (4 * 32 + 6) * (2 + sizeof(T)) + (wide ? 3 * 4 + 4 * 32 * 2 + 4 : 5 * 4));
    const Record record = run("sell_16", matrix_of(a));
    INFO(record.failure);
    CHECK(record.verified);
    CHECK((record.choice.find("80% of 32 bits, ") != std::string::npos) == wide);
  }
}

#ifdef SIMT_INSTRUMENTED
TEST_CASE("step 08: fewer bytes of columns are requested", "[08]") {
  const Matrix<double> matrix = matrix_of(generate<double>("stencil2d:64x64"));
  const auto sectors = [&](const std::string& kernel, const std::string& array) {
    return test::traffic_of(kernel, matrix, "load", array).sectors;
  };
  constexpr int kColumns = 128 * 5 - 4;  // the first and last two slices are without a diagonal
  CHECK(sectors("sell", "columns") == 4 * kColumns);
  CHECK(sectors("sell_16", "columns") == 2 * kColumns);
  CHECK(sectors("sell_16", "bases") == kColumns);
  CHECK(sectors("sell_16", "high_halves") == 0);
}
#endif

TEST_CASE("step 08: warps share a slice where slices are few or wide", "[08]") {
  CHECK(warps_per_slice(31250, 5, 5 * 31250, 132) == 1);
  CHECK(warps_per_slice(2048, 17, 9 * 2048, 132) == 2);
  CHECK(warps_per_slice(1139, 21, 19 * 1139, 132) == 4);
  CHECK(warps_per_slice(9375, 80, 57 * 9375, 132) == 4);  // wide on average
  CHECK(warps_per_slice(400, 40, 16000, 132) == 8);
  CHECK(warps_per_slice(100, 40, 4000, 132) == 16);
  CHECK(warps_per_slice(63, 2000, 126000, 132) == 32);
  CHECK(warps_per_slice(1, 0, 0, 132) == 1);
}

TEST_CASE("step 08: sizes past 2^31 are refused with their figure", "[08]") {
  // A row of 40,000 among 100,000: 4 10^9 places. Only the offsets say so, which is what counts.
  Csr<double> a{100000, 40000, {0}, std::vector<Index>(40000), std::vector<double>(40000, 1)};
  a.row_offsets.resize(a.rows + 1, 40000);
  std::iota(a.column_indices.begin(), a.column_indices.end(), 0);
  const Matrix<double> matrix = matrix_of(a);
  const Record ell = run("ell", matrix);
  CHECK(ell.unsuitable);
  CHECK(ell.failure.find("4000000000 entries for 40000 nonzeros, 100000.0") != std::string::npos);
  const Record dia = run("dia", matrix);
  CHECK(dia.unsuitable);
  CHECK(dia.failure.find("4000000000 entries") != std::string::npos);
  CHECK_THROWS_AS(check_memory("ELL", 1e19), Unsuitable);
}

TEST_CASE("step 08: the cut of DIA+CSR is where bytes are fewest", "[08]") {
  const auto format_of = [](const Csr<double>& a) {
    return DiaCsr<double>(device::DeviceCsr<double>(a));
  };
  // Full diagonals: no rest, 8 bytes per nonzero.
  const DiaCsr<double> full = format_of(generate<double>("banded:500,bandwidth=2"));
  CHECK(full.offsets.download() == std::vector<int>{-2, -1, 0, 1, 2});
  CHECK(full.rest_nonzeros() == 0);
  CHECK(full.stored() == 2500);
  // Of the five diagonals a product reads what lies within the matrix, as DIA does.
  CHECK(full.bytes() == (500 + 2 * 499 + 2 * 498) * 8 + 5 * 4);
  const Csr<double> band = generate<double>("banded:500,bandwidth=2");
  CHECK(Dia<double>(device::DeviceCsr<double>(band), 3).bytes() == full.bytes());

  // One full diagonal and a few nonzeros far from it, which a distance of 16 bits reaches or not.
  for (const Index far : {kNear, kNear + 1}) {
    Coo<double> coo{40000, 40000, {}, {}, {}};
    for (Index row = 0; row < coo.rows; ++row) coo.add(row, row, 1.0);
    for (Index row = 0; row < 500; ++row) coo.add(row, far + row / 2, 2.0);
    const Csr<double> a = to_csr(coo);
    const DiaCsr<double> format = format_of(a);
    CAPTURE(far);
    CHECK(format.offsets.download() == std::vector<int>{0});
    CHECK(format.rest_nonzeros() == 500);
    CHECK(format.distance_bytes() == (far <= kNear ? 2 : 4));
    CHECK(format.end_bytes() == 1);
    // The diagonal; for each of 1250 groups where it begins; the ends of the 16 that have a rest.
    CHECK(format.bytes() ==
          40000 * 8 + 4 + 1251 * 4 + 16 * 32 + 500 * (8 + format.distance_bytes()));
    const Record record = run("dia_csr", matrix_of(a));
    INFO(record.failure);
    CHECK(record.verified);
  }

  // The rest of 32 rows is as long as a byte holds, as 16 bits hold, and longer.
  for (const Index length : {255, 256, 65535, 65536}) {
    Coo<double> coo{64, 30000, {}, {}, {}};
    for (Index j = 0; j < length; ++j) {
      const Index row = j % 32;
      coo.add(row, (row * 131 + j / 32 * 13) % 30000, 1.0 + j);
    }
    const Csr<double> a = to_csr(coo);
    const DiaCsr<double> format = format_of(a);
    CAPTURE(length);
    CHECK(format.rest_nonzeros() == static_cast<std::size_t>(length));
    CHECK(format.end_bytes() == (length < 256 ? 1 : length < 65536 ? 2 : 4));
    CHECK(run("dia_csr", matrix_of(a)).verified);
  }
}

TEMPLATE_TEST_CASE("step 08: the same bits in every run", "[08]", float, double) {
  const Matrix<TestType> matrix =
      matrix_of(random_matrix<TestType>(700, 700, 9, {-50, -1, 0, 2}, 11));
  test::check_same_bits("coo,ell,hyb,dia,sell,sell_sorted,sell_16,sell_16_sorted,dia_csr", matrix,
                        1000);
}
