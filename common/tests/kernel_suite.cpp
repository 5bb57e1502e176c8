#include "tests/kernel_suite.hpp"

#include <fnmatch.h>

#include <optional>
#include <vector>

#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "sparse/convert.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_matrices.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#endif

namespace spmv::test {
namespace {

template <typename T>
Matrix<T> as_matrix(const NamedMatrix& named) {
  Matrix<T> matrix;
  const Coo<double>& coo = named.triplets;
  matrix.coo.rows = coo.rows;
  matrix.coo.cols = coo.cols;
  matrix.coo.row_indices = coo.row_indices;
  matrix.coo.column_indices = coo.column_indices;
  matrix.coo.values.assign(coo.values.begin(), coo.values.end());
  matrix.csr = to_csr(matrix.coo);
  matrix.source.name = named.name;
  return matrix;
}

// One matrix in one precision on the device, with the references of both products that are asked of
// it: y = A x and y = 0.75 A x - 0.5 y.
template <typename T>
class Subject {
 public:
  Subject(const NamedMatrix& named, double padding_limit)
      : matrix_(as_matrix<T>(named)), csr_(matrix_.csr), problem_{matrix_, csr_, padding_limit} {}

  void check(const std::vector<const Kernel*>& chosen, bool scaled) {
    std::optional<Bench<T>>& bench = benches_[scaled];
    if (!bench) {
      RunOptions options;
      options.measure = false;
      if (scaled) {
        options.alpha = 0.75;
        options.beta = -0.5;
      }
      bench.emplace(problem_, options);
    }
    for (const Kernel* kernel : chosen) {
      const Record record = bench->run(*kernel);
      INFO(kernel->info.name << (sizeof(T) == 4 ? " f32" : " f64")
                             << (scaled ? " with alpha and beta" : "") << " on "
                             << matrix_.source.name << ": " << record.failure);
      CHECK((record.verified || record.unsuitable));
    }
  }

 private:
  Matrix<T> matrix_;
  device::DeviceCsr<T> csr_;
  Problem<T> problem_;
  std::optional<Bench<T>> benches_[2];
};

}  // namespace

// With sanitizers all takes ten times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kRandomMatrices = 60;
#else
constexpr int kRandomMatrices = 120;
#endif

// A matrix meets two of the four schedules, every other one the other two, in each precision, with
// alpha and beta in one of the two, turn and turn about: over two schedules, all four products.
// (Without instrumentation kLockstep is kForward.)
void check_kernels_of_step(int step, double padding_limit) {
  std::vector<const Kernel*> chosen;
  for (const Kernel& kernel : kernels()) {
    if (kernel.info.step == step) chosen.push_back(&kernel);
  }
  REQUIRE_FALSE(chosen.empty());
  const std::vector<NamedMatrix> adversarial = adversarial_matrices();
  const std::vector<NamedMatrix> random = random_matrices(kRandomMatrices);
  const auto check = [&chosen](Subject<float>& single, Subject<double>& twice, bool scaled) {
    single.check(chosen, scaled);
    twice.check(chosen, !scaled);
  };
#ifdef SPMV_CUDA
  for (const auto* matrices : {&adversarial, &random}) {
    for (const NamedMatrix& named : *matrices) {
      Subject<float> single(named, padding_limit);
      Subject<double> twice(named, padding_limit);
      for (const bool scaled : {false, true}) check(single, twice, scaled);
    }
  }
#else
  const simt::Settings before = simt::settings();
  constexpr simt::Schedule kSchedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                           simt::Schedule::kRandom, simt::Schedule::kLockstep};
  const std::size_t schedules = simt::is_instrumented() ? 4 : 3;
  for (std::size_t m = 0; m < adversarial.size(); ++m) {
    Subject<float> single(adversarial[m], padding_limit);
    Subject<double> twice(adversarial[m], padding_limit);
    for (std::size_t s = m % 2; s < schedules; s += 2) {
      simt::settings().schedule = kSchedules[s];
      check(single, twice, (m / 2 + s / 2) % 2);
    }
  }
  // The random matrices are distributed over the schedules.
  for (std::size_t m = 0; m < random.size(); ++m) {
    Subject<float> single(random[m], padding_limit);
    Subject<double> twice(random[m], padding_limit);
    simt::settings().schedule = kSchedules[m % schedules];
    check(single, twice, m % 2);
  }
  simt::settings() = before;
#endif
}

}  // namespace spmv::test
