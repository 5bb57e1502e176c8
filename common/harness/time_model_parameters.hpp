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
    {"h200", true, 2.528, 2.057, 1.61e-07, 2.376e-07, 0.0002775, 0.0003066, 0.0004913, 5.311e-06, 0.00634, 0.0007475, 0.5526, 0.009337, 0.03218, 0.003051, 0.05471, 1.089},
    {"h100", true, 2.623, 1.923, 1.694e-07, 3.348e-07, 0.0002844, 0.0003101, 0.0004779, 5.278e-06, 0.006117, 0.0007291, 0.5738, 0.009884, 0.03506, 0.002987, 0.0546, 1.088},
    {"a100", false, 2.528, 2.057, 2.763e-07, 5.592e-07, 0.0003897, 0.0004306, 0.0006899, 9.116e-06, 0.008902, 0.00105, 0.7759, 0.01311, 0.04519, 0.004285, 0.07683, 1.089},
    {"rtx4090", false, 2.528, 2.057, 1.304e-07, 1.131e-06, 0.000218, 0.0002409, 0.000386, 4.304e-06, 0.004981, 0.0005873, 0.4342, 0.007336, 0.02528, 0.002398, 0.04299, 1.089},
    {"t4", false, 2.528, 2.057, 6.615e-07, 3.563e-06, 0.0003456, 0.0003818, 0.0006118, 2.183e-05, 0.007894, 0.0009308, 0.6881, 0.01163, 0.04007, 0.0038, 0.06813, 1.089},
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
    {"launches", 0.840, 1.203},
    {"L2 bandwidth", 0.793, 1.242},
    {"atomics", 0.703, 1.160},
    {"latency", 0.732, 1.432},
    {"barriers", 1.000, 1.412},
    {"any", 0.784, 1.287},
};

// Kernels that have no estimate.
struct Refusal {
  const char* kernel;
  const char* reason;
};
inline constexpr Refusal kRefusals[] = {
    {"cds", "for this kernel the time model is off by 41% (median; 90th percentile 101%)"},
    {"cds_sliced", "for this kernel the time model is off by 41% (median; 90th percentile 99%)"},
    {"sell", "for this kernel the time model is off by 29% (median; 90th percentile 53%)"},
};

}  // namespace spmv
