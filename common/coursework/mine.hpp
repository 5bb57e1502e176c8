// A second version of a step's kernels, beside the first (mine.py): the copy of its stage.cu is in
// namespace spmv::mine and registers what it has under names of its own.
#pragma once

#include <fnmatch.h>

#include <sstream>
#include <string>
#include <utility>

#include "harness/kernel.hpp"

namespace spmv::mine {

// Stands in front of spmv::add_kernel: takes the kernels that MINE_KERNELS names, as "my_...".
template <typename SetUp>
bool add_kernel(KernelInfo info, SetUp set_up) {
  std::istringstream patterns(MINE_KERNELS);
  for (std::string pattern; std::getline(patterns, pattern, ',');) {
    if (fnmatch(pattern.c_str(), info.name.c_str(), 0) != 0) continue;
    info.name = "my_" + info.name;
    return spmv::add_kernel(std::move(info), set_up);
  }
  return true;
}

// The step's own programs are there already.
template <typename... Arguments>
bool add_command(Arguments&&...) {
  return true;
}

}  // namespace spmv::mine
