#include "harness/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "harness/records.hpp"
#include "harness/table.hpp"

#ifdef SPMV_CUDA
#include <cusparse.h>
#endif

namespace spmv {
namespace {

using nlohmann::ordered_json;

std::string command_output(const std::string& command) {
  std::string output;
  if (FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    std::array<char, 256> buffer;
    while (std::fgets(buffer.data(), buffer.size(), pipe)) output += buffer.data();
    pclose(pipe);
  }
  return output.substr(0, output.find('\n'));
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

// When a run began, to the millisecond, so that ids sort by age; then the process, since several
// may begin within one.
std::string run_id() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  const long long count = now.time_since_epoch().count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z-{:07}", fmt::gmtime(count / 1000), count % 1000,
                     getpid());
}

[[maybe_unused]] std::string version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// --- Tables -------------------------------------------------------------------------------------

std::string step_name(const KernelInfo& kernel) {
  return kernel.step ? fmt::format("{:02}", kernel.step) : std::string("--");
}

std::string label(const Record& record) {
  return record.choice.empty() ? record.kernel.name
                               : fmt::format("{} ({})", record.kernel.name, record.choice);
}

std::string status(const Record& record) {
  return record.unsuitable ? "unsuitable" : "WRONG";
}

double gflops(const Record& record, double milliseconds) {
  return record.flops / milliseconds / 1e6;
}

// Sums of a kernel's traffic with global memory, by what it is part of.
struct TrafficSums {
  simt::AccessCounts matrix, x, stores, all;
};

TrafficSums sum_traffic(const Record& record) {
  TrafficSums sums;
  for (const Traffic& traffic : record.traffic) {
    if (traffic.space != "global") continue;
    sums.all += traffic;
    if (traffic.access != "load") {
      sums.stores += traffic;
    } else {
      (traffic.array == "x" ? sums.x : sums.matrix) += traffic;
    }
  }
  return sums;
}

std::string short_name(const MatrixReport& report) {
  const std::string& name = report.matrix.source.name;
  return name.substr(0, name.find(','));
}

std::string ratio(double a, double b) {
  return b == 0 ? "-" : fmt::format("{:.2f}", a / b);
}
std::string percent(double a, double b) {
  return b == 0 ? "-" : fmt::format("{:.0f}%", 100 * a / b);
}

// The unit of a table's bytes: kB where no kernel needs a megabyte.
struct Unit {
  const char* name;
  double bytes;
};
Unit unit_of(const MatrixReport& report) {
  double most = 0;
  for (const Record& record : report.records) most = std::max(most, record.compulsory_bytes);
  return most < 1e6 ? Unit{"kB", 1e3} : Unit{"MB", 1e6};
}

// What the estimates are of, and why some are missing.
void print_estimate_legend(std::ostream& out, std::span<const MatrixReport> reports) {
  std::vector<std::string> refused;
  const Estimate* any = nullptr;
  for (const MatrixReport& report : reports) {
    for (const Record& record : report.records) {
      if (!record.estimate) continue;
      if (record.estimate->refusal.empty()) {
        any = &*record.estimate;
        continue;
      }
      const std::string why =
          fmt::format("No estimate for {}: {}.\n", record.kernel.name, record.estimate->refusal);
      if (std::find(refused.begin(), refused.end(), why) == refused.end()) refused.push_back(why);
    }
  }
  if (any) {
    out << fmt::format(
        "est. us: of a warm product on an {}{};\n"
        "limit: what takes most of it (common/harness/TIME_MODEL.md).\n",
        any->gpu_full_name,
        reports.size() == 1 ? ", and the interval of 80% of measured times" : "");
    if (any->high == 0) {
      out << "Without an interval: scaled from the H200 by data sheets, never compared with a "
             "time.\n";
    }
  }
  for (const std::string& why : refused) out << why;
}

void print_cpu_table(std::ostream& out, const MatrixReport& report) {
  const Unit unit = unit_of(report);
  const std::string name = unit.name;
  std::vector<std::string> header{"step", "kernel", "est. us", "limit"};
  header.insert(header.end(), {"needed " + name, "moved " + name, "used"});
  header.insert(header.end(), {"matrix", "x", "stores", "lanes"});
  Table table(header);
  for (const Record& record : report.records) {
    std::vector<std::string> row{step_name(record.kernel), record.kernel.name};
    const auto add = [&row](const std::vector<std::string>& cells) {
      row.insert(row.end(), cells.begin(), cells.end());
    };
    const std::string needed = number(record.compulsory_bytes / unit.bytes);
    if (!record.verified) {
      add({status(record)});
    } else if (!record.estimate) {
      add({record.warm ? number(gflops(record, record.warm->median)) + " GFLOP/s" : "",
           record.warm ? "on this CPU" : "", needed});
    } else {
      const TrafficSums sums = sum_traffic(record);
      const double moved = static_cast<double>(sums.all.sectors) * 32;
      add({to_text(*record.estimate), record.estimate->limit, needed, number(moved / unit.bytes),
           percent(static_cast<double>(sums.all.bytes_used), moved),
           number(sectors_a_request(sums.matrix)), number(sectors_a_request(sums.x)),
           number(sectors_a_request(sums.stores)),
           number(static_cast<double>(sums.all.lanes) / static_cast<double>(sums.all.requests))});
    }
    row.resize(header.size());
    table.add(std::move(row));
  }
  table.print(out, 2);
  print_estimate_legend(out, {&report, 1});
}

const char* const kCpuLegend =
    "needed: A and x read once, y written once. moved: 32-byte sectors asked for, before caches.\n"
    "used: part of them that the warp used. matrix, x, stores: sectors per request of a warp.\n"
    "lanes: active in a request, of 32.\n";

double best_vendor_time(const MatrixReport& report) {
  double best = std::numeric_limits<double>::infinity();
  for (const Record& record : report.records) {
    const KernelInfo& kernel = record.kernel;
    if (record.verified && record.warm && kernel.format == "CSR" &&
        kernel.name.starts_with("cusparse_")) {
      best = std::min(best, record.warm->median);
    }
  }
  return best;
}

// A column of a GPU's table; `wide` ones are shown on request, since the others fill a screen.
struct Column {
  const char* header;
  bool wide;
  std::string text;
};

std::vector<Column> gpu_columns(const Record& record, const MatrixReport& report, double vendor) {
  const Quartiles& warm = *record.warm;
  const double bandwidth = record.compulsory_bytes / warm.median / 1e6;
  const bool host = record.kernel.runs_on == RunsOn::kHost;
  const bool compared = !host && std::isfinite(vendor);
  const double gain = vendor - warm.median;
  const double cost = record.setup_ms + record.preprocess_ms;
  return {
      {"setup ms", true, number(record.setup_ms)},
      {"prep ms", true, number(record.preprocess_ms)},
      {"warm us", false, number(1e3 * warm.median)},
      {"quartiles", true, fmt::format("{}-{}", number(1e3 * warm.lower), number(1e3 * warm.upper))},
      {"cold us", false, record.cold ? number(1e3 * record.cold->median) : ""},
      {"overlapped us", false, record.overlapped ? number(1e3 * record.overlapped->median) : ""},
      {"GFLOP/s", false, number(gflops(record, warm.median))},
      {"GB/s", true, number(bandwidth)},
      {"of copy", false, host ? "" : percent(bandwidth, report.copy_gb_per_s)},
      {"of baseline", false,
       host || !report.baseline ? "" : percent(report.baseline->warm.median, warm.median)},
      {"x cuSPARSE", false, compared ? ratio(vendor, warm.median) : ""},
      {"pays off", true, compared && gain > 0 ? fmt::format("{:.0f}", std::ceil(cost / gain)) : ""},
  };
}

void print_gpu_table(std::ostream& out, const MatrixReport& report, bool wide) {
  out << fmt::format("Copy bandwidth of the device: {:.0f} GB/s.", report.copy_gb_per_s);
  if (report.baseline) {
    out << fmt::format(" Row-free baseline, warm: {} us; cold: {} us.",
                       number(1e3 * report.baseline->warm.median),
                       number(1e3 * report.baseline->cold.median));
  }
  out << "\nWarm: inputs in the L2 as far as they fit, products back to back; cold: L2 flushed; "
         "overlapped:\nas warm, but each product starts while the one before it ends (kernels that "
         "can). of copy:\ncompulsory bytes per second, warm, as a share of the copy bandwidth.\n";
  if (wide) {
    out << "GB/s: compulsory bytes, warm. Pays off: products after which setup and preprocess are "
           "won back\nagainst the best cuSPARSE CSR.\n";
  }
  const double vendor = best_vendor_time(report);
  std::vector<std::string> headers{"step", "kernel"};
  Record empty;
  empty.warm.emplace();
  for (const Column& column : gpu_columns(empty, report, vendor)) {
    if (wide || !column.wide) headers.emplace_back(column.header);
  }
  Table table(headers);
  for (const Record& record : report.records) {
    std::vector<std::string> row{step_name(record.kernel),
                                 wide ? label(record) : record.kernel.name};
    if (!record.verified) {
      row.push_back(status(record));
    } else if (record.warm) {
      for (Column& column : gpu_columns(record, report, vendor)) {
        if (wide || !column.wide) row.push_back(std::move(column.text));
      }
    }
    row.resize(headers.size());
    table.add(std::move(row));
  }
  table.print(out, 2);
}

// What kernels chose for the matrix (lanes per row, widths).
void print_choices(std::ostream& out, const MatrixReport& report) {
  constexpr std::size_t kWidth = 100;
  std::string line = "Chosen for this matrix:";
  bool any = false;
  for (const Record& record : report.records) {
    if (record.choice.empty()) continue;
    const std::string words = fmt::format(" {}: {}", record.kernel.name, record.choice);
    if (any) line += ";";
    if (line.size() + words.size() > kWidth) {
      out << line << "\n";
      line = " ";
    }
    line += words;
    any = true;
  }
  if (any) out << line << ".\n";
}

// On the first screen a refusal is said without its remedy, so that it fits. `where`: on which of
// several matrices.
void print_failures(std::ostream& out, const MatrixReport& report, bool first_screen = false,
                    const std::string& where = "") {
  for (const Record& record : report.records) {
    if (record.failure.empty()) continue;
    const bool brief = first_screen && record.unsuitable;
    out << fmt::format(
        "{} {}: {}\n", record.kernel.name,
        !where.empty()      ? where
        : record.unsuitable ? "does not suit this matrix"
                            : "FAILED",
        brief ? record.failure.substr(0, record.failure.find("; ")) : record.failure);
  }
}

// `value` of `longest` as a bar.
std::string bar(double value, double longest, int width) {
  const auto length = static_cast<std::size_t>(width * value / longest + 0.5);
  return fmt::format("{:<{}}", std::string(length, '#'), width);
}

// The effective bandwidth (compulsory bytes per second) as a fraction of the GPU's copy bandwidth;
// no value where nothing was measured.
std::optional<double> share_of_copy(const Record& record, const MatrixReport& report) {
  if (!record.verified || record.kernel.runs_on == RunsOn::kHost || !record.warm) return {};
  return record.compulsory_bytes / record.warm->median / 1e6 / report.copy_gb_per_s;
}

// What stands beside a kernel for one matrix. The bar is of `longest`; where several matrices are
// side by side, 0, there is no room for it.
std::vector<std::string> rung(const Record& record, const MatrixReport& report, bool gpu,
                              double longest) {
  const std::string state = !record.verified ? status(record) : record.warm ? "on the CPU" : "";
  std::vector<std::string> cells;
  double length = 0;
  if (gpu) {
    const std::optional<double> share = share_of_copy(record, report);
    cells = {record.verified && record.warm ? number(1e3 * record.warm->median) : "",
             share ? percent(*share, 1) : state};
    length = share.value_or(0);
  } else if (!record.verified || !record.estimate) {
    cells = {"", state, ""};
  } else {
    const std::string us = to_text(*record.estimate);  // with an interval
    cells = {
        longest > 0 ? us : us.substr(0, us.find(' ')), record.estimate->limit,
        ratio(static_cast<double>(sum_traffic(record).all.sectors) * 32, record.compulsory_bytes)};
    length = record.estimate->us;
  }
  if (longest > 0) cells.push_back(bar(length, longest, gpu ? 14 : 8));
  return cells;
}

void print_ladders(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu) {
  const bool alone = reports.size() == 1;
  double longest = 0;
  if (alone) {
    longest = gpu ? 1 : 1e-9;
    for (const Record& record : reports[0].records) {
      longest = std::max(longest, share_of_copy(record, reports[0]).value_or(0));
      if (record.estimate) longest = std::max(longest, record.estimate->us);
    }
  }
  std::vector<std::string> header{"step", "kernel", "idea"};
  std::vector<std::string> titles(header.size());
  for (const MatrixReport& report : reports) {
    titles.resize(header.size());
    titles.push_back(alone ? "" : short_name(report));
    const std::string moved = alone ? "moved/needed" : "moved";
    for (const std::string& name : gpu ? std::vector<std::string>{"us", "of copy"}
                                       : std::vector<std::string>{"est. us", "limit", moved}) {
      header.push_back(name);
    }
  }
  if (alone) header.emplace_back();
  Table table(header);
  for (std::size_t k = 0; k < reports[0].records.size(); ++k) {
    const KernelInfo& kernel = reports[0].records[k].kernel;
    std::vector<std::string> row{step_name(kernel), kernel.name, kernel.idea};
    for (const MatrixReport& report : reports) {
      const std::vector<std::string> cells = rung(report.records[k], report, gpu, longest);
      row.insert(row.end(), cells.begin(), cells.end());
    }
    table.add(std::move(row));
  }
  table.print(out, 3, titles);
  if (gpu) {
    out << fmt::format(
        "us: median of warm products. of copy: bytes needed (A and x read once, y written once)\n"
        "per second, as a share of this GPU's copy bandwidth of {:.0f} GB/s.\n",
        reports[0].copy_gb_per_s);
    return;
  }
  print_estimate_legend(out, reports);
  out << (alone ? "Bars: est. us; a shorter one is faster.\nmoved/needed: " : "moved: ")
      << "bytes in the 32-byte sectors that warps request, before caches,\n"
         "per byte the format needs (A and x read once, y written once).\n";
}

}  // namespace

