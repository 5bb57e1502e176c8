#include "tests/kernel_suite.hpp"

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
}

template <typename T>
void check_same_bits(const std::string& patterns, const Matrix<T>& matrix, double padding_limit) {
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr, padding_limit};
  const device::Buffer<T> x("x", test_vector<T>(matrix.csr.cols, 1));
  const std::vector<T> y0 = test_vector<T>(matrix.csr.rows, 2);
  for (const Kernel* kernel : find_kernels(patterns)) {
    CAPTURE(kernel->info.name);
    const auto product = [&] {
      const auto spmv = kernel->set_up(problem);
      spmv->preprocess(nullptr);
      device::Buffer<T> y("y", y0);
      spmv->multiply(T{0.75}, x.data(), T{-0.5}, y.data(), nullptr);
      device::check(cudaDeviceSynchronize(), kernel->info.name);
      return y.download();
    };
    const std::vector<T> first = product();
    under_every_schedule([&] { CHECK(compare_bits(product(), first).rows == 0); });
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
