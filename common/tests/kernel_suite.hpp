// What every kernel of every step must pass. A step's test.cu calls it and adds what is its own.
#pragma once

namespace spmv::test {

// Every kernel of `step`, in both precisions, with and without alpha and beta, on matrices chosen
// to break kernels (empty, one row, one column, one long row among empty ones, rows, lengths and
// nonzeros in numbers around those of warps, blocks and tiles, more columns than rows) and on
// random ones, over which the CPU backend's schedules are distributed. Made of assertions: call it
// from a TEST_CASE.
//
// Formats that pad are tried where they store no more than `padding_limit` entries per nonzero.
void check_kernels_of_step(int step, double padding_limit = 3);

}  // namespace spmv::test