// --- Environment --------------------------------------------------------------------------------

Environment describe_environment(int argc, char** argv) {
  Environment e;
  const char* reason = std::getenv("SPMV_BACKEND_REASON");
  e.reason = reason ? reason : "";
  e.processor = processor_name();
  e.threads = omp_get_max_threads();
#ifdef SPMV_CUDA
  e.backend = "cuda";
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    throw InputError(fmt::format("no GPU that CUDA can use: {}; BACKEND=cpu needs none",
                                 cudaGetErrorString(error)));
  }
  cudaDeviceProp properties;
  device::check(cudaGetDeviceProperties(&properties, device), "device properties");
  e.device = properties.name;
  e.arch = 10 * properties.major + properties.minor;
  device::check(cudaGetDeviceCount(&e.devices), "device count");
  int number = 0;
  device::check(cudaDriverGetVersion(&number), "driver version");
  e.driver = command_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader");
  if (e.driver.empty()) e.driver = "CUDA " + version(number);
  device::check(cudaRuntimeGetVersion(&number), "runtime version");
  e.cuda = version(number);
  int major = 0, minor = 0, patch = 0;
  cusparseGetProperty(MAJOR_VERSION, &major);
  cusparseGetProperty(MINOR_VERSION, &minor);
  cusparseGetProperty(PATCH_LEVEL, &patch);
  e.cusparse = fmt::format("{}.{}.{}", major, minor, patch);
