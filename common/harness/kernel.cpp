#include "harness/kernel.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <sstream>

#include "sparse/text.hpp"

namespace spmv {
namespace {

// A function's static, because kernels register before main() in any order of source files.
std::vector<Kernel>& registry() {
  static std::vector<Kernel> instance;
  return instance;
}

// How many characters must be inserted, deleted or replaced to make one text the other
// (Levenshtein's distance).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
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
      std::vector<std::pair<std::size_t, std::string>> names;
      for (const Kernel& kernel : kernels()) {
        names.emplace_back(distance(pattern, kernel.info.name), kernel.info.name);
      }
      std::ranges::sort(names);
      std::string near;
      for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i) {
        near += (near.empty() ? "; near: " : ", ") + names[i].second;
      }
      throw InputError("--kernel " + in_quotes(pattern) + ": no kernel has this name" + near +
                       "; --list names all");
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace spmv
