// What the CPU backend saw of a kernel's memory accesses: by array for the table of a run, and with
// --profile by source line, as text and as JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "simt/profile.hpp"

namespace spmv {

// What a kernel asked of one array.
struct Traffic : simt::AccessCounts {
  std::string array;   // "values", "x", ...
  std::string space;   // "global", "shared"
  std::string access;  // "load", "store", "atomic"
};
double sectors_a_request(const simt::AccessCounts& counts);  // NaN if there were no requests

// The same for one line of the source. `space` may also be "none", with `access` "barrier" or "warp
// operation" and the operation's name as `array`.
struct LineTraffic {
  std::string kernel;  // "csr_vector_kernel<2, double>"
  std::string file;    // from the root of the repository on, if it is there
  unsigned line = 0;   // 0 without debug information
  Traffic traffic;
};

// What all launches of one function did together.
struct KernelProfile : simt::KernelCounts {
  std::string kernel;
};

struct Profile {
  std::string gpu;  // whose caches were modelled
  std::vector<KernelProfile> kernels;
  std::vector<LineTraffic> lines;

  bool empty() const { return kernels.empty(); }
};

std::vector<Traffic> traffic_by_array(const simt::Profile& profile);
Profile make_profile(const simt::Profile& profile, const std::string& gpu);

void print_profile(std::ostream& out, const Profile& profile);

}  // namespace spmv
