// Step 10: measuring and verifying one way to multiply after the other.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "harness/command.hpp"
#include "machine.hpp"
#include "persistent.hpp"

namespace spmv::multigpu {

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

// Measures, prints and records every way on the matrix `spec`: numbers of GPUs, partitions, ways to
// exchange, kernels. The first step and the last of each drive are verified. False: one is wrong.
// Throws InputError when `spec` is no matrix, or is not square and a way iterates.
bool measure_all(const Options& options, const CommandArguments& arguments,
                 const std::vector<const Kernel*>& kernels, const std::string& spec);

}  // namespace spmv::multigpu
