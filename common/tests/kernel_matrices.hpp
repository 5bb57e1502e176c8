// The matrices on which kernels are tested: chosen to break them, and random ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::test {

struct NamedMatrix {
  std::string name;
  Coo<double> triplets;  // in random order, no position twice
};

// Empty, one row, one column, one long row among empty ones; rows, lengths and nonzeros in numbers
// around those of warps, blocks and tiles; more columns than rows. The seed decides where in its
// row a nonzero stands, and its value.
std::vector<NamedMatrix> adversarial_matrices(std::uint64_t seed = 0);

// Small ones whose sizes and row lengths are random too.
std::vector<NamedMatrix> random_matrices(int count, std::uint64_t seed = 0);

}  // namespace spmv::test
