// The time model: what its estimates depend on, and what has none.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/kernel.hpp"
#include "harness/run.hpp"
#include "harness/time_model.hpp"
#include "harness/time_model_parameters.hpp"
#include "sparse/load.hpp"
#include "tests/catch.hpp"

#ifndef SPMV_CUDA
#include "simt/cache_model.hpp"
#include "simt/profile.hpp"

using namespace spmv;

namespace {

// One launch of 1000 blocks of 8 warps, each of which makes 20 loads and a store.
Work streaming_work() {
  Work work;
  work.launches = 1;
  work.blocks = 1000;
  work.warps = 8000;
  work.requests = 21 * work.warps;
  work.loads = 20 * work.warps;
  work.lines = 2 * work.requests;
  work.load_sectors = work.l2_loads = 8 * work.loads;
  work.l2_sectors = work.l2_loads + 8 * work.warps;
  work.longest_item = 21;
  return work;
}

Estimate on(const std::string& gpu, const std::vector<Work>& work,
            const std::string& kernel = "mine") {
  return estimate_time(kernel, work, *simt::find_gpu(gpu));
}

}  // namespace

TEST_CASE("an estimate has an interval and the limit that takes most of it", "[times]") {
  Work work = streaming_work();
  const Estimate streaming = on("h200", {work});
  CHECK(streaming.low < streaming.us);
  CHECK(streaming.us < streaming.high);
  CHECK(streaming.limit == "L2 bandwidth");
  CHECK(to_text(streaming).find(" to ") != std::string::npos);

  // As many blocks as bytes of the L2 are there from the product before; ten times as many are not.
  work.dram_sectors = work.l2_sectors;
  CHECK(on("h200", {work}).us == Approx(streaming.us).epsilon(0.5));
  Work large = work;
  for (double Work::*const quantity : {&Work::dram_sectors, &Work::l2_sectors})
    large.*quantity *= 10;
  CHECK(on("h200", {large}).limit == "DRAM bandwidth");

  Work one_warp = work;
  one_warp.longest_item = 1e5;
  CHECK(on("h200", {one_warp}).limit == "longest row");
  Work same_address = work;
  same_address.hottest_address = 1e5;
  CHECK(on("h200", {same_address}).limit == "atomics");
  Work nothing;
  nothing.launches = nothing.blocks = nothing.warps = 1;
  CHECK(on("h200", {nothing}).limit == "launches");
  CHECK(on("h200", {nothing, nothing}).us > on("h200", {nothing}).us);

  // 132 multiprocessors with one warp each.
  Work waiting = nothing;
  waiting.blocks = waiting.warps = 132;
  waiting.requests = waiting.loads = 132 * 1000;
  waiting.load_sectors = waiting.l2_loads = waiting.loads;
  waiting.longest_item = 1000;
  CHECK(on("h200", {waiting}).detail == "latency: 1 of 64 warps");
}

TEST_CASE("terms are what estimates are made of", "[times]") {
  Work work = streaming_work();
  work.function = "csr_vector_kernel<float>";
  const nlohmann::json line = {to_json(work), to_json(work)};
  std::istringstream in(line.dump() + "\n" + line.dump() + "\n");
  std::ostringstream out;
  write_terms(in, out, *simt::find_gpu("h200"));
  std::istringstream lines(out.str());
  std::string heads, first, second, none;
  CHECK((std::getline(lines, heads) && std::getline(lines, first) && std::getline(lines, second)));
  CHECK_FALSE(std::getline(lines, none));
  CHECK(first == second);
  CHECK(nlohmann::json::parse(heads)[0] == nlohmann::json{"l2_byte", "L2 bandwidth"});
  const nlohmann::json terms = nlohmann::json::parse(first);
  CHECK(terms["us"] == on("h200", {work, work}).us);
  CHECK(terms["limit"] == on("h200", {work, work}).limit);
  REQUIRE(terms["functions"].size() == 2);
  const std::vector<double> of = terms["functions"][0];
  CHECK(of.size() == 1 + std::size(kTimeParameters[0].each));
  CHECK(of[0] == 1);                     // launches
  CHECK(of[1] == 32 * work.l2_sectors);  // bytes
  CHECK(of[3] == work.lines / 132);      // of each multiprocessor
  CHECK(of[4] == work.requests / 132);
}

// In a handout there is nothing to count them again.
TEST_CASE("times.json has what the model says of the steps' own kernels", "[times]") {
  if (!simt::is_instrumented()) return;
  std::ifstream file(SPMV_SOURCE_DIR "/common/coursework/times.json");
  const nlohmann::json times = nlohmann::json::parse(file);
  CHECK(times.size() >= 20);
  for (const auto& [name, time] : times.items()) {
    INFO(name << "; to write it again: make check ARGS=--write-times in the kernel's step");
    const std::size_t on = name.find(" on ");
    const auto kernel = std::find_if(kernels().begin(), kernels().end(), [&](const Kernel& k) {
      return k.info.name == name.substr(0, on);
    });
    REQUIRE(kernel != kernels().end());
    const Matrix<double> matrix = load_matrix<double>(name.substr(on + 4));
    const device::DeviceCsr<double> csr(matrix.csr);
    const Record record = Bench<double>({matrix, csr}, {}).run(*kernel);
    REQUIRE(record.estimate);
    CHECK(describe(*record.estimate) == time.get<std::string>());
  }
}

TEST_CASE("GPUs that are known by data sheets have no interval; others no estimate", "[times]") {
  const Work work = streaming_work();
  CHECK(on("h100", {work}).high > 0);
  for (const char* const gpu : {"a100", "rtx4090", "t4"}) {
    const Estimate scaled = on(gpu, {work});
    CHECK(scaled.us > 0);
    CHECK(scaled.high == 0);
    CHECK(to_text(scaled).find('(') == std::string::npos);
  }
  const Estimate none = on("c2050", {work});
  CHECK(none.refusal == "the time model has no parameters of an NVIDIA Tesla C2050");
  CHECK(to_text(none) == "-");
  CHECK(kTimeParameters[0].gpu == std::string("h200"));
  for (const TimeParameters& known : kTimeParameters) CHECK(simt::find_gpu(known.gpu));
}

TEST_CASE("kernels whose times the model misses have no estimate, nor have submissions for them",
          "[times]") {
  const Work work = streaming_work();
  CHECK(on("h200", {work}, "csr_scalar").refusal.empty());
  CHECK_FALSE(on("h200", {}, "segscan_thrust").refusal.empty());
  for (const Refusal& refusal : kRefusals) {
    if (!*refusal.kernel) continue;
    CHECK(on("h200", {work}, refusal.kernel).refusal == refusal.reason);
    CHECK(on("h200", {work}, std::string("my_") + refusal.kernel).us == 0);
  }
}
#endif
