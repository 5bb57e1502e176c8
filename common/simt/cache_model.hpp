// A simple model of a GPU's caches: how many of the sectors that warps ask for leave the chip.
//
// It is a model, not a simulation. What it has:
//   - one L1 a multiprocessor and one L2 for all, fully associative, least recently used out first,
//     in sectors of 32 bytes; empty before the first launch, the L1 empty at each;
//   - as many blocks at a time as fit on the GPU (threads, blocks and shared memory decide;
//     registers, which only a GPU's compiler knows, do not), distributed over the multiprocessors
//     in turn; their warps make their requests in turn, one each;
//   - loads look in the L1, then in the L2; stores and atomics go to the L2, which writes back what
//     it drops, and in the end all that it holds.
// What it has not: time, order between blocks other than the above, sets, write masks, compression,
// traffic of instructions and page tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace simt {

struct AccessCounts;
enum class Access : std::uint8_t;

struct Gpu {
  const char* name;       // as --gpu takes it
  const char* full_name;  // as it is shown
  unsigned multiprocessors;
  unsigned threads;          // a multiprocessor holds at once
  unsigned blocks;           // likewise
  std::size_t l1_bytes;      // with shared memory, if that is cut out of it
  std::size_t shared_bytes;  // most that blocks on one multiprocessor can have
  bool shared_is_of_l1;
  std::size_t l2_bytes;
  double mhz = 0;            // boost clock
  double dram_gb_per_s = 0;  // peaks
  double f64_gflops = 0;     // without tensor cores
  const char* device = "";   // part of what the driver calls it
};

// From the vendors' tables of compute capabilities, white papers and data sheets. gpus.py reads
// these lines for the scripts.
// clang-format off
inline constexpr Gpu kGpus[] = {
    {"h200", "NVIDIA H200", 132, 2048, 32, 256 << 10, 228 << 10, true, 60 << 20, 1980, 4800, 34000, "H200"},
    {"h100", "NVIDIA H100 SXM", 132, 2048, 32, 256 << 10, 228 << 10, true, 50 << 20, 1980, 3350, 34000, "H100 80GB HBM3"},
    {"a100", "NVIDIA A100", 108, 2048, 32, 192 << 10, 164 << 10, true, 40 << 20, 1410, 2039, 9700, "A100-SXM4-80GB"},
    {"v100", "NVIDIA V100", 80, 2048, 32, 128 << 10, 96 << 10, true, 6 << 20, 1530, 900, 7800, "V100-SXM2"},
    {"t4", "NVIDIA T4", 40, 1024, 16, 96 << 10, 64 << 10, true, 4 << 20, 1590, 320, 254, "T4"},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 128, 1536, 24, 128 << 10, 100 << 10, true, 72 << 20, 2520, 1008, 1290, "RTX 4090"},
    {"c2050", "NVIDIA Tesla C2050", 14, 1536, 8, 16 << 10, 48 << 10, false, 768 << 10, 1150, 144, 515, "C2050"},
};
// clang-format on
const Gpu* find_gpu(const std::string& name);  // null if there is none

class CacheModel {
 public:
  explicit CacheModel(const Gpu& gpu);
  ~CacheModel();

  // A launch, its blocks in order, and the requests of each warp of the running block in order.
  void start_grid(unsigned threads_per_block, std::size_t shared_bytes_per_block);
  void start_block();
  // `sectors`: distinct; l2_sectors and dram_sectors of `counts`, and of `own`, if there are any,
  // grow, at the latest in take_written().
  void request(unsigned warp, Access access, const std::uint64_t* sectors, unsigned count,
               AccessCounts& counts, AccessCounts* own = nullptr);
  // After a launch: the sectors written to DRAM since the last call, if `at_end` with those still
  // to be.
  std::uint64_t take_written(bool at_end);

 private:
  class Cache;
  struct Request {
    AccessCounts *counts, *own;
    std::uint32_t count;
    Access access;
  };
  struct WarpRequests {
    std::vector<Request> requests;
    std::vector<std::uint64_t> sectors;
    std::size_t next_request = 0, next_sector = 0;
  };
  void replay();
  void serve(Cache& l1, WarpRequests& warp);

  const Gpu& gpu_;
  std::unique_ptr<Cache> l2_;
  std::vector<std::unique_ptr<Cache>> l1_;  // a multiprocessor
  unsigned warps_per_block_ = 0;
  std::size_t wave_blocks_ = 0;      // blocks that the GPU holds at once
  std::vector<WarpRequests> warps_;  // of the blocks of the wave, one block after the other
  std::size_t blocks_ = 0;           // in warps_
  std::size_t held_ = 0;             // sectors in warps_
};

}  // namespace simt
