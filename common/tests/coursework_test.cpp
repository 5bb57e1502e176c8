#include <algorithm>

#include "coursework/drawing.hpp"
#include "coursework/shrink.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_matrices.hpp"

using namespace spmv;
using namespace spmv::coursework;

namespace {

Coo<double> matrix_named(const std::string& name) {
  for (const test::NamedMatrix& matrix : test::adversarial_matrices()) {
    if (matrix.name == name) return matrix.triplets;
  }
  return {};
}

Index longest_row(const Coo<double>& matrix) {
  std::vector<Index> lengths(matrix.rows);
  for (const Index row : matrix.row_indices) ++lengths[row];
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace

TEST_CASE("a failure shrinks to what it needs", "[coursework]") {
  const auto shrunk = [](const std::string& name, auto fails) {
    const Coo<double> matrix = matrix_named(name);
    REQUIRE(fails(matrix));
    const Coo<double> small = shrink(matrix, fails);
    CHECK(fails(small));
    for (Index k = 0; k < small.nnz(); ++k) {
      CHECK((small.row_indices[k] >= 0 && small.row_indices[k] < small.rows));
      CHECK((small.column_indices[k] >= 0 && small.column_indices[k] < small.cols));
    }
    return small;
  };
  Coo<double> small = shrunk("tall", [](const auto& m) { return m.rows >= 33; });
  CHECK(small.rows == 33);
  CHECK(small.cols == 0);
  CHECK(small.nnz() == 0);

  small = shrunk("rows of 33", [](const auto& m) { return longest_row(m) > 5; });
  CHECK(small.rows == 1);
  CHECK(small.cols == 6);
  CHECK(small.nnz() == 6);

  // A row without nonzeros after one that has some.
  small = shrunk("rows of 0 and 1 in turn", [](const auto& m) {
    std::vector<bool> has(m.rows);
    for (const Index row : m.row_indices) has[row] = true;
    for (Index row = 1; row < m.rows; ++row) {
      if (has[row - 1] && !has[row]) return true;
    }
    return false;
  });
  CHECK(small.rows == 2);
  CHECK(small.nnz() == 1);
  CHECK(small.row_indices[0] == 0);
}

TEST_CASE("shrinking stops after so many attempts", "[coursework]") {
  int calls = 0;
  shrink(
      matrix_named("tall"),
      [&calls](const Coo<double>&) {
        ++calls;
        return false;
      },
      17);
  CHECK(calls == 17);
}

TEST_CASE("a wrong product is drawn", "[coursework]") {
  const Coo<double> small{2, 3, {0, 0, 1}, {0, 2, 1}, {1.5, -2, 0.25}};
  const std::string text = draw(small, {1, 2, 3}, {}, {-4.5, 0.5}, {-4.5, 0.75}, {false, true});
  CHECK(text == R"(   row  A                           expected       got
     0       1.5       .      -2        -4.5      -4.5
     1         .    0.25       .         0.5      0.75  <-- wrong
     x         1       2       3
)");

  const Coo<double> wide{40, 100, {39, 39, 39, 39, 39}, {0, 20, 40, 60, 99}, {1, 2, 3, 4, 5}};
  std::vector<bool> wrong(40);
  wrong[39] = true;
  const std::string large =
      draw(wide, {}, {}, std::vector<double>(40), std::vector<double>(40), wrong);
  CHECK(std::count(large.begin(), large.end(), '\n') == 2);
  CHECK(large.find("5 nonzeros  [0] 1  [20] 2  [40] 3  [60] 4  ...") != std::string::npos);
}