#else
  e.backend = "cpu";
  e.device = e.processor;
#endif
#ifdef __clang__
  e.compiler = fmt::format("clang {}.{}", __clang_major__, __clang_minor__);
#else
  e.compiler = fmt::format("g++ {}.{}", __GNUC__, __GNUC_MINOR__);
#endif
  const char* commit = std::getenv("SPMV_COMMIT");
  e.commit =
      commit ? commit
             : command_output("git -C '" SPMV_SOURCE_DIR "' describe --always --dirty --abbrev=12");
  if (e.commit.empty()) e.commit = "unknown";
  // The program by its name alone, and without the file for the records: where things lay says
  // nothing of the measurement.
  // SPMV_RUN and SPMV_COMMAND: of a program that starts several processes and makes one run of
  // them.
  const char* run = std::getenv("SPMV_RUN");
  e.run = run ? run : run_id();
  if (const char* command = std::getenv("SPMV_COMMAND")) {
    e.command = command;
    return e;
  }
  const std::string program = argv[0];
  e.command = program.substr(program.find_last_of('/') + 1);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      ++i;
    } else if (!word.starts_with("--json=")) {
      e.command += " " + word;
    }
  }
  return e;
}

void print_environment(std::ostream& out, const Environment& e) {
  out << "backend: " << e.backend << (e.reason.empty() ? "" : " (" + e.reason + ")") << " | "
      << e.device;
  if (!e.cuda.empty()) {
    out << fmt::format(" | driver {}, CUDA {}, cuSPARSE {}", e.driver, e.cuda, e.cusparse);
  }
  out << std::endl;
}

