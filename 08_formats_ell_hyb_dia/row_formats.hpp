// The formats of step 08 that go by rows, each made on the device from a CSR matrix there.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "convert.hpp"
#include "convert_rows.cuh"
#include "device/coo.hpp"

namespace spmv {

// For copy_rows(), where the rows are padded to `width` on average.
inline device::Shape tile_shape(Index rows, double width) {
  const unsigned warps = width > 2 * kTileColumns ? 4 : width > kTileColumns ? 2 : 1;
  const unsigned in_block = 32 * kConvertWarps / warps;  // rows
  return {dim3(device::divide_up(static_cast<unsigned>(rows), in_block)),
          dim3(32, warps, kConvertWarps / warps)};
}

template <typename T>
int longest_row(const device::DeviceCsr<T>& a) {
  device::Buffer<int> longest("longest_row", 1);
  fill_with_zero(longest);
  device::launch(longest_row_kernel, threads_for(a.rows, 512), a.rows, a.row_offsets.data(),
                 longest.data());
  return read_last(longest, 1).front();
}

// The first `width` nonzeros of each row.
template <typename T>
struct Ell {
  Index rows;
  int width;
  std::size_t pitch;
  device::Buffer<Index> columns;  // width * pitch
  device::Buffer<T> values;       // width * pitch

  // Refuses to store more than `limit` entries for each nonzero.
  Ell(const device::DeviceCsr<T>& a, int its_width,
      double limit = std::numeric_limits<double>::infinity())
      : rows(a.rows), width(its_width), pitch(pitch_for(rows)) {
    check_padding("ELL", stored(), a.nnz, limit);
    check_memory("ELL", static_cast<double>(pitch) * width * (sizeof(Index) + sizeof(T)));
    columns = device::Buffer<Index>("columns", pitch * width);
    values = device::Buffer<T>("values", pitch * width);
    device::launch(csr_to_ell_kernel<T>, tile_shape(rows, width), rows, a.row_offsets.data(),
                   a.column_indices.data(), a.values.data(), width, pitch, columns.data(),
                   values.data());
  }
  double stored() const { return static_cast<double>(rows) * width; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(rows) * width * (sizeof(Index) + sizeof(T));
  }
};

// The nonzeros of each row behind its first `skipped`, as triplets in the order of the rows.
template <typename T>
device::DeviceCoo<T> coo_from(const device::DeviceCsr<T>& a, int skipped) {
  device::DeviceCoo<T> coo;
  coo.rows = a.rows;
  coo.cols = a.cols;
  if (a.rows == 0) return coo;
  device::Buffer<Index> lengths("lengths", a.rows);
  device::Buffer<Index> begins("coo_begins", static_cast<std::size_t>(a.rows) + 1);
  device::launch(remainders_kernel, threads_for(a.rows), a.rows, a.row_offsets.data(), skipped,
                 lengths.data());
  exclusive_scan(lengths.data(), a.rows, begins.data());
  coo.nnz = read_last(begins, 1).front();
  check_memory("COO", static_cast<double>(coo.nnz) * (2 * sizeof(Index) + sizeof(T)));
  coo.row_indices = device::Buffer<Index>("row_indices", coo.nnz);
  coo.column_indices = device::Buffer<Index>("column_indices", coo.nnz);
  coo.values = device::Buffer<T>("values", coo.nnz);
  device::launch(csr_to_coo_kernel<T>, threads_for(a.rows), a.rows, a.row_offsets.data(),
                 a.column_indices.data(), a.values.data(), skipped, begins.data(),
                 coo.row_indices.data(), coo.column_indices.data(), coo.values.data());
  return coo;
}

// --- HYB ----------------------------------------------------------------------------------------

// CUSP's rule for the width of the ELL part. Column j of it has a nonzero for rows of more than j
// nonzeros and padding for all others. CUSP assumes that ELL is three times as fast as COO, so the
// column is worth storing while a third of the rows use it, and that it is not worth a launch for
// fewer than 4096 rows. histogram[n] is the number of rows of n nonzeros, of its length or more for
// the last.
inline int hyb_width(const std::vector<int>& histogram, Index rows) {
  constexpr double kRelativeSpeed = 3;
  constexpr Index kBreakEven = 4096;
  Index longer = rows;  // rows of more than `width` nonzeros
  for (int width = 0; width < static_cast<int>(histogram.size()); ++width) {
    longer -= histogram[width];
    if (kRelativeSpeed * longer < rows || longer < kBreakEven) return width;
  }
  return static_cast<int>(histogram.size()) - 1;
}

template <typename T>
int hyb_width(const device::DeviceCsr<T>& a) {
  // 4096 rows of more nonzeros than this would be more than 2^31.
  constexpr int kLongest = 1 << 19;
  const int bins = std::min(longest_row(a), kLongest) + 1;
  device::Buffer<int> histogram("row_histogram", bins);
  fill_with_zero(histogram);
  device::launch(row_histogram_kernel, threads_for(a.rows), a.rows, a.row_offsets.data(), bins,
                 histogram.data());
  return hyb_width(histogram.download(), a.rows);
}

// --- Sliced ELL ---------------------------------------------------------------------------------

enum class Rows { kAsTheyStand, kSortedInWindows };
enum class ColumnBits { k32, k16 };

// Warps per slice for sell_kernel: a power of two up to 32. A slice of w columns takes w / warps
// loads one after the other, so more warps shorten the widest; but all slices pay for them. The sum
// of both is least where warps^2 = c widest / slices; c is 6 per multiprocessor, measured on an
// H200 with 26 matrices. And a warp needs no more than 16 columns on average. `columns`: of all
// slices.
inline int warps_per_slice(Index slices, int widest, long long columns, int multiprocessors) {
  const double average = static_cast<double>(columns) / slices;
  const double best = std::max(std::sqrt(6.0 * multiprocessors * widest / slices), average / 16);
  int warps = 1;
  while (warps < 32 && warps * std::numbers::sqrt2 < best) warps *= 2;
  return warps;
}

template <typename T>
struct SlicedEll {
  Index rows;
  device::Buffer<long long> slice_begins;  // slices + 1, in columns of kSlice elements
  device::Buffer<unsigned char> places;    // of the rows in their windows; none if not sorted
  device::Buffer<T> values;                // 32 for each column of a slice
  device::Buffer<Index> columns;           // as many, or, of 16 bits (sell_16.cuh):
  device::Buffer<Index> bases;
  device::Buffer<unsigned short> low, high;
  device::Buffer<int> wide_slices;
  std::size_t wide_columns = 0;  // of all wide slices
  std::size_t stored = 0;        // of them, those of a row
  int warps = 1;                 // per slice, for sell_kernel

