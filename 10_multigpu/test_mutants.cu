// The tests of the tests: kernels with one mistake each (mutants.py), all of which must be found.
#ifndef SPMV_CUDA

#include <functional>
#include <memory>
#include <vector>

#include "10_multigpu/mutants.cuh"
#include "machine.hpp"
#include "simt/profile.hpp"
#include "sparse/generators.hpp"
#include "tests/bits.hpp"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"

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
Result run_of(PersistentKernel kernel, void (*mutant)(PartsHere<double>, int) = nullptr) {
  const Csr<double> a = generate<double>("powerlaw:300x300,nnz=2400");
  const std::shared_ptr<Machine> machine = make_persistent(
      parts_of(a, Partition::kNonzeros, 3, Exchange::kStores), kOneProcess,
      PersistentOptions{.kernel = kernel, .lanes_per_row = 4, .blocks = 2, .function = mutant});
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
  constexpr PersistentKernel kRows = PersistentKernel::kRows;
  constexpr PersistentKernel kTiles = PersistentKernel::kTiles;
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
       {{"flag_before_data", run_of(flag_before_data::run)},
        {"no_barrier_before_flag", run_of(no_barrier_before_flag::run)},
        {"step_before", run_of(step_before::run)},
        {"one_buffer", run_of(one_buffer::run)},
        {"forgotten_neighbour", run_of(forgotten_neighbour::run)},
        {"ghosts_in_wrong_order", run_of(ghosts_in_wrong_order::run)}},
       {{"relaxed_flag", run_of(relaxed_flag::run)},
        {"fence_of_the_device_only", run_of(fence_of_the_device_only::run)}}},
      {run_of(kTiles),
       {{"arrival_before_data",
         run_of(kTiles, arrival_before_data::persistent_tiles_kernel<true, double>)},
        {"step_before_fast",
         run_of(kTiles, step_before_fast::persistent_tiles_kernel<true, double>)},
        {"own_step_before",
         run_of(kTiles, own_step_before::persistent_tiles_kernel<true, double>)}},
       {{"relaxed_arrival",
         run_of(kTiles, relaxed_arrival::persistent_tiles_kernel<true, double>)}}},
      {run_of(kRows),
       {{"step_before_fast", run_of(kRows, step_before_fast::persistent_rows_kernel<4, double>)},
        {"own_step_before", run_of(kRows, own_step_before::persistent_rows_kernel<4, double>)},
        {"one_buffer_of_rows",
         run_of(kRows, one_buffer_of_rows::persistent_rows_kernel<4, double>)}},
       {{"relaxed_arrival", run_of(kRows, relaxed_arrival::persistent_rows_kernel<4, double>)},
        {"relaxed_warps_done",
         run_of(kRows, relaxed_warps_done::persistent_rows_kernel<4, double>)}}},
      {run_of(solver::run),
       {{"solver_no_wait_for_ghosts", run_of(solver_no_wait_for_ghosts::run)},
        {"solver_own_step_before", run_of(solver_own_step_before::run)}},
       {{"solver_relaxed_flag", run_of(solver_relaxed_flag::run)}},
       {{"solver_half_a_sum", run_of(solver_half_a_sum::run)},
        // Found where one block is held back.
        {"solver_one_set_of_words", run_of(solver_one_set_of_words::run)}}},
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
