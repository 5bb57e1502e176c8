#include "sparse/order.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/run.hpp"
#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/specification.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"
#include "tests/sound.hpp"

using namespace spmv;

namespace {

Csr<double> matrix_of(const std::string& spec) {
  return generate<double>(spec);
}

bool is_permutation_of_all(const std::vector<Index>& numbers, Index count) {
  std::vector<Index> sorted = numbers, all(count);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

template <typename T>
Index bandwidth_of(const Csr<T>& a) {
  Index width = 0;
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      width = std::max(width, std::abs(a.column_indices[k] - row));
    }
  }
  return width;
}

// The path 2 - 0 - 3 - 1 and the vertex 4 alone.
Csr<double> path() {
  return to_csr(
      Coo<double>{5, 5, {2, 0, 0, 3, 3, 1, 4}, {0, 2, 3, 0, 1, 3, 4}, {1, 1, 2, 2, 3, 3, 4}});
}

}  // namespace

TEST_CASE("every order is a permutation, and moves every entry with its value", "[order]") {
  for (const std::string spec :
       {"stencil2d:7x9", "powerlaw:300x300,nnz=2000,max_row=90", "rmat:scale=7,symmetric=1",
        "random:50x50,nnz_per_row=0", "diagonal:1", "banded:0"}) {
    const Csr<double> a = matrix_of(spec);
    for (const std::string& name : kOrderNames) {
      CAPTURE(spec, name);
      const Numbering order = order_of(a, name);
      CHECK((order.rows.empty() ? name == "none" || name == "columns" || a.rows == 0
                                : is_permutation_of_all(order.rows, a.rows)));
      CHECK((order.columns.empty() ? name == "none" || a.cols == 0
                                   : is_permutation_of_all(order.columns, a.cols)));
      const Csr<double> moved = reordered(a, order);
      CHECK(test::is_sound(moved));
      // Back by the definition of an order.
      Coo<double> back = to_coo(moved);
      for (Index& row : back.row_indices) row = order.rows.empty() ? row : order.rows[row];
      for (Index& column : back.column_indices) {
        column = order.columns.empty() ? column : order.columns[column];
      }
      CHECK(to_csr(back) == a);
    }
  }
}

TEST_CASE("columns: the most used one first, ties as they were", "[order]") {
  const Csr<double> a =
      to_csr(Coo<double>{3, 5, {0, 0, 1, 1, 2, 2}, {1, 4, 3, 4, 3, 0}, {1, 2, 3, 4, 5, 6}});
  const Numbering order = order_of(a, "columns");
  CHECK(order.rows.empty());
  CHECK(order.columns == std::vector<Index>{3, 4, 0, 1, 2});
  CHECK(reordered(a, order).column_indices == std::vector<Index>{1, 3, 0, 1, 0, 2});
}

TEST_CASE("degree: rows and columns alike, the most nonzeros first", "[order]") {
  const Csr<double> a =
      to_csr(Coo<double>{4, 4, {0, 1, 1, 2, 3, 3}, {2, 2, 3, 2, 1, 2}, {1, 1, 1, 1, 1, 1}});
  const Numbering order = order_of(a, "degree");  // 1, 3, 5 and 3 nonzeros in row and column
  CHECK(order.rows == std::vector<Index>{2, 1, 3, 0});
  CHECK(order.columns == order.rows);
}

TEST_CASE("rcm numbers a path along the path, and parts one after the other", "[order]") {
  const Csr<double> a = path();
  const Numbering order = order_of(a, "rcm");
  CHECK(bandwidth_of(a) == 3);
  CHECK(bandwidth_of(reordered(a, order)) == 1);
  CHECK(order.rows == order.columns);
  CHECK(order.rows.back() == 4);  // fewest neighbours: first before the reversal
}

TEST_CASE("rcm gives a shuffled grid a bandwidth near its own", "[order]") {
  // 40 x 10 points: a breadth-first search from a corner has levels of at most 10 points.
  const Csr<double> grid = matrix_of("stencil2d:10x40");
  Numbering shuffle;
  for (Index k = 0; k < grid.rows; ++k) shuffle.rows.push_back(k * 177 % grid.rows);
  shuffle.columns = shuffle.rows;
  const Csr<double> shuffled = reordered(grid, shuffle);
  CHECK(bandwidth_of(grid) == 10);
  CHECK(bandwidth_of(shuffled) > 200);
  CHECK(bandwidth_of(reordered(shuffled, order_of(shuffled, "rcm"))) <= 20);
}

TEST_CASE("rcm takes the pattern of a matrix and its transpose together", "[order]") {
  // A one-way path: without the transpose every vertex but one would be a part of its own.
  Coo<double> coo{50, 50, {}, {}, {}};
  for (Index k = 0; k + 1 < 50; ++k) coo.add(k * 7 % 50, (k + 1) * 7 % 50, 1);
  const Csr<double> a = to_csr(coo);
  CHECK(bandwidth_of(reordered(a, order_of(a, "rcm"))) == 1);
}

TEST_CASE("an order of rows and columns alike needs a square matrix", "[order]") {
  const Csr<double> a = matrix_of("random:20x30,nnz_per_row=3");
  for (const std::string name : {"rcm", "degree"}) {
    CHECK(test::error_of([&] { order_of(a, name); }) ==
          "--order " + name +
              " renumbers rows and columns alike, and this matrix is 20 x 30; use --order columns");
  }
  CHECK(order_of(a, "columns").columns.size() == 30);
}

TEST_CASE("a product in another order is verified in the original numbering", "[order]") {
  for (const double beta : {0.0, 0.5}) {
    for (const std::string& name : kOrderNames) {
      CAPTURE(beta, name);
      Matrix<double> matrix;
      matrix.csr = matrix_of("powerlaw:500x500,nnz=4000,max_row=100");
      const RunOptions options{.beta = beta};
      Task<double> task(matrix.csr, options);
      const std::vector<double> reference = task.reference.y;
      const Numbering order = order_of(matrix.csr, name);
      matrix.csr = reordered(matrix.csr, order);
      task.renumber(order);
      CHECK(task.reference.y == reference);
      const device::DeviceCsr<double> csr(matrix.csr);
      const Problem<double> problem{matrix, csr};
      const auto verified = [&](Task<double> with) {
        return Bench<double>(problem, options, std::move(with))
            .run(*find_kernels("csr_vector").front())
            .verified;
      };
      CHECK(verified(task));
      if (name == "none") continue;
      // A vector that was left in its old order is found out.
      Task<double> forgotten = task;
      forgotten.x = as_it_was(task.x, order.columns);
      CHECK_FALSE(verified(forgotten));
      if (order.rows.empty()) continue;
      forgotten = task;
      forgotten.order.rows.clear();
      CHECK_FALSE(verified(forgotten));
    }
  }
}
