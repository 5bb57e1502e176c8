// Runs litmus tests on a GPU: gpu --list prints their names, gpu NAME [RUNS] runs one and prints
//   NAME right|wrong VERDICT RUNS_WITH_WRONG_RESULTS/RUNS MOST_WRONG_RESULTS [error]
// ./run.sh runs all, each in a process of its own and with a limit of time, since some hang.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host.cuh"
#include "lanes.cuh"
#include "limits.cuh"
#include "memory.cuh"

int main(int argc, char** argv) {
  const bool list = argc < 2 || std::strcmp(argv[1], "--list") == 0;
  const int runs = argc > 2 ? std::atoi(argv[2]) : 20;
  for (const litmus::Program& program : litmus::programs()) {
    if (list) {
      std::puts(program.name);
    } else if (std::strcmp(argv[1], program.name) == 0) {
      int wrong_runs = 0, most = 0;
      std::string error;
      for (int run = 0; run < runs && error.empty(); ++run) {
        try {
          const int count = program.run();
          wrong_runs += count > 0;
          most = std::max(most, count);
        } catch (const std::exception& failure) {
          error = failure.what();
        }
      }
      std::printf("%s,%s,%s,%d,%d,%d,\"%s\"\n", program.name,
                  program.is_right() ? "right" : "wrong",
                  !error.empty()   ? "error"
                  : wrong_runs > 0 ? "wrong results"
                                   : "right results",
                  wrong_runs, runs, most, error.c_str());
      std::fflush(stdout);
      std::_Exit(0);
    }
  }
}
