// From what the CPU backend counts of a product to the time that it would take on a GPU, with an
// interval and the limit that it comes to. Equations, parameters and errors: TIME_MODEL.md.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace simt {
struct Gpu;
struct Profile;
}  // namespace simt

namespace spmv {

// What all launches of one function did together; simt/profile.hpp has the meaning of the counts.
struct Work {
  std::string function;
  double launches = 0, blocks = 0, warps = 0;
  double shared_bytes = 0;     // per block
  double barriers = 0;         // times that a block's threads met
  double requests = 0;         // to global memory,
  double loads = 0;            // of these loads
  double shared_requests = 0;  // to shared memory, which take
  double shared_passes = 0;    // passes over the banks
  double shuffles = 0;         // warp operations other than __syncwarp()
  double lines = 0;            // of 128 bytes, that requests touch
  double load_sectors = 0;     // of 32 bytes, that loads touch, and that
  double l2_loads = 0;         // go on to the L2
  double l2_sectors = 0;       // these, with those of stores and atomics
  double dram_sectors = 0;     // read from DRAM if the L2 begins empty
  double written_sectors = 0;
  double atomics = 0;          // addresses in requests of atomics, but for draws
  double draws = 0;            // requests that update integers: a warp draws its next item
  double hottest_address = 0;  // lanes' atomics on one address, summed over the launches
  double hottest_counter = 0;  // the same of draws, a request of additions as one
  double longest_item = 0;     // most requests of a warp from one draw to the next
};
// By their names in JSON.
inline constexpr std::pair<const char*, double Work::*> kQuantities[] = {
    {"launches", &Work::launches},
    {"blocks", &Work::blocks},
    {"warps", &Work::warps},
    {"shared_bytes", &Work::shared_bytes},
    {"barriers", &Work::barriers},
    {"requests", &Work::requests},
    {"loads", &Work::loads},
    {"shared_requests", &Work::shared_requests},
    {"shared_passes", &Work::shared_passes},
    {"shuffles", &Work::shuffles},
    {"lines", &Work::lines},
    {"load_sectors", &Work::load_sectors},
    {"l2_loads", &Work::l2_loads},
    {"l2_sectors", &Work::l2_sectors},
    {"dram_sectors", &Work::dram_sectors},
    {"written_sectors", &Work::written_sectors},
    {"atomics", &Work::atomics},
    {"draws", &Work::draws},
    {"hottest_address", &Work::hottest_address},
    {"hottest_counter", &Work::hottest_counter},
    {"longest_item", &Work::longest_item},
};
std::vector<Work> work_of(const simt::Profile& profile);
nlohmann::ordered_json to_json(const Work& work);

struct Estimate {
  std::string gpu, gpu_full_name;
  double us = 0;
  double low = 0,
         high = 0;      // an interval that held 80% of measured times; 0: not compared with any
  std::string limit;    // "L2 bandwidth", "latency"; at most 14 characters; "-" if refused
  std::string detail;   // "latency: 9 of 64 warps"
  std::string refusal;  // why there is no estimate; then `us` is 0
};

// A warm product of `kernel` on `gpu`. Kernels whose times the model does not follow, and GPUs that
// it has no parameters of, are refused.
Estimate estimate_time(const std::string& kernel, const std::vector<Work>& work,
                       const simt::Gpu& gpu);

// Of each line of `in`, an array of Work as to_json() writes it, a line of JSON: "functions", of
// each the launches and what the parameters are multiplied with, and "us" and "limit" as
// estimate_time() has them with today's parameters, if there are any of the GPU. The first line
// names the parameters, and the limit of each.
void write_terms(std::istream& in, std::ostream& out, const simt::Gpu& gpu);

// "3.4 (2.9 to 4.1)"; "-" if it was refused.
std::string to_text(const Estimate& estimate);
// "3.4 (2.9 to 4.1) us on an NVIDIA H200, launches", or why there is none.
std::string describe(const Estimate& estimate);
nlohmann::ordered_json to_json(const Estimate& estimate);

}  // namespace spmv
