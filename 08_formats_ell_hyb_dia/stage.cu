// Step 08 for the harness.
#include <cmath>
#include <optional>
#include <string>
#include <variant>

#include "coo.cuh"
#include "csr.cuh"
#include "device/block_threads.hpp"
#include "dia.cuh"
#include "diagonal_formats.hpp"
#include "ell.cuh"
#include "harness/kernel.hpp"
#include "row_formats.hpp"
#include "sell.cuh"

namespace spmv {
namespace {

// For all formats, so that they can be compared. (Step 02 launches the kernel of csr with 256.)
constexpr int kThreads = 128;

device::Shape thread_a_row(Index rows, cudaStream_t stream) {
  const int threads = device::block_threads(kThreads);
  return {dim3(device::divide_up(rows, threads)), dim3(threads), 0, stream};
}

std::string percent(double part, double whole) {
  return std::to_string(std::lround(100 * part / whole)) + "%";
}

std::string diagonals_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " diagonal, " : " diagonals, ");
}

template <typename T>
void launch_ell(const Ell<T>& a, T alpha, const T* x, T beta, T* y, cudaStream_t stream) {
  device::launch(ell_kernel<T>, thread_a_row(a.rows, stream), a.rows, a.width, a.pitch,
                 a.columns.data(), a.values.data(), alpha, x, beta, y);
}

// --- CSR, ELL, HYB and COO ----------------------------------------------------------------------

template <typename T>
class CsrSpmv final : public Spmv<T> {
 public:
  explicit CsrSpmv(const Problem<T>& problem) : a_(problem.csr) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::launch(formats::csr_scalar_kernel<T>, thread_a_row(a_.rows, stream), a_.rows,
                   a_.row_offsets.data(), a_.column_indices.data(), a_.values.data(), alpha, x,
                   beta, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }

 private:
  const device::DeviceCsr<T>& a_;
};

template <typename T>
class EllSpmv final : public Spmv<T> {
 public:
  explicit EllSpmv(const Problem<T>& problem)
      : a_(problem.csr, longest_row(problem.csr), problem.padding_limit), nnz_(problem.csr.nnz) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    launch_ell(a_, alpha, x, beta, y, stream);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override { return padding_text(a_.stored(), nnz_); }

 private:
  Ell<T> a_;
  Index nnz_;
};

// The ELL part writes all of y; step 05's scan adds the sums of the triplets to it. Neither uses
// atomics, so the bits are the same in every run. Without a width CUSP's rule chooses it; with
// width 0 it is COO.
template <typename T>
class HybSpmv final : public Spmv<T> {
 public:
  HybSpmv(const Problem<T>& problem, std::optional<int> its_width)
      : chosen_(!its_width),
        ell_(problem.csr, chosen_ ? hyb_width(problem.csr) : *its_width),
        coo_(coo_from(problem.csr, ell_.width)),
        nnz_(problem.csr.nnz),
        tiles_(device::divide_up(coo_.nnz, formats::kTile)),
        carries_("carries", tiles_) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    launch_ell(ell_, alpha, x, beta, y, stream);
    device::launch(
        formats::segscan_shuffle_kernel<T>, {dim3(tiles_), dim3(32 * formats::kWarps), 0, stream},
        static_cast<unsigned>(coo_.nnz), coo_.row_indices.data(), coo_.column_indices.data(),
        coo_.values.data(), alpha, x, T{1}, y, carries_.data());
    if (tiles_ < 2) return;  // nothing to carry
    device::launch(formats::add_carries_kernel<T>,
                   {dim3(device::divide_up(tiles_, kThreads / 32)), dim3(kThreads), 0, stream},
                   coo_.nnz, tiles_, coo_.row_indices.data(), carries_.data(), alpha, y);
  }
  std::size_t matrix_bytes() const override { return ell_.bytes() + coo_.bytes(); }
  std::string choice() const override {
    if (nnz_ == 0 || !chosen_) return "";
    return "width " + std::to_string(ell_.width) + ", " + percent(coo_.nnz, nnz_) + " in COO, " +
           padding_text(ell_.stored() + coo_.nnz, nnz_);
  }

 private:
  bool chosen_;
  Ell<T> ell_;
  device::DeviceCoo<T> coo_;
  Index nnz_;
  int tiles_;
  device::Buffer<T> carries_;
};

// --- Sliced ELL ---------------------------------------------------------------------------------

template <typename T>
class SellSpmv final : public Spmv<T> {
 public:
  SellSpmv(const Problem<T>& problem, Rows order, ColumnBits bits)
      : a_(problem.csr, order, problem.padding_limit, bits), nnz_(problem.csr.nnz) {
    const double bytes =
        static_cast<double>(a_.bytes()) + (1.0 * problem.csr.rows + problem.csr.cols) * sizeof(T);
    // Somewhat below its size: the L2 cache is in two halves.
    read_once_ = bytes > 0.75 * device::attribute(cudaDevAttrL2CacheSize);
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    multiply_with<1>(alpha, x, beta, y, stream);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override {
    std::string text = padding_text(static_cast<double>(a_.stored), nnz_);
    if (text.empty()) return text;
    if (a_.wide_columns > 0) {
      text = percent(static_cast<double>(a_.wide_columns), static_cast<double>(a_.bases.size())) +
             " of 32 bits, " + text;
    }
    return a_.warps == 1 ? text : std::to_string(a_.warps) + " warps per slice, " + text;
  }

 private:
  template <int warps>
  void multiply_with(T alpha, const T* x, T beta, T* y, cudaStream_t stream) {
    if constexpr (warps < 32) {
      if (warps < a_.warps) return multiply_with<2 * warps>(alpha, x, beta, y, stream);
    }
    const dim3 block(kSlice, warps, slices_per_block(warps));
    const dim3 grid(device::divide_up(static_cast<unsigned>(a_.rows), kSlice * block.z));
    a_.with_columns([&](auto columns) {
      using Columns = decltype(columns);
      device::launch(
          read_once_ ? sell_kernel<T, warps, true, Columns> : sell_kernel<T, warps, false, Columns>,
          {grid, block, 0, stream}, a_.rows, a_.slice_begins.data(), a_.places.data(), columns,
          a_.values.data(), alpha, x, beta, y);
    });
  }

  SlicedEll<T> a_;
  Index nnz_;
  bool read_once_;
};

// --- Diagonals ----------------------------------------------------------------------------------

template <typename T>
class DiaSpmv final : public Spmv<T> {
 public:
  explicit DiaSpmv(const Problem<T>& problem)
      : a_(problem.csr, problem.padding_limit), nnz_(problem.csr.nnz) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::launch(dia_kernel<T>, thread_a_row(a_.rows, stream), a_.rows, a_.cols,
                   static_cast<int>(a_.offsets.size()), a_.pitch, a_.offsets.data(),
                   a_.values.data(), alpha, x, beta, y);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override {
    if (nnz_ == 0) return "";
    return diagonals_text(a_.offsets.size()) + padding_text(a_.stored(), nnz_);
  }

