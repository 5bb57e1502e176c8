#include "coursework/shrink.hpp"

#include <algorithm>
#include <utility>

namespace spmv::coursework {
namespace {

// `matrix` without its rows, columns or nonzeros from `begin` up to `end`.
using Cut = Coo<double> (*)(const Coo<double>& matrix, Index begin, Index end);

Coo<double> keep(const Coo<double>& matrix, const std::function<bool(Index)>& wanted) {
  Coo<double> kept;
  kept.rows = matrix.rows;
  kept.cols = matrix.cols;
  for (Index k = 0; k < matrix.nnz(); ++k) {
    if (!wanted(k)) continue;
    kept.row_indices.push_back(matrix.row_indices[k]);
    kept.column_indices.push_back(matrix.column_indices[k]);
    kept.values.push_back(matrix.values[k]);
  }
  return kept;
}

Coo<double> without_nonzeros(const Coo<double>& matrix, Index begin, Index end) {
  return keep(matrix, [&](Index k) { return k < begin || k >= end; });
}

Coo<double> without_rows(const Coo<double>& matrix, Index begin, Index end) {
  Coo<double> cut = keep(matrix, [&](Index k) {
    return matrix.row_indices[k] < begin || matrix.row_indices[k] >= end;
  });
  cut.rows -= end - begin;
  for (Index& row : cut.row_indices) row -= row >= end ? end - begin : 0;
  return cut;
}

Coo<double> without_columns(const Coo<double>& matrix, Index begin, Index end) {
  Coo<double> cut = keep(matrix, [&](Index k) {
    return matrix.column_indices[k] < begin || matrix.column_indices[k] >= end;
  });
  cut.cols -= end - begin;
  for (Index& column : cut.column_indices) column -= column >= end ? end - begin : 0;
  return cut;
}

}  // namespace

Coo<double> shrink(Coo<double> matrix, const std::function<bool(const Coo<double>&)>& fails,
                   int attempts) {
  const std::pair<Cut, Index (*)(const Coo<double>&)> kinds[] = {
      {without_rows, [](const Coo<double>& m) { return m.rows; }},
      {without_columns, [](const Coo<double>& m) { return m.cols; }},
      {without_nonzeros, [](const Coo<double>& m) { return m.nnz(); }}};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const auto& [cut, size] : kinds) {
      // Large pieces first, then smaller ones, from the end to the beginning.
      for (Index piece = size(matrix); piece > 0; piece /= 2) {
        for (Index end = size(matrix); end > 0;) {
          if (attempts-- == 0) return matrix;
          const Index begin = std::max(end - piece, Index{0});
          Coo<double> candidate = cut(matrix, begin, end);
          if (fails(candidate)) {
            matrix = std::move(candidate);
            smaller = true;
          }
          end = begin;
        }
      }
    }
  }
  return matrix;
}

}  // namespace spmv::coursework
