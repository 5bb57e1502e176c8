// How tests run kernels: more than once, or unchecked.
#pragma once

#include "tests/catch.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::test {

// The CPU backend's settings are again in the end what they were before one of these.
struct SavedSettings {
#ifndef SPMV_CUDA
  SavedSettings() = default;
  SavedSettings(const SavedSettings&) = delete;
  SavedSettings& operator=(const SavedSettings&) = delete;
  ~SavedSettings() {
    simt::settings() = saved;
  }
  const simt::Settings saved = simt::settings();
#endif
};

// Calls check() under the schedules of the CPU backend in which lanes run in different orders,
// twice at random; on a GPU, whose order is as it comes, as many times.
template <typename Check>
void under_every_schedule(Check&& check) {
#ifdef SPMV_CUDA
  for (int run = 0; run < 5; ++run) check();
#else
  const SavedSettings saved;
  for (const simt::Schedule schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom,
        simt::Schedule::kRandom, simt::Schedule::kLockstep}) {
    simt::settings().schedule = schedule;
    ++simt::settings().seed;
    CAPTURE(static_cast<int>(schedule), simt::settings().seed);
    check();
  }
#endif
}

// While one of these lives, the CPU backend lets kernels read what was never written, and race:
// for kernels that are wrong on purpose.
struct Unchecked : SavedSettings {
#ifndef SPMV_CUDA
  Unchecked() {
    simt::settings().check_uninitialised = false;
    simt::settings().check_races = false;
  }
#endif
};

}  // namespace spmv::test
