#include "harness/kernel.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

namespace spmv {
namespace {

// A function's static, because kernels register before main() in any order of source files.
std::vector<Kernel>& registry() {
  static std::vector<Kernel> instance;
  return instance;
}

}  // namespace

const char* name_of(RunToRun bits) {
  if (bits == RunToRun::kNotSaid) return "not said";
  return bits == RunToRun::kSame ? "same bits" : "may differ";
}

void register_kernel(Kernel kernel) {
  std::vector<Kernel>& all = registry();
  // What is not ours (step 0) stands after the steps.
  const auto rank = [](const Kernel& k) { return k.info.step == 0 ? 1000 : k.info.step; };
  const auto place =
      std::upper_bound(all.begin(), all.end(), kernel,
                       [&rank](const Kernel& a, const Kernel& b) { return rank(a) < rank(b); });
  all.insert(place, std::move(kernel));
}

const std::vector<Kernel>& kernels() {
  return registry();
}

std::vector<const Kernel*> ladder_kernels() {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : kernels()) {
    if (kernel.info.in_ladder) found.push_back(&kernel);
  }
  return found;
}

std::vector<const Kernel*> find_kernels(const std::string& patterns) {
  std::set<const Kernel*> found;  // they lie in their order
  if (patterns.empty()) throw InputError("--kernel '': no kernel is named; see --list");
  std::istringstream list(patterns);
  for (std::string pattern; std::getline(list, pattern, ',');) {
    bool matched = false;
    for (const Kernel& kernel : kernels()) {
      if (fnmatch(pattern.c_str(), kernel.info.name.c_str(), 0) != 0) continue;
      matched = true;
      found.insert(&kernel);
    }
    for (const auto& [name, what, command] :
         {std::array{"mkl_csr", "oneMKL", "make mkl"},
          std::array{"cusparse_spmvop*", "a cuSPARSE of 12.8.1 or later", "make cusparse"}}) {
      if (!matched && fnmatch(name, pattern.c_str(), 0) == 0) {
        throw InputError("--kernel '" + pattern + "': this program was built without " + what +
                         "; `" + command + "` fetches it");
      }
    }
    if (!matched) {
      std::string names;
      for (const Kernel& kernel : kernels()) names += " " + kernel.info.name;
      throw InputError("--kernel '" + pattern + "': no kernel has this name; there are" + names);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace spmv
