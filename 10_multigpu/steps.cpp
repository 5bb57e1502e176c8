// Step 10: a few steps of an iteration on several GPUs, recorded: spmv steps --trace FILE, for the
// page of `make watch` and the lesson's picture. (For products, sizes and times: multigpu.cpp.)
#include "steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "device/error.hpp"
#include "harness/command.hpp"
#include "harness/output.hpp"
#include "harness/trace.hpp"
#include "harness/verify.hpp"
#include "measure.hpp"
#include "vectors.hpp"

namespace spmv::multigpu {
namespace {

// What is recorded: a way to exchange x; and its idea.
const std::map<std::string, const char*> kWays{
    {"minimal", "one kernel per GPU for all steps; a flag per neighbour and step"},
    {"parts", "all the other parts of x are copied; streams wait for events"},
    {"packed", "entries that a GPU needs are packed and copied; streams wait for events"},
    {"persistent", "one kernel per GPU for all steps; an arrival per block and step"}};

struct StepsOptions {
  int gpus = 2;
  int steps = 2;
  std::vector<std::string> ways{"packed", "minimal"};
};

template <typename T>
Iteration<T> iteration_of(const std::string& way, const StepsOptions& options, const Csr<T>& a,
                          const std::vector<T>& x) {
  const bool is_persistent = way == "persistent";
  const Exchange exchange = is_persistent ? Exchange::kStores : kExchanges.at(way);
  const std::vector<Part<T>> parts = parts_of(a, Partition::kNonzeros, options.gpus, exchange);
  Iteration<T> iteration;
  for (const Part<T>& part : parts) {
    std::vector<Index> rows(part.order);
    for (Index& row : rows) row += part.first_row;
    std::vector<Index> columns(rows);
    columns.resize(std::max<std::size_t>(columns.size(), part.local_cols), -1);
    for (const Halo& halo : part.halos) {
      std::copy(halo.columns.begin(), halo.columns.end(), columns.begin() + halo.ghost_begin);
    }
    iteration.parts.push_back({rows, part.boundary_rows, columns});
  }
  const std::shared_ptr<Machine<T>> machine(
      make_machine(parts, *find_kernels("pcsr").front(), {exchange}).release());
  machine->start(x);
  iteration.run = [=, steps = options.steps] {
    machine->run(steps, is_persistent ? Drive::kPersistent : Drive::kLoop);
  };
  iteration.x_of = [machine](int k) { return machine->x_of(k); };
  return iteration;
}

template <typename T>
bool record(const StepsOptions& options, const CommandArguments& arguments,
            const std::string& spec) {
  const Matrix<T> matrix = load_matrix<T>(spec, arguments.load);
  const Csr<T>& a = matrix.csr;
  require_square(spec, a.rows, a.cols);
  const std::vector<T> x = first_x<T>(a.cols, arguments.run.seed);

  bool all_right = true;
  for (const std::string& name : options.ways) {
    Iteration<T> iteration;
    if (name != "minimal") {
      iteration = iteration_of(name, options, a, x);
    } else if constexpr (sizeof(T) == 8) {
      iteration = iteration_of_minimal(options.gpus, options.steps, a, x);
    } else {
      throw InputError("--way minimal multiplies in double precision: leave out --precision f32");
    }
    Record found;
    found.kernel = find_kernels("pcsr").front()->info;
    found.kernel.step = 10;
    found.kernel.name = name;
    found.kernel.idea = kWays.at(name);
    found.choice = fmt::format("{} GPUs, {} step{}", options.gpus, options.steps,
                               options.steps == 1 ? "" : "s");
    // Of each step: the matrix and x once, y once.
    found.compulsory_bytes =
        options.steps *
        static_cast<double>(a.nnz() * (sizeof(T) + sizeof(Index)) +
                            (a.rows + options.gpus) * sizeof(Index) + 2ull * a.rows * sizeof(T));
    try {
      record_trace(found, arguments.run.trace_limit, iteration.run);
      const Reference reference =
          make_reference(a, T{1}, iteration.x_of(options.steps - 1), T{0}, {});
      const std::vector<T> y = iteration.x_of(options.steps);
      const Verdict verdict = verify(y, reference);
      found.verified = verdict.ok;
      if (!verdict.ok) found.failure = verdict.describe();
      note_wrong_rows(found, y, reference);
    } catch (const device::DeviceError& error) {
      found.failure = error.what();
    }
    nlohmann::ordered_json parts;
    for (const PlacesOnGpu& part : iteration.parts) {
      parts.push_back(
          {{"rows", part.rows}, {"boundary", {0, part.boundary_rows}}, {"columns", part.columns}});
    }
    found.trace += ",\"parts\":" + parts.dump();
    append_lines(arguments.trace, trace_line(found, matrix, arguments.run, arguments.precision));
    all_right &= found.verified;
    Traffic all, over_link;
    for (const Traffic& traffic : found.traffic) {
      if (traffic.space == "shared") continue;
      all.requests += traffic.requests;
      all.sectors += traffic.sectors;
      if (traffic.space == "peer") over_link.sectors += traffic.sectors;
    }
    fmt::print("{} on {}, {}: {}; {} requests, {} sectors, {} of them over the link\n", name,
               matrix.source.name, found.choice,
               found.verified ? "verified" : "WRONG: " + found.failure, all.requests, all.sectors,
               over_link.sectors);
    if (!found.trace_is_cut) continue;
    fmt::print(stderr,
               "{}: the trace of {} on {} is cut; take a smaller matrix, or --trace-limit\n",
               arguments.trace, name, spec);
  }
  return all_right;
}

int run(const StepsOptions& options, const CommandArguments& arguments) {
  if (arguments.environment.backend == "cuda") {
    throw InputError("steps: only the CPU backend records; use make BACKEND=cpu");
  }
  if (arguments.trace.empty()) throw InputError("steps: where to? give --trace FILE");
  bool all_right = true;
  const std::vector<std::string> matrices =
      arguments.matrices.empty() ? std::vector<std::string>{"stencil2d:16x16"} : arguments.matrices;
  for (const std::string& matrix : matrices) {
    all_right &= arguments.precision == "f32" ? record<float>(options, arguments, matrix)
                                              : record<double>(options, arguments, matrix);
  }
  return all_right ? 0 : 1;
}

[[maybe_unused]] const bool registered = add_command(
    "steps", "record a few steps of an iteration on several GPUs", [](CommandLine& line) {
      auto own = std::make_shared<StepsOptions>();
      line.add("--gpus", own->gpus, "how many", {between(1, kMaxGpus)});
      line.add("--way", own->ways,
               "how entries of x are exchanged: minimal, parts, packed, persistent",
               {comma_separated(), key_of(kWays)});
      line.add("--iterate", own->steps, "steps", {between(1, 100)});
      return [own](const CommandArguments& arguments) { return run(*own, arguments); };
    });

}  // namespace
}  // namespace spmv::multigpu
