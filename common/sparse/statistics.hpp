// What can be said of a matrix before it is multiplied, and how to show it.
#pragma once

#include <ostream>
#include <vector>

#include "sparse/load.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

// All zero where there is nothing to measure: no rows, no nonzeros.
struct Statistics {
  Index rows = 0;
  Index cols = 0;
  Index nnz = 0;
  Index min_row = 0;  // length of the shortest row, which may be 0
  Index max_row = 0;  // length of the longest
  Index min_col = 0;  // the same of columns
  Index max_col = 0;
  double mean_row = 0;    // nnz / rows
  double stddev_row = 0;  // of all rows, that is with 1 / rows
  Index empty_rows = 0;
  Index bandwidth = 0;    // largest |i - j| of a nonzero
  Index diagonals = 0;    // on which there is a nonzero
  double dispersion = 0;  // mean |i - j| of the nonzeros, divided by the larger of rows and cols
                          // (Bylina, Bylina and Karwacki 2011, section 5.1, whose are square)
};

template <typename T>
Statistics compute_statistics(const Csr<T>& csr);

// For `spmv info`: statistics, source in words, a histogram of row lengths, a picture of where the
// nonzeros are. At most 80 columns wide.
void print_info(std::ostream& out, const Matrix<double>& matrix);

// Rows whose lengths are from `low` to `high`.
struct LengthBin {
  long long low, high;
  Index rows = 0;
  Index nnz = 0;
};

// Rows by length in bins 0, 1, 2, 3-4, 5-8, 9-16 and so on, from the first to the last that has
// any.
std::vector<LengthBin> row_length_bins(const Csr<double>& csr);

// How many nonzeros fall on each dot of a picture of `width` x `height` dots.
std::vector<Index> count_on_grid(const Csr<double>& csr, Index width, Index height);

}  // namespace spmv
