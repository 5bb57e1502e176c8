#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/devices.hpp"
#include "device/launch.hpp"
#include "harness/verify.hpp"
#include "part.hpp"
#include "persistent.hpp"
#include "sparse/generators.hpp"
#include "tests/catch.hpp"
#include "vectors.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::multigpu {
namespace {

// On the CPU backend: devices of two multiprocessors, whose blocks take turns at random, and whose
// stores to a peer become visible late.
class PersistentDevices {
 public:
  explicit PersistentDevices([[maybe_unused]] std::uint64_t seed = 1) {
#ifndef SPMV_CUDA
    simt::settings().devices = 8;
    simt::settings().multiprocessors = 2;
    simt::settings().schedule = simt::Schedule::kRandom;
    simt::settings().seed = seed;
    simt::settings().late_peer_stores = true;
#endif
  }
  ~PersistentDevices() {
#ifndef SPMV_CUDA
    simt::settings() = saved_;
#endif
  }

 private:
#ifndef SPMV_CUDA
  simt::Settings saved_ = simt::settings();
#endif
};

template <typename T>
std::vector<Part<T>> parts_of(const Csr<T>& a, int count) {
  return parts_of(a, Partition::kNonzeros, count, Exchange::kStores);
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

constexpr PersistentKernel kSimple = PersistentKernel::kSimple;
constexpr PersistentKernel kRows = PersistentKernel::kRows;
constexpr PersistentKernel kShares = PersistentKernel::kShares;
constexpr PersistentKernel kAllKernels[] = {kSimple, kRows, kShares};
constexpr const char* kMatrices[] = {
    "stencil2d:17x9", "banded:70,bandwidth=20", "powerlaw:140x140,nnz=900",
    "diagonal:9",     "stencil2d:0x0",          "random:61x61,nnz_per_row=3"};

}  // namespace

TEMPLATE_TEST_CASE(
    "persistent: an iteration is right, by the simple kernel with the bits of one part", "[10]",
    float, double) {
  using T = TestType;
  const PersistentDevices devices;
  constexpr int kSteps = 5;
  for (const char* spec : kMatrices) {
    const Csr<T> a = generate<T>(spec);
    const std::vector<T> x = first_x<T>(a.cols, 3);
    for (const double factor : {0.0, 0.25}) {
      for (const PersistentKernel kernel : kAllKernels) {
        if (kernel == kSimple && factor == 0) continue;
        std::vector<T> of_one;
        for (const int count : {1, 2, 3, 4, 8}) {
          CAPTURE(spec, factor, count, static_cast<int>(kernel));
          PersistentMachine<T> machine(parts_of(a, count), {kernel, 0, 4});
          machine.keep_factor(factor);
          machine.start(x);
          machine.run(kSteps);
          const std::vector<T> y = machine.x_of(kSteps);
          const Verdict verdict =
              verify(y, make_reference(a, static_cast<T>(machine.factor_of(kSteps - 1)),
                                       machine.x_of(kSteps - 1), T{0}, {}));
          INFO(verdict.describe());
          CHECK(verdict.ok);
          // Shares move with the cuts, and with them how a row's sum is made. Parts that share a
          // GPU run shares.
          if (kernel == kShares || (kernel == kRows && machine.devices() < count)) continue;
          if (of_one.empty()) of_one = y;
          CHECK(same_bits(y, of_one));
        }
      }
    }
  }
}

TEST_CASE("persistent: rows of like lengths have a fixed number of lanes", "[10]") {
  const PersistentDevices devices;
  const int count = device::available_devices(2);  // parts that share a GPU run shares
  const auto choice_for = [&](const std::string& spec) {
    return PersistentMachine<double>(parts_of(generate<double>(spec), count), {}).choice();
  };
  CHECK(choice_for("stencil2d:400x400") == "1 lane per row");
  // 32,000 rows per part: with fewer lanes there were too few.
  CHECK(choice_for("stencil3d:40x20x" + std::to_string(40 * count)) == "4 lanes per row");
  CHECK(choice_for("powerlaw:20000x20000,nnz=100000,max_row=9000") == "equal shares");
}

TEST_CASE("persistent: shares instead of a few lanes per row where the L2 cache is too small",
          "[10]") {
  const PersistentDevices devices;
  const long long bytes = device::attribute(cudaDevAttrL2CacheSize) / 10 * 8LL;  // of nonzeros
  const std::string rows = std::to_string(bytes / (27 * 12));
  const Csr<double> a = generate<double>("banded:" + rows + ",bandwidth=13");
  CHECK(PersistentMachine<double>(parts_of(a, 1), {}).choice() == "equal shares");
}

TEST_CASE("persistent: parts that share GPUs", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("powerlaw:140x140,nnz=900");
  const std::vector<double> x = first_x<double>(a.cols, 3);
  std::vector<double> first;
  for (const int shared : {1, 2}) {
    for (const PersistentKernel kernel : {kRows, kShares}) {
      PersistentMachine<double> machine(parts_of(a, 5), {kernel, shared, 4, 1});
      CHECK(machine.devices() <= shared);
      CHECK(machine.choice() == "equal shares");
      machine.start(x);
      machine.run(4);
      if (first.empty()) first = machine.x_of(4);
      CHECK(same_bits(machine.x_of(4), first));
    }
  }
}

TEST_CASE("persistent: the simple kernel has no norm", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("stencil2d:9x9");
  PersistentMachine<double> machine(parts_of(a, 2), {kSimple});
  machine.start(first_x<double>(a.cols, 3));
  CHECK_THROWS(machine.run(1));
}

TEST_CASE("persistent: more blocks than can be resident are refused", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("stencil2d:9x9");
  PersistentMachine<double> machine(parts_of(a, 2), {kRows, 0, 4, 100000});
  machine.start(first_x<double>(a.cols, 3));
  std::string told;
  try {
    machine.run(1);
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
  const std::vector<double> x = first_x<double>(a.cols, 3);
  for (const PersistentKernel kernel : kAllKernels) {
    // By shares: of this cut. By rows: of one part.
    const int count = kernel == kShares ? 3 : 1;
    std::vector<double> first;
    for (std::uint64_t seed = 0; seed <= seeds; ++seed) {
      CAPTURE(seed, static_cast<int>(kernel));
      const PersistentDevices devices(seed);
      PersistentMachine<double> machine(parts_of(a, seed == 0 ? count : 3), {kernel, 0, 4, 2});
      machine.keep_factor(0.25);
      machine.start(x);
      machine.run(4);
      if (first.empty()) first = machine.x_of(4);
      REQUIRE(same_bits(machine.x_of(4), first));
    }
  }
}

TEST_CASE("persistent: a wait that times out ends all", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("stencil2d:9x9");
  std::vector<Part<double>> parts = parts_of(a, 2);
  PersistentSetup setup;
  setup.most_polls = 1;  // less than a neighbour needs
  PersistentMachine<double> machine(parts, setup);
  machine.start(first_x<double>(a.cols, 3));
  std::string told;
  for (std::uint64_t seed = 1; seed <= 20 && told.empty(); ++seed) {
    simt::settings().seed = seed;
    try {
      machine.run(10);
    } catch (const std::exception& error) {
      told = error.what();
    }
  }
  INFO(told);
  CHECK(told.find("timed out waiting for") != std::string::npos);
}
#endif

}  // namespace spmv::multigpu
