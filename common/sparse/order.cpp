#include "sparse/order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace spmv {
namespace {

// Which entries of a pattern are in a row, and in which rows the entries of A' are.
struct Graph {
  std::vector<Index> offsets, neighbours;

  Index size() const { return static_cast<Index>(offsets.size()) - 1; }
  Index degree(Index vertex) const { return offsets[vertex + 1] - offsets[vertex]; }
  template <typename Visit>
  void for_each_neighbour(Index vertex, const Visit& visit) const {
    for (Index k = offsets[vertex]; k < offsets[vertex + 1]; ++k) visit(neighbours[k]);
  }
};

std::vector<Index> nonzeros_per_column(Index columns, const std::vector<Index>& column_indices) {
  std::vector<Index> counts(columns, 0);
  for (const Index column : column_indices) ++counts[column];
  return counts;
}

template <typename T>
Graph transposed_pattern(const Csr<T>& a) {
  Graph graph{{0}, std::vector<Index>(a.nnz())};
  const std::vector<Index> counts = nonzeros_per_column(a.cols, a.column_indices);
  graph.offsets.resize(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), graph.offsets.begin() + 1);
  std::vector<Index> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (Index row = 0; row < a.rows; ++row) {
    for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
      graph.neighbours[next[a.column_indices[k]]++] = row;
    }
  }
  return graph;
}

// The pattern of A + A' without the diagonal.
template <typename T>
Graph symmetric_pattern(const Csr<T>& a) {
  const Graph other = transposed_pattern(a);
  Graph graph{{0}, {}};
  graph.neighbours.reserve(a.nnz());
  for (Index row = 0; row < a.rows; ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(graph.neighbours.size());
    const auto of = [row](const std::vector<Index>& offsets, const std::vector<Index>& indices) {
      return std::pair(indices.begin() + offsets[row], indices.begin() + offsets[row + 1]);
    };
    const auto [here, here_end] = of(a.row_offsets, a.column_indices);
    const auto [there, there_end] = of(other.offsets, other.neighbours);
    std::set_union(here, here_end, there, there_end, std::back_inserter(graph.neighbours));
    const auto itself =
        std::lower_bound(graph.neighbours.begin() + begin, graph.neighbours.end(), row);
    if (itself != graph.neighbours.end() && *itself == row) graph.neighbours.erase(itself);
    if (graph.neighbours.size() > static_cast<std::size_t>(kMaxNonzeros)) {
      throw InputError(fmt::format(
          "--order rcm: A + A' has more than {} nonzeros; use another order", kMaxNonzeros));
    }
    graph.offsets.push_back(static_cast<Index>(graph.neighbours.size()));
  }
  return graph;
}

class ReverseCuthillMcKee {
 public:
  explicit ReverseCuthillMcKee(const Graph& graph)
      : graph_(graph), level_(graph.size(), kUnseen), is_placed_(graph.size(), false) {}

