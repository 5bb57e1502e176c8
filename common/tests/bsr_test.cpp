#include "sparse/bsr.hpp"

#include <string>
#include <vector>

#include "sparse/generators.hpp"
#include "tests/catch.hpp"

using namespace spmv;

namespace {

// Every element of the matrix, zeros too, row by row.
std::vector<double> elements(const Csr<double>& a) {
  std::vector<double> all(static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(a.cols));
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      all[static_cast<std::size_t>(row * a.cols + a.column_indices[k])] = a.values[k];
    }
  }
  return all;
}

std::vector<double> elements(const Bsr<double>& bsr, Index cols) {
  const auto block_rows = static_cast<Index>(bsr.row_offsets.size()) - 1;
  std::vector<double> all(static_cast<std::size_t>(block_rows * bsr.block * cols));
  for (Index block_row = 0; block_row < block_rows; ++block_row) {
    for (Index at = bsr.row_offsets[block_row]; at < bsr.row_offsets[block_row + 1]; ++at) {
      REQUIRE((at == bsr.row_offsets[block_row] ||
               bsr.column_indices[at - 1] < bsr.column_indices[at]));
      for (Index i = 0; i < bsr.block * bsr.block; ++i) {
        const Index row = block_row * bsr.block + i / bsr.block;
        const Index column = bsr.column_indices[at] * bsr.block + i % bsr.block;
        all[static_cast<std::size_t>(row * cols + column)] =
            bsr.values[static_cast<std::size_t>(at * bsr.block * bsr.block + i)];
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("block CSR holds the matrix, in the size of block asked for", "[bsr]") {
  for (const char* spec : {"stencil2d:6x4,dof=4", "random:24x36,nnz_per_row=5", "fem:24,block=2",
                           "powerlaw:48x24", "dense:12x24", "dense:0x12", "dense:12x0"}) {
    const Csr<double> a = generate<double>(spec);
    for (const Index block : {1, 2, 3, 4, 6, 12}) {
      CAPTURE(spec, block);
      const Bsr<double> bsr = to_bsr(a, block);
      CHECK(elements(bsr, a.cols) == elements(a));
      CHECK(count_blocks(a, block) == static_cast<std::int64_t>(bsr.column_indices.size()));
    }
  }
}

TEST_CASE("the best block of a structured grid is that of its points", "[bsr]") {
  for (const std::string grid : {"stencil2d:12x10", "stencil2d:12x10,points=9", "stencil3d:6x6x4",
                                 "stencil3d:4x6x6,points=27", "stencil2d:12x10,boundary=wrap"}) {
    CHECK(best_block(generate<double>(grid)) == 0);
    for (const Index dof : {2, 3, 4, 5, 6, 7, 8}) {
      const std::string spec = grid + ",dof=" + std::to_string(dof);
      CAPTURE(spec);
      CHECK(best_block(generate<float>(spec)) == dof);
      CHECK(best_block(generate<double>(spec)) == dof);
    }
  }
  CHECK(best_block(generate<float>("fem:200,block=3")) == 3);
  CHECK(best_block(generate<float>("powerlaw:240x240")) == 0);
}
