#include "part.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "sparse/memory.hpp"

namespace spmv::multigpu {
namespace {

constexpr Index kAligned = 32;  // elements: whole sectors, whatever the precision

// The rows of `a` that `rows` names, each column made new_column(column).
template <typename T, typename NewColumn>
Csr<T> take_rows(const Csr<T>& a, const Index* rows, Index count, Index cols,
                 const NewColumn& new_column) {
  Csr<T> taken;
  taken.rows = count;
  taken.cols = cols;
  taken.row_offsets.resize(static_cast<std::size_t>(count) + 1);
  for (Index i = 0; i < count; ++i) {
    taken.row_offsets[i + 1] = taken.row_offsets[i] + a.row_length(rows[i]);
  }
  resize_large(taken.column_indices, taken.row_offsets[count]);
  resize_large(taken.values, taken.row_offsets[count]);
#pragma omp parallel for schedule(static) if (taken.row_offsets[count] > 100000)
  for (Index i = 0; i < count; ++i) {
    Index to = taken.row_offsets[i];
    for (Index k = a.row_offsets[rows[i]]; k < a.row_offsets[rows[i] + 1]; ++k, ++to) {
      taken.column_indices[to] = new_column(a.column_indices[k]);
      taken.values[to] = a.values[k];
    }
  }
  return taken;
}

// The part's rows, interior ones first. Returns how many these are. is_boundary: one per row, 1 for
// those that are boundary rows whatever they need.
template <typename T>
Index order_rows(const Csr<T>& slice, Index first_col, Index end_col, std::vector<char> is_boundary,
                 std::vector<Index>& order) {
#pragma omp parallel for schedule(static) if (slice.nnz() > 100000)
  for (Index row = 0; row < slice.rows; ++row) {
    for (Index k = slice.row_offsets[row]; k < slice.row_offsets[row + 1]; ++k) {
      const Index column = slice.column_indices[k];
      if (column < first_col || column >= end_col) is_boundary[row] = 1;
    }
  }
  order.resize(slice.rows);
  std::iota(order.begin(), order.end(), Index{0});
  const auto boundary = std::stable_partition(order.begin(), order.end(),
                                              [&](Index row) { return !is_boundary[row]; });
  return static_cast<Index>(boundary - order.begin());
}

// 1 for each column in which there is a nonzero.
template <typename T>
std::vector<char> used_columns(const Csr<T>& slice) {
  std::vector<char> used(slice.cols, 0);
#pragma omp parallel for schedule(static) if (slice.nnz() > 100000)
  for (Index k = 0; k < slice.nnz(); ++k) {
    std::atomic_ref(used[slice.column_indices[k]]).store(1, std::memory_order_relaxed);
  }
  return used;
}

// Where the ghosts begin.
Index end_of_own(Index own) {
  return own + (kAligned - own % kAligned) % kAligned;
}

// A Need for each owner of one of the columns that are used; places are columns, from the owner's
// first on. Returns how many columns these are in all.
Index find_needs(const std::vector<char>& used, const std::vector<Index>& cuts, int p,
                 std::vector<Need>& needs) {
  Index count = 0;
  for (int owner = 0; owner + 1 < static_cast<int>(cuts.size()); ++owner) {
    if (owner == p) continue;
    Need need{owner, 0, 0, {}, 0};
    for (Index column = cuts[owner]; column < cuts[owner + 1]; ++column) {
      if (used[column]) need.places.push_back(column - cuts[owner]);
    }
    need.count = static_cast<Index>(need.places.size());
    count += need.count;
    if (need.count > 0) needs.push_back(std::move(need));
  }
  return count;
}

// Gives each Need its place in the local x, and returns the length of that.
Index place_ghosts(Index own, std::vector<Need>& needs) {
  Index next = end_of_own(own);
  for (Need& need : needs) {
    need.ghost = next;
    next += need.count;
  }
  return next;
}

// Side by side, they need not be packed.
void drop_places_in_a_row(Need& need) {
  for (Index i = 0; i < need.count; ++i) {
    if (need.places[i] != need.places[0] + i) return;
  }
  need.first = need.places[0];
  need.places.clear();
}

// new_column for interior rows: only the part's own columns are asked for.
struct OwnColumn {
  const std::vector<Index>& place;
  Index first;
  Index operator()(Index column) const { return place[column] - first; }
};

}  // namespace

template <typename T>
std::vector<Part<T>> prepare(const std::vector<Csr<T>>& slices, const std::vector<Index>& cuts,
                             Exchange exchange) {
  const int count = static_cast<int>(slices.size());
  std::vector<Part<T>> parts(slices.size());
  std::vector<Index> interior(slices.size());
  const auto own_rows = [&](int p) { return cuts[p + 1] - cuts[p]; };
  std::vector<std::vector<char>> used;
  std::vector<char> is_needed(cuts.back(), 0);  // by another part
  for (int p = 0; p < count && exchange != Exchange::kNone; ++p) {
    used.push_back(used_columns(slices[p]));
    if (exchange != Exchange::kStores) continue;
    for (Index column = 0; column < cuts.back(); ++column) {
      if (column < cuts[p] || column >= cuts[p + 1]) is_needed[column] |= used[p][column];
    }
  }
  for (int p = 0; p < count; ++p) {
    parts[p].first_row = cuts[p];
    if (exchange == Exchange::kNone) {
      parts[p].order.resize(own_rows(p));
      std::iota(parts[p].order.begin(), parts[p].order.end(), Index{0});
      parts[p].interior = slices[p];
      parts[p].boundary.cols = slices[p].cols;
      parts[p].local_cols = slices[p].cols;
    } else {
      interior[p] = order_rows(slices[p], cuts[p], cuts[p + 1],
                               {is_needed.begin() + cuts[p], is_needed.begin() + cuts[p + 1]},
                               parts[p].order);
    }
  }
  if (exchange == Exchange::kNone) return parts;

  // Where each column is in all parts' x, one after the other.
  std::vector<Index> place(cuts.back());
  for (int p = 0; p < count; ++p) {
    for (Index i = 0; i < own_rows(p); ++i) place[cuts[p] + parts[p].order[i]] = cuts[p] + i;
  }

  for (int p = 0; p < count; ++p) {
    Part<T>& part = parts[p];
    std::vector<Need> needs;
    part.remote_cols = find_needs(used[p], cuts, p, needs);
    if (exchange == Exchange::kParts) {
      needs.clear();
      for (int owner = 0; owner < count; ++owner) {
        if (owner != p && own_rows(owner) > 0) needs.push_back({owner, own_rows(owner), 0, {}, 0});
      }
    }
    if (exchange != Exchange::kLoads) {
      part.local_cols = place_ghosts(own_rows(p), needs);
    } else {
      part.local_cols = end_of_own(own_rows(p));
    }

    std::vector<Index> local;  // of each remote column, its place in the local x
    if (exchange != Exchange::kLoads) local.resize(cuts.back());
    for (Need& need : needs) {
      const Index first = cuts[need.owner];
      for (Index i = 0; i < need.count; ++i) {
        const Index column = first + (need.places.empty() ? i : need.places[i]);
        const Index at = place[column] - first;
        if (exchange == Exchange::kParts) {
          local[column] = need.ghost + at;
        } else if (exchange != Exchange::kLoads) {
          local[column] = need.ghost + i;
          need.places[i] = at;
        }
      }
      if (!need.places.empty() && exchange != Exchange::kStores) drop_places_in_a_row(need);
    }
    if (exchange != Exchange::kLoads) part.needs = std::move(needs);

    const Index* const order = part.order.data();
    const OwnColumn own{place, cuts[p]};
    part.interior = take_rows(slices[p], order, interior[p], part.local_cols, own);
    part.boundary =
        take_rows(slices[p], order + interior[p], own_rows(p) - interior[p],
                  exchange == Exchange::kLoads ? cuts.back() : part.local_cols, [&](Index column) {
                    if (exchange == Exchange::kLoads) return place[column];
                    const bool is_own = column >= cuts[p] && column < cuts[p + 1];
                    return is_own ? own(column) : local[column];
                  });
  }
  return parts;
}

template <typename T>
Part<T> prepare_alone(const Csr<T>& slice, const std::vector<Index>& cuts, int p) {
  Part<T> part;
  part.first_row = cuts[p];
  const Index interior =
      order_rows(slice, cuts[p], cuts[p + 1], std::vector<char>(slice.rows, 0), part.order);
  part.remote_cols = find_needs(used_columns(slice), cuts, p, part.needs);
  part.local_cols = place_ghosts(slice.rows, part.needs);

  std::vector<Index> local(cuts.back());
  for (Index i = 0; i < slice.rows; ++i) local[cuts[p] + part.order[i]] = i;
  for (const Need& need : part.needs) {
    for (Index i = 0; i < need.count; ++i)
      local[cuts[need.owner] + need.places[i]] = need.ghost + i;
  }
  const auto new_column = [&](Index column) { return local[column]; };
  const Index* const order = part.order.data();
  part.interior = take_rows(slice, order, interior, part.local_cols, new_column);
  part.boundary =
      take_rows(slice, order + interior, slice.rows - interior, part.local_cols, new_column);
  return part;
}

template std::vector<Part<float>> prepare(const std::vector<Csr<float>>&, const std::vector<Index>&,
                                          Exchange);
template std::vector<Part<double>> prepare(const std::vector<Csr<double>>&,
                                           const std::vector<Index>&, Exchange);
template Part<float> prepare_alone(const Csr<float>&, const std::vector<Index>&, int);
template Part<double> prepare_alone(const Csr<double>&, const std::vector<Index>&, int);

}  // namespace spmv::multigpu
