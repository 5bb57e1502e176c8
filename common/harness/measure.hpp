// Times on a GPU. All of them with inputs resident, after warm-up, and never without verification
// (see run.hpp).
#pragma once

#include <functional>
#include <vector>

#include "device/buffer.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

// Of repeated measurements of one thing.
struct Quartiles {
  double lower = 0, median = 0, upper = 0;
  int samples = 0;
};
Quartiles quartiles(std::vector<double> samples);

using Launch = std::function<void(cudaStream_t)>;

// Milliseconds a launch, back to back: batches of launches between two events, each batch long
// enough for the events' resolution, after `warm_up` launches. What fits the L2 cache stays there.
// `spread`: stop_by_spread() ends it before all batches are measured.
constexpr int kWarmUpLaunches = 10;
Quartiles time_warm(const device::Stream& stream, const Launch& launch,
                    int warm_up = kWarmUpLaunches, double spread = 0);

// Milliseconds of single launches, each after the L2 cache was filled with other data.
Quartiles time_cold(const device::Stream& stream, const Launch& launch, double spread = 0);

// Whether so many samples say enough: they are kFewestSamples or more, and their quartiles are no
// further apart than the share `spread` of the median. 0: never. (nvbench stops by the relative
// standard deviation, which one outlier decides.)
constexpr int kFewestSamples = 8;
bool stop_by_spread(const std::vector<double>& samples, double spread);

// Milliseconds a call, by the host's clock, for what runs on the host.
Quartiles time_host(const std::function<void()>& call);

// Gigabytes a second of a copy within device memory much larger than its caches, bytes read and
// bytes written both counted. Measured once a process.
double copy_bandwidth();

// Milliseconds that x, and y where rows are renumbered, take to be put into another order
// (sparse/order.hpp), warm.
template <typename T>
Quartiles time_permutation(const std::vector<Index>& rows, const std::vector<Index>& columns);

// Times of the row-free baseline (device/baseline.cuh) on a CSR matrix.
struct Baseline {
  Quartiles warm, cold;
};

// What the row-free baseline took, and what it wrote, which is still to be verified.
template <typename T>
struct BaselineRun {
  Baseline times;
  int threads = 0;
  std::vector<T> y;
};
template <typename T>
struct Problem;
template <typename T>
BaselineRun<T> run_baseline(const Problem<T>& problem, const std::vector<T>& x);

// Needs no GPU. Throws std::runtime_error when the baseline wrote something wrong.
template <typename T>
void verify_baseline(const Csr<T>& a, const std::vector<T>& x, const BaselineRun<T>& run);

}  // namespace spmv