  SlicedEll(const device::DeviceCsr<T>& a, Rows order, double limit, ColumnBits bits)
      : rows(a.rows) {
    const Index slices = device::divide_up(rows, static_cast<Index>(kSlice));
    if (order == Rows::kSortedInWindows) {
      const Index windows = device::divide_up(rows, static_cast<Index>(kSortWindow));
      places = device::Buffer<unsigned char>("places", rows);
      device::launch(sort_windows_kernel, {dim3(windows), dim3(kSortWindow)}, rows,
                     a.row_offsets.data(), places.data());
    }
    if (slices == 0) return;
    device::Buffer<int> widths("slice_widths", static_cast<std::size_t>(slices) + 1);
    fill_with_zero(widths);
    slice_begins = device::Buffer<long long>("slice_begins", static_cast<std::size_t>(slices) + 1);
    device::launch(slice_widths_kernel, threads_for(rows, 512), rows, a.row_offsets.data(),
                   places.data(), widths.data(), widths.data() + slices);
    exclusive_scan(widths.data(), slices, slice_begins.data());
    const long long end = read_last(slice_begins, 1).front();
    const std::vector<int> last_and_widest = read_last(widths, 2);
    warps = warps_per_slice(slices, last_and_widest[1], end,
                            device::attribute(cudaDevAttrMultiProcessorCount));
    const auto places_in_all = static_cast<std::size_t>(end) * kSlice;
    // The last slice may have fewer rows than 32; what lies beside them is never read.
    stored = places_in_all -
             static_cast<std::size_t>(last_and_widest[0]) * (kSlice - 1 - (rows - 1) % kSlice);
    check_padding("sliced ELL", static_cast<double>(stored), a.nnz, limit);
    check_memory("sliced ELL", static_cast<double>(places_in_all) * (sizeof(Index) + sizeof(T)));
    values = device::Buffer<T>("values", places_in_all);
    const device::Shape shape = tile_shape(rows, 1.0 * end / slices);
    const auto convert = [&](auto to_columns) {
      device::launch(csr_to_sell_kernel<T, decltype(to_columns)>, shape, rows, a.row_offsets.data(),
                     a.column_indices.data(), a.values.data(), slice_begins.data(), places.data(),
                     to_columns, values.data());
    };
    if (bits == ColumnBits::k32) {
      columns = device::Buffer<Index>("columns", places_in_all);
      convert(columns.data());
      return;
    }
    bases = device::Buffer<Index>("bases", end);
    low = device::Buffer<unsigned short>("columns", places_in_all);
    wide_slices = device::Buffer<int>("wide_slices", slices);
    device::Buffer<int> counter("wide_columns", 1);
    fill_with_zero(wide_slices);
    fill_with_zero(counter);
    convert(Columns16Sink{bases.data(), low.data(), wide_slices.data(), counter.data(),
                          slice_begins.data()});
    wide_columns = read_last(counter, 1).front();
    if (wide_columns == 0) return;
    high = device::Buffer<unsigned short>("high_halves", places_in_all);
    device::launch(widen_slices_kernel, shape, rows, a.row_offsets.data(), a.column_indices.data(),
                   slice_begins.data(), places.data(), wide_slices.data(), bases.data(), low.data(),
                   high.data());
  }
  // Calls what(columns) with what sell_kernel takes for columns.
  template <typename What>
  void with_columns(What what) const {
    if (bases.size() == 0) return what(static_cast<const Index*>(columns.data()));
    what(Columns16{wide_columns > 0 ? wide_slices.data() : nullptr, bases.data(), low.data(),
                   high.data()});
  }
  // Of columns of 16 bits those that a product reads: the high halves of wide slices, the bases of
  // all others.
  std::size_t bytes() const {
    const std::size_t offsets = slice_begins.bytes() + places.bytes();
    if (bases.size() == 0) return offsets + stored * (sizeof(Index) + sizeof(T));
    return offsets + stored * (sizeof(*low.data()) + sizeof(T)) +
           (bases.size() - wide_columns) * sizeof(Index) +
           (wide_columns > 0 ? wide_slices.bytes() : 0) +
           wide_columns * kSlice * sizeof(*high.data());
  }
};

}  // namespace spmv
