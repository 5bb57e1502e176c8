// The parameters of time_model.cpp; plots/measure/time_model.py writes the rows of the tables.
// clang-format off
#pragma once

namespace spmv {

struct TimeParameters {
  const char* gpu;   // its short name
  bool is_measured;  // fitted to its times; else scaled from the H200 by data sheets
  double launch;  // us: a product of one launch, back to back with others, that does nothing
  double dependent;  // us: each further launch, which waits for the one before
  double each[13];
  // l2_byte, us: a byte between L1 and L2
  // dram_byte, us: a byte from DRAM, by the bandwidth of a copy
  // line, us: a 128-byte line that a request touches, on one multiprocessor
  // instruction, us: a request to global memory, or a shuffle, on one multiprocessor
  // shared_pass, us: a pass over the banks of shared memory, on one multiprocessor
  // atomic, us: an address that an atomic addition updates, all multiprocessors together
  // same_address, us: an atomic addition to one and the same address
  // same_counter, us: a draw from one and the same integer
  // item, us: an item of a warp, per wave: its first loads, each of which needs the one before
  // load, us: a wait of a warp for loads that the L1 serves
  // l2_load, us: what is added to it when the L2 serves one of them
  // shared_load, us: a request of a warp to shared memory
  // barrier, us: a barrier of a block
  double exponent;  // how far limits overlap: 1 adds them, infinity takes the largest
};
inline constexpr TimeParameters kTimeParameters[] = {
    {"h200", true, 2.74, 1.511, {1.843e-07, 2.371e-07, 0.0003224, 0.0002939, 0.0005558, 8.43e-06, 0.007443, 0.0007581, 0.5391, 0.01529, 0.1172, 0.00485, 0.03806}, 1.434},
    {"h100", true, 2.909, 1.598, {2.038e-07, 3.361e-07, 0.0003144, 0.0002937, 0.0005386, 8.368e-06, 0.007494, 0.0007712, 0.5404, 0.0152, 0.1171, 0.004827, 0.03871}, 1.427},
    {"a100", false, 2.74, 1.511, {3.163e-07, 5.581e-07, 0.0004528, 0.0004127, 0.0007805, 1.447e-05, 0.01045, 0.001065, 0.757, 0.02147, 0.1646, 0.006811, 0.05344}, 1.434},
    {"rtx4090", false, 2.74, 1.511, {1.493e-07, 1.129e-06, 0.0002533, 0.0002309, 0.0004367, 6.83e-06, 0.005848, 0.0005957, 0.4236, 0.01201, 0.09208, 0.003811, 0.0299}, 1.434},
    {"t4", false, 2.74, 1.511, {7.574e-07, 3.556e-06, 0.0004015, 0.000366, 0.0006921, 3.464e-05, 0.009268, 0.0009441, 0.6713, 0.01904, 0.1459, 0.00604, 0.04739}, 1.434},
};
inline constexpr double kStreams = 4;  // the exponent of what streams through different units at the same time

// What nvcc made of a function; the first is for functions that are not listed.
struct MachineCode {
  const char* function;
  double registers[2];  // per thread, in double and in single precision
  double in_flight[2];  // loads that a warp issues per wait
};
inline constexpr MachineCode kMachineCode[] = {
    {"csr_scalar_kernel", {32, 32}, {5.33, 9.6}},
    {"add_carries_kernel", {16, 15}, {1, 1}},
    {"atomic_coo_kernel", {28, 26}, {2, 2}},
    {"atomic_coo_sorted_kernel", {24, 23}, {1.33, 1.33}},
    {"atomic_coo_warp_kernel", {30, 18}, {2, 2}},
    {"cds_kernel", {53, 40}, {14, 14}},
    {"csr_adaptive_kernel", {40, 46}, {4, 6}},
    {"csr_adaptive_shared_rows_kernel", {30, 31}, {8, 16}},
    {"csr_vector_kernel", {32, 32}, {5.33, 9.6}},
    {"csr_vector_shared_kernel", {32, 32}, {5.33, 9.6}},
    {"dia_kernel", {32, 32}, {3, 4}},
    {"ell_kernel", {32, 32}, {4, 6}},
    {"lightspmv_counters_kernel", {32, 32}, {2.08, 3}},
    {"lightspmv_kernel", {32, 29}, {4, 4}},
    {"pcsr_block_tiles_kernel", {69, 48}, {8.33, 8.33}},
    {"pcsr_one_pass_kernel", {79, 62}, {8.33, 8.33}},
    {"pcsr_products_kernel", {22, 22}, {1.5, 1.5}},
    {"pcsr_rows_kernel", {40, 32}, {10, 13.3}},
    {"pcsr_sums_kernel", {32, 32}, {4, 5.33}},
    {"scale_rows_kernel", {14, 14}, {1.5, 1.5}},
    {"segscan_block_kernel", {20, 20}, {1.5, 1.5}},
    {"segscan_shuffle_kernel", {48, 32}, {2.5, 2.38}},
    {"sell_kernel", {32, 32}, {6, 6}},
};

// The interval of an estimate, by its limit: from estimate * low to estimate * high.
struct Interval {
  const char* limit;
  double low, high;
};
inline constexpr Interval kIntervals[] = {
    {"launches", 0.839, 1.191},
    {"L2 bandwidth", 0.775, 1.245},
    {"latency", 0.697, 1.291},
    {"any", 0.800, 1.207},
};

// Kernels that have no estimate.
struct Refusal {
  const char* kernel;
  const char* reason;
};
inline constexpr Refusal kRefusals[] = {
    {"", ""},
};

}  // namespace spmv
