// The tests of the tests: kernels with one mistake each (mutants.py), all of which must be found.
#ifndef SPMV_CUDA

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "10_multigpu/mutants.cuh"
#include "part.hpp"
#include "persistent.hpp"
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "sparse/generators.hpp"
#include "tests/catch.hpp"
#include "vectors.hpp"

namespace spmv::multigpu {
namespace {

using Kernel = void (*)(PartsHere<double>, int);

// How many of the seeds find the mistake: the kernel fails, or its result is not that of the kernel
// without it. Where races are looked for, it may be that each does.
int seeds_that_find(Kernel kernel, PersistentKernel without, bool check_races, int seeds) {
  const simt::Settings saved = simt::settings();
  simt::set_quiet_reports(true);
  const Csr<double> a = generate<double>("powerlaw:300x300,nnz=2400");
  const std::vector<double> x = first_x<double>(a.cols, 3);
  simt::settings().devices = 3;
  simt::settings().multiprocessors = 2;
  simt::settings().schedule = simt::Schedule::kRandom;
  simt::settings().late_peer_stores = true;
  const auto machine_of = [&](int count) {
    PersistentSetup setup;
    setup.kernel = without;
    setup.lanes_per_row = 4;
    setup.blocks = 2;
    auto machine = std::make_unique<PersistentMachine<double>>(
        parts_of(a, Partition::kNonzeros, count, Exchange::kStores), setup);
    machine->keep_factor(0.25);
    machine->start(x);
    return machine;
  };
  constexpr int kSteps = 5;
  const auto three = machine_of(3);
  three->run(kSteps);
  const std::vector<double> right = three->x_of(kSteps);
  int found = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    simt::settings().seed = static_cast<std::uint64_t>(seed);
    simt::settings().check_races = check_races;
    try {
      three->run(kSteps, kernel);
      const std::vector<double> y = three->x_of(kSteps);
      found += std::memcmp(y.data(), right.data(), y.size() * sizeof(double)) != 0;
    } catch (const std::exception&) {
      ++found;
    }
  }
  simt::take_report();
  simt::set_quiet_reports(false);
  simt::settings() = saved;
  return found;
}

}  // namespace

TEST_CASE("persistent: every mistake is found by one of 20 seeds, and by the check of races",
          "[10]") {
  enum Needs { kSchedules, kLateStores };
  struct Mistake {
    const char* name;
    Kernel kernel;
    PersistentKernel without = PersistentKernel::kSimple;
    Needs needs = kSchedules;
  };
  constexpr PersistentKernel kSimple = PersistentKernel::kSimple;
  constexpr PersistentKernel kRows = PersistentKernel::kRows;
  constexpr PersistentKernel kShares = PersistentKernel::kShares;
  const Mistake mistakes[] = {
      {"flag_before_data", flag_before_data::persistent_kernel<double>},
      {"relaxed_flag", relaxed_flag::persistent_kernel<double>, kSimple, kLateStores},
      {"fence_of_the_device_only", fence_of_the_device_only::persistent_kernel<double>, kSimple,
       kLateStores},
      {"no_barrier_before_flag", no_barrier_before_flag::persistent_kernel<double>},
      {"step_before", step_before::persistent_kernel<double>},
      {"one_buffer", one_buffer::persistent_kernel<double>},
      {"forgotten_neighbour", forgotten_neighbour::persistent_kernel<double>},
      {"ghosts_in_wrong_order", ghosts_in_wrong_order::persistent_kernel<double>},
      {"relaxed_arrival", relaxed_arrival::persistent_shares_kernel<true, double>, kShares,
       kLateStores},
      {"relaxed_arrival", relaxed_arrival::persistent_rows_kernel<4, double>, kRows, kLateStores},
      {"arrival_before_data", arrival_before_data::persistent_shares_kernel<true, double>, kShares},
      {"relaxed_warps_done", relaxed_warps_done::persistent_rows_kernel<4, double>, kRows,
       kLateStores},
      {"step_before_fast", step_before_fast::persistent_shares_kernel<true, double>, kShares},
      {"step_before_fast", step_before_fast::persistent_rows_kernel<4, double>, kRows},
      {"own_step_before", own_step_before::persistent_shares_kernel<true, double>, kShares},
      {"own_step_before", own_step_before::persistent_rows_kernel<4, double>, kRows},
      {"one_buffer_of_rows", one_buffer_of_rows::persistent_rows_kernel<4, double>, kRows},
  };
  for (const Mistake& mistake : mistakes) {
    if (mistake.needs == kLateStores && !simt::is_instrumented()) {
      WARN("skipped: " << mistake.name
                       << ": plain stores can be late in the instrumented build (COUNT=1) only");
      continue;
    }
    const int found = seeds_that_find(mistake.kernel, mistake.without, false, 20);
    CAPTURE(mistake.name, found);
    CHECK(found > 0);
    if (simt::is_instrumented()) {
      CHECK(seeds_that_find(mistake.kernel, mistake.without, true, 3) == 3);
    }
  }
}

}  // namespace spmv::multigpu

#endif
