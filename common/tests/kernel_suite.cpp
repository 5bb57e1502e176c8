#include "tests/kernel_suite.hpp"

#include <memory>
#include <vector>

#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "sparse/convert.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_matrices.hpp"
#include "tests/schedules.hpp"

namespace spmv::test {
namespace {

// `scaled`: y = 0.75 A x - 0.5 y, else y = A x.
template <typename T>
void check(const std::vector<const Kernel*>& chosen, const NamedMatrix& named, double padding_limit,
           bool scaled) {
  Matrix<T> matrix;
  matrix.source.name = named.name;
  const Coo<double>& coo = named.triplets;
  matrix.coo = {coo.rows, coo.cols, coo.row_indices, coo.column_indices,
                std::vector<T>(coo.values.begin(), coo.values.end())};
  matrix.csr = to_csr(matrix.coo);
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr, padding_limit};
  RunOptions options{.measure = false};
  if (scaled) options = {.alpha = 0.75, .beta = -0.5, .measure = false};
  const Bench<T> bench(problem, options);
  for (const Kernel* kernel : chosen) {
    const Record record = bench.run(*kernel);
    INFO(kernel->info.name << (sizeof(T) == 4 ? " f32" : " f64")
                           << (scaled ? " with alpha and beta" : "") << " on " << named.name << ": "
                           << record.failure);
    CHECK((record.verified || record.unsuitable));
  }
}

void check_bits_of_step(int step, double padding_limit);

}  // namespace

// A matrix meets one schedule in each precision, and alpha and beta in one of the two, turn and
// turn about. (Without instrumentation kLockstep is kForward.) A GPU, which is quick, has both
// products of each.
void check_kernels_of_step(int step, double padding_limit) {
  std::vector<const Kernel*> chosen;
  for (const Kernel& kernel : kernels()) {
    if (kernel.info.step == step) chosen.push_back(&kernel);
  }
  REQUIRE_FALSE(chosen.empty());
  std::vector<NamedMatrix> matrices = adversarial_matrices();
  for (NamedMatrix& random : random_matrices(60)) matrices.push_back(std::move(random));
  [[maybe_unused]] const SavedSettings saved;  // schedules are the CPU backend's
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const bool scaled = m / 4 % 2 != 0;
#ifdef SPMV_CUDA
    check<float>(chosen, matrices[m], padding_limit, !scaled);
    check<double>(chosen, matrices[m], padding_limit, scaled);
#else
    constexpr simt::Schedule kSchedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                             simt::Schedule::kLockstep, simt::Schedule::kRandom};
    simt::settings().schedule = kSchedules[(m + 2) % 4];
#endif
    check<float>(chosen, matrices[m], padding_limit, scaled);
#ifndef SPMV_CUDA
    simt::settings().schedule = kSchedules[m % 4];
#endif
    check<double>(chosen, matrices[m], padding_limit, !scaled);
  }
  check_bits_of_step(step, padding_limit);
}

namespace {

// Runs `kernel` under schedules drawn from seeds, or as often on a GPU; returns how many times y
// had other bits than the first time.
template <typename T>
int times_bits_differ(const Kernel& kernel, const Matrix<T>& matrix, double padding_limit,
                      int runs) {
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr, padding_limit};
  const device::Buffer<T> x("x", test_vector<T>(matrix.csr.cols, 1));
  const std::vector<T> y0 = test_vector<T>(matrix.csr.rows, 2);
  const auto product = [&](Spmv<T>& spmv) {
    device::Buffer<T> y("y", y0);
    spmv.multiply(T{0.75}, x.data(), T{-0.5}, y.data(), nullptr);
    device::check(cudaDeviceSynchronize(), kernel.info.name);
    return y.download();
  };
  const auto make = [&] {
    auto spmv = kernel.set_up(problem);
    spmv->preprocess(nullptr);
    return spmv;
  };
  const std::vector<T> first = product(*make());
  [[maybe_unused]] const SavedSettings saved;
  int times = 0;
  std::unique_ptr<Spmv<T>> spmv;
  for (int run = 0; run < runs; ++run) {
#ifndef SPMV_CUDA
    simt::settings().schedule = run % 2 ? simt::Schedule::kRandom : simt::Schedule::kReverse;
    ++simt::settings().seed;
#endif
    // A new plan now and then: what it counts atomically may be in another order.
    if (!spmv || runs < 20 || run % 20 == 0) spmv = make();
    times += compare_bits(product(*spmv), first).rows != 0;
  }
  return times;
}

