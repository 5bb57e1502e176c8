// Step 10's own program: spmv multigpu --gpus 1,2,4 --exchange packed --iterate 100 --matrix ...
#include <iostream>

#include "harness/command.hpp"
#include "measure.hpp"

namespace spmv::multigpu {
namespace {

int run(Options options, CommandArguments arguments) {
  const bool on_gpus = arguments.environment.backend == "cuda";
  if (!arguments.trace.empty()) {
    throw InputError("multigpu: --trace is not for this command; use spmv steps --trace FILE");
  }
  if (arguments.precision == "f32") {
    throw InputError("multigpu: it multiplies in double precision: leave out --precision f32");
  }
  if (options.steps == 0) options.steps = on_gpus ? 100 : 10;
  print_environment(std::cout, arguments.environment);
  if (arguments.matrices.empty()) {
    arguments.matrices = {"stencil3d:128x128x128,points=27"};
    if (!on_gpus) arguments.matrices = {"stencil2d:120x100", "powerlaw:8000x8000,nnz=60000"};
  }
  measure(options, arguments);
  return 0;
}

[[maybe_unused]] const bool registered = add_command(
    "multigpu", "products on several GPUs, and iterations of them", [](CommandLine& line) {
      auto own = std::make_shared<Options>();
      line.add("--gpus", own->gpus, "how many, one count after the other: 1,2,4",
               {comma_separated(), between(1, kMaxGpus)});
      line.add("--partition", own->partitions,
               "what each GPU gets as much of: rows (PCSR-I), nonzeros (PCSR-II)",
               {comma_separated(), key_of(kPartitions)});
      line.add(
          "--exchange", own->exchanges,
          "how entries of x come to a GPU that needs them: none (it has all), parts and packed "
          "(copies, in a CUDA graph), stores (of persistent kernels)",
          {comma_separated(), key_of(kExchanges)});
      line.add("--iterate", own->steps,
               "steps of the iteration y = A x, x = factor y; 0: 100 on GPUs, 10 on the CPU "
               "backend",
               {between(0, 1000000)});
      return [own](const CommandArguments& arguments) { return run(*own, arguments); };
    });

}  // namespace
}  // namespace spmv::multigpu
