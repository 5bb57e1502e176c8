#include "harness/measure.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "device/baseline.cuh"
#include "device/gather.cuh"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "harness/verify.hpp"

namespace spmv {
namespace {

constexpr int kBatches = 25;
constexpr double kBatchMilliseconds = 1.0;
constexpr int kColdLaunches = 25;
constexpr std::size_t kCopyBytes = std::size_t{1} << 30;

double milliseconds(const device::Stream& stream, int launches, const Launch& launch) {
  device::Event start;
  device::Event stop;
  start.record(stream);
  for (int i = 0; i < launches; ++i) launch(stream.get());
  stop.record(stream);
  return stop.milliseconds_since(start);
}

}  // namespace

Quartiles quartiles(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto at = [&samples](double part) {
    const double position = part * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return std::lerp(samples[below], samples[above], position - static_cast<double>(below));
  };
  return {at(0.25), at(0.5), at(0.75), static_cast<int>(samples.size())};
}

bool stop_by_spread(const std::vector<double>& samples, double spread) {
  if (spread <= 0 || samples.size() < kFewestSamples) return false;
  const Quartiles q = quartiles(samples);
  return q.upper - q.lower <= spread * q.median;
}

Quartiles time_warm(const device::Stream& stream, const Launch& launch, int warm_up,
                    double spread) {
  // The second half also says how many launches a batch takes.
  for (int i = 0; i < warm_up / 2; ++i) launch(stream.get());
  const int timed = warm_up - warm_up / 2;
  const double one = milliseconds(stream, timed, launch) / timed;
  const int launches = std::clamp(static_cast<int>(kBatchMilliseconds / one), 1, 1000);
  std::vector<double> samples;
  for (int batch = 0; batch < kBatches && !stop_by_spread(samples, spread); ++batch) {
    samples.push_back(milliseconds(stream, launches, launch) / launches);
  }
  return quartiles(std::move(samples));
}

Quartiles time_cold(const device::Stream& stream, const Launch& launch, double spread) {
  device::Buffer<char> flush(
      "flush", 4 * static_cast<std::size_t>(device::attribute(cudaDevAttrL2CacheSize)));
  std::vector<double> samples;
  for (int i = 0; i < kColdLaunches && !stop_by_spread(samples, spread); ++i) {
    device::check(cudaMemsetAsync(flush.data(), i, flush.bytes(), stream.get()), "flushing the L2");
    samples.push_back(milliseconds(stream, 1, launch));
  }
  return quartiles(std::move(samples));
}

Quartiles time_host(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  call();
  std::vector<double> samples;
  const auto start = Clock::now();
  // At least 5 calls; more while they are quick.
  while (samples.size() < 5 ||
         (samples.size() < 50 && Clock::now() - start < std::chrono::milliseconds(300))) {
    const auto before = Clock::now();
    call();
    samples.push_back(std::chrono::duration<double, std::milli>(Clock::now() - before).count());
  }
  return quartiles(std::move(samples));
}

double copy_bandwidth() {
  static const double gigabytes_per_second = [] {
    const device::Stream stream;
    device::Buffer<char> from("copy_from", kCopyBytes);
    device::Buffer<char> to("copy_to", kCopyBytes);
    device::check(cudaMemsetAsync(from.data(), 1, kCopyBytes, stream.get()), "filling");
    const Quartiles time = time_warm(stream, [&](cudaStream_t s) {
      device::check(
          cudaMemcpyAsync(to.data(), from.data(), kCopyBytes, cudaMemcpyDeviceToDevice, s), "copy");
    });
    return 2.0 * kCopyBytes / time.median / 1e6;
  }();
  return gigabytes_per_second;
}

template <typename T>
Quartiles time_permutation(const std::vector<Index>& rows, const std::vector<Index>& columns) {
  constexpr int kThreads = 256;
  const device::Stream stream;
  const device::Buffer<int> row_numbers("row_numbers", rows), column_numbers("numbers", columns);
  const std::size_t longest = std::max(rows.size(), columns.size());
  const device::Buffer<T> old("old", std::vector<T>(longest, T{1}));
  device::Buffer<T> renumbered("renumbered", longest);
  return time_warm(stream, [&](cudaStream_t s) {
    for (const device::Buffer<int>* numbers : {&column_numbers, &row_numbers}) {
      const auto n = static_cast<int>(numbers->size());
      if (n == 0) continue;
      device::launch(gather_kernel<T>, {dim3(device::divide_up(n, kThreads)), dim3(kThreads), 0, s},
                     n, numbers->data(), old.data(), renumbered.data());
    }
  });
}

template <typename T>
BaselineRun<T> run_baseline(const Problem<T>& problem, const std::vector<T>& x) {
  const Csr<T>& a = problem.host.csr;
  constexpr int kThreads = 256;
  const int resident = device::resident_blocks(baseline_kernel<T>, kThreads);
  const int blocks = std::clamp(device::divide_up(std::max(a.nnz() / 4, a.rows), kThreads), 1,
                                std::max(resident, 1));

  device::Buffer<T> x_device("x", x);
  device::Buffer<T> y("y", std::vector<T>(a.rows, std::numeric_limits<T>::quiet_NaN()));
  const Launch launch = [&](cudaStream_t s) {
    device::launch(baseline_kernel<T>, {dim3(blocks), dim3(kThreads), 0, s}, a.rows, a.nnz(),
                   problem.csr.column_indices.data(), problem.csr.values.data(), x_device.data(),
                   y.data());
  };
  const device::Stream stream;
  const Baseline times{time_warm(stream, launch), time_cold(stream, launch)};
  return {times, blocks * kThreads, y.download()};
}

template <typename T>
void verify_baseline(const Csr<T>& a, const std::vector<T>& x, const BaselineRun<T>& run) {
  // What each thread must have summed, as the rows of a reference.
  const int threads = run.threads;
  const int groups = a.nnz() / 4;
  Csr<T> by_thread{threads, a.cols, {0}, {}, {}};
  for (int thread = 0; thread < threads; ++thread) {
    const auto deal = [&](Index k) {
      by_thread.column_indices.push_back(a.column_indices[k]);
      by_thread.values.push_back(a.values[k]);
    };
    for (int group = thread; group < groups; group += threads) {
      for (int i = 0; i < 4; ++i) deal(4 * group + i);
    }
    if (thread < a.nnz() % 4) deal(4 * groups + thread);
    by_thread.row_offsets.push_back(by_thread.nnz());
  }
  const Reference sums = make_reference(by_thread, T{1}, x, T{0}, {});
  Reference expected;
  for (Index row = 0; row < a.rows; ++row) {
    expected.y.push_back(sums.y[row % threads]);
    expected.bound.push_back(sums.bound[row % threads]);
    expected.lengths.push_back(sums.lengths[row % threads]);
  }
  const Verdict verdict = verify(run.y, expected);
  if (!verdict.ok)
    throw std::runtime_error("the row-free baseline is wrong: " + verdict.describe());
}

template Quartiles time_permutation<float>(const std::vector<Index>&, const std::vector<Index>&);
template Quartiles time_permutation<double>(const std::vector<Index>&, const std::vector<Index>&);
template BaselineRun<float> run_baseline(const Problem<float>&, const std::vector<float>&);
template BaselineRun<double> run_baseline(const Problem<double>&, const std::vector<double>&);
template void verify_baseline(const Csr<float>&, const std::vector<float>&,
                              const BaselineRun<float>&);
template void verify_baseline(const Csr<double>&, const std::vector<double>&,
                              const BaselineRun<double>&);

}  // namespace spmv
