// What the CPU backend saw of a kernel's memory accesses: by array for the table of a run, and with
// --profile by source line, as text, as JSON and as pictures.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace simt {
struct Profile;
}

namespace spmv {

// What a kernel asked of one array; simt/profile.hpp has the meaning of the counts.
struct Traffic {
  std::string array;                   // "values", "x", ...
  std::string space;                   // "global", "shared"
  std::string access;                  // "load", "store", "atomic"
  std::uint64_t requests = 0;          // of a warp
  std::uint64_t lanes = 0;             // that took part in them
  std::uint64_t bytes_used = 0;        // distinct bytes per request, summed
  std::uint64_t sectors = 0;           // of 32 bytes, global memory only
  std::uint64_t ideal_sectors = 0;     // the fewest that could hold the bytes used
  std::uint64_t bank_passes = 0;       // shared memory only
  std::uint64_t max_same_address = 0;  // lanes of a request, atomics only
  std::uint64_t addresses = 0;         // distinct ones per request, summed
  std::uint64_t lines = 0;             // of 128 bytes, global memory only
  std::uint64_t ideal_lines = 0;
  std::uint64_t ideal_bank_passes = 0;  // without conflicts
  std::uint64_t texture_requests = 0;   // of 8 lanes each, of loads through a texture
  std::uint64_t texture_sectors = 0;
  std::uint64_t l2_sectors = 0;  // by the model of the caches, with --profile
  std::uint64_t dram_sectors = 0;
};
double sectors_a_request(const Traffic& traffic);  // NaN if there were no requests

// The same for one line of the source. `space` may also be "none", with `access` "barrier" or "warp
// operation" and the operation's name as `array`.
struct LineTraffic {
  std::string kernel;  // "csr_vector_kernel<2, double>"
  std::string file;    // from the root of the repository on, if it is there
  unsigned line = 0;   // 0 without debug information
  Traffic traffic;
};

// How much more than the average the busiest has.
struct Unevenness {
  double lanes = 0, warps = 0, blocks = 0;
};

struct KernelProfile {
  std::string kernel;
  std::uint64_t launches = 0, blocks = 0, warps = 0, threads = 0;
  std::uint64_t barriers = 0;  // times that a block's threads met
  Unevenness unevenness;
  std::uint64_t dram_write_sectors = 0;
};

// A first request of the first warp: where in the array each lane's bytes begin, or -1.
struct FirstRequest {
  std::string kernel, array, space, access, file;
  unsigned line = 0;
  unsigned size = 0;  // bytes per lane
  std::vector<std::vector<std::int64_t>> requests;
};

struct Profile {
  std::string gpu;  // whose caches were modelled
  std::vector<KernelProfile> kernels;
  std::vector<LineTraffic> lines;
  std::vector<FirstRequest> first_requests;

  bool empty() const { return kernels.empty(); }
};

std::vector<Traffic> traffic_by_array(const simt::Profile& profile);
Profile make_profile(const simt::Profile& profile, const std::string& gpu);

void print_profile(std::ostream& out, const Profile& profile);

}  // namespace spmv
