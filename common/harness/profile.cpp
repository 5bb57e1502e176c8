#include "harness/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#ifndef SPMV_CUDA
#include "simt/shared_memory.hpp"
#endif

namespace spmv {

double sectors_a_request(const simt::AccessCounts& t) {
  return t.requests ? static_cast<double>(t.sectors) / static_cast<double>(t.requests) : NAN;
}

// --- From simt ----------------------------------------------------------------------------------

#ifndef SPMV_CUDA
namespace {

simt::SourceLine source_of(const void* pc) {
  simt::SourceLine source = simt::find_sources({pc}).front();
  const std::string root = std::string(SPMV_SOURCE_DIR) + "/";
  if (source.file.starts_with(root)) source.file = source.file.substr(root.size());
  return source;
}

}  // namespace

std::vector<Traffic> traffic_by_array(const simt::Profile& profile) {
  std::map<std::tuple<std::string, simt::Space, simt::Access>, Traffic> sums;
  for (const auto& [key, counts] : profile.accesses) {
    if (key.space == simt::Space::kNone) continue;
    Traffic& sum = sums[{key.array, key.space, key.access}];
    sum.array = key.array;
    sum.space = to_string(key.space);
    sum.access = to_string(key.access);
    sum += counts;
  }
  std::vector<Traffic> traffic;
  for (auto& [key, sum] : sums) traffic.push_back(std::move(sum));
  return traffic;
}

Profile make_profile(const simt::Profile& profile, const std::string& gpu) {
  std::vector<const void*> pcs;
  for (const auto& [key, counts] : profile.accesses) pcs.push_back(key.pc);
  simt::find_sources(pcs);  // all at once

  Profile result;
  result.gpu = gpu;
  std::map<const void*, std::size_t> order;
  for (const void* const kernel : profile.order) {
    order.emplace(kernel, order.size());
    result.kernels.push_back({profile.kernels.at(kernel), simt::kernel_name(kernel)});
  }
  // By kernel, then in the order of the source.
  std::map<std::tuple<std::size_t, std::string, unsigned, std::string, simt::Access>, LineTraffic>
      sums;
  for (const auto& [key, counts] : profile.accesses) {
    const simt::SourceLine source = source_of(key.pc);
    LineTraffic& sum =
        sums[{order.at(key.kernel), source.file, source.line, key.array, key.access}];
    sum.kernel = simt::kernel_name(key.kernel);
    sum.file = source.file;
    sum.line = source.line;
    sum.traffic.array = key.array;
    sum.traffic.space = to_string(key.space);
    sum.traffic.access = to_string(key.access);
    sum.traffic += counts;
  }
  for (auto& [key, sum] : sums) result.lines.push_back(std::move(sum));
  return result;
}
#endif

// --- As text ------------------------------------------------------------------------------------

namespace {

std::string short_array(const std::string& array) {
  return array.substr(array.rfind(':') + 1);  // without a namespace
}

std::vector<std::string> read_lines(const std::string& file) {
  std::ifstream in(file.starts_with("/") ? file : std::string(SPMV_SOURCE_DIR) + "/" + file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

// The functions that hold the lines, as first and last line (from 1 on): from the declaration that
// begins at the margin above, with what belongs to it, to the next brace at the margin.
std::vector<std::pair<unsigned, unsigned>> functions_with(const std::vector<std::string>& text,
                                                          const std::set<unsigned>& lines) {
  const auto begins_at_margin = [&](std::size_t i) {
    return !text[i].empty() && text[i][0] != ' ' && text[i][0] != '}' && text[i][0] != '#' &&
           !text[i].starts_with("//");
  };
  std::vector<std::pair<unsigned, unsigned>> found;
  for (const unsigned line : lines) {
    if (line == 0 || line > text.size()) continue;
    if (!found.empty() && line <= found.back().second) continue;
    std::size_t first = line - 1;
    while (first > 0 && !begins_at_margin(first)) --first;
    while (first > 0 && begins_at_margin(first - 1) && text[first - 1].back() != ';') --first;
    std::size_t last = line - 1;
    while (last + 1 < text.size() && !text[last].starts_with("}")) ++last;
    found.emplace_back(first + 1, last + 1);
  }
  return found;
}

std::string ratio(double a, double b, const char* nothing = "") {
  return b == 0 ? nothing : fmt::format("{:.2f}", a / b);
}

constexpr const char* kColumns = "{:>9} {:>6} {:>11} {:>7}  {:<24}";

std::string describe(const Traffic& t) {
  const auto n = static_cast<double>(t.requests);
  std::string what = t.access + " " + short_array(t.array);
  std::string asked, fewest;
  if (t.space == "global") {
    asked = ratio(static_cast<double>(t.sectors), n);
    fewest = ratio(static_cast<double>(t.ideal_sectors), n);
  } else if (t.space == "shared") {
    asked = ratio(static_cast<double>(t.passes), n);
    fewest = ratio(static_cast<double>(t.ideal_passes), n);
    what = t.access + " shared " + short_array(t.array);
  } else {
    what = short_array(t.array);
  }
  return fmt::format(kColumns, t.requests, fmt::format("{:.1f}", static_cast<double>(t.lanes) / n),
                     asked, fewest, what);
}

void print_source(std::ostream& out, const std::vector<const LineTraffic*>& lines) {
  std::map<std::string, std::map<unsigned, std::vector<const Traffic*>>> files;
  for (const LineTraffic* line : lines) files[line->file][line->line].push_back(&line->traffic);
  const std::string none = fmt::format(kColumns, "", "", "", "", "");
  for (const auto& [file, by_line] : files) {
    const std::vector<std::string> text =
        file.empty() ? std::vector<std::string>{} : read_lines(file);
    out << fmt::format(kColumns, "requests", "lanes", "per request", "fewest", "")
        << (file.empty() ? "(no debug information)" : file) << '\n';
    std::set<unsigned> touched;
    for (const auto& [line, traffic] : by_line) touched.insert(line);
    if (text.empty()) {
      for (const auto& [line, traffic] : by_line) {
        for (const Traffic* t : traffic) out << describe(*t) << fmt::format("{:>4}\n", line);
      }
    }
    for (const auto& [first, last] : functions_with(text, touched)) {
      for (unsigned line = first; line <= last; ++line) {
        std::string source = fmt::format("{:>4}  {}", line, text[line - 1]);
        source.erase(source.find_last_not_of(' ') + 1);
        const auto it = by_line.find(line);
        if (it == by_line.end()) {
          if (source.find("// exercise: ") == std::string::npos) out << none << source << '\n';
          continue;
        }
        bool is_first = true;
        for (const Traffic* t : it->second) {
          const std::string row = describe(*t) + (std::exchange(is_first, false) ? source : "");
          out << row.substr(0, row.find_last_not_of(' ') + 1) << '\n';
        }
      }
    }
  }
}

std::string megabytes(double sectors) {
  const double mb = sectors * 32 / 1e6;
  return fmt::format("{:.{}f} MB", mb, mb < 1 ? 3 : mb < 100 ? 2 : 0);
}

}  // namespace

void print_profile(std::ostream& out, const Profile& profile) {
  for (const KernelProfile& kernel : profile.kernels) {
    std::vector<const LineTraffic*> lines;
    simt::AccessCounts sum;
    std::uint64_t atomics = 0, most_on_one = 0, conflicts = 0;
    for (const LineTraffic& line : profile.lines) {
      if (line.kernel != kernel.kernel) continue;
      lines.push_back(&line);
      const Traffic& t = line.traffic;
      conflicts += t.passes - t.ideal_passes;
      if (t.space != "global") continue;
      sum += t;
      if (t.access == "atomic") {
        atomics += t.lanes;
        most_on_one = std::max(most_on_one, t.max_same_address);
      }
    }
    const auto sectors = static_cast<double>(sum.sectors);
    out << fmt::format("\n{}: {} launch{} of {} blocks of {} threads\n", kernel.kernel,
                       kernel.launches, kernel.launches == 1 ? "" : "es",
                       kernel.blocks.parts / std::max<std::uint64_t>(kernel.launches, 1),
                       kernel.lanes.parts / std::max<std::uint64_t>(kernel.blocks.parts, 1));
    if (sum.requests > 0) {
      out << fmt::format(
          "  global memory: {} requests of {:.1f} lanes, {} asked for, {:.0f}% of it used; {} "
          "sectors and {} lines of 128 bytes for each that could do\n",
          sum.requests, static_cast<double>(sum.lanes) / static_cast<double>(sum.requests),
          megabytes(sectors), 100 * static_cast<double>(sum.bytes_used) / (32 * sectors),
          ratio(sectors, static_cast<double>(sum.ideal_sectors), "-"),
          ratio(static_cast<double>(sum.lines), static_cast<double>(sum.ideal_lines), "-"));
      out << fmt::format(
          "  an {}'s caches, by a model: {} reach the L2, {} are read from DRAM, "
          "{} are written\n",
          profile.gpu, megabytes(static_cast<double>(sum.l2_sectors)),
          megabytes(static_cast<double>(sum.dram_sectors)),
          megabytes(static_cast<double>(kernel.dram_write_sectors)));
    }
    if (atomics > 0) {
      out << fmt::format("  atomics: {}, at most {} lanes of a request on one address\n", atomics,
                         most_on_one);
    }
    if (kernel.barriers > 0 || conflicts > 0) {
      out << fmt::format(
          "  barriers: {}; bank conflicts of shared memory: {} passes more than needed\n",
          kernel.barriers, conflicts);
    }
    out << fmt::format(
        "  busiest over average: {:.2f} of lanes (accesses), {:.2f} of warps, {:.2f} of blocks "
        "(requests)\n\n",
        kernel.lanes.unevenness(), kernel.warps.unevenness(), kernel.blocks.unevenness());
    print_source(out, lines);
  }
}

}  // namespace spmv
