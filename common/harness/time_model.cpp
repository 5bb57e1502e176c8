#include "harness/time_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "harness/time_model_parameters.hpp"

#ifndef SPMV_CUDA
#include "simt/cache_model.hpp"
#include "simt/profile.hpp"
#include "simt/shared_memory.hpp"
#endif

namespace spmv {

#ifndef SPMV_CUDA
std::vector<Work> work_of(const simt::Profile& profile) {
  std::vector<Work> all;
  for (const void* const function : profile.order) {
    const simt::KernelCounts& k = profile.kernels.at(function);
    Work w;
    w.function = simt::kernel_name(function);
    w.launches = static_cast<double>(k.launches);
    w.blocks = static_cast<double>(k.blocks.parts);
    w.warps = static_cast<double>(k.warps.parts);
    w.shared_bytes = static_cast<double>(k.shared_bytes);
    w.barriers = static_cast<double>(k.barriers);
    w.draws = static_cast<double>(k.draws);
    w.hottest_address = static_cast<double>(k.hottest_address);
    w.hottest_counter = static_cast<double>(k.hottest_counter);
    w.longest_item = static_cast<double>(k.longest_item);
    w.written_sectors = static_cast<double>(k.dram_write_sectors);
    for (const auto& [key, counts] : profile.accesses) {
      if (key.kernel != function) continue;
      const auto requests = static_cast<double>(counts.requests);
      if (key.space == simt::Space::kShared) {
        w.shared_requests += requests;
        w.shared_passes += static_cast<double>(counts.passes);
      } else if (key.space == simt::Space::kNone) {
        const bool is_shuffle =
            key.access == simt::Access::kWarpOperation && key.array != "__syncwarp";
        w.shuffles += is_shuffle ? requests : 0;
      } else {
        w.requests += requests;
        w.lines += static_cast<double>(counts.lines);
        w.l2_sectors += static_cast<double>(counts.l2_sectors);
        w.dram_sectors += static_cast<double>(counts.dram_sectors);
        if (key.access == simt::Access::kLoad) {
          w.loads += requests;
          w.load_sectors += static_cast<double>(counts.sectors);
          w.l2_loads += static_cast<double>(counts.l2_sectors);
        } else if (key.access == simt::Access::kAtomic) {
          w.atomics += static_cast<double>(counts.addresses);
        }
      }
    }
    w.atomics = std::max(0.0, w.atomics - w.draws);
    all.push_back(std::move(w));
  }
  return all;
}

namespace {

constexpr double kL2Share = 0.5;               // a footprint of so much of the L2 stays there
constexpr double kDramLatency = 2;             // of that of the L2
constexpr double kReservedSharedBytes = 1024;  // of each block, by the system
constexpr double kAllRegisters = 65536;        // of a multiprocessor

// The parameters that counts are multiplied with, in the order of TimeParameters::each.
enum Term {
  kL2Byte,
  kDramByte,
  kLine,
  kInstruction,
  kSharedPass,
  kAtomic,
  kSameAddress,
  kSameCounter,
  kItem,
  kLoad,
  kL2Load,
  kSharedLoad,
  kBarrier,
  kTerms
};
struct TermInfo {
  const char* parameter;
  const char* limit;  // of an estimate, where its time is most
};
constexpr const char *kLaunches = "launches", *kLatency = "latency";
constexpr TermInfo kTermInfo[kTerms] = {{"l2_byte", "L2 bandwidth"},
                                        {"dram_byte", "DRAM bandwidth"},
                                        {"line", "L1 lines"},
                                        {"instruction", "instructions"},
                                        {"shared_pass", "shared memory"},
                                        {"atomic", "atomics"},
                                        {"same_address", "atomics"},
                                        {"same_counter", "atomics"},
                                        {"item", kLatency},
                                        {"load", kLatency},
                                        {"l2_load", kLatency},
                                        {"shared_load", kLatency},
                                        {"barrier", "barriers"}};

// What the parameters are multiplied with, of one function and launch.
struct Terms {
  double launches = 0;
  std::array<double, kTerms> counts{};
  double uneven = 0;      // requests of the busiest warp, by those of the average one
  double in_turn = 0;     // warps' waits one after the other, as multiples of an average warp's
  double most_warps = 0;  // that a multiprocessor holds
};

const TimeParameters* find_parameters(std::string_view gpu) {
  const auto* const found = std::find_if(std::begin(kTimeParameters), std::end(kTimeParameters),
                                         [&](const TimeParameters& p) { return gpu == p.gpu; });
  return found == std::end(kTimeParameters) ? nullptr : found;
}

// Times of what overlaps: with exponent 1 their sum, with a large one the largest.
double combined(std::initializer_list<double> times, double exponent) {
  double sum = 0;
  for (const double us : times) sum += std::pow(us, exponent);
  return std::pow(sum, 1 / exponent);
}

const MachineCode& machine_code_of(std::string_view function) {
  const auto* const found =
      std::find_if(std::begin(kMachineCode), std::end(kMachineCode), [&](const MachineCode& code) {
        return function.substr(0, function.find('<')) == code.function;
      });
  return found == std::end(kMachineCode) ? kMachineCode[0] : *found;
}

// The part of a product's bytes that the product before has not left in the L2.
double missing_share(const std::vector<Work>& work, const simt::Gpu& gpu) {
  double footprint = 0;
  for (const Work& w : work) {
    footprint = std::max(footprint, 32 * (w.dram_sectors + w.written_sectors));
  }
  return std::clamp(footprint / (kL2Share * static_cast<double>(gpu.l2_bytes)) - 1, 0.0, 1.0);
}

// Blocks that a multiprocessor holds at once.
double resident_blocks(const Work& w, double registers, const simt::Gpu& gpu) {
  // Registers are allocated in groups of 8 per thread.
  const double warps_by_registers = std::floor(kAllRegisters / (std::ceil(registers / 8) * 8 * 32));
  const double warps_per_block = w.warps / w.blocks;
  double resident = std::min<double>(
      gpu.blocks, std::floor(std::min(gpu.threads / 32.0, warps_by_registers) / warps_per_block));
  if (w.shared_bytes > 0) {
    resident = std::min(resident, std::floor(static_cast<double>(gpu.shared_bytes) /
                                             (w.shared_bytes + kReservedSharedBytes)));
  }
  return std::max(resident, 1.0);
}

Terms terms_of(const Work& w, double missing, const simt::Gpu& gpu) {
  const MachineCode& code = machine_code_of(w.function);
  const bool is_single = w.function.find("float") != std::string::npos;
  const double n = w.launches, sms = gpu.multiprocessors, blocks = w.blocks / n;
  const double resident = resident_blocks(w, code.registers[is_single], gpu);
  const double waves = std::ceil(blocks / (resident * sms));
  const double busy = std::min(sms, blocks) * n;  // multiprocessors, and launches
  Terms t;
  t.launches = n;
  t.most_warps =
      std::min(resident * w.warps / w.blocks, std::ceil(w.warps / n / std::min(sms, blocks)));
  // Draws are loads: a warp waits for them.
  t.uneven = w.longest_item * w.warps / std::max(w.requests + w.shared_requests, 1.0) +
             (w.draws > 0 ? 1 : 0);
  // Average warps one after the other, and in one wave the busiest.
  t.in_turn = waves - 1 + std::max(t.uneven, 1.0);
  // A wait is as long as the slowest of its loads.
  const double in_flight = code.in_flight[is_single], waits = w.loads / in_flight;
  const double hit = w.load_sectors > 0 ? 1 - w.l2_loads / w.load_sectors : 1;
  const double l2_waits = waits * (1 - std::pow(hit, in_flight));
  const double latency = 1 + (kDramLatency - 1) * missing;
  auto& c = t.counts;
  c[kL2Byte] = 32 * w.l2_sectors / n;
  c[kDramByte] = 32 * w.dram_sectors / n * missing;
  c[kLine] = w.lines / busy;
  c[kInstruction] = (w.requests + w.shuffles) / busy;
  c[kSharedPass] = w.shared_passes / busy;
  c[kAtomic] = w.atomics / n;
  c[kSameAddress] = w.hottest_address / n;
  c[kSameCounter] = w.hottest_counter / n;
  c[kItem] = waves * std::max(1.0, w.draws / w.warps) * latency;
  c[kLoad] = t.in_turn * (waits + w.draws) / w.warps;
  c[kL2Load] = t.in_turn * (l2_waits + w.draws) / w.warps * latency;
  c[kSharedLoad] = t.in_turn * w.shared_requests / w.warps;
  c[kBarrier] = t.in_turn * w.barriers / w.blocks;
  return t;
}

std::vector<Terms> terms_of(const std::vector<Work>& work, const simt::Gpu& gpu) {
  const double missing = missing_share(work, gpu);
  std::vector<Terms> all;
  for (const Work& w : work) all.push_back(terms_of(w, missing, gpu));
  return all;
}

// One launch, from the times of its terms.
double function_us(const std::array<double, kTerms>& us, double exponent) {
  // Every byte from DRAM passes the L2, so that the slower of both counts.
  const double bytes = std::max(us[kL2Byte], us[kDramByte]);
  const double streams = combined({bytes, us[kLine], us[kInstruction], us[kSharedPass]}, kStreams);
  const double waiting = us[kItem] + us[kLoad] + us[kL2Load] + us[kSharedLoad];
  return combined(
      {streams, us[kAtomic], us[kSameAddress], us[kSameCounter], waiting + us[kBarrier]}, exponent);
}

std::string refusal_of(const std::string& kernel, const std::vector<Work>& work,
                       const simt::Gpu& gpu) {
  if (!find_parameters(gpu.name)) {
    return fmt::format("the time model has no parameters of an {}", gpu.full_name);
  }
  // A submission is named after the kernel that it stands for.
  const std::string_view name =
      kernel.starts_with("my_") ? std::string_view(kernel).substr(3) : std::string_view(kernel);
  for (const Refusal& refusal : kRefusals) {
    if (name == refusal.kernel) return refusal.reason;
  }
  if (work.empty()) return "its kernels are not counted";
  return {};
}

}  // namespace

Estimate estimate_time(const std::string& kernel, const std::vector<Work>& work,
                       const simt::Gpu& gpu) {
  Estimate estimate;
  estimate.gpu = gpu.name;
  estimate.gpu_full_name = gpu.full_name;
  estimate.refusal = refusal_of(kernel, work, gpu);
  if (!estimate.refusal.empty()) {
    estimate.limit = "-";
    return estimate;
  }
  const TimeParameters& p = *find_parameters(gpu.name);
  std::map<std::string, double> sums;
  sums[kLaunches] = p.launch - p.dependent;
  double longest = 0, most_warps = 0;
  estimate.us = p.launch - p.dependent;
  for (const Terms& t : terms_of(work, gpu)) {
    std::array<double, kTerms> us = t.counts;
    for (int i = 0; i < kTerms; ++i) us[i] *= p.each[i];
    estimate.us += t.launches * (p.dependent + function_us(us, p.exponent));
    for (int i = 0; i < kTerms; ++i) sums[kTermInfo[i].limit] += t.launches * us[i];
    // The first item of a launch, which the smallest function has, counts as launch.
    sums[kLaunches] += t.launches * (p.dependent + p.each[kItem]);
    sums[kLatency] -= t.launches * p.each[kItem];
    const double waiting = us[kLoad] + us[kL2Load] + us[kSharedLoad];
    if (t.uneven > 2) longest += t.launches * waiting * t.uneven / t.in_turn;
    most_warps = std::max(most_warps, t.most_warps);
  }
  const auto limit = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
  estimate.limit = limit->first;
  if (p.is_measured) {
    // (The last interval is for limits without one of their own.)
    const auto* interval =
        std::find_if(std::begin(kIntervals), std::end(kIntervals) - 1,
                     [&](const Interval& i) { return estimate.limit == i.limit; });
    estimate.low = estimate.us * interval->low;
    estimate.high = estimate.us * interval->high;
  }
  if (estimate.limit == kLatency && longest > limit->second / 2) estimate.limit = "longest row";
  estimate.detail = estimate.limit;
  if (estimate.limit == kLatency) {
    estimate.detail += fmt::format(": {:.0f} of {} warps", most_warps, gpu.threads / 32);
  }
  return estimate;
}

void write_terms(std::istream& in, std::ostream& out, const simt::Gpu& gpu) {
  nlohmann::ordered_json heads = nlohmann::json::array();
  for (const TermInfo& info : kTermInfo) heads.push_back({info.parameter, info.limit});
  out << heads.dump() << '\n';
  for (std::string line; std::getline(in, line);) {
    std::vector<Work> work;
    for (const nlohmann::json& json : nlohmann::json::parse(line)) {
      Work& w = work.emplace_back();
      w.function = json.at("function");
      for (const auto& [name, quantity] : kQuantities) w.*quantity = json.at(name);
    }
    nlohmann::ordered_json functions = nlohmann::json::array();
    for (const Terms& t : terms_of(work, gpu)) {
      functions.push_back({t.launches});
      for (const double count : t.counts) functions.back().push_back(count);
    }
    nlohmann::ordered_json answer{{"functions", functions}};
    if (find_parameters(gpu.name)) {
      const Estimate estimate = estimate_time("", work, gpu);
      answer["us"] = estimate.us;
      answer["limit"] = estimate.limit;
    }
    out << answer.dump() << '\n';
  }
}
#endif

std::string to_text(const Estimate& e) {
  if (!e.refusal.empty()) return "-";
  const auto brief = [](double us) { return fmt::format("{:.{}f}", us, us < 9.95 ? 1 : 0); };
  return brief(e.us) + (e.high > 0 ? fmt::format(" ({} to {})", brief(e.low), brief(e.high)) : "");
}

std::string describe(const Estimate& e) {
  if (!e.refusal.empty()) return "no estimate: " + e.refusal;
  return fmt::format("{} us on an {}, {}", to_text(e), e.gpu_full_name, e.detail);
}

nlohmann::ordered_json to_json(const Estimate& e) {
  if (!e.refusal.empty()) return {{"gpu", e.gpu}, {"no_estimate", e.refusal}};
  nlohmann::ordered_json json{{"gpu", e.gpu}, {"us", e.us}, {"limit", e.detail}};
  if (e.high > 0) json["interval_us"] = {e.low, e.high};
  return json;
}

nlohmann::ordered_json to_json(const Work& w) {
  nlohmann::ordered_json json{{"function", w.function}};
  for (const auto& [name, quantity] : kQuantities) json[name] = w.*quantity;
  return json;
}

}  // namespace spmv
