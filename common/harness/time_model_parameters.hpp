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
  double dram_byte;  // us: a byte from DRAM
  double line;  // us: a 128-byte line that a request touches, on one multiprocessor
  double instruction;  // us: a request or shuffle, on one multiprocessor
  double shared_pass;  // us: a pass over the banks of shared memory, on one multiprocessor
  double atomic;  // us: an address that an atomic addition updates, all multiprocessors together
  double same_address;  // us: an atomic addition to one and the same address
  double same_counter;  // us: a draw from one and the same integer
  double item;  // us: an item of a warp, per wave: its first loads, each of which needs the one before
  double load;  // us: a load of a warp, per wave, when the L1 serves it
  double l2_load;  // us: what is added to it when the L2 does
  double shared_load;  // us: a request of a warp to shared memory, per wave
  double tail_load;  // us: a load of the busiest warp, when the L1 serves it
  double tail_l2_load;  // us: what is added to it when the L2 does
  double tail_shared_load;  // us: a request of the busiest warp to shared memory
  double barrier;  // us: a barrier of a block, per wave
  double exponent;  // how far limits overlap: 1 adds them, infinity takes the largest
};
inline constexpr TimeParameters kTimeParameters[] = {
    {"h200", true, 2.57, 2.063, 1.089e-07, 2.965e-07, 0.0002508, 0.0002547, 0.0004366, 7.421e-06, 0.006703, 0.0007758, 0.5659, 0.001248, 0.003215, 0.0008465, 0.00938, 0.03269, 0.006312, 0.06517, 1.166},
    {"h100", true, 2.674, 2.093, 1.108e-07, 2.95e-07, 0.0002508, 0.0002528, 0.0004195, 7.408e-06, 0.006567, 0.0007549, 0.5852, 0.001249, 0.00322, 0.0008453, 0.00973, 0.03506, 0.00628, 0.0658, 1.162},
    {"a100", false, 2.57, 2.063, 1.869e-07, 6.98e-07, 0.0003522, 0.0003576, 0.0006131, 1.274e-05, 0.009413, 0.001089, 0.7947, 0.001752, 0.004515, 0.001189, 0.01317, 0.04591, 0.008864, 0.09151, 1.166},
    {"rtx4090", false, 2.57, 2.063, 8.825e-08, 1.412e-06, 0.0001971, 0.0002001, 0.000343, 6.013e-06, 0.005267, 0.0006095, 0.4446, 0.0009803, 0.002526, 0.0006651, 0.00737, 0.02569, 0.00496, 0.0512, 1.166},
    {"t4", false, 2.57, 2.063, 4.476e-07, 4.447e-06, 0.0003123, 0.0003171, 0.0005437, 3.05e-05, 0.008347, 0.000966, 0.7047, 0.001554, 0.004004, 0.001054, 0.01168, 0.04071, 0.007861, 0.08115, 1.166},
};
inline constexpr double kL2Share = 0.5;  // a footprint of so much of the L2 stays there
inline constexpr double kReservedSharedBytes = 1024;  // of each block, by the system

// The interval of an estimate, by its limit: from estimate * low to estimate * high.
struct Interval {
  const char* limit;
  double low, high;
};
inline constexpr Interval kIntervals[] = {
    {"launches", 0.836, 1.178},
    {"atomics", 0.871, 1.228},
    {"latency", 0.641, 1.501},
    {"any", 0.774, 1.290},
};

// Kernels that have no estimate.
struct Refusal {
  const char* kernel;
  const char* reason;
};
inline constexpr Refusal kRefusals[] = {
    {"cds", "the time model is off by 30% (median; 90th percentile 104%)"},
    {"cds_sliced", "the time model is off by 29% (median; 90th percentile 102%)"},
};

}  // namespace spmv
