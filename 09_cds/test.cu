#include <algorithm>
#include <string>
#include <vector>

#include "cds_matrix.cuh"
#include "harness/run.hpp"
#include "sparse/generators.hpp"
#include "sparse/rng.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

using namespace spmv;

namespace {

// block_rows x block_columns dense blocks on `diagonals` random block diagonals. Of a hundred
// elements of a block `missing` are not there, and neither is a block where it falls outside.
template <typename T>
Matrix<T> block_diagonal(Rng& rng, Index block, Index block_rows, Index block_columns,
                         int diagonals, unsigned missing) {
  std::vector<bool> has(static_cast<std::size_t>(block_rows + block_columns - 1));
  for (int d = 0; d < diagonals; ++d) has[rng.below(has.size())] = true;
  Matrix<T> matrix;
  Csr<T>& a = matrix.csr;
  a = {block * block_rows, block * block_columns, {0}, {}, {}};
  for (Index row = 0; row < a.rows; ++row) {
    for (Index column = 0; column < a.cols; ++column) {
      const Index diagonal = column / block - row / block + block_rows - 1;
      if (!has[static_cast<std::size_t>(diagonal)] || rng.below(100) < missing) continue;
      a.column_indices.push_back(column);
      a.values.push_back(signed_unit_value<T>(rng.bits64()));
    }
    a.row_offsets.push_back(a.nnz());
  }
  return matrix;
}

// There and back in both layouts, and the products of all kernels, which refuse the matrix where it
// stores more than three values per nonzero. Returns whether they took it.
template <typename T>
bool check_conversions_and_products(const Matrix<T>& matrix, const RunOptions& options) {
  const device::DeviceCsr<T> a(matrix.csr);
  const BlockDiagonals found = find_block_diagonals(a, 1e6);
  for (const CdsLayout layout : {CdsLayout::kColumns, CdsLayout::kSlices}) {
    CHECK(to_csr(to_cds(a, found, layout)) == matrix.csr);
  }
  const auto fits = [&a](const BlockDiagonals& diagonals) {
    return diagonals.columns() * static_cast<std::uint64_t>(a.rows) <=
           3 * static_cast<std::uint64_t>(a.nnz);
  };
  const bool single_fits = fits(find_block_diagonals(a, 1e6, 1));
  const Problem<T> problem{matrix, a};
  const Bench<T> bench(problem, options);
  for (const Kernel* kernel : find_kernels("cds*")) {
    const Record record = bench.run(*kernel);
    INFO(kernel->info.name << ": " << record.failure);
    const bool expected = kernel->info.name == "cds_b1" ? single_fits : fits(found);
    CHECK(record.verified == expected);
    CHECK(record.unsuitable == !expected);
  }
  return fits(found);
}

template <typename T>
std::string refusal(const Csr<T>& a, double limit = 3) {
  try {
    find_block_diagonals(device::DeviceCsr<T>(a), limit);
  } catch (const Unsuitable& reason) {
    return reason.what();
  }
  return "";
}

}  // namespace

TEST_CASE("step 09: every kernel is right on every matrix", "[09]") {
  test::check_kernels_of_step(9);
}

TEST_CASE("step 09: random block diagonals come back, and their products are right", "[09]") {
  int taken = 0;
  for (int i = 0; i < 132; ++i) {
    CAPTURE(i);
    Rng rng(90, static_cast<std::uint64_t>(i));
    const Index block = 1 + i % 11;  // those with a kernel of their own, and beyond
    const auto size = [&] { return static_cast<Index>(1 + rng.below(i % 10 ? 12 : 40)); };
    const Index block_rows = size(), block_columns = i % 3 ? block_rows : size();
    const auto diagonals = static_cast<int>(1 + rng.below(9));
    const auto missing = static_cast<unsigned>(i % 4 == 0 ? rng.below(40) : 0);
    RunOptions options{.measure = false};
    if (i / 2 % 2) options = {.alpha = 0.75, .beta = -0.5, .measure = false};
    const auto check = [&](auto zero) {
      return check_conversions_and_products(
          block_diagonal<decltype(zero)>(rng, block, block_rows, block_columns, diagonals, missing),
          options);
    };
    taken += i % 2 ? check(0.0F) : check(0.0);
  }
  CHECK(taken > 80);
}

