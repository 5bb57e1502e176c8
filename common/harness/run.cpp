#include "harness/run.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <tuple>

#ifndef SPMV_CUDA
#include "simt/profile.hpp"
#endif

namespace spmv {
namespace {

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

#ifndef SPMV_CUDA
// Sums a profile, which tells instructions apart, by array.
std::vector<Traffic> by_array(const simt::Profile& profile) {
  std::map<std::tuple<std::string, simt::Space, simt::Access>, simt::AccessCounts> sums;
  for (const auto& [key, counts] : profile) sums[{key.array, key.space, key.access}] += counts;
  std::vector<Traffic> traffic;
  for (const auto& [key, counts] : sums) {
    const auto& [array, space, access] = key;
    traffic.push_back({array, to_string(space), to_string(access), counts.requests, counts.lanes,
                       counts.bytes_used, counts.sectors, counts.ideal_sectors, counts.passes,
                       counts.max_same_address});
  }
  return traffic;
}
#endif

}  // namespace

template <typename T>
Bench<T>::Bench(const Problem<T>& problem, const RunOptions& options)
    : problem_(problem),
      options_(options),
      alpha_(static_cast<T>(options.alpha)),
      beta_(static_cast<T>(options.beta)),
      x_(test_vector<T>(problem.host.csr.cols, options.seed)),
      y0_(beta_ == T{0} ? std::vector<T>(problem.host.csr.rows, std::numeric_limits<T>::quiet_NaN())
                        : test_vector<T>(problem.host.csr.rows, options.seed + 1)),
      reference_(make_reference(problem.host.csr, alpha_, x_, beta_, y0_)),
      x_device_("x", x_),
      y_device_("y", y0_) {}

template <typename T>
Verdict Bench<T>::multiply_and_verify(Spmv<T>& spmv, RunsOn where) const {
  if (where == RunsOn::kHost) {
    std::vector<T> y = y0_;
    spmv.multiply(alpha_, x_.data(), beta_, y.data(), nullptr);
    return verify(y, reference_);
  }
  y_device_.upload(y0_);
  spmv.multiply(alpha_, x_device_.data(), beta_, y_device_.data(), stream_.get());
  stream_.synchronize();
  return verify(y_device_.download(), reference_);
}

template <typename T>
void Bench<T>::measure(Spmv<T>& spmv, Record& record) const {
  if (record.kernel.runs_on == RunsOn::kHost) {
    std::vector<T> y = y0_;
    record.warm = time_host([&] { spmv.multiply(alpha_, x_.data(), beta_, y.data(), nullptr); });
    return;
  }
#ifdef SPMV_CUDA
  const Launch launch = [&](cudaStream_t stream) {
    spmv.multiply(alpha_, x_device_.data(), beta_, y_device_.data(), stream);
  };
  record.warm = time_warm(stream_, launch);
  record.cold = time_cold(stream_, launch);
#else
  simt::start_profile();
  spmv.multiply(alpha_, x_device_.data(), beta_, y_device_.data(), stream_.get());
  record.traffic = by_array(simt::stop_profile());
#endif
}

template <typename T>
Record Bench<T>::run(const Kernel& kernel) const {
  Record record;
  record.kernel = kernel.info;
  const auto judge = [&record](const Verdict& verdict) {
    record.verified = verdict.ok;
    if (!verdict.ok) record.failure = verdict.describe();
    return verdict.ok;
  };
  try {
    const Stopwatch setup;
    const std::unique_ptr<Spmv<T>> spmv = kernel.set_up(problem_);
    device::check(cudaDeviceSynchronize(), "setting up " + kernel.info.name);
    record.setup_ms = setup.milliseconds();

    const Stopwatch preprocess;
    spmv->preprocess(stream_.get());
    stream_.synchronize();
    record.preprocess_ms = preprocess.milliseconds();

    record.choice = spmv->choice();
    const Csr<T>& a = problem_.host.csr;
    const double y_bytes = static_cast<double>(a.rows) * sizeof(T) * (beta_ == T{0} ? 1 : 2);
    const auto matrix_bytes = static_cast<double>(spmv->matrix_bytes());
    record.compulsory_bytes = matrix_bytes + static_cast<double>(a.cols) * sizeof(T) + y_bytes;
    record.paper_bytes = matrix_bytes + static_cast<double>(a.nnz()) * sizeof(T) + y_bytes;
    record.flops = 2.0 * static_cast<double>(a.nnz());

    if (!judge(multiply_and_verify(*spmv, kernel.info.runs_on)) || !options_.measure) return record;
    // The product is poisoned before it is measured, too, and what the measured launches left is
    // looked at; with beta, which makes y grow from launch to launch, one more launch is.
    y_device_.upload(y0_);
    measure(*spmv, record);
    if (kernel.info.runs_on == RunsOn::kDevice && beta_ == T{0}) {
      stream_.synchronize();
      judge(verify(y_device_.download(), reference_));
    } else {
      judge(multiply_and_verify(*spmv, kernel.info.runs_on));
    }
  } catch (const Unsuitable& reason) {
    record.unsuitable = true;
    record.failure = reason.what();
  } catch (const device::DeviceError& error) {
    record.verified = false;
    record.failure = error.what();
  }
  return record;
}

template class Bench<float>;
template class Bench<double>;

}  // namespace spmv
