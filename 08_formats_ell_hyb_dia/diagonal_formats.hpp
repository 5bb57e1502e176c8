// The formats of step 08 that go by diagonals, each made on the device from a CSR matrix there.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "convert.hpp"
#include "convert_diagonals.cuh"
#include "dia_csr.cuh"

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
  std::size_t bytes() const { return rows * offsets.size() * sizeof(T) + offsets.bytes(); }
};

// --- Diagonals and CSR --------------------------------------------------------------------------

// CSR of what is on no diagonal that is kept; columns and ends as dia_csr_kernel wants them.
template <typename T, typename End, typename Distance>
struct Rest {
  device::Buffer<int> block_begins;
  device::Buffer<End> ends;
  device::Buffer<Distance> distances;
  device::Buffer<T> values;

  Rest() = default;
  Rest(const device::DeviceCsr<T>& a, const device::Buffer<int>& places,
       const device::Buffer<int>& begins, std::size_t nonzeros)
      : block_begins("block_begins", device::divide_up(static_cast<unsigned>(a.rows), kDiaCsrRows)),
        ends("rest_ends", a.rows),
        distances("rest_distances", nonzeros),
        values("rest_values", nonzeros) {
    device::launch(csr_to_rest_kernel<T, End, Distance>,
                   {dim3(static_cast<unsigned>(block_begins.size())), dim3(kDiaCsrRows)}, a.rows,
                   a.row_offsets.data(), a.column_indices.data(), a.values.data(), places.data(),
                   begins.data(), block_begins.data(), ends.data(), distances.data(),
                   values.data());
  }
  std::size_t bytes() const {
    return block_begins.bytes() + ends.bytes() + distances.bytes() + values.bytes();
  }
};

// Each nonzero where it costs fewer bytes. A diagonal of n nonzeros costs rows values; as part of
// the rest it costs n values and n distances.
template <typename T>
class DiaCsr {
 public:
  Index rows, cols;
  std::size_t pitch;
  device::Buffer<int> offsets;
  device::Buffer<T> values;
  Rest<T, unsigned short, short> narrow;  // at most one of the two has nonzeros
  Rest<T, int, int> wide;

  explicit DiaCsr(const device::DeviceCsr<T>& a)
      : rows(a.rows), cols(a.cols), pitch(pitch_for(rows)) {
    if (rows == 0) return;
    const Diagonals<T> diagonals(a);
    // Three ways: all diagonals and no rest; a rest of 16-bit distances, for which all diagonals
    // that are far from the main one must be kept; a rest of any distances.
    const Way all = weigh(diagonals, a.nnz, {}, 0);
    const Way near = weigh(diagonals, a.nnz, {least(sizeof(short)), 1}, sizeof(short));
    const Way any = weigh(diagonals, a.nnz, {least(sizeof(int)), least(sizeof(int))}, sizeof(int));
    const Way& without_limits = all.bytes <= any.bytes ? all : any;
    const bool prefers_near = near.bytes < without_limits.bytes;
    if (!prefers_near || !store<unsigned short>(a, diagonals, near)) {
      store<int>(a, diagonals, without_limits);
    }
  }
  bool has_rest() const { return rest_nonzeros() > 0; }
  std::size_t rest_nonzeros() const { return narrow.values.size() + wide.values.size(); }
  double stored() const {
    return static_cast<double>(rows) * offsets.size() + static_cast<double>(rest_nonzeros());
  }
  std::size_t bytes() const {
    return rows * offsets.size() * sizeof(T) + offsets.bytes() + narrow.bytes() + wide.bytes();
  }

 private:
  struct Way {
    Cut cut;
    typename Diagonals<T>::Weight kept;
    double rest = 0;   // nonzeros
    double bytes = 0;  // of both parts
  };
  Way weigh(const Diagonals<T>& diagonals, Index nnz, Cut cut, std::size_t index_bytes) const {
    Way way{cut, diagonals.weigh(cut)};
    way.rest = nnz - way.kept.nonzeros;
    way.bytes = way.kept.diagonals * rows * sizeof(T);
    if (way.rest > 0) way.bytes += way.rest * (sizeof(T) + index_bytes) + 1.0 * rows * index_bytes;
    return way;
  }
  // Nonzeros from which on a diagonal costs less whole than with an index for each of them.
  int least(std::size_t index_bytes) const {
    return static_cast<int>(std::ceil(1.0 * rows * sizeof(T) / (sizeof(T) + index_bytes)));
  }
  // False, with nothing stored, if the rest of a block is too long for `End`.
  template <typename End>
  bool store(const device::DeviceCsr<T>& a, const Diagonals<T>& diagonals, const Way& way) {
    auto places = diagonals.place(way.cut, way.kept);
    if (way.rest > 0) {
      device::Buffer<int> lengths("lengths", rows);
      device::Buffer<int> begins("rest_begins", static_cast<std::size_t>(rows) + 1);
      device::launch(rest_lengths_kernel, threads_for(rows), rows, a.row_offsets.data(),
                     a.column_indices.data(), places.of_diagonals.data(), lengths.data());
      exclusive_scan(lengths.data(), rows, begins.data());
      if (longest_block_rest(begins) > static_cast<int>(std::numeric_limits<End>::max())) {
        return false;
      }
      const auto nonzeros = static_cast<std::size_t>(way.rest);
      if constexpr (std::is_same_v<End, int>) {
        wide = {a, places.of_diagonals, begins, nonzeros};
      } else {
        narrow = {a, places.of_diagonals, begins, nonzeros};
      }
    }
    check_memory("DIA+CSR", way.kept.diagonals * static_cast<double>(pitch) * sizeof(T));
    values = diagonal_values(a, pitch, places);
    offsets = std::move(places.offsets);
    return true;
  }
  int longest_block_rest(const device::Buffer<int>& begins) const {
    device::Buffer<int> longest("longest_block_rest", 1);
    fill_with_zero(longest);
    const unsigned blocks = device::divide_up(static_cast<unsigned>(rows), kDiaCsrRows);
    device::launch(longest_block_rest_kernel, threads_for(blocks), rows, kDiaCsrRows, begins.data(),
                   longest.data());
    return read_one(longest, 0);
  }
};

}  // namespace spmv
