#include <cstdlib>
#include <string>
#include <vector>

#include "device/devices.hpp"
#include "device/launch.hpp"
#include "harness/verify.hpp"
#include "machine.hpp"
#include "sparse/generators.hpp"
#include "tests/bits.hpp"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"

namespace spmv::multigpu {
namespace {

using test::same_bits;

// On the CPU backend: devices of two multiprocessors, whose blocks take turns at random, and whose
// stores to a peer become visible late.
struct PersistentDevices : test::SavedSettings {
  explicit PersistentDevices([[maybe_unused]] std::uint64_t seed = 1) {
#ifndef SPMV_CUDA
    simt::settings().devices = 8;
    simt::settings().multiprocessors = 2;
    simt::settings().schedule = simt::Schedule::kRandom;
    simt::settings().seed = seed;
    simt::settings().late_peer_stores = true;
#endif
  }
};

constexpr double kFactor = 0.25;

std::unique_ptr<Machine> machine_of(const Csr<double>& a, int count,
                                    const PersistentOptions& options = {},
                                    const Processes& processes = kOneProcess) {
  return make_persistent(parts_of(a, Partition::kNonzeros, count, Exchange::kStores), processes,
                         options);
}

constexpr PersistentKernel kRows = PersistentKernel::kRows;
constexpr PersistentKernel kTiles = PersistentKernel::kTiles;
constexpr PersistentKernel kAllKernels[] = {kRows, kTiles};
constexpr const char* kMatrices[] = {
    "stencil2d:17x9", "banded:70,bandwidth=20", "powerlaw:140x140,nnz=900",
    "diagonal:9",     "stencil2d:0x0",          "random:61x61,nnz_per_row=3"};

}  // namespace

TEST_CASE("persistent: an iteration is right, by rows with the bits of one part", "[10]") {
  const PersistentDevices devices;
  constexpr int kSteps = 5;
  for (const char* spec : kMatrices) {
    const Csr<double> a = generate<double>(spec);
    for (const PersistentKernel kernel : kAllKernels) {
      std::vector<double> of_one;
      for (const int count : {1, 2, 3, 4, 8}) {
        CAPTURE(spec, count, static_cast<int>(kernel));
        const auto machine = machine_of(a, count, {.kernel = kernel, .lanes_per_row = 4});
        machine->keep_factor(kFactor);
        machine->start(first_x(a.cols, 3));
        machine->run(kSteps);
        const std::vector<double> y = machine->x_of(kSteps);
        const Verdict verdict =
            verify(y, make_reference(a, kFactor, machine->x_of(kSteps - 1), 0.0, {}));
        INFO(verdict.describe());
        CHECK(verdict.ok);
        // Tiles move with the cuts, and with them how a row's sum is made. Parts that share a GPU
        // run tiles.
        if (kernel == kTiles || machine->devices() < count) continue;
        if (of_one.empty()) of_one = y;
        CHECK(same_bits(y, of_one));
      }
    }
  }
}

TEST_CASE("persistent: rows of like lengths have a fixed number of lanes", "[10]") {
  const PersistentDevices devices;
  const int count = device::available_devices(2);  // parts that share a GPU run tiles
  const auto choice_for = [&](const std::string& spec) {
    return machine_of(generate<double>(spec), count)->remark();
  };
  CHECK(choice_for("stencil2d:400x400") == "persistent: 1 lane per row");
  // 32,000 rows per part: with fewer lanes there were too few.
  CHECK(choice_for("stencil3d:40x20x" + std::to_string(40 * count)) ==
        "persistent: 4 lanes per row");
  CHECK(choice_for("powerlaw:20000x20000,nnz=100000,max_row=9000") == "persistent: tiles");
}

TEST_CASE("persistent: tiles, not a few lanes per row, where the L2 cache is too small", "[10]") {
  const PersistentDevices devices;
  const long long bytes = device::attribute(cudaDevAttrL2CacheSize) / 10 * 8LL;  // of nonzeros
  const std::string rows = std::to_string(bytes / (27 * 12));
  const Csr<double> a = generate<double>("banded:" + rows + ",bandwidth=13");
  CHECK(machine_of(a, 1)->remark() == "persistent: tiles");
}

TEST_CASE("persistent: parts that share GPUs", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("powerlaw:140x140,nnz=900");
  const std::vector<double> x = first_x(a.cols, 3);
  std::vector<double> first;
  struct Few : Processes {
    explicit Few(int given) : most(given) {}
    int devices(int parts) const override { return std::min(Processes::devices(parts), most); }
    int most;
  };
  for (const int most : {1, 2}) {
    const Few few(most);
    for (const PersistentKernel kernel : {kRows, kTiles}) {
      const auto machine =
          machine_of(a, 5, {.kernel = kernel, .lanes_per_row = 4, .blocks = 1}, few);
      CHECK(machine->devices() <= most);
      CHECK(machine->remark() == "persistent: tiles");
      machine->start(x);
      machine->run(4);
      if (first.empty()) first = machine->x_of(4);
      CHECK(same_bits(machine->x_of(4), first));
    }
  }
}

TEST_CASE("persistent: more blocks than can be resident are refused", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("stencil2d:9x9");
  const auto machine = machine_of(a, 2, {.kernel = kRows, .lanes_per_row = 4, .blocks = 100000});
  std::string told;
  try {
    machine->start(first_x(a.cols, 3));
    machine->run(1);
  } catch (const std::exception& error) {
    told = error.what();
  }
  INFO(told);
  CHECK(told.find("too many blocks in cooperative launch") != std::string::npos);
}

#ifndef SPMV_CUDA
// SEEDS=1000 for all that the lesson tells of.
TEST_CASE("persistent: the same bits under every seed", "[10]") {
  const char* const wanted = std::getenv("SEEDS");
  const std::uint64_t seeds = wanted ? std::strtoull(wanted, nullptr, 10) : 20;
  const Csr<double> a = generate<double>("powerlaw:60x60,nnz=300");
  const std::vector<double> x = first_x(a.cols, 3);
  for (const PersistentKernel kernel : kAllKernels) {
    // By tiles: of this cut. By rows: of one part.
    const int count = kernel == kTiles ? 3 : 1;
    std::vector<double> first;
    for (std::uint64_t seed = 0; seed <= seeds; ++seed) {
      CAPTURE(seed, static_cast<int>(kernel));
      const PersistentDevices devices(seed);
      const auto machine =
          machine_of(a, seed == 0 ? count : 3, {.kernel = kernel, .lanes_per_row = 4, .blocks = 2});
      machine->start(x);
      machine->run(4);
      if (first.empty()) first = machine->x_of(4);
      REQUIRE(same_bits(machine->x_of(4), first));
    }
  }
}

TEST_CASE("persistent: a wait that times out ends all", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("stencil2d:9x9");
  const auto machine = machine_of(a, 2, {.most_polls = 1});  // less than a neighbour needs
  std::string told;
  for (std::uint64_t seed = 1; seed <= 20 && told.empty(); ++seed) {
    simt::settings().seed = seed;
    try {
      machine->start(first_x(a.cols, 3));
      machine->run(10);
    } catch (const std::exception& error) {
      told = error.what();
    }
  }
  INFO(told);
  CHECK(told.find("timed out waiting for") != std::string::npos);
}
#endif

}  // namespace spmv::multigpu
