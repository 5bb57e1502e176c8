#include "tests/kernel_suite.hpp"

#include <fnmatch.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "sparse/convert.hpp"
#include "sparse/rng.hpp"
#include "tests/catch.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::test {
namespace {

// A rows x cols matrix whose row r has length(r) nonzeros in ascending random columns; the triplets
// stand in random order.
Coo<double> build(Index rows, Index cols, std::uint64_t seed,
                  const std::function<Index(Index)>& length) {
  Coo<double> coo;
  coo.rows = rows;
  coo.cols = cols;
  Rng rng(seed);
  for (Index row = 0; row < rows; ++row) {
    Index left = std::min(length(row), cols);
    // Each column is taken with the chance that makes the number come out exactly.
    for (Index column = 0; column < cols && left > 0; ++column) {
      if (static_cast<Index>(rng.below(static_cast<std::uint64_t>(cols - column))) >= left)
        continue;
      coo.row_indices.push_back(row);
      coo.column_indices.push_back(column);
      coo.values.push_back(signed_unit_value<double>(rng.bits64()));
      --left;
    }
  }
  for (Index k = coo.nnz(); k > 1; --k) {
    const auto other = static_cast<Index>(rng.below(static_cast<std::uint64_t>(k)));
    std::swap(coo.row_indices[k - 1], coo.row_indices[other]);
    std::swap(coo.column_indices[k - 1], coo.column_indices[other]);
    std::swap(coo.values[k - 1], coo.values[other]);
  }
  return coo;
}

using Named = std::pair<std::string, Coo<double>>;

std::vector<Named> adversarial_matrices() {
  std::vector<Named> matrices;
  const auto add = [&](const std::string& name, Index rows, Index cols,
                       const std::function<Index(Index)>& length) {
    matrices.emplace_back(name, build(rows, cols, matrices.size() + 1, length));
  };
  const auto all = [](Index n) { return [n](Index) { return n; }; };
  add("0 x 0", 0, 0, all(0));
  add("0 x 5", 0, 5, all(0));
  add("5 x 0", 5, 0, all(0));
  add("1 x 1", 1, 1, all(1));
  add("1 x 1, empty", 1, 1, all(0));
  add("one row of 5000", 1, 5000, all(5000));
  add("one column of 3000", 3000, 1, all(1));
  add("all rows empty", 1000, 10, all(0));
  add("first row alone", 1000, 100, [](Index r) { return r == 0 ? 7 : 0; });
  add("last row alone", 1000, 100, [](Index r) { return r == 999 ? 7 : 0; });
  add("one full row among empty ones", 700, 4099, [](Index r) { return r == 333 ? 4099 : 0; });
  add("one full row among rows of 1", 700, 4099, [](Index r) { return r == 333 ? 4099 : 1; });
  add("two full rows side by side", 40, 3001, [](Index r) { return r == 7 || r == 8 ? 3001 : 2; });
  add("rows of 0 and 1 in turn", 2049, 2049, [](Index r) { return r % 2; });
  add("identity-like", 1025, 1025, all(1));
  add("wide", 33, 10000, all(9));
  add("tall", 10000, 33, all(3));
  for (const Index n : {31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513}) {
    add("rows of " + std::to_string(n), 35, 1100, all(n));
    add(std::to_string(n) + " rows", n, 50, all(5));
  }
  add("lengths 0 to 99", 100, 100, [](Index r) { return r; });
  add("lengths 99 to 0", 100, 100, [](Index r) { return 99 - r; });
  add("a row of 2048 at each 100th", 1000, 2500, [](Index r) { return r % 100 ? 1 : 2048; });
  return matrices;
}

std::vector<Named> random_matrices(int count) {
  std::vector<Named> matrices;
  for (int i = 0; i < count; ++i) {
    Rng rng(1000 + static_cast<std::uint64_t>(i));
    const auto rows = static_cast<Index>(1 + rng.below(i % 10 == 0 ? 700 : 120));
    const auto cols = static_cast<Index>(1 + rng.below(i % 7 == 0 ? 900 : 120));
    const std::uint64_t longest = 1 + rng.below(static_cast<std::uint64_t>(cols));
    const std::uint64_t kind = rng.below(4);
    matrices.emplace_back("random " + std::to_string(i),
                          build(rows, cols, 5000 + static_cast<std::uint64_t>(i), [&](Index) {
                            switch (kind) {
                              case 0:
                                return static_cast<Index>(rng.below(longest + 1));
                              case 1:
                                return static_cast<Index>(rng.below(8));
                              case 2:
                                return rng.below(20) == 0 ? static_cast<Index>(longest) : Index{0};
                              default:
                                return static_cast<Index>(rng.below(rng.below(longest + 1) + 1));
                            }
                          }));
  }
  return matrices;
}

template <typename T>
Matrix<T> as_matrix(const Named& named) {
  Matrix<T> matrix;
  const Coo<double>& coo = named.second;
  matrix.coo.rows = coo.rows;
  matrix.coo.cols = coo.cols;
  matrix.coo.row_indices = coo.row_indices;
  matrix.coo.column_indices = coo.column_indices;
  matrix.coo.values.assign(coo.values.begin(), coo.values.end());
  matrix.csr = to_csr(matrix.coo);
  matrix.source.name = named.first;
  return matrix;
}

template <typename T>
void check_kernels(const Matrix<T>& matrix, const std::vector<const Kernel*>& chosen,
                   const RunOptions& options) {
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr};
  const Bench<T> bench(problem, options);
  for (const Kernel* kernel : chosen) {
    const Record record = bench.run(*kernel);
    INFO(kernel->info.name << (sizeof(T) == 4 ? " f32" : " f64") << " alpha " << options.alpha
                           << " beta " << options.beta << " on " << matrix.source.name << ": "
                           << record.failure);
    CHECK((record.verified || record.unsuitable));
  }
}

void check_all(const std::vector<Named>& matrices, const std::vector<const Kernel*>& chosen) {
  RunOptions plain;
  plain.measure = false;
  RunOptions scaled = plain;
  scaled.alpha = 0.75;
  scaled.beta = -0.5;
  for (const Named& named : matrices) {
    const Matrix<float> single = as_matrix<float>(named);
    const Matrix<double> twice = as_matrix<double>(named);
    for (const RunOptions& options : {plain, scaled}) {
      check_kernels(single, chosen, options);
      check_kernels(twice, chosen, options);
    }
  }
}

}  // namespace

void check_kernels_of_step(int step) {
  std::vector<const Kernel*> chosen;
  for (const Kernel& kernel : kernels()) {
    if (kernel.info.step == step) chosen.push_back(&kernel);
  }
  REQUIRE_FALSE(chosen.empty());
  const std::vector<Named> adversarial = adversarial_matrices();
  const std::vector<Named> random = random_matrices(300);
#ifdef SPMV_CUDA
  check_all(adversarial, chosen);
  check_all(random, chosen);
#else
  // The random matrices are dealt out to the schedules; the adversarial ones meet each.
  const simt::Settings before = simt::settings();
  const simt::Schedule schedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                      simt::Schedule::kRandom};
  for (std::size_t s = 0; s < 3; ++s) {
    simt::settings().schedule = schedules[s];
    check_all(adversarial, chosen);
    for (std::size_t i = s; i < random.size(); i += 3) check_all({random[i]}, chosen);
  }
  simt::settings() = before;
#endif
}

}  // namespace spmv::test
