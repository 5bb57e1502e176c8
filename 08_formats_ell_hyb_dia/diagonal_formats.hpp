// The formats of step 08 that go by diagonals, each made on the device from a CSR matrix there.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "convert.hpp"
#include "convert_diagonals.cuh"
#include "dia_csr.cuh"
#include "sparse/diagonals.hpp"

namespace spmv {

// The diagonals of a matrix: how full each is, and how they are stored.
template <typename T>
class Diagonals {
 public:
  explicit Diagonals(const device::DeviceCsr<T>& a) : a_(a) {
    if (a.nnz == 0) return;
    count_ = static_cast<std::size_t>(a.rows) + a.cols - 1;
    check_memory("counting the nonzeros of each diagonal",
                 static_cast<double>(count_) * (2 * sizeof(int) + 1));
    counts_ = device::Buffer<int>("diagonal_counts", count_);
    fill_with_zero(counts_);
    device::launch(count_diagonals_kernel, threads_for(a.rows), a.rows, a.row_offsets.data(),
                   a.column_indices.data(), counts_.data());
  }

  struct Weight {
    double diagonals = 0;
    double nonzeros = 0;  // on them
  };
  Weight weigh(Cut cut) const {
    if (count_ == 0) return {};
    device::Buffer<unsigned long long> kept("kept", 2);
    fill_with_zero(kept);
    device::launch(weigh_cut_kernel, threads_for(count_), count_, counts_.data(), a_.rows, cut,
                   kept.data());
    const auto numbers = kept.download();
    return {static_cast<double>(numbers[0]), static_cast<double>(numbers[1])};
  }

  // Which place each diagonal has among those kept, -1 for the others; and the offsets of the kept.
  struct Places {
    device::Buffer<int> of_diagonals;
    device::Buffer<int> offsets;
  };
  Places place(Cut cut, const Weight& weight) const {
    Places places;
    if (count_ == 0) return places;
    places.of_diagonals = device::Buffer<int>("diagonal_places", count_ + 1);
    places.offsets = device::Buffer<int>("offsets", static_cast<std::size_t>(weight.diagonals));
    device::Buffer<unsigned char> kept("kept_diagonals", count_);
    device::launch(keep_diagonals_kernel, threads_for(count_), count_, counts_.data(), a_.rows, cut,
                   kept.data());
    exclusive_scan(kept.data(), static_cast<long long>(count_), places.of_diagonals.data());
    device::launch(place_diagonals_kernel, threads_for(count_), count_, kept.data(), a_.rows,
                   places.of_diagonals.data(), places.offsets.data());
    return places;
  }

 private:
  const device::DeviceCsr<T>& a_;
  std::size_t count_ = 0;
  device::Buffer<int> counts_;
};

// The values of the diagonals that `places` names, row by row.
template <typename T>
device::Buffer<T> diagonal_values(const device::DeviceCsr<T>& a, std::size_t pitch,
                                  const typename Diagonals<T>::Places& places) {
  device::Buffer<T> values("values", places.offsets.size() * pitch);
  if (values.size() == 0) return values;
  fill_with_zero(values);
  device::launch(csr_to_dia_kernel<T>, threads_for(a.rows), a.rows, a.row_offsets.data(),
                 a.column_indices.data(), a.values.data(), places.of_diagonals.data(), pitch,
                 values.data());
  return values;
}

// --- DIA ----------------------------------------------------------------------------------------

template <typename T>
struct Dia {
  Index rows, cols;
  std::size_t pitch;
  device::Buffer<int> offsets;  // column - row, ascending
  device::Buffer<T> values;     // offsets.size() * pitch

  // Refuses to store more than `limit` entries for each nonzero.
  Dia(const device::DeviceCsr<T>& a, double limit)
      : rows(a.rows), cols(a.cols), pitch(pitch_for(rows)) {
    const Diagonals<T> diagonals(a);
    const auto all = diagonals.weigh({});
    check_padding("DIA", all.diagonals * rows, a.nnz, limit);
    check_memory("DIA", all.diagonals * static_cast<double>(pitch) * sizeof(T));
    auto places = diagonals.place({}, all);
    values = diagonal_values(a, pitch, places);
    offsets = std::move(places.offsets);
  }
  double stored() const { return static_cast<double>(rows) * offsets.size(); }
  // What a product reads: not what is stored for places outside of the matrix.
  std::size_t bytes() const {
    return places_within(rows, cols, offsets.download()) * sizeof(T) + offsets.bytes();
  }
};

// --- Diagonals and CSR --------------------------------------------------------------------------

// CSR of what is on no diagonal that is kept, as dia_csr_kernel wants it.
template <typename T, typename End, typename Distance>
struct Rest {
  device::Buffer<int> group_begins;  // groups + 1
  device::Buffer<End> ends;
  device::Buffer<Distance> distances;
  device::Buffer<T> values;
  std::size_t groups_with_rest = 0;

  // What a product reads of it.
  std::size_t bytes() const {
    return group_begins.bytes() + groups_with_rest * kRestRows * sizeof(End) + distances.bytes() +
           values.bytes();
  }
};

// Each nonzero is stored where it costs fewer bytes: a diagonal of n nonzeros takes `rows` values,
// as part of the rest it takes n values and n distances.
template <typename T>
class DiaCsr {
 public:
  Index rows, cols;
  std::size_t pitch;
  device::Buffer<int> offsets;
  device::Buffer<T> values;
  std::variant<Rest<T, unsigned char, short>, Rest<T, unsigned short, short>, Rest<T, int, short>,
               Rest<T, unsigned char, int>, Rest<T, unsigned short, int>, Rest<T, int, int>>
      rest;

