// Step 10: measuring and verifying one way to multiply after the other.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/command.hpp"
#include "machine.hpp"
#include "persistent.hpp"
#include "report.hpp"
#include "sparse/row_source.hpp"

namespace spmv::multigpu {

inline const std::map<std::string, Partition> kPartitions{{"rows", Partition::kRows},
                                                          {"nonzeros", Partition::kNonzeros}};
inline const std::map<std::string, Exchange> kExchanges{{"none", Exchange::kNone},
                                                        {"parts", Exchange::kParts},
                                                        {"packed", Exchange::kPacked},
                                                        {"stores", Exchange::kStores}};
// A drive of Machine's, or a kernel of PersistentMachine's, with stores only.
using AnyDrive = std::variant<Drive, PersistentKernel>;
inline const std::map<std::string, AnyDrive> kDrives{
    {"loop", Drive::kLoop},
    {"graph", Drive::kGraph},
    {"persistent", PersistentKernel::kFast},
    {"persistent-simple", PersistentKernel::kSimple}};

struct Options {
  std::vector<int> gpus{2};
  std::vector<std::string> partitions{"nonzeros"};
  std::vector<std::string> exchanges{"none"};
  std::vector<std::string> drives{"loop", "graph", "persistent"};
  int steps = 0;              // 0: 100 on GPUs, 10 on the CPU backend
  std::string norm = "each";  // "first": one factor for all steps, of the first ones' norms
  bool no_peer_access = false;
  int share_gpus = 0;  // how many GPUs the parts share; 0: one for each part
};

// One matrix, on which one way after the other is measured.
template <typename T>
class Measurement {
 public:
  // Throws InputError where `spec` is no matrix. The other two must outlive this.
  Measurement(const Options& options, const CommandArguments& arguments, const std::string& spec);
  MatrixFacts matrix() const;
  // The first step and the last of each drive are verified. Throws InputError when the matrix is
  // not square, and the way iterates.
  Outcome measure(const Way& way);

 private:
  // Of one kernel on one GPU, which the others are compared with. There nothing is exchanged, in
  // whatever way.
  struct OnOneGpu {
    double step_ms = 0;
    std::vector<T> y;
  };

  void cut_into(const Way& way);
  Reference reference_of(T factor, const std::vector<T>& x) const;
  // Whether the last of `steps` steps has made the right product of the one before.
  template <typename AnyMachine>
  bool is_right(AnyMachine& machine, const Way& way, int steps, Outcome& outcome);
  // False: one of them is wrong.
  bool time_drives(const Way& way, Machine<T>& machine, const std::vector<Part<T>>& parts,
                   Outcome& outcome);

  const Options& options_;
  const CommandArguments& arguments_;
  bool measures_;
  std::unique_ptr<RowSource<T>> rows_;
  std::vector<T> x_;
  std::vector<long long> nonzeros_;      // before each row
  std::pair<int, std::string> cut_for_;  // number of parts and partition of:
  std::vector<Index> cuts_;
  std::vector<Csr<T>> slices_;
  std::optional<Reference> first_;                               // of x_
  std::map<std::pair<std::string, bool>, OnOneGpu> on_one_gpu_;  // by kernel; whether it iterates
};

}  // namespace spmv::multigpu