// --- Screen -------------------------------------------------------------------------------------

void print_matrix(std::ostream& out, const MatrixFacts& matrix) {
  const MatrixSource& source = matrix.source;
  out << fmt::format("\n{} ({}): {} rows, {} columns, {} nonzeros, {}\n", source.name,
                     to_string(source.origin), matrix.rows, matrix.cols, matrix.nnz,
                     matrix.precision);
  if (source.origin == MatrixSource::Origin::kStandIn) {
    out << "  a stand-in, generated as " << source.detail << ", since the file is not here\n";
  }
}

// What another order cost, where one was asked for. (On the CPU backend nothing is timed.)
void print_order(std::ostream& out, const MatrixReport& report) {
  if (report.permute_ms <= 0) return;
  out << fmt::format(
      "  renumbered in {:.0f} ms on this CPU; permuting the vectors takes {:.1f} us on the GPU\n",
      report.order_ms, 1e3 * report.permute_ms);
}

void print_report(std::ostream& out, const MatrixReport& report, bool gpu, bool wide) {
  print_matrix(out, report.matrix);
  print_order(out, report);
  if (gpu) {
    print_gpu_table(out, report, wide);
    if (!wide) print_choices(out, report);
  } else {
    out << kCpuLegend;
    print_cpu_table(out, report);
    print_choices(out, report);
  }
  print_failures(out, report);
  for (const Record& record : report.records) {
    if (record.verified && record.difference && record.difference->rows > 0) {
      out << fmt::format(
          "{}: two products differ in {} of {} rows, by at most {} ulp, {:.2g} of the error "
          "allowed\n",
          record.kernel.name, record.difference->rows, report.matrix.rows,
          record.difference->max_ulps, record.difference->max_of_bound);
    }
  }
  for (const Record& record : report.records) {
    if (record.profile.empty()) continue;
    out << fmt::format("\n=== {}\n", label(record));
    if (const auto& e = record.estimate; e && e->refusal.empty()) {
      out << fmt::format("{}: {} us, by the time model; limit: {}\n", e->gpu_full_name, to_text(*e),
                         e->detail);
    }
    print_profile(out, record.profile);
  }
}

