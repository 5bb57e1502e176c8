// A step's own program: `spmv NAME --options`, beside the table of kernels that plain `spmv` makes.
//
// The common main reads the command line, options such as --matrix, --kernel and --json included;
// the step adds its own and does the work. In a .cpp of the step:
//
//   struct Stationary { double tolerance = 1e-9; };
//
//   const bool registered = add_command(
//       "stationary", "the stationary distribution of a Markov chain", [](CommandLine& options) {
//         auto own = std::make_shared<Stationary>();
//         options.add("--tolerance", own->tolerance, "...");
//         return [own](const CommandArguments& arguments) { return run(*own, arguments); };
//       });
//
// With `COMMANDS := stationary` before `include ../common/build/stage.mk`, the step's Makefile has
// `make stationary MATRIX=... PRECISION=... ARGS=...` as well. stage.mk links every .cu and .cpp of
// a step but its tests.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/options.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "sparse/load.hpp"

namespace spmv {

// What the common options say.
struct CommandArguments {
  std::vector<std::string> matrices;  // --matrix; empty if none was given
  std::string precision = "f64";      // --precision: "f32" or "f64"
  std::string kernels = "*";          // --kernel, for find_kernels(); "*" if it was not given
  std::string json;                   // --json; empty: no records
  double padding_limit = 3;           // --padding-limit
  std::string trace;                  // --trace; empty: nothing is recorded
  RunOptions run;                     // --alpha, --beta, --seed, --verify-only
  LoadOptions load;                   // --complex, --memory-limit, and with COO kept
  Environment environment;
};

// Returns the exit status: 0, or 1 when something is wrong. Input that cannot be used is an
// InputError, with which main() ends with 2.
using CommandBody = std::function<int(const CommandArguments&)>;

struct Command {
  std::string summary;
  std::function<CommandBody(CommandLine&)> declare;  // adds options, returns what is to be done
};

// Called while the program starts. Returns true.
bool add_command(std::string name, std::string summary,
                 std::function<CommandBody(CommandLine&)> declare);

// By name.
std::map<std::string, Command>& commands();

}  // namespace spmv
