// Step 07 for the harness.
#include <algorithm>
#include <limits>
#include <string>

#include "device/launch.hpp"
#include "device/texture.hpp"
#include "harness/kernel.hpp"
#include "lightspmv.cuh"
#include "lightspmv_counters.cuh"
#include "rules.hpp"

namespace spmv {
namespace {

// Which team fetches the next rows from the counter, and with which atomic.
enum class Fetch { kVector, kVectorInc, kWarp };

// The poster's kernels, and its driver routine.
template <typename T>
class LightSpmv final : public Spmv<T> {
 public:
  LightSpmv(const Problem<T>& problem, Fetch fetch)
      : a_(problem.csr),
        lanes_per_row_(poster_lanes(a_.rows, a_.nnz)),
        kernel_(choose(lanes_per_row_, fetch)),
        // No more blocks than are resident at once, nor than there are vectors with a row.
        blocks_(std::min(device::resident_blocks(kernel_, kLightThreads),
                         device::divide_up(a_.rows, kLightThreads / lanes_per_row_))),
        textures_(a_.cols),
        row_counter_("row_counter", 1) {
    if (!textures_.possible()) {
      throw Unsuitable("x has " + std::to_string(a_.cols) + " elements; a texture has at most " +
                       std::to_string(device::LinearTexture<T>::max_elements()));
    }
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::check(cudaMemsetAsync(row_counter_.data(), 0, row_counter_.bytes(), stream),
                  "clearing the row counter");
    device::launch(kernel_, {dim3(blocks_), dim3(kLightThreads), 0, stream},
                   static_cast<unsigned>(a_.rows), a_.row_offsets.data(), a_.column_indices.data(),
                   a_.values.data(), alpha, textures_.of(x), beta, y, row_counter_.data());
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override { return std::to_string(lanes_per_row_) + " lanes per row"; }

 private:
  using Kernel = decltype(&lightspmv_kernel<32, 32, false, T>);

  template <int lanes_per_row>
  static Kernel choose(Fetch fetch) {
    if (fetch == Fetch::kWarp) return lightspmv_kernel<32, lanes_per_row, false, T>;
    return fetch == Fetch::kVector ? lightspmv_kernel<lanes_per_row, lanes_per_row, false, T>
                                   : lightspmv_kernel<lanes_per_row, lanes_per_row, true, T>;
  }
  static Kernel choose(int lanes_per_row, Fetch fetch) {
    switch (lanes_per_row) {
      case 2:
        return choose<2>(fetch);
      case 4:
        return choose<4>(fetch);
      case 8:
        return choose<8>(fetch);
      default:
        return choose<32>(fetch);
    }
  }

  const device::DeviceCsr<T>& a_;
  int lanes_per_row_;
  Kernel kernel_;
  int blocks_;
  device::Textures<T> textures_;
  device::Buffer<unsigned> row_counter_;
};

// The kernel with sixteen counters; with or without long rows of their own.
template <typename T>
class LightSpmvCounters final : public Spmv<T> {
 public:
  LightSpmvCounters(const Problem<T>& problem, bool long_rows)
      : a_(problem.csr),
        resident_threads_(kCountersThreads * device::resident_blocks(choose(8), kCountersThreads)),
        lanes_per_row_(long_rows ? lanes_for_device(a_.rows, a_.nnz, resident_threads_)
                                 : poster_lanes(a_.rows, a_.nnz)),
        longest_for_vector_(long_rows ? kLongestTurns * lanes_per_row_
                                      : std::numeric_limits<unsigned>::max()),
        rows_per_ticket_(rows_per_ticket(a_.rows, lanes_per_row_, resident_threads_)),
        kernel_(choose(lanes_per_row_)),
        blocks_(std::min(
            device::resident_blocks(kernel_, kCountersThreads),
            static_cast<int>(device::divide_up(static_cast<unsigned>(a_.rows),
                                               rows_per_ticket_ * (kCountersThreads / 32))))),
        counters_("row_counters", std::vector<unsigned>(kCounters * kCounterStride)) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    device::launch(kernel_, {dim3(blocks_), dim3(kCountersThreads), 0, stream},
                   static_cast<unsigned>(a_.rows), a_.row_offsets.data(), a_.column_indices.data(),
                   a_.values.data(), alpha, x, beta, y, rows_per_ticket_, longest_for_vector_,
                   counters_.data());
  }
  std::size_t matrix_bytes() const override { return a_.bytes(); }
  std::string choice() const override { return std::to_string(lanes_per_row_) + " lanes per row"; }

 private:
  // Iterations that a vector may take for a row; a longer row is added up by its warp.
  static constexpr unsigned kLongestTurns = 16;
  using Kernel = decltype(&lightspmv_counters_kernel<32, T>);

  static Kernel choose(int lanes_per_row) {
    switch (lanes_per_row) {
      case 2:
        return lightspmv_counters_kernel<2, T>;
      case 4:
        return lightspmv_counters_kernel<4, T>;
      case 8:
        return lightspmv_counters_kernel<8, T>;
      case 16:
        return lightspmv_counters_kernel<16, T>;
      default:
        return lightspmv_counters_kernel<32, T>;
    }
  }

  const device::DeviceCsr<T>& a_;
  int resident_threads_;
  int lanes_per_row_;
  unsigned longest_for_vector_;
  unsigned rows_per_ticket_;
  Kernel kernel_;
  int blocks_;
  device::Buffer<unsigned> counters_;
};

bool register_all() {
  const std::string poster = "LightSpMV: Liu, Gonzalez-Dominguez and Schmidt, poster P5267";
  add_kernel({.step = 7,
              .name = "lightspmv_vector",
              .format = "CSR",
              .idea = "each vector takes its next row from a counter",
              .source = poster + ", vector-level"},
             [](const auto& problem) { return make<LightSpmv>(problem, Fetch::kVector); });
  add_kernel({.step = 7,
              .name = "lightspmv_vector_inc",
              .format = "CSR",
              .idea = "the same with atomics that the compiler cannot aggregate",
              .source = poster + ", vector-level"},
             [](const auto& problem) { return make<LightSpmv>(problem, Fetch::kVectorInc); });
  add_kernel({.step = 7,
              .name = "lightspmv_warp",
              .format = "CSR",
              .idea = "warps draw their next rows",
              .source = poster + ", warp-level",
              .in_ladder = true},
             [](const auto& problem) { return make<LightSpmv>(problem, Fetch::kWarp); });
  add_kernel({.step = 7,
              .name = "lightspmv_counters",
              .format = "CSR",
              .idea = "sixteen counters, several iterations of a warp per ticket",
              .source = "after " + poster},
             [](const auto& problem) { return make<LightSpmvCounters>(problem, false); });
  return add_kernel({.step = 7,
                     .name = "lightspmv_long",
                     .format = "CSR",
                     .idea = "and a whole warp for each long row",
                     .source = "after " + poster},
                    [](const auto& problem) { return make<LightSpmvCounters>(problem, true); });
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
