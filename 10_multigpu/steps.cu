// Step 10: a few steps of an iteration on several GPUs, recorded: spmv steps --trace FILE, for the
// page of `make watch` and the lesson's picture; in double precision, as minimal.cu. (For products,
// sizes and times: measure.cpp.) Only the CPU backend records.
#ifndef SPMV_CUDA
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cuda/atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "device/devices.hpp"
#include "harness/command.hpp"
#include "harness/output.hpp"
#include "harness/trace.hpp"
#include "harness/verify.hpp"
#include "measure.hpp"

// Its headers are included above.
namespace minimal {
#include "minimal.cu"
}

namespace spmv::multigpu {
namespace {

// What is recorded: a way to exchange x; and its idea.
const std::map<std::string, const char*> kWays{
    {"minimal", "one kernel per GPU for all steps; a flag per neighbour and step"},
    {"parts", "all the other parts of x are copied; streams wait for events"},
    {"packed", "entries that a GPU needs are packed and copied; streams wait for events"},
    {"persistent", "one kernel per GPU for all steps; an arrival per block and step"}};

struct Iteration {
  std::vector<std::string> parts;  // of the trace: where rows and entries of x are on each GPU
  std::function<void()> run;
  std::function<std::vector<double>(int k)> x_of;  // as Machine's
};

// rows: numbers in the matrix, in the order in which they are stored, boundary rows first. columns:
// of each entry of the local x; -1: it has none.
std::string describe_part(const std::vector<Index>& rows, Index boundary_rows,
                          const std::vector<Index>& columns) {
  return fmt::format(R"({{"rows":[{}],"boundary":[0,{}],"columns":[{}]}})", fmt::join(rows, ","),
                     boundary_rows, fmt::join(columns, ","));
}

struct StepsOptions {
  int gpus = 2;
  int steps = 2;
  std::vector<std::string> ways{"packed", "minimal"};
};

// --- minimal.cu ---------------------------------------------------------------------------------

// Names in the trace for what minimal.cu has allocated.
void name_memory(const minimal::Part& part) {
  simt::name_allocation(part.order, "order");
  simt::name_allocation(part.receivers, "receivers");
  simt::name_allocation(part.row_offsets, "row_offsets");
  simt::name_allocation(part.column_indices, "column_indices");
  simt::name_allocation(part.values, "values");
  simt::name_allocation(part.x[part.gpu], "x");
  simt::name_allocation(part.flags[part.gpu], "flags");
}

template <typename T>
std::vector<T> copied(const T* from, std::size_t count) {
  std::vector<T> to(count);
  device::check(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDefault), "copying");
  return to;
}

Iteration iteration_of_minimal(int gpus, int steps, const Csr<double>& a,
                               const std::vector<double>& x) {
  const minimal::Csr csr{a.row_offsets, a.column_indices, a.values};
  device::available_devices(gpus);
  device::connect_devices(gpus);
  const std::vector<int> cuts = minimal::cut_by_nonzeros(csr, gpus);
  const std::vector<minimal::Part> parts = minimal::make_parts(csr, cuts, x);
  Iteration iteration;
  for (const minimal::Part& part : parts) {
    const std::vector<double> known = copied(part.x[part.gpu], part.columns);  // else NaN
    std::vector<Index> columns(part.columns, -1);
    for (Index i = 0; i < a.cols; ++i) {
      if (known[i] == x[i]) columns[i] = i;
    }
    iteration.parts.push_back(
        describe_part(copied(part.order, part.rows), part.boundary_rows, columns));
    name_memory(part);
  }
  iteration.run = [=] { minimal::iterate(parts, cuts, steps); };
  iteration.x_of = [=](int k) {
    std::vector<double> whole;
    for (const minimal::Part& part : parts) {
      const auto own = copied(part.x[part.gpu] + k % 2 * part.columns + cuts[part.gpu], part.rows);
      whole.insert(whole.end(), own.begin(), own.end());
    }
    return whole;
  };
  return iteration;
}

// --- All ways -----------------------------------------------------------------------------------

Iteration iteration_of(const std::string& way, const StepsOptions& options, const Csr<double>& a,
                       const std::vector<double>& x) {
  if (way == "minimal") return iteration_of_minimal(options.gpus, options.steps, a, x);
  const Exchange exchange = way == "persistent" ? Exchange::kStores : kExchanges.at(way);
  std::vector<Part> parts = parts_of(a, Partition::kNonzeros, options.gpus, exchange);
  Iteration iteration;
  for (const Part& part : parts) {
    std::vector<Index> rows(part.order);
    for (Index& row : rows) row += part.first_row;
    std::vector<Index> columns(rows);
    columns.resize(std::max<std::size_t>(columns.size(), part.local_cols), -1);
    for (const Halo& halo : part.halos) {
      std::copy(halo.columns.begin(), halo.columns.end(), columns.begin() + halo.ghost_begin);
    }
    iteration.parts.push_back(describe_part(rows, part.boundary_rows, columns));
  }
  const std::shared_ptr<Machine> machine =
      make_machine(std::move(parts), *find_kernels("pcsr").front(), exchange, kOneProcess,
                   /*as_graph=*/false);
  machine->start(x);
  iteration.run = [=, steps = options.steps] { machine->run(steps); };
  iteration.x_of = [machine](int k) { return machine->x_of(k); };
  return iteration;
}

bool record(const std::string& way, const StepsOptions& options, const CommandArguments& arguments,
            const Matrix<double>& matrix) {
  const Csr<double>& a = matrix.csr;
  const Iteration iteration = iteration_of(way, options, a, first_x(a.cols, arguments.run.seed));
  Record found;
  found.kernel = find_kernels("pcsr").front()->info;
  found.kernel.step = 10;
  found.kernel.name = way;
  found.kernel.idea = kWays.at(way);
  found.choice =
      fmt::format("{} GPUs, {} step{}", options.gpus, options.steps, options.steps == 1 ? "" : "s");
  // Of each step: the matrix and x once, y once.
  found.compulsory_bytes =
      options.steps * static_cast<double>(csr_bytes(a) + (options.gpus - 1) * sizeof(Index) +
                                          2ull * a.rows * sizeof(double));
  try {
    record_trace(found, arguments.run.trace_limit, "", iteration.run);
    const Reference reference = make_reference(a, 1.0, iteration.x_of(options.steps - 1), 0.0, {});
    const std::vector<double> y = iteration.x_of(options.steps);
    const Verdict verdict = verify(y, reference);
    found.verified = verdict.ok;
    if (!verdict.ok) found.failure = verdict.describe();
    note_wrong_rows(found, y, reference);
  } catch (const device::DeviceError& error) {
    found.failure = error.what();
  }
  found.trace += fmt::format(R"(,"parts":[{}])", fmt::join(iteration.parts, ","));
  append_lines(arguments.trace, trace_line(found, matrix, arguments.run, arguments.precision));
  std::uint64_t over_link = 0;
  for (const Traffic& traffic : found.traffic) {
    if (traffic.space == "peer") over_link += traffic.sectors;
  }
  fmt::print("{} on {}, {}: {}; {} sectors over the link\n", way, matrix.source.name, found.choice,
             found.verified ? "verified" : "WRONG: " + found.failure, over_link);
  if (found.trace_is_cut) {
    fmt::print(stderr,
               "{}: the trace of {} on {} is cut; take a smaller matrix, or --trace-limit\n",
               arguments.trace, way, matrix.source.name);
  }
  return found.verified;
}

int run(const StepsOptions& options, const CommandArguments& arguments) {
  if (arguments.trace.empty()) throw InputError("steps: where to? give --trace FILE");
  if (arguments.precision == "f32") {
    throw InputError("steps: it multiplies in double precision: leave out --precision f32");
  }
  bool all_right = true;
  const std::vector<std::string> matrices =
      arguments.matrices.empty() ? std::vector<std::string>{"stencil2d:16x16"} : arguments.matrices;
  for (const std::string& spec : matrices) {
    const Matrix<double> matrix = load_matrix<double>(spec, arguments.load);
    require_square(spec, matrix.csr.rows, matrix.csr.cols);
    for (const std::string& way : options.ways)
      all_right &= record(way, options, arguments, matrix);
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
#endif
