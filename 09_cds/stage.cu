// Step 09 for the harness.
#include <algorithm>
#include <limits>
#include <string>

#include "cds.cuh"
#include "cds_matrix.cuh"
#include "device/launch.hpp"
#include "device/texture.hpp"
#include "harness/kernel.hpp"

namespace spmv {
namespace {

template <typename T>
class Cds final : public Spmv<T> {
 public:
  // largest_block: 1 makes it the format DIA.
  Cds(const Problem<T>& problem, CdsLayout layout, bool texture, Index largest_block)
      : textures_(problem.csr.cols) {
    if (texture && !textures_.possible()) {
      throw Unsuitable("x has " + std::to_string(problem.csr.cols) +
                       " elements; a texture has at most " +
                       std::to_string(device::LinearTexture<T>::max_elements()));
    }
    texture_ = texture;
    a_ = to_cds(problem.csr,
                find_block_diagonals(problem.csr, problem.padding_limit, largest_block), layout);
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    if (texture_) {
      multiply_with(TextureX<T>{textures_.of(x)}, alpha, beta, y, stream);
    } else {
      multiply_with(PlainX<T>{x}, alpha, beta, y, stream);
    }
  }
  std::size_t matrix_bytes() const override { return a_.read_bytes(); }
  std::string choice() const override {
    return "b = " + std::to_string(a_.diagonals.block) +
           ", k = " + std::to_string(a_.diagonals.offsets.size());
  }

 private:
  template <typename X>
  void multiply_with(X x, T alpha, T beta, T* y, cudaStream_t stream) {
    const auto& [block, all_offsets] = a_.diagonals;
    const auto kernel = choose<X>(block);
    // Diagonals beyond the limit of a launch are left to the next launch, which adds to y.
    std::size_t first = 0;
    do {
      CdsOffsets offsets;
      std::fill(std::begin(offsets.at), std::end(offsets.at), kNoDiagonal);
      offsets.count =
          static_cast<int>(std::min<std::size_t>(all_offsets.size() - first, kDiagonalsPerLaunch));
      std::copy_n(all_offsets.begin() + static_cast<std::ptrdiff_t>(first), offsets.count,
                  offsets.at);
      device::launch(
          kernel, {dim3(device::divide_up(a_.rows, kCdsThreads)), dim3(kCdsThreads), 0, stream},
          static_cast<unsigned>(a_.rows), static_cast<unsigned>(a_.cols / block),
          static_cast<unsigned>(block), offsets, a_.values.data() + first * block * a_.stride,
          a_.stride, a_.pitch, alpha, x, first == 0 ? beta : T{1}, y);
      first += kDiagonalsPerLaunch;
    } while (first < all_offsets.size());
  }

  template <typename X>
  static auto choose(Index block) {
    static constexpr decltype(&cds_kernel<0, T, X>) kKernels[] = {
        cds_kernel<0, T, X>, cds_kernel<1, T, X>, cds_kernel<2, T, X>,
        cds_kernel<3, T, X>, cds_kernel<4, T, X>, cds_kernel<5, T, X>,
        cds_kernel<6, T, X>, cds_kernel<7, T, X>, cds_kernel<8, T, X>};
    return kKernels[block <= 8 ? block : 0];
  }

  device::Textures<T> textures_;
  bool texture_;
  CdsMatrix<T> a_;
};

bool register_all() {
  const std::string paper = "CDS: Godwin, Holewinski and Sadayappan 2012, section 3";
  const auto add = [](const std::string& name, const std::string& idea, const std::string& source,
                      CdsLayout layout, bool texture, Index largest_block) {
    return add_kernel(
        {.step = 9,
         .name = name,
         .format = "CDS",
         .idea = idea,
         .source = source,
         .in_ladder = name == "cds"},
        [=](const auto& problem) { return make<Cds>(problem, layout, texture, largest_block); });
  };
  constexpr Index kAny = std::numeric_limits<Index>::max();
  add("cds_b1", "diagonals, one thread per row: the format DIA", paper + ".2", CdsLayout::kColumns,
      false, 1);
  add("cds_texture", "block diagonals, one thread per row, x by a texture", paper,
      CdsLayout::kColumns, true, kAny);
  add("cds", "dense block diagonals", paper, CdsLayout::kColumns, false, kAny);
  return add("cds_sliced", "what a block of threads reads lies together", "after " + paper,
             CdsLayout::kSlices, false, kAny);
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
