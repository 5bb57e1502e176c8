// How tests run kernels: more than once, or unchecked.
#pragma once

#include "tests/catch.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::test {

// Calls check() under the schedules of the CPU backend in which lanes run in different orders,
// twice at random; on a GPU, whose order is as it comes, as many times.
template <typename Check>
void under_every_schedule(Check&& check) {
#ifdef SPMV_CUDA
  for (int run = 0; run < 5; ++run) check();
#else
  struct Restore {
    simt::Settings saved = simt::settings();
    ~Restore() { simt::settings() = saved; }
  } restore;
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
struct Unchecked {
#ifndef SPMV_CUDA
  Unchecked() {
    simt::settings().check_uninitialised = false;
    simt::settings().check_races = false;
  }
  ~Unchecked() {
    simt::settings() = saved;
  }
  simt::Settings saved = simt::settings();
#endif
};

}  // namespace spmv::test
