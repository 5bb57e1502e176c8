// One measurement, from a kernel and a matrix to a record: set up, multiply into a poisoned y,
// verify, measure, verify again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/kernel.hpp"
#include "harness/measure.hpp"
#include "harness/verify.hpp"

namespace spmv {

struct RunOptions {
  double alpha = 1;
  double beta = 0;
  std::uint64_t seed = 1;
  bool measure = true;  // off: verify only
};

// What a kernel asked of one array.
struct Traffic {
  std::string array;                   // "values", "x", ...
  std::string space;                   // "global", "shared"
  std::string access;                  // "load", "store", "atomic"
  std::uint64_t requests = 0;          // of a warp
  std::uint64_t lanes = 0;             // that took part in them
  std::uint64_t bytes_used = 0;        // distinct bytes a request, summed
  std::uint64_t sectors = 0;           // of 32 bytes, global memory only
  std::uint64_t ideal_sectors = 0;     // the fewest that could hold the bytes used
  std::uint64_t bank_passes = 0;       // shared memory only
  std::uint64_t max_same_address = 0;  // lanes of a request, atomics only
  std::uint64_t addresses = 0;         // distinct ones a request, summed
};

struct Record {
  KernelInfo kernel;
  std::string choice;
  bool verified = false;
  std::string failure;      // why it is not, or why the kernel refused the matrix
  bool unsuitable = false;  // the kernel refused the matrix: neither right nor wrong

  double setup_ms = 0;
  double preprocess_ms = 0;
  // A and x read once, y written once (and read, if beta is not 0).
  double compulsory_bytes = 0;
  // As the papers count: x read once a nonzero.
  double paper_bytes = 0;
  double flops = 0;  // two a nonzero

  std::optional<Quartiles> warm;  // GPU, or a kernel that runs on the host
  std::optional<Quartiles> cold;  // GPU
  std::vector<Traffic> traffic;   // CPU backend
  // Between the first product and one after the measured ones. On the CPU backend, for a kernel
  // that uses atomics, the first one's blocks, warps and lanes ran in another order.
  std::optional<Difference> difference;
};

// The vectors and the reference that all kernels of one matrix share.
template <typename T>
class Bench {
 public:
  Bench(const Problem<T>& problem, const RunOptions& options);

  Record run(const Kernel& kernel) const;
  const std::vector<T>& x() const { return x_; }

 private:
  std::vector<T> multiply(Spmv<T>& spmv, RunsOn where) const;
#ifndef SPMV_CUDA
  std::vector<T> multiply_in_another_order(Spmv<T>& spmv) const;
#endif
  void measure(Spmv<T>& spmv, Record& record) const;

  const Problem<T>& problem_;
  RunOptions options_;
  T alpha_, beta_;
  std::vector<T> x_;
  std::vector<T> y0_;  // what y holds before the product; NaN when beta is 0
  Reference reference_;
  mutable device::Buffer<T> x_device_;
  mutable device::Buffer<T> y_device_;
  device::Stream stream_;
};

extern template class Bench<float>;
extern template class Bench<double>;

}  // namespace spmv