void print_ladder(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu) {
  for (const MatrixReport& report : reports) {
    print_matrix(out, report.matrix);
    print_order(out, report);
  }
  print_ladders(out, reports, gpu);
  for (const MatrixReport& report : reports) {
    const bool several = reports.size() > 1;
    if (!several) print_choices(out, report);
    print_failures(out, report, true, several ? "on " + short_name(report) : "");
  }
}

void print_fastest(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu) {
  struct Timed {
    double us, low, high;
    std::string text;
  };
  for (const MatrixReport& report : reports) {
    std::vector<Timed> timed;
    for (const Record& record : report.records) {
      if (!record.verified || record.kernel.runs_on == RunsOn::kHost) continue;
      const std::string& name = record.kernel.name;
      if (gpu && record.warm) {
        const Quartiles& warm = *record.warm;
        timed.push_back({1e3 * warm.median, 1e3 * warm.lower, 1e3 * warm.upper,
                         fmt::format("{} {} ({} to {})", name, number(1e3 * warm.median),
                                     number(1e3 * warm.lower), number(1e3 * warm.upper))});
      } else if (!gpu && record.estimate && record.estimate->us > 0) {
        const Estimate& e = *record.estimate;
        timed.push_back({e.us, e.low, e.high, name + " " + to_text(e)});
      }
    }
    if (timed.empty()) continue;
    std::ranges::sort(timed, {}, &Timed::us);
    std::vector<std::string> ties;
    for (const Timed& other : std::span(timed).subspan(1)) {
      if (other.low <= timed[0].high) ties.push_back(other.text);
    }
    out << fmt::format("Fastest on {}, us: {}{}{}\n", short_name(report), timed[0].text,
                       ties.empty() ? "" : "; a tie, for intervals overlap:\n  ",
                       fmt::join(ties, ", "));
  }
}

