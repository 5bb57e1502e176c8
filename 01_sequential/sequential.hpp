// Step 01: the product as a textbook writes it, on the CPU.
//
// These loops define what every later kernel must compute, and how long a CPU takes for it.
#pragma once

#include "sparse/matrix.hpp"

namespace spmv {

// CSR, row by row (He and Gao 2016, algorithm 1). The sum of a row stays in a register and y is
// written once; values and column indices are read from front to back.
template <typename T>
void csr_sequential(const Csr<T>& a, T alpha, const T* x, T beta, T* y) {
  for (Index row = 0; row < a.rows; ++row) {
    T sum = 0;
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      sum += a.values[k] * x[a.column_indices[k]];
    }
    y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
  }
}

// COO, nonzero by nonzero, in whatever order they stand. Each product is added to y in memory.
template <typename T>
void coo_sequential(const Coo<T>& a, T alpha, const T* x, T beta, T* y) {
  for (Index row = 0; row < a.rows; ++row) y[row] = beta == T{0} ? T{0} : beta * y[row];
  for (Index k = 0; k < a.nnz(); ++k) {
    y[a.row_indices[k]] += alpha * (a.values[k] * x[a.column_indices[k]]);
  }
}

// The CSR loop on all cores. Rows are independent, so the rows are what is shared out; in pieces
// of 64, on demand, since their lengths may differ.
template <typename T>
void csr_openmp(const Csr<T>& a, T alpha, const T* x, T beta, T* y) {
#pragma omp parallel for schedule(dynamic, 64)
  for (Index row = 0; row < a.rows; ++row) {
    T sum = 0;
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      sum += a.values[k] * x[a.column_indices[k]];
    }
    y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
  }
}

}  // namespace spmv
