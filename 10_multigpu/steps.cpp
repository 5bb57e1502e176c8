// Step 10: a few steps of an iteration on several GPUs, recorded: spmv steps --trace FILE, for the
// page of `make watch` and the lesson's picture. (For products, sizes and times: multigpu.cpp.)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "device/devices.hpp"
#include "gpus.hpp"
#include "harness/command.hpp"
#include "harness/output.hpp"
#include "harness/trace.hpp"
#include "harness/verify.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "persistent.hpp"
#include "report.hpp"
#include "vectors.hpp"

namespace spmv::multigpu {
namespace {

// What is recorded, by the words of multigpu's options: a way to exchange x, where the host
// launches every step, or a persistent kernel; and its idea.
const std::map<std::string, const char*> kWays{
    {"parts", "all the other parts of x are copied; streams wait for events"},
    {"packed", "entries that a GPU needs are packed and copied; streams wait for events"},
    {"stores", "a kernel stores entries into remote ghost entries; streams wait for events"},
    {"persistent-simple", "one kernel per GPU for all steps; a flag per neighbour and step"},
    {"persistent", "one kernel per GPU for all steps, balanced; an arrival per block and step"}};

struct Options {
  int gpus = 2;
  int steps = 2;
  std::vector<std::string> ways{"packed", "persistent-simple"};
};

// Where rows and entries of x are on each GPU, for those who read the trace: the row of the matrix
// of each row of the part, in the order in which they are stored, which of them are boundary rows,
// and the column of each entry of the local x (-1: padding).
template <typename T>
nlohmann::ordered_json describe(const std::vector<Part<T>>& parts) {
  nlohmann::ordered_json all;
  for (const Part<T>& part : parts) {
    std::vector<Index> rows(part.order);
    for (Index& row : rows) row += part.first_row;
    std::vector<Index> columns(rows);
    columns.resize(std::max<std::size_t>(columns.size(), part.local_cols), -1);
    for (const Halo& halo : part.halos) {
      std::copy(halo.columns.begin(), halo.columns.end(), columns.begin() + halo.ghost_begin);
    }
    all.push_back({{"rows", rows}, {"boundary", {0, part.boundary_rows}}, {"columns", columns}});
  }
  return all;
}

template <typename T>
bool record(const Options& options, const CommandArguments& arguments, const std::string& spec) {
  const Matrix<T> matrix = load_matrix<T>(spec, arguments.load);
  const Csr<T>& a = matrix.csr;
  require_square(spec, a.rows, a.cols);
  const std::vector<T> x = first_x<T>(a.cols, arguments.run.seed);
  const Kernel& kernel = *find_kernels("pcsr").front();  // the published one

  bool all_right = true;
  for (const std::string& name : options.ways) {
    const auto drive = kDrives.find(name);
    const bool is_persistent = drive != kDrives.end();
    const Exchange exchange = is_persistent ? Exchange::kStores : kExchanges.at(name);
    const std::vector<Part<T>> parts = parts_of(a, Partition::kNonzeros, options.gpus, exchange);
    Record found;
    found.kernel = kernel.info;
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
    // No norm: every step multiplies by 1.
    const auto record_and_judge = [&](auto machine, auto... how) {
      machine.keep_factor(1);
      machine.start(x);
      record_trace(found, arguments.run.trace_limit, [&] { machine.run(options.steps, how...); });
      const Reference reference =
          make_reference(a, T{1}, machine.x_of(options.steps - 1), T{0}, {});
      const std::vector<T> y = machine.x_of(options.steps);
      const Verdict verdict = verify(y, reference);
      found.verified = verdict.ok;
      if (!verdict.ok) found.failure = verdict.describe();
      note_wrong_rows(found, y, reference);
    };
    try {
      if (is_persistent) {
        record_and_judge(PersistentMachine<T>(parts, {std::get<PersistentKernel>(drive->second)}));
      } else {
        record_and_judge(Machine<T>(parts, kernel, Setup{exchange}), Drive::kLoop);
      }
    } catch (const device::DeviceError& error) {
      found.failure = error.what();
    }
    found.trace += ",\"parts\":" + describe(parts).dump();
    append_lines(arguments.trace, trace_line(found, matrix, arguments.run, arguments.precision));
    all_right &= found.verified;
    std::uint64_t requests = 0, sectors = 0, over_link = 0;
    for (const Traffic& traffic : found.traffic) {
      if (traffic.space == "shared") continue;
      requests += traffic.requests;
      sectors += traffic.sectors;
      if (traffic.space == "peer") over_link += traffic.sectors;
    }
    fmt::print("{} on {}, {}: {}; {} requests, {} sectors, {} of them over the link\n", name,
               matrix.source.name, found.choice,
               found.verified ? "verified" : "WRONG: " + found.failure, requests, sectors,
               over_link);
    if (!found.trace_is_cut) continue;
    fmt::print(stderr,
               "{}: the trace of {} on {} is cut; take a smaller matrix, or --trace-limit\n",
               arguments.trace, name, spec);
  }
  return all_right;
}

int run(const Options& options, const CommandArguments& arguments) {
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

[[maybe_unused]] const bool registered =
    add_command("steps", "record a few steps of an iteration on several GPUs", [](CLI::App& app) {
      auto own = std::make_shared<Options>();
      app.add_option("--gpus", own->gpus, "how many")->check(CLI::Range(1, kMaxGpus));
      app.add_option("--way", own->ways,
                     "how entries of x are exchanged: parts, packed, stores, persistent-simple, "
                     "persistent")
          ->delimiter(',')
          ->check(CLI::IsMember(kWays));
      app.add_option("--iterate", own->steps, "steps")->check(CLI::Range(1, 100));
      return [own](const CommandArguments& arguments) { return run(*own, arguments); };
    });

}  // namespace
}  // namespace spmv::multigpu
