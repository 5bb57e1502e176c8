// Records: what was measured, as lines of JSON for the scripts in plots/ (format: plots/README.md).
// Nothing is recorded without verification.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/kernel.hpp"
#include "harness/report.hpp"

namespace spmv {

// The measurements of one process, and what they refer to: the run, matrices and kernels.
class Records {
 public:
  explicit Records(const Environment& environment);
  ~Records();

  // Begins a measurement: the caller adds what it measured to the object returned, which is valid
  // until the next call. `program` names a step's own program (command.hpp); it is empty for plain
  // `spmv`. `kernel` may be one that is not registered ("baseline").
  nlohmann::ordered_json& add(const std::string& program, const KernelInfo& kernel,
                              const std::string& choice, const MatrixFacts& matrix);

  // Adds a number to the last measurement, for callers that add no more than numbers.
  void add_number(const char* name, double value);

  // Names the machine code of the last measurement, by the functions that it launched
  // (machine_code.hpp); "library" if they are none. Of a function that is not in the program
  // nothing is said.
  void add_code(const std::set<std::string>& functions);

  // Notes that a kernel refused a matrix, or was wrong: no measurement, but a reason.
  // `outcome`: "refused" or "failed".
  void add_outcome(const KernelInfo& kernel, const MatrixFacts& matrix, const std::string& outcome,
                   const std::string& reason);

  // Appends all of it to the file `path` in one write, so that an interrupted run leaves whole
  // lines. What the file already says of the run, its matrices and its kernels is not repeated.
  // Numbers are rounded to five digits. Throws InputError when the file cannot be written.
  void append_to(const std::string& path);

 private:
  std::string run_;
  int arch_;
  std::vector<nlohmann::ordered_json> descriptions_, measurements_;
};

// [lower quartile, median, upper quartile, number of samples].
nlohmann::ordered_json to_json(const Quartiles& quartiles);

nlohmann::ordered_json to_json(const Traffic& traffic);
// Adds "kernels" and "lines" to a record.
void add_profile(nlohmann::ordered_json& record, const Profile& profile);

// As `spmv --list --json` prints them: an array of objects.
std::string kernels_as_json();

// As `spmv --machine-code ARCH` prints it: {function: hash} of this program, for a compute
// capability.
std::string machine_code_as_json(int arch);

// As `spmv --environment` prints it: the run's description, but for id and command, with the
// reason for this backend and the number of devices.
std::string environment_as_json(const Environment& environment);

// As `spmv info --json` prints it: one line. `row_lengths` lists the histogram's bins that hold
// rows, as [shortest, longest, rows, nonzeros]; `picture` the cells of a grid of at most 200 x 200
// that hold nonzeros, as [line, column, nonzeros].
std::string info_as_json(const Matrix<double>& matrix);

}  // namespace spmv
