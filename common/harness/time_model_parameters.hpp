// Written by plots/measure/time_model.py: the parameters of time_model.cpp. Do not edit.
// clang-format off
#pragma once

namespace spmv {

struct TimeParameters {
  const char* gpu;   // its short name
  bool is_measured;  // fitted to its times; else scaled from the H200 by data sheets
  double launch;  // us: a product of one launch, back to back with others, that does nothing
  double dependent;  // us: each further launch, which waits for the one before
  double l2_byte;  // us: a byte between L1 and L2
  double dram_byte;  // us: a byte from DRAM, by the bandwidth of a copy
  double line;  // us: a 128-byte line that a request touches, on one multiprocessor
  double instruction;  // us: a request to global memory, or a shuffle, on one multiprocessor
  double shared_pass;  // us: a pass over the banks of shared memory, on one multiprocessor
  double atomic;  // us: an address that an atomic addition updates, all multiprocessors together
  double same_address;  // us: an atomic addition to one and the same address
  double same_counter;  // us: a draw from one and the same integer
  double item;  // us: an item of a warp, per wave: its first loads, each of which needs the one before
  double load;  // us: a load of a warp when the L1 serves it
  double l2_load;  // us: what is added to it when the L2 does
  double shared_load;  // us: a request of a warp to shared memory
  double barrier;  // us: a barrier of a block
  double exponent;  // how far limits overlap: 1 adds them, infinity takes the largest
};
inline constexpr TimeParameters kTimeParameters[] = {
    {"h200", true, 2.57, 2.15, 1.59e-07, 2.374e-07, 0.0002746, 0.0003065, 0.000491, 4.945e-06, 0.006281, 0.0007381, 0.5538, 0.00952, 0.0315, 0.002932, 0.05437, 1.092},
    {"h100", true, 2.626, 1.951, 1.704e-07, 3.349e-07, 0.0002817, 0.0003099, 0.0004781, 4.921e-06, 0.006061, 0.0007252, 0.5761, 0.0101, 0.0344, 0.002874, 0.05436, 1.091},
    {"a100", false, 2.57, 2.15, 2.729e-07, 5.588e-07, 0.0003857, 0.0004303, 0.0006895, 8.487e-06, 0.00882, 0.001036, 0.7777, 0.01337, 0.04424, 0.004117, 0.07635, 1.092},
    {"rtx4090", false, 2.57, 2.15, 1.288e-07, 1.13e-06, 0.0002158, 0.0002408, 0.0003858, 4.007e-06, 0.004935, 0.0005799, 0.4352, 0.00748, 0.02475, 0.002304, 0.04272, 1.092},
    {"t4", false, 2.57, 2.15, 6.534e-07, 3.56e-06, 0.000342, 0.0003816, 0.0006115, 2.032e-05, 0.007822, 0.0009191, 0.6897, 0.01186, 0.03923, 0.003651, 0.0677, 1.092},
};
inline constexpr double kL2Share = 0.5;  // a footprint of so much of the L2 stays there
inline constexpr double kReservedSharedBytes = 1024;  // of each block, by the system
inline constexpr double kDramLatency = 2;  // of that of the L2
inline constexpr double kStreams = 4;  // the exponent of what streams through different units at the same time
inline constexpr double kAllRegisters = 65536;  // of a multiprocessor
inline constexpr double kFewRegisters = 32;  // that a thread has at most if its function is not listed

struct Registers {
  const char* function;
  double per_thread;
};
inline constexpr Registers kRegisters[] = {
    {"baseline_kernel", 34},
    {"cds_kernel", 55},
    {"csr_adaptive_kernel", 40},
    {"csr_to_ell_kernel", 40},
    {"csr_to_sell_kernel", 48},
    {"pcsr_block_tiles_kernel", 69},
    {"pcsr_one_pass_kernel", 79},
    {"pcsr_rows_kernel", 40},
    {"prepare_one_pass_kernel", 33},
    {"scan_tiles_kernel", 47},
    {"segscan_shuffle_kernel", 48},
};

// The interval of an estimate, by its limit: from estimate * low to estimate * high.
struct Interval {
  const char* limit;
  double low, high;
};
inline constexpr Interval kIntervals[] = {
    {"launches", 0.833, 1.201},
    {"L2 bandwidth", 0.790, 1.246},
    {"atomics", 0.836, 1.195},
    {"latency", 0.736, 1.438},
    {"barriers", 1.000, 1.448},
    {"any", 0.790, 1.290},
};

// Kernels that have no estimate.
struct Refusal {
  const char* kernel;
  const char* reason;
};
inline constexpr Refusal kRefusals[] = {
    {"cds", "for this kernel the time model is off by 41% (median; 90th percentile 98%)"},
    {"cds_sliced", "for this kernel the time model is off by 41% (median; 90th percentile 96%)"},
};

}  // namespace spmv
