// Step 10: measuring and verifying one way to multiply after the other.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "harness/command.hpp"
#include "machine.hpp"
#include "partition.hpp"
#include "persistent.hpp"
#include "report.hpp"

namespace spmv::multigpu {

inline const std::map<std::string, Partition> kPartitions{{"rows", Partition::kRows},
                                                          {"nonzeros", Partition::kNonzeros}};
inline const std::map<std::string, Exchange> kExchanges{
    {"none", Exchange::kNone},   {"parts", Exchange::kParts},   {"packed", Exchange::kPacked},
    {"loads", Exchange::kLoads}, {"stores", Exchange::kStores}, {"nccl", Exchange::kNccl}};
// A drive of Machine's, or a kernel of PersistentMachine's, with stores only. "persistent" is the
// fastest of these on all matrices.
using AnyDrive = std::variant<Drive, PersistentKernel>;
inline const std::map<std::string, AnyDrive> kDrives{
    {"loop", Drive::kLoop},
    {"threads", Drive::kThreads},
    {"graph", Drive::kGraph},
    {"persistent", PersistentKernel::kFlags},
    {"persistent-simple", PersistentKernel::kSimple},
    {"persistent-flags", PersistentKernel::kFlags},
    {"persistent-words", PersistentKernel::kWords}};

struct MeasureOptions {
  std::vector<std::string> drives;
  bool norm = true;  // false: one factor for all steps, of the first ones' norms
  bool no_peer_access = false;
  int share_gpus = 0;  // how many GPUs the parts share; 0: one for each part
};

// One matrix, on which one way after the other is measured.
class Measurement {
 public:
  virtual ~Measurement() = default;
  virtual MatrixFacts matrix() const = 0;
  // The first step and the last of each drive are verified. Throws InputError when the matrix is
  // not square, and the way iterates.
  virtual Outcome measure(const Way& way) = 0;
};

// Throws InputError where `spec` is no matrix.
std::unique_ptr<Measurement> open_measurement(const MeasureOptions& options,
                                              const CommandArguments& arguments,
                                              const std::string& spec);

}  // namespace spmv::multigpu
