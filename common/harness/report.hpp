// What a run says: tables for the screen, JSON Lines for the plots.
#pragma once

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "harness/run.hpp"
#include "sparse/load.hpp"

namespace spmv {

// The machine and the software, as records name them.
struct Environment {
  std::string backend;    // "cuda" or "cpu"
  std::string reason;     // why this backend; empty if the program was not started by make
  std::string device;     // "NVIDIA H200"; on the CPU backend the processor
  std::string processor;  // the host's, where RunsOn::kHost kernels run
  int threads = 1;        // of OpenMP there, which those kernels use
  std::string driver, cuda, cusparse;  // versions; empty on the CPU backend
  std::string compiler;
  std::string commit;
  std::string command;
  std::string
      run;  // the id that its records refer to; of two runs the later one has the greater id
  int devices = 1;
  int arch = 0;  // compute capability of the GPU: 90 for 9.0
};
Environment describe_environment(int argc, char** argv);

// The first line of every run.
void print_environment(std::ostream& out, const Environment& environment);

// A matrix as screen and records name it.
struct MatrixFacts {
  MatrixSource source;
  Index rows = 0, cols = 0;
  long long nnz = 0;
  std::string precision;  // "f32", "f64"
};
template <typename T>
MatrixFacts facts_of(const Csr<T>& a, const MatrixSource& source) {
  return {source, a.rows, a.cols, a.nnz(), sizeof(T) == 4 ? "f32" : "f64"};
}

// All that was measured on one matrix.
struct MatrixReport {
  MatrixFacts matrix;
  RunOptions options;
  std::vector<Record> records;
  double order_ms = 0;       // to find and apply another order on the host; 0: it was not asked for
  double permute_ms = 0;     // GPU: x, and y if rows are renumbered, into that order
  double copy_gb_per_s = 0;  // GPU
  std::optional<Baseline> baseline;  // GPU
};

// The line above what was measured on a matrix, and where it comes from.
void print_matrix(std::ostream& out, const MatrixFacts& matrix);

// One table per matrix, one line per kernel; on a GPU of at most 110 columns, unless it is `wide`:
// then with setup, preprocess, quartiles, GB/s and break-even, too.
void print_report(std::ostream& out, const MatrixReport& report, bool gpu, bool wide = false);

// A screen for a first look: a line per kernel, and what went wrong, if anything did. On a GPU the
// share of the copy bandwidth, on the CPU backend the time estimated: of one matrix as a bar, of
// several side by side.
void print_ladder(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu);

// Of each matrix the fastest kernel with its interval, and those that tie with it: intervals of the
// estimates, or quartiles of the times, overlap.
void print_fastest(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu);

// One line per kernel over several matrices, the figure that tells the steps apart: on a GPU
// GFLOP/s, on the CPU backend the time estimated for the (first) GPU.
void print_summary(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu);

// The last line of a run: how many of its results, one per kernel and matrix, were verified, how
// many were wrong, and how many kernels did not suit their matrix.
void print_verdict(std::ostream& out, const std::vector<MatrixReport>& reports);

// Appends the verified records, and the baseline, to the file `path` (records.hpp).
void append_records(const std::string& path, const MatrixReport& report,
                    const Environment& environment);

// A line on stderr that is overwritten; only on a terminal, and only once a second has passed.
class Progress {
 public:
  ~Progress();
  void show(const std::string& what);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace spmv
