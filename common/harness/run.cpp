#include "harness/run.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "harness/machine_code.hpp"

#ifndef SPMV_CUDA
#include "harness/trace.hpp"
#include "simt/cache_model.hpp"
#include "simt/engine.hpp"
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

// Setup and preprocess are measured so often, unless that takes 5 milliseconds.
#ifdef SPMV_CUDA
constexpr bool kMeasuresOneProduct = false;
constexpr std::size_t kPreparations = 5;
#else
constexpr bool kMeasuresOneProduct = true;
constexpr std::size_t kPreparations = 1;

bool uses_atomics(const Record& record) {
  return std::any_of(record.traffic.begin(), record.traffic.end(),
                     [](const Traffic& traffic) { return traffic.access == "atomic"; });
}
#endif

}  // namespace

template <typename T>
Prepared<T> prepare(const Kernel& kernel, const Problem<T>& problem, const device::Stream& stream) {
  Prepared<T> prepared;
  if (kernel.info.open) kernel.info.open();
  std::vector<double> setups, preprocesses;
  const Stopwatch all;
  do {
    prepared.spmv.reset();
    const Stopwatch setup;
    prepared.spmv = kernel.set_up(problem);
    device::check(cudaDeviceSynchronize(), "setting up " + kernel.info.name);
    setups.push_back(setup.milliseconds());

    const Stopwatch preprocess;
    prepared.spmv->preprocess(stream.get());
    stream.synchronize();
    preprocesses.push_back(preprocess.milliseconds());
  } while (setups.size() < kPreparations && all.milliseconds() < 5);
  prepared.setup_ms = quartiles(setups).median;
  prepared.preprocess_ms = quartiles(preprocesses).median;
  return prepared;
}

template Prepared<float> prepare(const Kernel&, const Problem<float>&, const device::Stream&);
template Prepared<double> prepare(const Kernel&, const Problem<double>&, const device::Stream&);

template <typename T>
Task<T>::Task(const Csr<T>& matrix, const RunOptions& options)
    : alpha(static_cast<T>(options.alpha)),
      beta(static_cast<T>(options.beta)),
      x(test_vector<T>(matrix.cols, options.seed)),
      y0(beta == T{0} ? std::vector<T>(matrix.rows, std::numeric_limits<T>::quiet_NaN())
                      : test_vector<T>(matrix.rows, options.seed + 1)),
      reference(make_reference(matrix, alpha, x, beta, y0)) {}

template <typename T>
void Task<T>::renumber(Numbering new_order) {
  order = std::move(new_order);
  x = renumbered(x, order.columns);
  y0 = renumbered(y0, order.rows);
}

template struct Task<float>;
template struct Task<double>;

#ifndef SPMV_CUDA
struct Restore {
  simt::Settings before = simt::settings();
  ~Restore() { simt::settings() = before; }
};
#endif

template <typename T>
std::vector<T> Bench<T>::multiply(Spmv<T>& spmv, RunsOn where) const {
  if (where == RunsOn::kHost) {
    std::vector<T> y = task_.y0;
    spmv.multiply(task_.alpha, task_.x.data(), task_.beta, y.data(), nullptr);
    return as_it_was(y, task_.order.rows);
  }
  y_device_.upload(task_.y0);
#ifndef SPMV_CUDA
  const Restore restore;
  simt::settings().late_streams |= options_.late_streams;
#endif
  spmv.multiply(task_.alpha, x_device_.data(), task_.beta, y_device_.data(), stream_.get());
  stream_.synchronize();
  return as_it_was(y_device_.download(), task_.order.rows);
}

#ifndef SPMV_CUDA
// To the failure of a record, if there is one, what simt has seen that may be the cause.
void add_remarks(Record& record) {
  const simt::Remarks remarks = simt::take_remarks();
  for (const auto* texts : {&remarks.unpromised, &remarks.if_wrong}) {
    for (const std::string& text : *texts) {
      if (!record.failure.empty()) record.failure += "; " + text;
    }
  }
}

// At random, on one core, with work on streams done late: what comes out is the same in every run
// of the program.
template <typename T>
std::vector<T> Bench<T>::multiply_in_another_order(Spmv<T>& spmv) const {
  const Restore restore;
  simt::settings().schedule = simt::Schedule::kRandom;
  simt::settings().seed += 1;
  simt::settings().workers = 1;
  simt::settings().check_races = false;  // done: its verdict does not depend on the order
  simt::settings().late_streams = true;
  return multiply(spmv, RunsOn::kDevice);
}

// The record has the trace also of a product that fails.
template <typename T>
std::vector<T> Bench<T>::multiply_traced(Spmv<T>& spmv, Record& record) const {
  y_device_.upload(task_.y0);
  record_trace(record, options_.trace_limit, options_.gpu, [&] {
    spmv.multiply(task_.alpha, x_device_.data(), task_.beta, y_device_.data(), stream_.get());
    stream_.synchronize();
  });
  std::vector<T> y = as_it_was(y_device_.download(), task_.order.rows);
  note_wrong_rows(record, y, task_.reference);
  return y;
}
#endif

