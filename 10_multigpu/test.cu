#include <string>
#include <utility>
#include <vector>

#include "device/devices.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "harness/verify.hpp"
#include "machine.hpp"
#include "part.hpp"
#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/rng.hpp"
#include "sparse/row_source.hpp"
#include "tests/bits.hpp"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"

namespace spmv::multigpu {
namespace {

using Cuts = std::vector<Index>;
using test::same_bits;

// On the CPU backend: 16 devices, whose streams do their work as late, and in as odd an order, as
// events allow. On GPUs parts share those there are.
struct Gpus : test::SavedSettings {
#ifndef SPMV_CUDA
  Gpus() {
    simt::settings().devices = 16;
    simt::settings().late_streams = true;
  }
#endif
};

Csr<double> square(Index n, const std::string& kind) {
  Coo<double> coo{n, n, {}, {}, {}};
  Rng rng(static_cast<std::uint64_t>(n) + kind.size());
  const auto add = [&](Index row, Index column) {
    coo.add(row, column, signed_unit_value<double>(rng.bits64()));
  };
  for (Index row = 0; row < n; ++row) {
    if (kind == "a full row among empty ones") {
      for (Index column = 0; column < n && row == n / 3; ++column) add(row, column);
    } else if (kind == "an arrow") {  // a full row, a full column, the diagonal
      add(row, row);
      if (row != 0) add(row, 0);
      for (Index column = 1; column < n && row == 0; ++column) add(row, column);
    } else if (kind == "blocks of one part each") {
      add(row, row);
    } else if (kind == "far away") {  // each part needs another one, and none of its own
      add(row, n - 1 - row);
    }
  }
  return to_csr(coo);
}

std::vector<std::pair<std::string, Csr<double>>> matrices() {
  std::vector<std::pair<std::string, Csr<double>>> all;
  for (const char* spec : {"stencil2d:17x9", "stencil3d:5x4x3,points=27", "banded:70,bandwidth=20",
                           "powerlaw:140x140,nnz=900", "diagonal:1", "stencil2d:0x0"}) {
    all.emplace_back(spec, generate<double>(spec));
  }
  for (const char* kind :
       {"a full row among empty ones", "an arrow", "blocks of one part each", "far away"}) {
    all.emplace_back(kind, square(61, kind));
  }
  all.emplace_back("five rows", square(5, "an arrow"));
  all.emplace_back("all rows empty", square(9, "nothing"));
  return all;
}

constexpr double kFactor = 0.25;  // of iterations

// Runs the steps and verifies the last one; returns its product.
std::vector<double> run_and_verify(Machine& machine, const Csr<double>& a, int steps) {
  machine.keep_factor(kFactor);
  machine.start(first_x(a.cols, 3));
  machine.run(steps);
  const std::vector<double> y = machine.x_of(steps);
  const Verdict verdict = verify(y, make_reference(a, kFactor, machine.x_of(steps - 1), 0.0, {}));
  INFO(verdict.describe());
  CHECK(verdict.ok);
  return y;
}

// Has at most so many devices.
struct Few : Processes {
  explicit Few(int most) { most_devices = most; }
};

std::unique_ptr<Machine> machine_of(const Csr<double>& a, Partition partition, int count,
                                    Exchange exchange, const char* kernel = "pcsr",
                                    bool as_graph = true, const Processes& on = kOneProcess) {
  return make_machine(parts_of(a, partition, count, exchange), *find_kernels(kernel)[0], exchange,
                      on, as_graph);
}

}  // namespace

TEST_CASE("cuts: equal rows, equal nonzeros, more parts than rows", "[10]") {
  const std::vector<long long> even{0, 2, 4, 6, 8};
  CHECK(cut(Partition::kRows, even, 2) == Cuts{0, 2, 4});
  CHECK(cut(Partition::kNonzeros, even, 2) == Cuts{0, 2, 4});
  CHECK(cut(Partition::kRows, even, 3) == Cuts{0, 1, 2, 4});
  CHECK(cut(Partition::kNonzeros, even, 1) == Cuts{0, 4});

  const std::vector<long long> skewed{0, 90, 91, 92, 93, 94};
  CHECK(cut(Partition::kRows, skewed, 2) == Cuts{0, 2, 5});
  CHECK(cut(Partition::kNonzeros, skewed, 2) == Cuts{0, 1, 5});
  CHECK(cut(Partition::kNonzeros, {0, 1, 2, 92}, 2) == Cuts{0, 2, 3});
  CHECK(cut(Partition::kNonzeros, {0, 0, 0, 0}, 2).back() == 3);

  // Parts without rows; every row in one part, whatever the number of parts.
  for (const Partition partition : {Partition::kRows, Partition::kNonzeros}) {
    for (int parts = 1; parts <= 9; ++parts) {
      const Cuts cuts = cut(partition, skewed, parts);
      CHECK(cuts.size() == static_cast<std::size_t>(parts) + 1);
      CHECK(cuts.front() == 0);
      CHECK(cuts.back() == 5);
      CHECK(std::is_sorted(cuts.begin(), cuts.end()));
    }
    CHECK(cut(partition, {0}, 3) == Cuts{0, 0, 0, 0});
  }

  // More nonzeros than 32 bits count.
  const long long huge = 1LL << 33;
  CHECK(cut(Partition::kNonzeros, {0, huge, 2 * huge, 3 * huge, 4 * huge}, 4) ==
        Cuts{0, 1, 2, 3, 4});
}

TEST_CASE("parts: what stands where", "[10]") {
  // Rows 0 to 3 in two parts. Row 1 needs column 2, row 2 needs column 1; 0 and 3 are interior.
  const Csr<double> a{4, 4, {0, 1, 4, 6, 7}, {0, 0, 1, 2, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7}};
  const auto parts = parts_of(a, Partition::kRows, 2, Exchange::kPacked);
  CHECK(parts[0].order == Cuts{1, 0});  // boundary rows first
  CHECK(parts[1].order == Cuts{0, 1});
  CHECK(parts[0].boundary_rows == 1);
  CHECK(parts[0].matrix.values == std::vector<double>{2, 3, 4, 1});
  REQUIRE(parts[0].halos.size() == 1);
  CHECK(parts[0].halos[0].owner == 1);
  CHECK(parts[0].halos[0].columns == Cuts{2});
  REQUIRE(parts[1].sends.size() == 1);
  CHECK(parts[1].sends[0].receiver == 0);
  CHECK(parts[1].sends[0].ghost_begin == parts[0].halos[0].ghost_begin);
  CHECK(parts[1].sends[0].sources == Cuts{0});  // row 2 stands first in part 1
  CHECK(parts[0].matrix.column_indices == Cuts{1, 0, parts[0].halos[0].ghost_begin, 1});
  CHECK(parts[0].remote_cols == 1);
  CHECK(parts[1].matrix.column_indices == Cuts{parts[1].halos[0].ghost_begin, 1, 1});
  CHECK(parts[1].halos[0].count() == 1);

  const auto whole = parts_of(a, Partition::kRows, 2, Exchange::kParts);
  CHECK(whole[0].halos[0].columns == Cuts{2, 3});
  CHECK(whole[0].matrix.column_indices == Cuts{1, 0, whole[0].halos[0].ghost_begin, 1});
  const auto none = parts_of(a, Partition::kRows, 2, Exchange::kNone);
  CHECK(none[1].matrix.column_indices == Cuts{1, 3, 3});
}

TEST_CASE("parts: entries side by side are not packed", "[10]") {
  const auto line =
      parts_of(generate<double>("banded:12,bandwidth=1"), Partition::kRows, 2, Exchange::kPacked);
  for (int p = 0; p < 2; ++p) {
    CHECK(line[p].packed.empty());
    const Send& send = line[p].send_to(1 - p);
    CHECK_FALSE(send.is_packed);
    CHECK(send.count() == 1);
    CHECK(send.begin == 0);  // a boundary row: it stands first in its part
  }
}

TEST_CASE("a product on several GPUs has the bits of one", "[10]") {
  [[maybe_unused]] const Gpus gpus;
  auto all = matrices();
  all.emplace_back("wide", generate<double>("random:40x90,nnz_per_row=7"));
  all.emplace_back("tall", generate<double>("random:90x40,nnz_per_row=7"));
  for (const auto& [name, a] : all) {
    const std::vector<double> x = first_x(a.cols, 7);
    const Reference reference = make_reference(a, 1.0, x, 0.0, {});
    std::vector<double> of_one;
    for (const int count : {1, 2, 3, 4, 7}) {
      for (const Partition partition : {Partition::kRows, Partition::kNonzeros}) {
        for (const char* kernel : {"pcsr", "pcsr_one_pass"}) {
          CAPTURE(name, count, static_cast<int>(partition), kernel);
          const auto machine = machine_of(a, partition, count, Exchange::kNone, kernel);
          for (const int steps : {2, 12}) {  // the second as a graph and two steps more
            machine->start(x);
            machine->run(steps);
            const std::vector<double> y = machine->x_of(steps);
            CHECK(verify(y, reference).ok);
            if (std::string(kernel) != "pcsr") continue;
            if (of_one.empty()) of_one = y;
            CHECK(same_bits(y, of_one));
          }
        }
      }
    }
  }
}

TEST_CASE("an iteration on several GPUs has the bits of one", "[10]") {
  [[maybe_unused]] const Gpus gpus;
  for (const auto& [name, a] : matrices()) {
    std::vector<double> of_one;
    for (const int count : {1, 2, 3, 4, 7}) {
      for (const Partition partition : {Partition::kRows, Partition::kNonzeros}) {
        for (const Exchange exchange : {Exchange::kParts, Exchange::kPacked}) {
          // Half of them as a graph.
          const bool as_graph = (count + static_cast<int>(exchange)) % 2 != 0;
          CAPTURE(name, count, static_cast<int>(partition), static_cast<int>(exchange));
          const auto machine = machine_of(a, partition, count, exchange, "pcsr", as_graph);
          const std::vector<double> result = run_and_verify(*machine, a, 11);
          if (of_one.empty()) of_one = result;
          CHECK(same_bits(result, of_one));
          CHECK(machine->time_each(1).size() == (as_graph ? static_cast<std::size_t>(count) : 0));
        }
      }
    }
  }
}

TEST_CASE("one pass: the same bits by every way and run", "[10]") {
  [[maybe_unused]] const Gpus gpus;
  for (const auto& [name, a] : matrices()) {
    for (const int count : {2, 5}) {
      std::vector<double> first;
      for (const Exchange exchange : {Exchange::kParts, Exchange::kPacked}) {
        const auto machine = machine_of(a, Partition::kNonzeros, count, exchange, "pcsr_one_pass");
        for (int run = 0; run < 2; ++run) {
          CAPTURE(name, count, static_cast<int>(exchange), run);
          const std::vector<double> result = run_and_verify(*machine, a, 4);
          if (first.empty()) first = result;
          CHECK(same_bits(result, first));
        }
      }
    }
  }
}

TEST_CASE("where parts share GPUs the bits are those of one", "[10]") {
  [[maybe_unused]] const Gpus gpus;
  const Csr<double> a = generate<double>("powerlaw:140x140,nnz=900");
  std::vector<double> of_one;
  for (const int most : {1, 2}) {
    const Few few(most);
    for (const Exchange exchange : {Exchange::kParts, Exchange::kPacked}) {
      for (const bool as_graph : {false, true}) {
        CAPTURE(most, static_cast<int>(exchange), as_graph);
        const auto machine = machine_of(a, Partition::kRows, 5, exchange, "pcsr", as_graph, few);
        CHECK(machine->devices() <= most);
        const std::vector<double> result = run_and_verify(*machine, a, 12);
        if (of_one.empty()) of_one = result;
        CHECK(same_bits(result, of_one));
      }
    }
  }
}

TEST_CASE("a graph is made anew for another factor", "[10]") {
  [[maybe_unused]] const Gpus gpus;
  const Csr<double> a = generate<double>("powerlaw:140x140,nnz=900");
  const auto machine = machine_of(a, Partition::kRows, 3, Exchange::kPacked);
  machine->start(first_x(a.cols, 3));
  machine->run(10);
  run_and_verify(*machine, a, 10);
}

#ifndef SPMV_CUDA
TEST_CASE("devices that have no peer access", "[10]") {
  [[maybe_unused]] const Gpus gpus;
  simt::settings().peer_access = false;
  const Csr<double> a = generate<double>("stencil2d:9x9");
  const auto machine = machine_of(a, Partition::kRows, 2, Exchange::kPacked, "pcsr_one_pass");
  CHECK(machine->remark() ==
        "GPUs 0 and 1 have no access to each other's memory: entries of x go through the host");
  CHECK(machine->drive() == std::string("loop"));
  run_and_verify(*machine, a, 11);
  CHECK_THROWS_AS(machine_of(a, Partition::kRows, 2, Exchange::kStores), InputError);
}
#endif

// --- Persistent kernels --------------------------------------------------------------------------

namespace {

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

std::unique_ptr<Machine> persistent_of(const Csr<double>& a, int count,
                                       const PersistentOptions& options = {},
                                       const Processes& processes = kOneProcess) {
  return make_persistent(parts_of(a, Partition::kNonzeros, count, Exchange::kStores), processes,
                         options);
}

// What it throws when it runs so many steps with `a`; nothing: "".
std::string told_by(Machine& machine, const Csr<double>& a, int steps) {
  try {
    machine.start(first_x(a.cols, 3));
    machine.run(steps);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

constexpr int kRows = 4, kTiles = 0;  // lanes per row
constexpr const char* kMatrices[] = {
    "stencil2d:17x9", "banded:70,bandwidth=20", "powerlaw:140x140,nnz=900",
    "diagonal:9",     "stencil2d:0x0",          "random:61x61,nnz_per_row=3"};

}  // namespace

TEST_CASE("persistent: an iteration is right, by rows with the bits of one part", "[10]") {
  const PersistentDevices devices;
  for (const char* spec : kMatrices) {
    const Csr<double> a = generate<double>(spec);
    for (const int lanes : {kRows, kTiles}) {
      std::vector<double> of_one;
      for (const int count : {1, 2, 3, 4, 8}) {
        CAPTURE(spec, count, lanes);
        const auto machine = persistent_of(a, count, {.lanes_per_row = lanes});
        const std::vector<double> y = run_and_verify(*machine, a, 5);
        // Tiles move with the cuts, and with them how a row's sum is made. Parts that share a GPU
        // run tiles.
        if (lanes == kTiles || machine->devices() < count) continue;
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
    return persistent_of(generate<double>(spec), count)->remark();
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
  CHECK(persistent_of(a, 1)->remark() == "persistent: tiles");
}

TEST_CASE("persistent: parts that share GPUs", "[10]") {
  const PersistentDevices devices;
  const Csr<double> a = generate<double>("powerlaw:140x140,nnz=900");
  const std::vector<double> x = first_x(a.cols, 3);
  std::vector<double> first;
  for (const int most : {1, 2}) {
    const Few few(most);
    for (const int lanes : {kRows, kTiles}) {
      const auto machine = persistent_of(a, 5, {.lanes_per_row = lanes, .blocks = 1}, few);
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
  const auto machine = persistent_of(a, 2, {.lanes_per_row = kRows, .blocks = 100000});
  const std::string told = told_by(*machine, a, 1);
  INFO(told);
  CHECK(told.find("too many blocks in cooperative launch") != std::string::npos);
}

#ifndef SPMV_CUDA
TEST_CASE("persistent: the same bits under every seed", "[10]") {
  constexpr std::uint64_t kSeeds = 20;
  const Csr<double> a = generate<double>("powerlaw:60x60,nnz=300");
  const std::vector<double> x = first_x(a.cols, 3);
  for (const int lanes : {kRows, kTiles}) {
    // By tiles: of this cut. By rows: of one part.
    const int count = lanes == kTiles ? 3 : 1;
    std::vector<double> first;
    for (std::uint64_t seed = 0; seed <= kSeeds; ++seed) {
      CAPTURE(seed, lanes);
      const PersistentDevices devices(seed);
      const auto machine =
          persistent_of(a, seed == 0 ? count : 3, {.lanes_per_row = lanes, .blocks = 2});
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
  const auto machine = persistent_of(a, 2, {.most_polls = 1});  // less than a neighbour needs
  std::string told;
  for (std::uint64_t seed = 1; seed <= 20 && told.empty(); ++seed) {
    simt::settings().seed = seed;
    told = told_by(*machine, a, 10);
  }
  INFO(told);
  CHECK(told.find("timed out waiting for") != std::string::npos);
}
#endif

}  // namespace spmv::multigpu
