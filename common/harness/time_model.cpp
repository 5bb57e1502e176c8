#include "harness/time_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
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

// The terms of one function, in microseconds.
struct Term {
  const char* limit;
  double us;
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
  double footprint = 0;
  for (const Work& w : work) {
    footprint = std::max(footprint, 32 * (w.dram_sectors + w.written_sectors));
  }
  // The part of the bytes that the product before has not left in the L2.
  const double l2 = kL2Share * static_cast<double>(gpu.l2_bytes);
  const double missing = std::clamp(footprint / l2 - 1, 0.0, 1.0);
  const double latency = 1 + (kDramLatency - 1) * missing;

  std::array<Term, 9> sums{{{"launches", p.launch - p.dependent},
                            {"L2 bandwidth", 0},
                            {"DRAM bandwidth", 0},
                            {"L1 lines", 0},
                            {"instructions", 0},
                            {"shared memory", 0},
                            {"atomics", 0},
                            {"latency", 0},
                            {"barriers", 0}}};
  double longest = 0, most_warps = 0, total = p.launch - p.dependent;
  for (const Work& w : work) {
    const double n = w.launches, sms = gpu.multiprocessors;
    const double warps_per_block = w.warps / w.blocks, blocks = w.blocks / n;
    const MachineCode& code = machine_code_of(w.function);
    const bool is_single = w.function.find("float") != std::string::npos;
    // Registers are allocated in groups of 8 per thread.
    const double warps_by_registers =
        std::floor(kAllRegisters / (std::ceil(code.registers[is_single] / 8) * 8 * 32));
    double resident = std::min<double>(
        gpu.blocks, std::floor(std::min(gpu.threads / 32.0, warps_by_registers) / warps_per_block));
    if (w.shared_bytes > 0) {
      resident = std::min(resident, std::floor(static_cast<double>(gpu.shared_bytes) /
                                               (w.shared_bytes + kReservedSharedBytes)));
    }
    resident = std::max(resident, 1.0);
    const double waves = std::ceil(blocks / (resident * sms));
    const double busy = std::min(sms, blocks) * n;  // multiprocessors, and launches
    const double all_requests = w.requests + w.shared_requests;
    // Of the busiest warp, as multiples of the average one. Draws are loads: it waits for them.
    double uneven = w.longest_item * w.warps / std::max(all_requests, 1.0);
    if (w.draws > 0) uneven += 1;
    const double in_flight = code.in_flight[is_single];
    const double waits = w.loads / in_flight;
    // A wait is as long as the slowest of its loads.
    const double hit = w.load_sectors > 0 ? 1 - w.l2_loads / w.load_sectors : 1;
    const double l2_waits = waits * (1 - std::pow(hit, in_flight));
    const double items = waves * std::max(1.0, w.draws / w.warps);
    const double one_warp =
        ((waits + w.draws) * p.load + (l2_waits + w.draws) * latency * p.l2_load +
         w.shared_requests * p.shared_load) /
        w.warps;
    // Average warps one after the other, and in one wave the busiest.
    const double in_turn = waves - 1 + std::max(uneven, 1.0);
    const std::array<double, 11> terms{
        0,
        32 * w.l2_sectors / n * p.l2_byte,
        32 * w.dram_sectors / n * missing * p.dram_byte,
        w.lines / busy * p.line,
        (w.requests + w.shuffles) / busy * p.instruction,
        w.shared_passes / busy * p.shared_pass,
        w.atomics / n * p.atomic,
        items * latency * p.item + in_turn * one_warp,
        in_turn * w.barriers / w.blocks * p.barrier,
        w.hottest_address / n * p.same_address,
        w.hottest_counter / n * p.same_counter,
    };
    // Every byte from DRAM passes the L2, so that the slower of both counts.
    const double streams =
        combined({std::max(terms[1], terms[2]), terms[3], terms[4], terms[5]}, kStreams);
    const double all =
        combined({streams, terms[6], terms[9], terms[10], terms[7] + terms[8]}, p.exponent);
    total += n * (p.dependent + all);
    for (std::size_t i = 1; i < sums.size(); ++i) sums[i].us += n * terms[i];
    sums[6].us += n * (terms[9] + terms[10]);
    // The first item of a launch, which the smallest function has, counts as launch.
    sums[0].us += n * (p.dependent + p.item);
    sums[7].us -= n * p.item;
    if (uneven > 2) longest += n * uneven * one_warp;
    most_warps = std::max(most_warps, std::min(resident * warps_per_block,
                                               std::ceil(w.warps / n / std::min(sms, blocks))));
  }
  const Term& limit = *std::max_element(sums.begin(), sums.end(),
                                        [](const Term& a, const Term& b) { return a.us < b.us; });
  estimate.us = total;
  estimate.limit = limit.limit;
  if (p.is_measured) {
    // (The last interval is for limits without one of their own.)
    const auto* interval =
        std::find_if(std::begin(kIntervals), std::end(kIntervals) - 1,
                     [&](const Interval& i) { return estimate.limit == i.limit; });
    estimate.low = total * interval->low;
    estimate.high = total * interval->high;
  }
  if (estimate.limit == "latency" && longest > limit.us / 2) estimate.limit = "longest row";
  estimate.detail = estimate.limit;
  if (estimate.limit == "latency") {
    estimate.detail += fmt::format(": {:.0f} of {} warps", most_warps, gpu.threads / 32);
  }
  return estimate;
}

std::vector<std::string> gpus_with_times() {
  std::vector<std::string> names;
  for (const TimeParameters& p : kTimeParameters) names.emplace_back(p.gpu);
  return names;
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