void print_summary(std::ostream& out, const std::vector<MatrixReport>& reports, bool gpu) {
  out << (gpu ? "\nGFLOP/s, warm:\n"
              : "\nEstimated microseconds; for kernels that run on the CPU, its GFLOP/s:\n");
  std::vector<std::string> header{"step", "kernel"};
  for (const MatrixReport& report : reports) header.push_back(short_name(report));
  Table table(header);
  for (std::size_t k = 0; k < reports.front().records.size(); ++k) {
    const Record& first = reports.front().records[k];
    std::vector<std::string> row{step_name(first.kernel), first.kernel.name};
    for (const MatrixReport& report : reports) {
      const Record& record = report.records[k];
      if (!record.verified) {
        row.push_back(status(record));
      } else if (record.warm) {
        row.push_back(number(gflops(record, record.warm->median)) + (gpu ? "" : " GFLOP/s"));
      } else if (record.estimate) {
        row.push_back(to_text(*record.estimate));
      } else {
        row.push_back("ok");
      }
    }
    table.add(std::move(row));
  }
  table.print(out, 2);
}

void print_verdict(std::ostream& out, const std::vector<MatrixReport>& reports) {
  std::size_t results = 0, verified = 0, unsuitable = 0;
  for (const MatrixReport& report : reports) {
    for (const Record& record : report.records) {
      ++results;
      verified += record.verified;
      unsuitable += !record.verified && record.unsuitable;
    }
  }
  const std::size_t wrong = results - verified - unsuitable;
  out << "Verified against sums in long double: "
      << (verified < results ? fmt::format("{} of {} results", verified, results)
          : results == 1     ? "1 result"
                             : fmt::format("all {} results", results));
  if (unsuitable) out << fmt::format("; unsuitable: {}", unsuitable);
  if (wrong) out << fmt::format("; WRONG: {}", wrong);
  out << ".\n";
}

// --- Records ------------------------------------------------------------------------------------

void append_records(const std::string& path, const MatrixReport& report,
                    const Environment& environment) {
  Records records(environment);
  const auto add = [&](const KernelInfo& kernel, const std::string& choice) -> ordered_json& {
    return records.add("", kernel, choice, report.matrix);
  };
  for (const Record& record : report.records) {
    if (!record.verified) {
      records.add_outcome(record.kernel, report.matrix, record.unsuitable ? "refused" : "failed",
                          record.failure);
      continue;
    }
    ordered_json& line = add(record.kernel, record.choice);
    if (report.options.alpha != 1) line["alpha"] = report.options.alpha;
    if (report.options.beta != 0) line["beta"] = report.options.beta;
    for (const auto& [name, value] : kNumberColumns) line[name] = record.*value;
    if (report.order_ms > 0) line["order_ms"] = report.order_ms;
    if (report.permute_ms > 0) line["permute_ms"] = report.permute_ms;
    if (record.functions && record.kernel.runs_on == RunsOn::kDevice) {
      records.add_code(*record.functions);
    }
    if (record.warm) line["warm_ms"] = to_json(*record.warm);
    if (record.cold) line["cold_ms"] = to_json(*record.cold);
    if (record.overlapped) line["overlapped_ms"] = to_json(*record.overlapped);
    if (record.difference && record.difference->rows > 0) {
      line["difference"] = {{"rows", record.difference->rows},
                            {"max_ulps", record.difference->max_ulps},
                            {"max_of_bound", record.difference->max_of_bound}};
    }
    for (const Traffic& t : record.traffic) line["traffic"].push_back(to_json(t));
    if (record.estimate) line["estimates"].push_back(to_json(*record.estimate));
    add_profile(line, record.profile);
    for (const Work& work : record.work) line["work"].push_back(to_json(work));
  }
  if (report.baseline) {  // as a kernel, since it is measured as one
    KernelInfo info;
    info.name = "baseline";
    info.format = "CSR";
    ordered_json& line = add(info, "");
    line["warm_ms"] = to_json(report.baseline->warm);
    line["cold_ms"] = to_json(report.baseline->cold);
    line["copy_gb_per_s"] = report.copy_gb_per_s;
  }
  records.append_to(path);
}

// --- Progress -----------------------------------------------------------------------------------

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(const std::string& what) {
  const bool is_early = std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1);
  if (is_early || isatty(STDERR_FILENO) != 1) return;
  shown_ = true;
  fmt::print(stderr, "\r\033[K{}", what.substr(0, 78));
  std::fflush(stderr);
}

}  // namespace spmv