template <typename T>
void Bench<T>::measure(Spmv<T>& spmv, Record& record) const {
  if (record.kernel.runs_on == RunsOn::kHost) {
    std::vector<T> y = task_.y0;
    record.warm = time_host(
        [&] { spmv.multiply(task_.alpha, task_.x.data(), task_.beta, y.data(), nullptr); });
    return;
  }
#ifdef SPMV_CUDA
  const Launch launch = [&](cudaStream_t stream) {
    spmv.multiply(task_.alpha, x_device_.data(), task_.beta, y_device_.data(), stream);
  };
  record.warm = time_warm(stream_, launch, options_.warm_up, options_.stop_by_spread);
  record.cold = time_cold(stream_, launch, options_.stop_by_spread);
#else
  const simt::Gpu& gpu = *simt::find_gpu(options_.gpu);
  simt::start_profile(&gpu);
  spmv.multiply(task_.alpha, x_device_.data(), task_.beta, y_device_.data(), stream_.get());
  const simt::Profile profile = simt::stop_profile();
  const std::vector<Work> work = work_of(profile);
  record.traffic = traffic_by_array(profile);
  record.estimate = estimate_time(record.kernel.name, work, gpu);
  if (!options_.profile) return;
  record.profile = make_profile(profile, gpu.full_name);
  record.work = work;
#endif
}

// What the last measured product left; where there were several with beta, which makes y grow from
// one to the next, of one product more.
template <typename T>
std::vector<T> Bench<T>::product_after_measuring(Spmv<T>& spmv, RunsOn where) const {
  if (where == RunsOn::kHost || (!kMeasuresOneProduct && task_.beta != T{0})) {
    return multiply(spmv, where);
  }
  stream_.synchronize();
  return as_it_was(y_device_.download(), task_.order.rows);
}

template <typename T>
Record Bench<T>::run(const Kernel& kernel) const {
  Record record;
  record.kernel = kernel.info;
  const auto judge = [&record](const Verdict& verdict) {
    record.verified = verdict.ok;
    if (!verdict.ok) record.failure = verdict.describe();
#ifndef SPMV_CUDA
    add_remarks(record);
#endif
    return verdict.ok;
  };
  try {
    const Prepared<T> prepared = prepare(kernel, problem_, stream_);
    const std::unique_ptr<Spmv<T>>& spmv = prepared.spmv;
    record.setup_ms = prepared.setup_ms;
    record.preprocess_ms = prepared.preprocess_ms;
    record.choice = spmv->choice();
    const Csr<T>& a = problem_.host.csr;
    const double y_bytes = static_cast<double>(a.rows) * sizeof(T) * (task_.beta == T{0} ? 1 : 2);
    const auto matrix_bytes = static_cast<double>(spmv->matrix_bytes());
    record.compulsory_bytes = matrix_bytes + static_cast<double>(a.cols) * sizeof(T) + y_bytes;
    record.flops = 2.0 * static_cast<double>(a.nnz());

    std::vector<T> first;
#ifndef SPMV_CUDA
    if (options_.trace_limit > 0 && kernel.info.runs_on == RunsOn::kDevice) {
      first = multiply_traced(*spmv, record);
    }
#endif
    if (record.trace.empty()) {
      const LaunchLog log;
      first = multiply(*spmv, kernel.info.runs_on);
      if (!kMeasuresOneProduct) record.functions = log.functions();
    }
    if (!judge(verify(first, task_.reference)) || !options_.measure) return record;
    // The product is poisoned before it is measured, too, and what the measured launches left is
    // verified.
    y_device_.upload(task_.y0);
    measure(*spmv, record);
    const std::vector<T> second = product_after_measuring(*spmv, kernel.info.runs_on);
    if (!judge(verify(second, task_.reference))) return record;
#ifdef SPMV_CUDA
    if (kernel.info.runs_on == RunsOn::kDevice && spmv->overlap(true)) {
      y_device_.upload(task_.y0);
      record.overlapped = time_warm(stream_, [&](cudaStream_t stream) {
        spmv->multiply(task_.alpha, x_device_.data(), task_.beta, y_device_.data(), stream);
      });
      first = product_after_measuring(*spmv, kernel.info.runs_on);
      if (!judge(verify(first, task_.reference))) return record;
    }
#else
    if (uses_atomics(record)) {
      first = multiply_in_another_order(*spmv);
      if (!judge(verify(first, task_.reference))) return record;
    }
#endif
    record.difference = compare_bits(first, second, task_.reference.bound);
  } catch (const Unsuitable& reason) {
    record.unsuitable = true;
    record.failure = reason.what();
  } catch (const device::DeviceError& error) {
    record.verified = false;
    record.failure = error.what();
#ifndef SPMV_CUDA
    add_remarks(record);
#endif
  }
  return record;
}

template class Bench<float>;
template class Bench<double>;

}  // namespace spmv
