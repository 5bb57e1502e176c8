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
    {"h200", true, 2.687, 2.277, 8.718e-08, 2.376e-07, 0.0002325, 0.0003084, 0.0004594, 7.013e-06, 0.00631, 0.0007622, 0.378, 0.009909, 0.03001, 0.003485, 0.05431, 1.107},
    {"h100", true, 2.901, 2.297, 8.357e-08, 3.344e-07, 0.000228, 0.0003152, 0.0004474, 6.971e-06, 0.006095, 0.0007449, 0.3908, 0.01045, 0.03216, 0.003418, 0.05407, 1.106},
    {"a100", false, 2.687, 2.277, 1.496e-07, 5.594e-07, 0.0003264, 0.0004331, 0.0006451, 1.204e-05, 0.008861, 0.00107, 0.5309, 0.01391, 0.04215, 0.004893, 0.07626, 1.107},
    {"rtx4090", false, 2.687, 2.277, 7.064e-08, 1.132e-06, 0.0001826, 0.0002423, 0.0003609, 5.682e-06, 0.004958, 0.0005989, 0.297, 0.007786, 0.02358, 0.002738, 0.04267, 1.107},
    {"t4", false, 2.687, 2.277, 3.582e-07, 3.565e-06, 0.0002895, 0.0003841, 0.0005721, 2.882e-05, 0.007858, 0.0009492, 0.4708, 0.01234, 0.03738, 0.004339, 0.06763, 1.107},
};
inline constexpr double kL2Share = 0.5;  // a footprint of so much of the L2 stays there
inline constexpr double kReservedSharedBytes = 1024;  // of each block, by the system
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
    {"launches", 0.851, 1.190},
    {"atomics", 0.841, 1.195},
    {"latency", 0.737, 1.513},
    {"barriers", 1.103, 1.349},
    {"any", 0.806, 1.262},
};

// Kernels that have no estimate.
struct Refusal {
  const char* kernel;
  const char* reason;
};
inline constexpr Refusal kRefusals[] = {
    {"cds", "the time model is off by 27% (median; 90th percentile 94%)"},
    {"cds_sliced", "the time model is off by 26% (median; 90th percentile 92%)"},
};

}  // namespace spmv