 private:
  Dia<T> a_;
  Index nnz_;
};

template <typename T>
class DiaCsrSpmv final : public Spmv<T> {
 public:
  explicit DiaCsrSpmv(const Problem<T>& problem) : a_(problem.csr), nnz_(problem.csr.nnz) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    std::visit([&](const auto& rest) { multiply_with(rest, alpha, x, beta, y, stream); }, a_.rest);
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override {
    if (nnz_ == 0) return "";
    std::string text = diagonals_text(a_.offsets.size());
    if (a_.rest_nonzeros() > 0) {
      text += percent(static_cast<double>(a_.rest_nonzeros()), nnz_) + " in CSR of " +
              std::to_string(8 * a_.distance_bytes()) + " bits, ";
    }
    return text + padding_text(a_.stored(), nnz_);
  }

 private:
  template <typename End, typename Distance>
  void multiply_with(const Rest<T, End, Distance>& rest, T alpha, const T* x, T beta, T* y,
                     cudaStream_t stream) {
    device::launch(dia_csr_kernel<T, End, Distance>, thread_a_row(a_.rows, stream), a_.rows,
                   a_.cols, static_cast<int>(a_.offsets.size()), a_.pitch, a_.offsets.data(),
                   a_.values.data(), rest.group_begins.data(), rest.ends.data(),
                   rest.distances.data(), rest.values.data(), alpha, x, beta, y);
  }

  DiaCsr<T> a_;
  Index nnz_;
};

// --- All of them --------------------------------------------------------------------------------

bool register_all() {
  const std::string paper = "Bylina, Bylina and Karwacki 2011, section ";
  add_kernel({.step = 8,
              .name = "csr",
              .format = "CSR",
              .idea = "one thread per row, as in step 02",
              .source = paper + "3.2 and figure 8"},
             [](const auto& problem) { return make<CsrSpmv>(problem); });
  add_kernel({.step = 8,
              .name = "coo",
              .format = "COO",
              .idea = "triplets, summed by step 05's scan by shuffles",
              .source = paper + "3.1"},
             [](const auto& problem) { return make<HybSpmv>(problem, 0); });
  add_kernel({.step = 8,
              .name = "ell",
              .format = "ELL",
              .idea = "rows padded to the longest, stored column by column",
              .source = paper + "3.3; Bell and Garland 2009"},
             [](const auto& problem) { return make<EllSpmv>(problem); });
  add_kernel({.step = 8,
              .name = "hyb",
              .format = "HYB",
              .idea = "ELL, and COO for the rest",
              .source = paper + "3.4; Bell and Garland 2009",
              .in_ladder = true},
             [](const auto& problem) { return make<HybSpmv>(problem, std::nullopt); });
  add_kernel({.step = 8,
              .name = "dia",
              .format = "DIA",
              .idea = "whole diagonals, no columns",
              .source = "Bell and Garland 2009"},
             [](const auto& problem) { return make<DiaSpmv>(problem); });
  const auto add_sell = [](const std::string& name, const std::string& idea,
                           const std::string& source, Rows order, ColumnBits bits) {
    add_kernel({.step = 8, .name = name, .format = "SELL", .idea = idea, .source = source},
               [order, bits](const auto& problem) { return make<SellSpmv>(problem, order, bits); });
  };
  const std::string sell = "Monakov, Lokhmotov and Avetisyan 2010";
  const std::string sorted = "Kreutzer and others 2014, SELL-C-sigma";
  const std::string shorter = "this repository, on ";
  add_sell("sell", "ELL of 32 rows at a time", sell, Rows::kAsTheyStand, ColumnBits::k32);
  add_sell("sell_sorted", "the same, rows sorted by length among 256", sorted,
           Rows::kSortedInWindows, ColumnBits::k32);
  add_sell("sell_16", "sell with columns of 16 bits from a base", shorter + sell,
           Rows::kAsTheyStand, ColumnBits::k16);
  add_sell("sell_16_sorted", "sell_sorted with columns of 16 bits", shorter + sorted,
           Rows::kSortedInWindows, ColumnBits::k16);
  return add_kernel({.step = 8,
                     .name = "dia_csr",
                     .format = "DIA+CSR",
                     .idea = "dense diagonals as such, the rest as CSR of short indices",
                     .source = "this repository, for the open question of " + paper + "6"},
                    [](const auto& problem) { return make<DiaCsrSpmv>(problem); });
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