  explicit DiaCsr(const device::DeviceCsr<T>& a)
      : rows(a.rows), cols(a.cols), pitch(pitch_for(rows)) {
    if (a.nnz == 0) return;
    const Diagonals<T> diagonals(a);
    // Three ways: all diagonals and no rest; a rest of 16-bit distances, for which all diagonals
    // that are far from the main one must be kept; a rest of any distances.
    const Way all = weigh(diagonals, a.nnz, {}, 0);
    const Way near = weigh(diagonals, a.nnz, {least(sizeof(short)), 1}, sizeof(short));
    const Way any = weigh(diagonals, a.nnz, {least(sizeof(int)), least(sizeof(int))}, sizeof(int));
    const Way& best = all.bytes <= std::min(near.bytes, any.bytes) ? all
                      : near.bytes <= any.bytes                    ? near
                                                                   : any;
    check_memory("DIA+CSR", best.kept.diagonals * static_cast<double>(pitch) * sizeof(T) +
                                best.rest * (sizeof(T) + sizeof(int)) + 3.0 * rows * sizeof(int));
    auto places = diagonals.place(best.cut, best.kept);
    values = diagonal_values(a, pitch, places);
    if (best.rest > 0 && best.index_bytes == sizeof(short)) {
      store_rest<short>(a, places.of_diagonals, static_cast<std::size_t>(best.rest));
    } else if (best.rest > 0) {
      store_rest<int>(a, places.of_diagonals, static_cast<std::size_t>(best.rest));
    }
    offsets = std::move(places.offsets);
  }
  std::size_t rest_nonzeros() const {
    return std::visit([](const auto& its) { return its.values.size(); }, rest);
  }
  // Bytes of a column's distance and of a row's end.
  std::size_t distance_bytes() const {
    return std::visit([](const auto& its) { return sizeof(*its.distances.data()); }, rest);
  }
  std::size_t end_bytes() const {
    return std::visit([](const auto& its) { return sizeof(*its.ends.data()); }, rest);
  }
  double stored() const {
    return static_cast<double>(rows) * offsets.size() + static_cast<double>(rest_nonzeros());
  }
  // What a product reads, as for DIA.
  std::size_t bytes() const {
    return places_within(rows, cols, offsets.download()) * sizeof(T) + offsets.bytes() +
           std::visit([](const auto& its) { return its.bytes(); }, rest);
  }

 private:
  struct Way {
    Cut cut;
    typename Diagonals<T>::Weight kept;
    std::size_t index_bytes = 0;  // of the rest
    double rest = 0;              // nonzeros
    double bytes = 0;             // of both parts
  };
  Way weigh(const Diagonals<T>& diagonals, Index nnz, Cut cut, std::size_t index_bytes) const {
    Way way{cut, diagonals.weigh(cut), index_bytes};
    way.rest = nnz - way.kept.nonzeros;
    way.bytes = way.kept.diagonals * rows * sizeof(T) + way.rest * (sizeof(T) + index_bytes);
    if (way.rest > 0) way.bytes += rows;  // their ends, mostly one byte each
    return way;
  }
  // The break-even: from this many nonzeros on a whole diagonal takes fewer bytes than n indices.
  int least(std::size_t index_bytes) const {
    return static_cast<int>(std::ceil(1.0 * rows * sizeof(T) / (sizeof(T) + index_bytes)));
  }

  // Where each row's rest begins decides how many bytes its end takes.
  template <typename Distance>
  void store_rest(const device::DeviceCsr<T>& a, const device::Buffer<int>& places,
                  std::size_t nonzeros) {
    device::Buffer<int> lengths("lengths", rows);
    device::Buffer<int> begins("rest_begins", static_cast<std::size_t>(rows) + 1);
    device::launch(rest_lengths_kernel, threads_for(rows), rows, a.row_offsets.data(),
                   a.column_indices.data(), places.data(), lengths.data());
    exclusive_scan(lengths.data(), rows, begins.data());

    const unsigned groups = device::divide_up(static_cast<unsigned>(rows), kRestRows);
    device::Buffer<int> group_begins("group_begins", static_cast<std::size_t>(groups) + 1);
    device::Buffer<int> found("found", 2);
    fill_with_zero(found);
    device::launch(rest_groups_kernel, threads_for(groups), rows, groups, begins.data(),
                   group_begins.data(), found.data());
    const std::vector<int> longest_and_groups = found.download();
    const auto store = [&]<typename End>(End) {
      Rest<T, End, Distance> its;
      its.group_begins = std::move(group_begins);
      its.groups_with_rest = longest_and_groups[1];
      its.ends = device::Buffer<End>("rest_ends", rows);
      its.distances = device::Buffer<Distance>("rest_distances", nonzeros);
      its.values = device::Buffer<T>("rest_values", nonzeros);
      device::launch(csr_to_rest_kernel<T, End, Distance>, threads_for(rows), rows,
                     a.row_offsets.data(), a.column_indices.data(), a.values.data(), places.data(),
                     begins.data(), its.ends.data(), its.distances.data(), its.values.data());
      rest = std::move(its);
    };
    const int longest = longest_and_groups[0];
    if (longest <= std::numeric_limits<unsigned char>::max()) {
      store(static_cast<unsigned char>(0));
    } else if (longest <= std::numeric_limits<unsigned short>::max()) {
      store(static_cast<unsigned short>(0));
    } else {
      store(0);
    }
  }
};

}  // namespace spmv