TEST_CASE("step 09: blocks and diagonals of structured grids are found", "[09]") {
  struct Case {
    std::string grid;
    std::size_t diagonals;
    std::vector<Index> blocks = {1, 4, 7};
  };
  for (const Case& c :
       {Case{"stencil2d:9x8", 5, {1, 2, 3, 4, 5, 6, 7, 8, 11}}, Case{"stencil2d:8x9,points=9", 9},
        Case{"stencil3d:5x4x6", 7}, Case{"stencil3d:5x5x4,points=27", 27},
        // A step past the end of a line leads back to its beginning: two diagonals
        // more, and two for the columns of the grid.
        Case{"stencil2d:9x8,boundary=wrap", 9}, Case{"stencil2d:9x8,boundary=clamp", 5},
        Case{"stencil3d:7x6x8,boundary=constant", 7}}) {
    for (const Index block : c.blocks) {
      const std::string spec = c.grid + ",dof=" + std::to_string(block);
      CAPTURE(spec);
      const Csr<float> csr = generate<float>(spec);
      const device::DeviceCsr<float> a(csr);
      // The rows of a small grid's edge, where they hold one nonzero, are many.
      const BlockDiagonals found = find_block_diagonals(a, 20);
      CHECK(found.block == block);
      CHECK(found.offsets.size() == c.diagonals);
      CHECK(std::is_sorted(found.offsets.begin(), found.offsets.end()));
      const CdsMatrix<float> cds = to_cds(a, found, CdsLayout::kColumns);
      CHECK(cds.stored_bytes() ==
            c.diagonals * (static_cast<std::size_t>(block * csr.rows) + 1) * 4);
      CHECK(to_csr(cds) == csr);
      if (c.grid == "stencil2d:9x8") {
        // What sticks out of the matrix is not read, nor is what a step past a line's end leads to.
        const auto blocks = [&](std::uint64_t n) {
          return n * static_cast<std::uint64_t>(block) * static_cast<std::uint64_t>(block) * 4;
        };
        CHECK(cds.read_bytes() == blocks(72 + 2 * 71 + 2 * 63) + 5 * 4);
      }
    }
  }
}

TEST_CASE("step 09: a dense matrix is one block, and many diagonals take several launches",
          "[09]") {
  const device::DeviceCsr<double> square(generate<double>("dense:30x30"));
  CHECK(find_block_diagonals(square, 3).block == 30);
  CHECK(find_block_diagonals(square, 3).offsets == std::vector<Index>{0});

  Matrix<double> matrix;
  matrix.csr = generate<double>("dense:311x307");
  CHECK(find_block_diagonals(device::DeviceCsr<double>(matrix.csr), 3).offsets.size() == 617);
  check_conversions_and_products(matrix, {.beta = 2, .measure = false});
}

TEST_CASE("step 09: what is no block diagonal is refused with the figure", "[09]") {
  // 20 diagonals of one nonzero each, of 20 x 20.
  Csr<double> a{20, 20, {0}, {}, {}};
  for (Index row = 0; row < 20; ++row) {
    a.column_indices.push_back(row % 2 ? 0 : 19);
    a.values.push_back(1);
    a.row_offsets.push_back(a.nnz());
  }
  CHECK(refusal(a) ==
        "block diagonals would take at least 200 values for 20 nonzeros; to store them all the "
        "same, give --padding-limit 10 or more");
  // The bound lets that pass; the best there is, 20 x 20 blocks on one diagonal, does not.
  CHECK(refusal(a, 10) ==
        "block diagonals would take 400 values for 20 nonzeros; to store them all the same, give "
        "--padding-limit 20");
  CHECK(refusal(a, 20) == "");
  const Csr<double> graph = generate<double>("powerlaw:500x500");
  CHECK(refusal(graph).find("block diagonals would take at least ") == 0);
}

TEST_CASE("step 09: a nonzero that is zero does not come back; empty matrices do", "[09]") {
  const device::DeviceCsr<float> on_device(Csr<float>{2, 2, {0, 2, 3}, {0, 1, 1}, {1, 0, 2}});
  const Csr<float> back =
      to_csr(to_cds(on_device, find_block_diagonals(on_device, 3), CdsLayout::kColumns));
  CHECK(back == Csr<float>{2, 2, {0, 1, 2}, {0, 1}, {1, 2}});
  for (const auto& [rows, cols] : {std::pair<Index, Index>{0, 0}, {0, 4}, {4, 0}, {3, 5}}) {
    const Csr<float> empty{rows, cols, std::vector<Index>(rows + 1), {}, {}};
    const device::DeviceCsr<float> e(empty);
    for (const CdsLayout layout : {CdsLayout::kColumns, CdsLayout::kSlices}) {
      CHECK(to_csr(to_cds(e, find_block_diagonals(e, 3), layout)) == empty);
    }
  }
}

TEST_CASE("step 09: what the device cannot hold is refused before it is allocated", "[09]") {
  const device::DeviceCsr<double> a(generate<double>("diagonal:1000"));
  const BlockDiagonals claimed{1000, std::vector<Index>(1000000)};
  try {
    to_cds(a, claimed, CdsLayout::kColumns);
    FAIL("not refused");
  } catch (const Unsuitable& reason) {
    const std::string text = reason.what();
    CHECK(text.find("would take 1024000000000 values of 8 bytes; the device has ") !=
          std::string::npos);
  }
}

#ifndef SPMV_CUDA
TEST_CASE("step 09: every request for values is a full one, whatever b is", "[09]") {
  for (const Index block : {1, 5, 8, 9}) {
    CAPTURE(block);
    Matrix<float> matrix;
    // Rows in a number that is no multiple of 8, in which the columns of another layout would begin
    // in the middle of a sector.
    matrix.csr = generate<float>("stencil2d:19x17,dof=" + std::to_string(block));
    for (const char* name : {"cds", "cds_texture", "cds_sliced"}) {
      CAPTURE(name);
      const simt::AccessCounts values = test::traffic_of(name, matrix, "load", "values");
      // A block of odd size may begin within a sector, where a diagonal enters the matrix, and so
      // may one end where it leaves: a sector more for each of the columns.
      const auto columns = 2 * 5 * static_cast<std::uint64_t>(block);
      CHECK(values.sectors <= values.ideal_sectors + columns);
    }
  }
}
#endif
