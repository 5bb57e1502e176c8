// Step 10: what the solver is given and compared with on the host: matrix and right side, who owns
// and who reads which entry, the iterations of a sequential solver, the residual.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <numeric>
#include <vector>

#include "sparse/load.hpp"
#include "sparse/rng.hpp"
#include "sparse/row_source.hpp"

using Csr = spmv::Csr<double>;
using Vector = std::vector<double>;
constexpr int kMostIterations = 100000;

// A file's matrix; of a generated one the pattern, with -1 and a diagonal that makes it positive
// definite on a grid with an edge. At most as many nonzeros as leave an int room for a window more.
inline spmv::Matrix<double> load(const char* name) {
  auto matrix = spmv::load_matrix<double>(name);
  Csr& a = matrix.csr;
  if (a.rows != a.cols || a.rows == 0) throw spmv::InputError("not a square matrix");
  if (a.nnz() > INT_MAX - 512) throw spmv::InputError("more than 2^31 - 513 nonzeros");
  if (matrix.source.origin == spmv::MatrixSource::Origin::kFile) return matrix;
  int longest = 0;
  for (int row = 0; row < a.rows; ++row) longest = std::max(longest, a.row_length(row));
#pragma omp parallel for
  for (int row = 0; row < a.rows; ++row) {
    for (int j = a.row_offsets[row]; j < a.row_offsets[row + 1]; ++j) {
      a.values[j] = a.column_indices[j] == row ? longest - 1 : -1;
    }
  }
  return matrix;
}

inline Vector make_b(int rows) {
  Vector b(rows);
  for (int i = 0; i < rows; ++i) b[i] = static_cast<double>(spmv::mix64(i)) * 0x1p-63 - 1;
  return b;
}

// GPU g owns rows cuts[g] to cuts[g + 1] - 1, before which are g / gpus of the nonzeros.
inline std::vector<int> cut_by_nonzeros(const Csr& a, int gpus) {
  std::vector<int> cuts;
  for (int g = 0; g < gpus; ++g) {
    const auto row = std::lower_bound(a.row_offsets.begin(), a.row_offsets.end(),
                                      static_cast<int>(1LL * a.nnz() * g / gpus));
    cuts.push_back(static_cast<int>(row - a.row_offsets.begin()));
  }
  cuts.push_back(a.rows);
  return cuts;
}

// Of each row a bit per other GPU that reads its entry of r, or whose entries the row reads: the
// same ones where the matrix is symmetric. (Else a GPU could wait for ever.)
inline std::vector<unsigned> receivers_of(const Csr& a, const std::vector<int>& cuts) {
  const auto owner_of = [&](int row) {
    return std::upper_bound(cuts.begin(), cuts.end(), row) - cuts.begin() - 1;
  };
  std::vector<unsigned> receivers(a.rows);
#pragma omp parallel for
  for (int row = 0; row < a.rows; ++row) {
    const auto here = owner_of(row);
    for (int j = a.row_offsets[row]; j < a.row_offsets[row + 1]; ++j) {
      const int column = a.column_indices[j];
      if (cuts[here] <= column && column < cuts[here + 1]) continue;
      std::atomic_ref(receivers[row]) |= 1u << owner_of(column);
      std::atomic_ref(receivers[column]) |= 1u << here;
    }
  }
  return receivers;
}

// The tiles of 32 rows, boundary tiles first, in which a row has receivers; how many those are.
inline std::vector<int> order_tiles(const unsigned* receivers, int rows, int& boundary_tiles) {
  std::vector<int> order, interior;
  for (int row = 0; row < rows; row += 32) {
    const auto begin = receivers + row, end = receivers + std::min(row + 32, rows);
    (std::count(begin, end, 0u) < end - begin ? order : interior).push_back(row / 32);
  }
  boundary_tiles = static_cast<int>(order.size());
  order.insert(order.end(), interior.begin(), interior.end());
  return order;
}

// b where GPU g owns or reads the entry, else NaN: an entry that is missing or late spoils the
// result.
inline Vector known_entries(const Vector& b, int g, const std::vector<int>& cuts,
                            const std::vector<unsigned>& receivers) {
  Vector known(b.size(), NAN);
  for (int i = 0; i < cuts.back(); ++i) {
    const bool is_own = cuts[g] <= i && i < cuts[g + 1];
    if (is_own || (receivers[i] >> g & 1) != 0) known[i] = b[i];
  }
  return known;
}

inline double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// How many iterations the textbook's form takes, on the host. (Threads share the products' rows.)
inline int sequential_iterations(const Csr& a, Vector r, double limit) {
  Vector p = r, q(r.size());
  double gamma = dot(r, r);
  int k = 0;
  for (; gamma > limit && k < kMostIterations; ++k) {
#pragma omp parallel for
    for (int row = 0; row < a.rows; ++row) {
      q[row] = 0;
      for (int j = a.row_offsets[row]; j < a.row_offsets[row + 1]; ++j) {
        q[row] += a.values[j] * p[a.column_indices[j]];
      }
    }
    const double alpha = gamma / dot(p, q), before = gamma;
    for (int i = 0; i < a.rows; ++i) r[i] -= alpha * q[i];
    gamma = dot(r, r);
    for (int i = 0; i < a.rows; ++i) p[i] = r[i] + gamma / before * p[i];
  }
  return k;
}

// |b - A x| / |b|, in long double.
inline double residual_of(const Csr& a, const Vector& b, const Vector& x) {
  long double of_r = 0, of_b = 0;
#pragma omp parallel for reduction(+ : of_r, of_b)
  for (int row = 0; row < a.rows; ++row) {
    long double r = b[row];
    for (int j = a.row_offsets[row]; j < a.row_offsets[row + 1]; ++j) {
      r -= static_cast<long double>(a.values[j]) * x[a.column_indices[j]];
    }
    of_r += r * r, of_b += static_cast<long double>(b[row]) * b[row];
  }
  return static_cast<double>(std::sqrt(of_r / of_b));
}
