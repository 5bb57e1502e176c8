#include "part.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "sparse/row_source.hpp"

namespace spmv::multigpu {
namespace {

using Cuts = std::vector<Index>;

constexpr Index kAligned = 32;  // elements: whole sectors, whatever the precision

// 1 for each column in which there is a nonzero.
std::vector<char> used_columns(const Csr<double>& slice) {
  std::vector<char> used(slice.cols, 0);
#pragma omp parallel for schedule(static) if (slice.nnz() > 100000)
  for (Index k = 0; k < slice.nnz(); ++k) {
    std::atomic_ref(used[slice.column_indices[k]]).store(1, std::memory_order_relaxed);
  }
  return used;
}

// Puts the part's rows in order. receivers: of each row of the part a bit for each part that its
// entry is stored to. Rows with the same receivers are side by side, first of all.
void order_rows(Part& part, const Csr<double>& slice, const Cuts& cuts, int p,
                const std::vector<unsigned>& receivers) {
  std::vector<char> is_boundary(slice.rows, 0);
#pragma omp parallel for schedule(static) if (slice.nnz() > 100000)
  for (Index row = 0; row < slice.rows; ++row) {
    is_boundary[row] = receivers[row] != 0;
    for (Index k = slice.row_offsets[row]; k < slice.row_offsets[row + 1]; ++k) {
      const Index column = slice.column_indices[k];
      if (column < cuts[p] || column >= cuts[p + 1]) is_boundary[row] = 1;
    }
  }
  const auto interior = std::stable_partition(part.order.begin(), part.order.end(),
                                              [&](Index row) { return is_boundary[row]; });
  part.boundary_rows = static_cast<Index>(interior - part.order.begin());
  // By receivers; 0, those that have none, is the largest after subtracting 1.
  std::stable_sort(part.order.begin(), interior,
                   [&](Index a, Index b) { return receivers[a] - 1 < receivers[b] - 1; });
}

// Fills in the part's matrix.
void renumber(Part& part, const Csr<double>& slice, const Cuts& cuts) {
  std::vector<Index> local(cuts.back());  // of each column that the part uses, its place in local x
  for (Index i = 0; i < part.rows(); ++i) local[part.first_row + part.order[i]] = i;
  for (const Halo& halo : part.halos) {
    for (Index i = 0; i < halo.count(); ++i) local[halo.columns[i]] = halo.ghost_begin + i;
  }
  Csr<double>& a = part.matrix;
  a.rows = part.rows();
  a.cols = part.local_cols;
  a.row_offsets = {0};
  for (const Index row : part.order)
    a.row_offsets.push_back(a.row_offsets.back() + slice.row_length(row));
  a.column_indices.resize(a.row_offsets.back());
  a.values.resize(a.row_offsets.back());
#pragma omp parallel for schedule(static) if (a.nnz() > 100000)
  for (Index i = 0; i < a.rows; ++i) {
    Index from = slice.row_offsets[part.order[i]];
    for (Index k = a.row_offsets[i]; k < a.row_offsets[i + 1]; ++k, ++from) {
      a.column_indices[k] = local[slice.column_indices[from]];
      a.values[k] = slice.values[from];
    }
  }
}

// Where part p begins: the row border nearest to p / parts of the nonzeros.
Index border_by_nonzeros(const std::vector<long long>& nonzeros, int p, int parts) {
  const long long wanted = nonzeros.back() / parts * p + nonzeros.back() % parts * p / parts;
  const auto after = std::lower_bound(nonzeros.begin(), nonzeros.end(), wanted);
  const auto border = after - nonzeros.begin();
  const bool before_is_nearer =
      border > 0 && wanted - nonzeros[border - 1] < nonzeros[border] - wanted;
  return static_cast<Index>(border - before_is_nearer);
}

}  // namespace

Cuts cut(Partition partition, const std::vector<long long>& nonzeros, int parts) {
  const auto rows = static_cast<long long>(nonzeros.size()) - 1;
  Cuts cuts{0};
  for (int p = 1; p < parts; ++p) {
    cuts.push_back(partition == Partition::kRows ? static_cast<Index>(rows * p / parts)
                                                 : border_by_nonzeros(nonzeros, p, parts));
  }
  cuts.push_back(static_cast<Index>(rows));
  return cuts;
}

std::vector<Part> prepare(const std::vector<Csr<double>>& slices, const Cuts& cuts,
                          Exchange exchange, const Processes& processes) {
  const int count = static_cast<int>(slices.size());
  std::vector<Part> parts(slices.size());
  const auto each = [&](const std::function<void(int, Part&)>& work) {
    processes.together([&] {
      for (const int p : processes.here(slices.size())) work(p, parts[p]);
    });
  };
  // Each part tells every owner where its ghost entries begin, and which columns it needs.
  Lists lists(slices.size(), std::vector<std::vector<Index>>(slices.size()));
  each([&](int p, Part& part) {
    part.cuts = cuts;
    part.first_row = cuts[p];
    part.order.resize(slices[p].rows);
    std::iota(part.order.begin(), part.order.end(), Index{0});
    if (exchange == Exchange::kNone) {
      part.matrix = slices[p];
      part.local_cols = slices[p].cols;
      return;
    }
    part.local_cols = (slices[p].rows + kAligned - 1) / kAligned * kAligned;
    const std::vector<char> used = used_columns(slices[p]);
    for (int owner = 0; owner < count; ++owner) {
      std::vector<Index>& list = lists[p][owner];
      for (Index column = cuts[owner]; column < cuts[owner + 1] && owner != p; ++column) {
        part.remote_cols += used[column];
        if (!used[column] && exchange != Exchange::kParts) continue;
        if (list.empty()) list.push_back(part.local_cols);
        list.push_back(column);
        ++part.local_cols;
      }
    }
  });
  if (exchange == Exchange::kNone) return parts;
  lists = processes.tell(std::move(lists));
  // The owner orders its rows, and returns the columns in the order in which it has them.
  each([&](int p, Part& part) {
    std::vector<unsigned> receivers(slices[p].rows, 0);
    for (int q = 0; q < count && exchange == Exchange::kStores; ++q) {
      for (std::size_t i = 1; i < lists[p][q].size(); ++i) {
        receivers[lists[p][q][i] - cuts[p]] |= 1u << q;
      }
    }
    order_rows(part, slices[p], cuts, p, receivers);
    std::vector<Index> place(slices[p].rows);
    for (Index i = 0; i < part.rows(); ++i) place[part.order[i]] = i;
    for (int q = 0; q < count; ++q) {
      std::vector<Index>& list = lists[p][q];
      if (list.empty()) continue;
      Send& send = part.sends.emplace_back(Send{q, list[0], {list.begin() + 1, list.end()}});
      std::vector<Index>& sources = send.sources;
      for (Index& source : sources) source = place[source - cuts[p]];
      std::sort(sources.begin(), sources.end());
      std::transform(sources.begin(), sources.end(), list.begin() + 1,
                     [&](Index source) { return cuts[p] + part.order[source]; });
      const bool has_gap = sources.back() - sources.front() + 1 != send.count();
      send.is_packed = processes.count > 1 || has_gap;
      send.begin = send.is_packed ? static_cast<Index>(part.packed.size()) : sources.front();
      if (send.is_packed) part.packed.insert(part.packed.end(), sources.begin(), sources.end());
    }
  });
  lists = processes.tell(std::move(lists));
  each([&](int p, Part& part) {
    for (int owner = 0; owner < count; ++owner) {
      const std::vector<Index>& list = lists[p][owner];
      if (!list.empty()) part.halos.push_back({owner, list[0], {list.begin() + 1, list.end()}});
    }
    renumber(part, slices[p], cuts);
  });
  return parts;
}

std::vector<Part> parts_of(const Csr<double>& matrix, Partition partition, int count,
                           Exchange exchange) {
  const Cuts cuts = cut(partition, {matrix.row_offsets.begin(), matrix.row_offsets.end()}, count);
  std::vector<Csr<double>> slices;
  for (int p = 0; p < count; ++p) slices.push_back(slice_of(matrix, cuts[p], cuts[p + 1]));
  return prepare(slices, cuts, exchange);
}

}  // namespace spmv::multigpu