// Rows of up to 300 nonzeros, some longer than a tile, whose sums round.
template <typename T>
Matrix<T> matrix_that_rounds() {
  Matrix<T> matrix;
  Coo<T>& coo = matrix.coo;
  coo.rows = 150;
  coo.cols = 700;
  for (Index row = 0; row < coo.rows; ++row) {
    const Index length = row == 70 ? 690 : row * 37 % 300;
    for (Index k = 0; k < length; ++k) {
      coo.row_indices.push_back(row);
      coo.column_indices.push_back(static_cast<Index>(1LL * k * coo.cols / length));
    }
  }
  for (std::size_t k = 0; k < coo.row_indices.size(); ++k) {
    coo.values.push_back((k % 3 == 0 ? T{-1} : T{1}) / static_cast<T>(3 + k % 89));
  }
  matrix.source.name = "rows of up to 690";
  matrix.csr = to_csr(coo);
  return matrix;
}

template <typename T>
void check_bits(const Kernel& kernel, double padding_limit) {
#ifdef SPMV_CUDA
  constexpr int kRuns = 200;
#else
  constexpr int kRuns = 5;
#endif
  INFO(kernel.info.name << (sizeof(T) == 4 ? " f32" : " f64"));
  try {
    const int times = times_bits_differ(kernel, matrix_that_rounds<T>(), padding_limit, kRuns);
    if (kernel.info.bits == RunToRun::kSame) CHECK(times == 0);
#ifndef SPMV_CUDA
    // A schedule that is drawn finds another order of sums; a GPU may keep to one.
    if (kernel.info.bits == RunToRun::kMayDiffer) CHECK(times > 0);
#endif
  } catch (const Unsuitable&) {
  }
}

void check_bits_of_step(int step, double padding_limit) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.info.step != step || kernel.info.runs_on == RunsOn::kHost) continue;
    CHECK(kernel.info.bits != RunToRun::kNotSaid);
    check_bits<float>(kernel, padding_limit);
    check_bits<double>(kernel, padding_limit);
  }
}

}  // namespace

template <typename T>
void check_same_bits(const std::string& patterns, const Matrix<T>& matrix, double padding_limit) {
  for (const Kernel* kernel : find_kernels(patterns)) {
    CAPTURE(kernel->info.name);
    CHECK(times_bits_differ(*kernel, matrix, padding_limit, 5) == 0);
  }
}

template <typename T>
simt::AccessCounts traffic_of(const std::string& kernel, const Matrix<T>& matrix,
                              const std::string& access, const std::string& array) {
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr};
  const Record record = Bench<T>(problem, {}).run(*find_kernels(kernel)[0]);
  CAPTURE(kernel, record.failure);
  REQUIRE(record.verified);
  simt::AccessCounts sum;
  for (const Traffic& traffic : record.traffic) {
    if (traffic.access == access && traffic.array == array) sum += traffic;
  }
  return sum;
}

template void check_same_bits(const std::string&, const Matrix<float>&, double);
template void check_same_bits(const std::string&, const Matrix<double>&, double);
template simt::AccessCounts traffic_of(const std::string&, const Matrix<float>&, const std::string&,
                                       const std::string&);
template simt::AccessCounts traffic_of(const std::string&, const Matrix<double>&,
                                       const std::string&, const std::string&);

}  // namespace spmv::test