  std::vector<Index> order() {
    std::vector<Index> by_degree(graph_.size());
    std::iota(by_degree.begin(), by_degree.end(), 0);
    std::stable_sort(by_degree.begin(), by_degree.end(), [this](Index one, Index other) {
      return graph_.degree(one) < graph_.degree(other);
    });
    std::vector<Index> order;
    order.reserve(graph_.size());
    for (const Index vertex : by_degree) {  // one of each component begins it
      if (!is_placed_[vertex]) place_component(far_from(vertex), order);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  static constexpr Index kUnseen = -1;

  // A vertex that no other of its component is much farther from: of those farthest from the last
  // one the one of fewest neighbours, until the distance no longer grows.
  Index far_from(Index vertex) {
    for (Index depth = -1;;) {
      const std::vector<Index> found = breadth_first(vertex);
      const Index new_depth = level_[found.back()];
      Index next = found.back();
      for (const Index other : found) {
        if (level_[other] == new_depth && graph_.degree(other) < graph_.degree(next)) next = other;
      }
      for (const Index other : found) level_[other] = kUnseen;
      if (new_depth <= depth) return vertex;
      depth = new_depth;
      vertex = next;
    }
  }

  // The component of `start` from near to far, distances in level_.
  std::vector<Index> breadth_first(Index start) {
    std::vector<Index> found{start};
    level_[start] = 0;
    for (std::size_t k = 0; k < found.size(); ++k) {
      graph_.for_each_neighbour(found[k], [&](Index other) {
        if (level_[other] != kUnseen) return;
        level_[other] = level_[found[k]] + 1;
        found.push_back(other);
      });
    }
    return found;
  }

  void place_component(Index start, std::vector<Index>& order) {
    is_placed_[start] = true;
    std::size_t k = order.size();
    for (order.push_back(start); k < order.size(); ++k) {
      const auto begin = static_cast<std::ptrdiff_t>(order.size());
      graph_.for_each_neighbour(order[k], [&](Index other) {
        if (is_placed_[other]) return;
        is_placed_[other] = true;
        order.push_back(other);
      });
      std::stable_sort(order.begin() + begin, order.end(), [this](Index one, Index other) {
        return graph_.degree(one) < graph_.degree(other);
      });
    }
  }

  const Graph& graph_;
  std::vector<Index> level_;
  std::vector<bool> is_placed_;
};

// 0, 1, ... by descending counts; ties as they were.
std::vector<Index> most_first(const std::vector<Index>& counts) {
  std::vector<Index> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index one, Index other) { return counts[one] > counts[other]; });
  return order;
}

}  // namespace

template <typename T>
Numbering order_of(const Csr<T>& a, const std::string& name) {
  if (name == "none") return {};
  if (name == "columns") return {{}, most_first(nonzeros_per_column(a.cols, a.column_indices))};
  if (a.rows != a.cols) {
    throw InputError(
        fmt::format("--order {} renumbers rows and columns alike, and this matrix is {} x {}; use "
                    "--order columns",
                    name, a.rows, a.cols));
  }
  Numbering order;
  if (name == "degree") {
    std::vector<Index> counts = nonzeros_per_column(a.cols, a.column_indices);
    for (Index row = 0; row < a.rows; ++row) counts[row] += a.row_length(row);
    order.rows = most_first(counts);
  } else {
    order.rows = ReverseCuthillMcKee(symmetric_pattern(a)).order();
  }
  order.columns = order.rows;
  return order;
}

template <typename T>
Csr<T> reordered(const Csr<T>& a, const Numbering& order) {
  std::vector<Index> place(a.cols);  // of each old column
  for (Index k = 0; k < a.cols; ++k) place[order.columns.empty() ? k : order.columns[k]] = k;
  Csr<T> result{a.rows, a.cols, {0}, std::vector<Index>(a.nnz()), std::vector<T>(a.nnz())};
  const auto old_row = [&](Index row) { return order.rows.empty() ? row : order.rows[row]; };
  for (Index row = 0; row < a.rows; ++row) {
    result.row_offsets.push_back(result.row_offsets.back() + a.row_length(old_row(row)));
  }
#pragma omp parallel if (a.nnz() > 100000)
  {
    std::vector<std::pair<Index, T>> entries;
#pragma omp for schedule(dynamic, 1024)
    for (Index row = 0; row < a.rows; ++row) {
      entries.clear();
      const Index old = old_row(row);
      for (Index k = a.row_offsets[old]; k < a.row_offsets[old + 1]; ++k) {
        entries.emplace_back(place[a.column_indices[k]], a.values[k]);
      }
      std::sort(entries.begin(), entries.end(),
                [](const auto& one, const auto& other) { return one.first < other.first; });
      for (Index k = result.row_offsets[row]; const auto& [column, value] : entries) {
        result.column_indices[k] = column;
        result.values[k++] = value;
      }
    }
  }
  return result;
}

template Numbering order_of(const Csr<float>&, const std::string&);
template Numbering order_of(const Csr<double>&, const std::string&);
template Csr<float> reordered(const Csr<float>&, const Numbering&);
template Csr<double> reordered(const Csr<double>&, const Numbering&);

}  // namespace spmv
