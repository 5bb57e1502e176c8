// Step 10: what its programs have in common: which words stand for which way to multiply, what they
// refuse, what they print and record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "harness/records.hpp"
#include "harness/verify.hpp"
#include "part.hpp"
#include "sparse/load.hpp"

namespace spmv::multigpu {

inline const std::map<std::string, Partition> kPartitions{{"rows", Partition::kRows},
                                                          {"nonzeros", Partition::kNonzeros}};
inline const std::map<std::string, Exchange> kExchanges{{"none", Exchange::kNone},
                                                        {"parts", Exchange::kParts},
                                                        {"packed", Exchange::kPacked},
                                                        {"stores", Exchange::kStores}};

// As find_kernels(). Throws InputError for one that cannot multiply a part.
std::vector<const Kernel*> find_part_kernels(const std::string& patterns);
// Throws InputError, which begins with `what`, unless the matrix is square.
void require_square(const std::string& what, Index rows, Index cols);

// One way to multiply by one matrix.
struct Way {
  int gpus = 1;           // or ranks: the number of parts
  std::string partition;  // in kPartitions
  std::string exchange;   // in kExchanges, or of ranks
  const Kernel* kernel = nullptr;
  int steps = 1;
  std::string has_part = "GPU";  // or "rank"
};

// How an iteration is measured: runs of many steps, after one that warms up.
inline constexpr int kSamples = 5;
// With the norm, after which x has forgotten where it came from, and the factor of all steps can be
// that of the last (--norm first).
inline constexpr int kFirstSteps = 4;

struct DriveTime {
  std::string name;
  Quartiles step;  // milliseconds per step, of many
};

// What was found out about it. Times are measured on GPUs only.
struct Outcome {
  enum class Status { kRight, kLeftOut, kWrong };
  Status status = Status::kRight;
  std::vector<std::string> notes;  // what was left out, and why; what is wrong
  int devices = 0;                 // fewer than parts: these share them
  bool peer_access = true;
  bool measured = false;
  std::vector<PartShape> parts;
  std::vector<DriveTime> drives;
  std::vector<double> busy_ms;  // of each GPU; empty: not measured
  std::uint64_t checksum = 0;
  // Where the same was done on one GPU before: its time of a step, and how far the first product is
  // from its bits.
  std::optional<double> one_gpu_step_ms;
  std::optional<Difference> difference;

  double best_step_ms() const;
};

// The whole matrix.
struct MatrixFacts {
  const MatrixSource& source;
  Index rows = 0, cols = 0;
  long long nnz = 0;
  std::string precision;
};

void print_matrix(const MatrixFacts& matrix);
void print_heading(const Way& way);
void print_outcome(const Way& way, const Outcome& outcome);

// norm: what --norm says.
void record_outcome(const MatrixFacts& matrix, const Way& way, const std::string& norm,
                    const Outcome& outcome, const Environment& environment,
                    const std::string& path);

}  // namespace spmv::multigpu
