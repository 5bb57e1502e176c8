// The tests of the tests: kernels with one mistake each (mutants.py), all of which must be found.
#ifndef SPMV_CUDA

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cuda/atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../06_pcsr/one_pass/spmv/agent.cuh"
#include "../06_pcsr/one_pass/spmv/rows.cuh"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "machine.hpp"
#include "persistent_part.cuh"
#include "sequential.hpp"
#include "simt/profile.hpp"
#include "sparse/generators.hpp"
#include "tests/bits.hpp"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"

// Needs the headers above.
#include "10_multigpu/mutants.cuh"

namespace spmv::multigpu {
namespace {

using Result = std::function<std::vector<double>()>;
constexpr int kSteps = 5;

// Three devices of two multiprocessors, in a random order.
struct Devices : test::SavedSettings {
  Devices() {
    simt::set_quiet_reports(true);
    simt::settings().devices = 3;
    simt::settings().multiprocessors = 2;
    simt::settings().schedule = simt::Schedule::kRandom;
    simt::settings().late_peer_stores = true;
  }
  ~Devices() {
    simt::take_report();
    simt::set_quiet_reports(false);
    cudaSetDevice(0);  // minimal.cu leaves another one
  }
};

// A run of minimal.cu, or of a version of it.
Result run_of(std::vector<double> (*run)(int rows, int steps, int gpus)) {
  return [run] { return run(90, kSteps, 3); };
}

// A run of a persistent kernel or, unless it is null, of a version of it.
Result run_of(int lanes_per_row, void (*mutant)(PartsHere<double>, int) = nullptr) {
  const Csr<double> a = generate<double>("powerlaw:300x300,nnz=2400");
  const std::shared_ptr<Machine> machine = make_persistent(
      parts_of(a, Partition::kNonzeros, 3, Exchange::kStores), kOneProcess,
      PersistentOptions{.lanes_per_row = lanes_per_row, .blocks = 2, .function = mutant});
  machine->keep_factor(0.25);
  return [machine, x = first_x(a.cols, 3)] {
    machine->start(x);
    machine->run(kSteps);
    return machine->x_of(kSteps);
  };
}

// How many of the seeds find the mistake: the run fails, or its result is not the right one. Where
// races are looked for, it may be that each does. No more seeds are tried once `enough` have.
int seeds_that_find(const Result& run, const std::vector<double>& right, bool check_races,
                    int seeds, int enough = 20) {
  int found = 0;
  simt::settings().check_races = check_races;
  for (int seed = 1; seed <= seeds && found < enough; ++seed) {
    simt::settings().seed = static_cast<std::uint64_t>(seed);
    try {
      found += !test::same_bits(run(), right);
    } catch (const std::exception&) {
      ++found;
    }
  }
  simt::settings().check_races = false;
  return found;
}

}  // namespace

TEST_CASE("persistent: every mistake is found by one of 20 seeds, and by the check of races",
          "[10]") {
  const Devices devices;
  constexpr int kRows = 4, kTiles = 0;  // lanes per row
// The name of a mistake, and a run with it.
#define OF_PROGRAM(name) std::pair(#name, run_of(name::run))
#define OF_TILES(name) std::pair(#name, run_of(kTiles, name::persistent_tiles_kernel<true, double>))
#define OF_ROWS(name) std::pair(#name, run_of(kRows, name::persistent_rows_kernel<4, double>))
  struct Group {
    Result right;
    std::vector<std::pair<const char*, Result>> mistakes;
    // Without the check of races found only where plain stores are late.
    std::vector<std::pair<const char*, Result>> late_mistakes;
    // No races: atomic operations alone.
    std::vector<std::pair<const char*, Result>> of_atomics = {};
  };
  const Group groups[] = {
      {run_of(no_mistake::run),
       {OF_PROGRAM(flag_before_data), OF_PROGRAM(no_barrier_before_flag), OF_PROGRAM(step_before),
        OF_PROGRAM(one_buffer), OF_PROGRAM(forgotten_neighbour), OF_PROGRAM(ghosts_in_wrong_order)},
       {OF_PROGRAM(relaxed_flag), OF_PROGRAM(fence_of_the_device_only)}},
      {run_of(kTiles),
       {OF_TILES(arrival_before_data), OF_TILES(step_before_fast), OF_TILES(own_step_before)},
       {OF_TILES(relaxed_arrival)}},
      {run_of(kRows),
       {OF_ROWS(step_before_fast), OF_ROWS(own_step_before), OF_ROWS(one_buffer_of_rows)},
       {OF_ROWS(relaxed_arrival), OF_ROWS(relaxed_warps_done)}},
      {run_of(solver::run),
       {OF_PROGRAM(solver_no_wait_for_ghosts), OF_PROGRAM(solver_own_step_before)},
       {OF_PROGRAM(solver_relaxed_flag)},
       // The second is found where one block is held back.
       {OF_PROGRAM(solver_half_a_sum), OF_PROGRAM(solver_one_set_of_words)}},
  };
  for (const Group& group : groups) {
    const std::vector<double> right = group.right();
    CHECK(seeds_that_find(group.right, right, false, 5) == 0);
    if (simt::is_instrumented()) CHECK(seeds_that_find(group.right, right, true, 1) == 0);
    for (const auto& [name, run] : group.of_atomics) {
      CAPTURE(name);
      CHECK(seeds_that_find(run, right, false, 20, 1) == 1);
    }
    for (const bool late : {false, true}) {
      for (const auto& [name, run] : late ? group.late_mistakes : group.mistakes) {
        if (late && !simt::is_instrumented()) {
          WARN(
              "skipped: " << name
                          << ": plain stores can be late in the instrumented build (COUNT=1) only");
          continue;
        }
        CAPTURE(name);
        CHECK(seeds_that_find(run, right, false, 20, 1) == 1);
        if (simt::is_instrumented()) CHECK(seeds_that_find(run, right, true, 3) == 3);
      }
    }
  }
  // No load is early here: the check of races alone finds a wait that does not acquire, and a word
  // that does not release what its block has read.
  if (!simt::is_instrumented()) return;
  CHECK(seeds_that_find(run_of(relaxed_wait::run), groups[0].right(), true, 3) == 3);
  CHECK(seeds_that_find(run_of(solver_relaxed_word::run), groups[3].right(), true, 3) == 3);
}

}  // namespace spmv::multigpu

#endif
