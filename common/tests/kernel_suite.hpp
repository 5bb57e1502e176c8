// What every kernel of every step must pass. A step's test.cu calls it and adds what is its own.
#pragma once

#include <string>

#include "harness/kernel.hpp"
#include "harness/profile.hpp"

namespace spmv::test {

// Every kernel of `step`, in both precisions, with and without alpha and beta, on matrices chosen
// to break kernels (empty, one row, one column, one long row among empty ones, rows, lengths and
// nonzeros in numbers around those of warps, blocks and tiles, more columns than rows) and on
// random ones, over which the CPU backend's schedules are distributed. And whether their bits are
// what KernelInfo::bits says: 200 products on a GPU, 5 schedules on the CPU backend, in both
// precisions. Made of assertions: call it from a TEST_CASE.
//
// Formats that pad are tried where they store no more than `padding_limit` entries per nonzero.
void check_kernels_of_step(int step, double padding_limit = 3);

// The kernels that `patterns` name give the same bits in every run, under every schedule. Likewise.
template <typename T>
void check_same_bits(const std::string& patterns, const Matrix<T>& matrix,
                     double padding_limit = 3);

// What a product by `kernel`, which must be right, asks of `array` by `access`: "load", "atomic".
// On the CPU backend.
template <typename T>
simt::AccessCounts traffic_of(const std::string& kernel, const Matrix<T>& matrix,
                              const std::string& access, const std::string& array);

}  // namespace spmv::test
