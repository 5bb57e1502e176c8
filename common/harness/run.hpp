// One measurement, from a kernel and a matrix to a record: set up, multiply into a poisoned y,
// verify, measure, verify again.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel.hpp"
#include "harness/measure.hpp"
#include "harness/profile.hpp"
#include "harness/time_model.hpp"
#include "harness/verify.hpp"
#include "sparse/order.hpp"

namespace spmv {

struct RunOptions {
  double alpha = 1;
  double beta = 0;
  std::uint64_t seed = 1;
  bool measure = true;  // off: verify only
  int warm_up = kWarmUpLaunches;
  double stop_by_spread = 0;  // measure.hpp
  // CPU backend: the GPU whose caches are modelled (simt/cache_model.hpp) and whose times are
  // estimated (time_model.hpp).
  std::string gpu = "h200";
  bool profile = false;  // by source line
  // CPU backend: record the first product (simt/trace.hpp), in up to so many bytes; 0: do not.
  std::size_t trace_limit = 0;
  std::string schedule = "forward";  // CPU backend: order of blocks, warps and lanes
  bool late_streams = false;         // CPU backend: in what is verified first
};

struct Record {
  KernelInfo kernel;
  std::string choice;
  bool verified = false;
  std::string failure;      // why it is not, or why the kernel refused the matrix
  bool unsuitable = false;  // the kernel refused the matrix: neither right nor wrong

  // GPU: what the first product launched (machine_code.hpp); empty if only libraries launched.
  std::optional<std::set<std::string>> functions;

  double setup_ms = 0;
  double preprocess_ms = 0;
  // A and x read once, y written once (and read, if beta is not 0), and arrays that one kernel
  // passes on to the next (PCSR's products), written and read once.
  double compulsory_bytes = 0;
  double flops = 0;  // two a nonzero

  std::optional<Quartiles> warm;        // GPU, or a kernel that runs on the host
  std::optional<Quartiles> cold;        // GPU
  std::optional<Quartiles> overlapped;  // GPU, kernels that can (Spmv::overlap)
  std::vector<Traffic> traffic;         // CPU backend
  std::optional<Estimate> estimate;     // CPU backend
  Profile profile;                      // CPU backend, if asked for, with what the model of times
  std::vector<Work> work;               // is given
  // Between the first product and one after the measured ones. On the CPU backend, for a kernel
  // that uses atomics, the first one's blocks, warps and lanes ran in another order.
  std::optional<Difference> difference;

  // CPU backend, if asked for: the first product, recorded (harness/trace.hpp), and the first rows
  // in which it is wrong.
  struct WrongRow {
    std::size_t row;
    double expected, got;
  };
  std::string trace;
  bool trace_is_cut = false;  // it reached the limit
  std::vector<WrongRow> wrong_rows;
};

// The columns of the records that are one number of every verified product: append_records() writes
// them under these names.
inline constexpr std::pair<const char*, double Record::*> kNumberColumns[] = {
    {"compulsory_bytes", &Record::compulsory_bytes},
    {"setup_ms", &Record::setup_ms},
    {"preprocess_ms", &Record::preprocess_ms},
};

// A kernel ready to multiply, and how long that took: on a GPU the median of five times, where they
// are short.
template <typename T>
struct Prepared {
  std::unique_ptr<Spmv<T>> spmv;
  double setup_ms = 0;
  double preprocess_ms = 0;
};

// Throws Unsuitable when the kernel refuses the matrix, and device::DeviceError.
template <typename T>
Prepared<T> prepare(const Kernel& kernel, const Problem<T>& problem, const device::Stream& stream);

// What is to be computed with a matrix, and what must come out: on the host, without a GPU.
template <typename T>
struct Task {
  Task(const Csr<T>& matrix, const RunOptions& options);

  // From now on x and y0 are those of the matrix in this order. The reference stays that of the
  // original numbering, with which y is compared after it has been put back.
  void renumber(Numbering new_order);

  T alpha, beta;
  std::vector<T> x;
  std::vector<T> y0;  // what y holds before the product; NaN when beta is 0
  Reference reference;
  Numbering order;
};

// The vectors and the reference that all kernels of one matrix share.
template <typename T>
class Bench {
 public:
  Bench(const Problem<T>& problem, const RunOptions& options)
      : Bench(problem, options, Task<T>(problem.host.csr, options)) {}
  Bench(const Problem<T>& problem, const RunOptions& options, Task<T> task)
      : problem_(problem),
        options_(options),
        task_(std::move(task)),
        x_device_("x", task_.x),
        y_device_("y", task_.y0) {}

  Record run(const Kernel& kernel) const;
  const std::vector<T>& x() const { return task_.x; }
  const Numbering& order() const { return task_.order; }

 private:
  std::vector<T> multiply(Spmv<T>& spmv, RunsOn where) const;
#ifndef SPMV_CUDA
  std::vector<T> multiply_in_another_order(Spmv<T>& spmv) const;
  std::vector<T> multiply_traced(Spmv<T>& spmv, Record& record) const;
#endif
  void measure(Spmv<T>& spmv, Record& record) const;
  std::vector<T> product_after_measuring(Spmv<T>& spmv, RunsOn where) const;

  const Problem<T>& problem_;
  RunOptions options_;
  Task<T> task_;
  mutable device::Buffer<T> x_device_;
  mutable device::Buffer<T> y_device_;
  device::Stream stream_;
};

}  // namespace spmv
