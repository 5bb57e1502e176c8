#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../test_lengths.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "harness/verify.hpp"
#include "sparse/convert.hpp"
#include "spmv/one_pass.cuh"
#include "tests/catch.hpp"
#include "tests/schedules.hpp"

#ifndef SPMV_CUDA
#include "simt/profile.hpp"
#endif

namespace spmv {

using namespace detail;

// pcsr_one_pass_kernel with the wait for the previous kernel too late: after x has been read.
template <typename T>
__global__ void late_wait_kernel(const __grid_constant__ OnePassArguments<T> a,
                                 const __grid_constant__ PlainVectors<T> vectors) {
  __shared__ OnePassShared<T> late_wait_shared;
  if (static_cast<int>(blockIdx.x) >= a.tile_count) return;
  OnePassAgent<T, const PlainVectors<T>> agent(a, late_wait_shared, static_cast<int>(blockIdx.x),
                                               vectors);
  agent.load_first_items();
  agent.load_row_ends();
  agent.start();
  agent.multiply();
  wait_for_previous_kernel();
  agent.store_products();
  agent.mark_row_ends();
  agent.scan_segments();
  agent.write_rows();
  agent.finish_cut_rows();
}

namespace {

using device::Buffer;

template <typename T>
void check_product(const std::vector<T>& y, const Reference& reference) {
  const Verdict verdict = verify(y, reference);
  INFO(verdict.describe());
  CHECK(verdict.ok);
}

template <typename T>
CsrPattern pattern_of(const device::DeviceCsr<T>& a) {
  return {a.rows, a.cols, a.nnz, a.row_offsets.data(), a.column_indices.data()};
}

// A plan that is ready.
template <typename T, typename Value = T>
OnePassPlan<T, Value> plan_of(const CsrPattern& pattern, const OnePassOptions& options = {}) {
  OnePassPlan<T, Value> plan;
  REQUIRE(plan.create(pattern, options) == cudaSuccess);
  REQUIRE(plan.prepare(nullptr) == cudaSuccess);
  return plan;
}

// --- One pass -----------------------------------------------------------------------------------

// A matrix on the device, whose values are in memory as `Value`, with x and y: vectors, or as many
// of them as are said, as the columns of row-major arrays.
template <typename T, typename Value = T>
struct Input {
  explicit Input(const Lengths& lengths, int its_columns = 1)
      : host(csr_of<T>(lengths)),  // with the same values
        a(csr_of<Value>(lengths)),
        columns(its_columns),
        x_host(test_vector<T>(1LL * host.cols * columns, 1)),
        x("x", x_host),
        y0(test_vector<T>(1LL * host.rows * columns, 2)),
        y("y", y0) {}

  void check_y(T alpha, T beta) {
    const std::vector<T> got = y.download();
    for (int c = 0; c < columns; ++c) {
      const auto column = [&](const std::vector<T>& all) {
        std::vector<T> one;
        for (std::size_t i = c; i < all.size(); i += columns) one.push_back(all[i]);
        return one;
      };
      check_product(column(got), make_reference(host, alpha, column(x_host), beta, column(y0)));
    }
  }

  // multiply() computes y = alpha A x + beta y, with the same bits each time. y may hold NaN where
  // beta is 0.
  template <typename Multiply>
  void check(T alpha, T beta, const Multiply& multiply) {
    CAPTURE(host.rows, columns, beta, sizeof(T), sizeof(Value));
    const std::vector<T> nan(y0.size(), std::numeric_limits<T>::quiet_NaN());
    std::vector<T> first;
    for (int product = 0; product < 2; ++product) {
      y.upload(beta == T{0} ? nan : y0);
      multiply();
      REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
      if (product == 0) first = y.download();
    }
    CHECK(y.download() == first);
    check_y(alpha, beta);
  }

  Csr<T> host;
  device::DeviceCsr<Value> a;
  int columns;
  std::vector<T> x_host;
  Buffer<T> x;
  std::vector<T> y0;
  Buffer<T> y;
};

template <typename T>
struct Tiles {
  Tiles(const std::vector<int>& offsets, unsigned its_items, int overhang)
      : tile_items(its_items),
        count(static_cast<int>((offsets.size() - 1 + 1LL * offsets.back() + tile_items - 1) /
                               tile_items)),
        tiles("tiles", count + 1),
        partial_sums("partial_sums", 2 * static_cast<std::size_t>(count)),
        unstarted("unstarted", std::vector<unsigned>(count)) {
    const Buffer<int> row_offsets("row_offsets", offsets);
    device::launch(find_tiles_kernel<T>, {dim3(count / 4 + 1), dim3(128)}, count, tile_items,
                   overhang, static_cast<int>(offsets.size()) - 1, offsets.back(),
                   row_offsets.data(), tiles.data(), partial_sums.data(), unstarted.data());
  }

  OnePassArguments<T> arguments(const device::DeviceCsr<T>& a) {
    return {count,
            tile_items,
            tiles.data(),
            a.row_offsets.data(),
            a.column_indices.data(),
            a.values.data(),
            partial_sums.data(),
            unstarted.data()};
  }

  unsigned tile_items;
  int count;
  Buffer<Tile> tiles;
  Buffer<PartialSum<T>> partial_sums;
  Buffer<unsigned> unstarted;
};

// What a product begins with, and leaves to the next.
template <typename T>
void check_ready(const Tiles<T>& tiles, const std::vector<int>& offsets, unsigned tile_items) {
  std::vector<unsigned> unstarted(tiles.count);
  for (const Tile& tile : tiles.tiles.download()) {
    if (tile.row >= 0) continue;
    const int row = tile.row & ~kCutRow;
    unsigned& its_tiles = unstarted[(offsets[row] + row) / tile_items];
    its_tiles += its_tiles == 0 ? 2 : 1;  // the one in which it begins as well
  }
  CHECK(tiles.unstarted.download() == unstarted);
  for (const PartialSum<T>& partial_sum : tiles.partial_sums.download()) {
    for (const unsigned long long word : partial_sum.word) CHECK(word == 0);
  }
}

// Tiles have every row and nonzero once. on_cut(s, row): tile s ends within this row.
template <typename OnCut>
void check_order(const std::vector<Tile>& tiles, const std::vector<int>& offsets,
                 const OnCut& on_cut) {
  CHECK(tiles.front().row == 0);
  CHECK(tiles.front().nnz_begin == 0);
  CHECK(tiles.back().row == static_cast<int>(offsets.size()) - 1);
  CHECK(tiles.back().nnz_begin == offsets.back());
  for (std::size_t s = 0; s + 1 < tiles.size(); ++s) {
    const Tile& end = tiles[s + 1];
    const int row = end.row & ~kCutRow;
    CAPTURE(s, row);
    CHECK((tiles[s].row & ~kCutRow) <= row);
    CHECK(tiles[s].nnz_begin <= end.nnz_begin);
    if (end.row < 0) {
      on_cut(s, row);
      CHECK(end.nnz_begin > offsets[row]);
      CHECK(end.nnz_begin < offsets[row + 1]);
    } else {
      CHECK(end.nnz_begin == offsets[row]);
    }
  }
}

TEST_CASE("one pass: tiles have every row and nonzero once, and none too many", "[06]") {
  constexpr int kTileItems = 50;
  for (const int overhang : {0, 20, 100}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CAPTURE(overhang, seed);
      const Lengths lengths =
          joined(random_lengths(80, 1 << seed, seed), joined(Lengths(70, 0), {400, 0, 3}));
      const std::vector<int> offsets = offsets_of(lengths);
      const Tiles<float> found(offsets, kTileItems, overhang);
      check_ready(found, offsets, kTileItems);
      const std::vector<Tile> tiles = found.tiles.download();
      check_order(tiles, offsets, [&](std::size_t, int row) { CHECK(lengths[row] >= overhang); });
      for (std::size_t s = 0; s + 1 < tiles.size(); ++s) {
        CHECK(tiles[s + 1].nnz_begin - tiles[s].nnz_begin <= kTileItems + overhang);
      }
    }
  }
}

// With tiles of it: what a launch of the one-pass kernel takes.
template <typename T>
struct OnePassInput : Input<T> {
  OnePassInput(const Lengths& lengths, unsigned its_items, int overhang)
      : Input<T>(lengths),
        tile_items(its_items),
        tiles(this->host.row_offsets, tile_items, overhang) {}

  OnePassArguments<T> arguments() { return tiles.arguments(this->a); }
  PlainVectors<T> vectors(T alpha, T beta) {
    T* const out = this->y.data();
    return {this->x.data(), beta == T{0} ? nullptr : out, out, {alpha, beta}};
  }
  void check_y(T alpha, T beta) {
    Input<T>::check_y(alpha, beta);
    check_ready(tiles, this->host.row_offsets, tile_items);
  }

  unsigned tile_items;
  Tiles<T> tiles;
};

template <typename T>
void check_one_pass(const Lengths& lengths, unsigned tile_items, int overhang) {
  OnePassInput<T> input(lengths, tile_items, overhang);
  constexpr int kWarps = 4;
  for (const T beta : {T{0}, T{2}}) {
    input.y.upload(input.y0);
    device::launch(pcsr_one_pass_kernel<T>,
                   {dim3(device::divide_up(input.tiles.count, kWarps)), dim3(32 * kWarps),
                    kWarps * sizeof(OnePassShared<T>)},
                   input.arguments(), input.vectors(T{3}, beta));
    input.check_y(T{3}, beta);
  }
}

TEST_CASE("one pass: rows around an iteration's and a tile's size, whole and cut", "[06]") {
  for (const int tile_items : {40, 192, 256, 1000}) {
    for (const int overhang : {0, tile_items / 2, 2 * tile_items}) {
      CAPTURE(tile_items, overhang);
      for (const int n : {1, 7, 31, 33, 255, 256, 257, 512, 1500}) {
        CAPTURE(n);
        check_one_pass<double>(Lengths(4, n), tile_items, overhang);
        check_one_pass<float>({0, n, 0, 0, n, 1}, tile_items, overhang);
      }
      check_one_pass<float>(Lengths(600, 0), tile_items, overhang);
      check_one_pass<double>(joined(Lengths(300, 0), {700}), tile_items, overhang);
      test::under_every_schedule([&] {
        check_one_pass<double>(joined({2000}, random_lengths(200, 40, 5)), tile_items, overhang);
      });
    }
  }
}

// --- The plan of one pass -----------------------------------------------------------------------

// Products by a plan, on memory that belongs to the test.
template <typename T>
struct Planned : Input<T> {
  Planned(const Lengths& lengths, const OnePassOptions& options, bool own_workspace = false)
      : Input<T>(lengths) {
    const CsrPattern pattern = pattern_of(this->a);
    std::size_t bytes = 0;
    REQUIRE(OnePassPlan<T>::workspace_bytes(pattern, &bytes) == cudaSuccess);
    if (!own_workspace) workspace = Buffer<char>("workspace", bytes);
    REQUIRE(plan.create(pattern, options, workspace.data()) == cudaSuccess);
    CHECK(plan.workspace_bytes() == bytes);
    REQUIRE(plan.prepare(stream.get()) == cudaSuccess);
  }
  cudaError_t multiply(T alpha, T beta) {
    return plan.multiply(alpha, this->a.values.data(), this->x.data(), beta, this->y.data(),
                         stream.get());
  }
  void check(T alpha, T beta) {
    this->y.upload(this->y0);
    REQUIRE(multiply(alpha, beta) == cudaSuccess);
    stream.synchronize();
    this->check_y(alpha, beta);
  }

  device::Stream stream;
  Buffer<char> workspace;
  OnePassPlan<T> plan;
};

// pcsr_rows_kernel with any number of lanes per row.
template <int lanes, typename T>
void check_rows(const Lengths& lengths) {
  OnePassInput<T> input(lengths, 1000, 0);
  for (const T beta : {T{0}, T{2}}) {
    input.y.upload(input.y0);
    device::launch(pcsr_rows_kernel<lanes, T>,
                   {dim3(device::divide_up(input.a.rows * lanes, rows_threads(lanes))),
                    dim3(rows_threads(lanes))},
                   input.a.rows, beta == T{0}, input.a.row_offsets.data(),
                   input.a.column_indices.data(), input.a.values.data(), input.vectors(T{3}, beta));
    input.check_y(T{3}, beta);
  }
}

// A product with tiles of blocks, whose parts have every row and nonzero once.
template <typename T>
void check_block_tiles(const Lengths& lengths, int warps, unsigned block_items) {
  OnePassInput<T> input(lengths, 192, 0);  // its tiles of warps are not used
  const std::vector<int>& offsets = input.host.row_offsets;
  const long long positions = input.host.rows + 1LL * offsets.back();
  const int blocks = static_cast<int>((positions + block_items - 1) / block_items);
  Buffer<Tile> parts_device("parts", blocks * warps + 1);
  device::launch(find_parts_kernel<T>, {dim3(blocks * warps / 4 + 1), dim3(128)}, blocks, warps,
                 block_items, input.host.rows, input.a.row_offsets.data(), parts_device.data());
  check_order(parts_device.download(), offsets, [&](std::size_t s, int) {
    CHECK((s + 1) % warps != 0);  // blocks have whole rows
  });
  for (const T beta : {T{0}, T{2}}) {
    input.y.upload(input.y0);
    OnePassArguments<T> arguments = input.arguments();
    arguments.tiles = parts_device.data();
    device::launch(pcsr_block_tiles_kernel<T>,
                   {dim3(blocks), dim3(32 * warps), warps * sizeof(BlockTileShared<T>)}, arguments,
                   input.vectors(T{3}, beta));
    input.check_y(T{3}, beta);
  }
}

TEST_CASE("one pass: tiles of blocks, with rows in one warp and in several", "[06]") {
  const Lengths mixed = joined(random_lengths(500, 40, 7), {900, 0, 0, 256, 1, 2000});
  for (const int warps : {2, 3, 12}) {
    CAPTURE(warps);
    check_block_tiles<double>(mixed, warps, 200 * warps);
    check_block_tiles<float>(joined(Lengths(700, 0), mixed), warps, 250 * warps);
    check_block_tiles<float>(joined(Lengths(900, 1), joined(mixed, Lengths(300, 0))), warps, 400);
    check_block_tiles<double>({5000}, warps, 192 * warps);  // blocks without a row
  }
}

TEST_CASE("one pass: rows multiplied by any number of lanes", "[06]") {
  for (const Lengths& lengths :
       {Lengths(100, 5), joined(random_lengths(70, 300, 3), {5000, 0, 1})}) {
    check_rows<1, double>(lengths);
    check_rows<2, float>(lengths);
    check_rows<16, double>(lengths);
    check_rows<32, float>(lengths);
    check_rows<64, double>(lengths);
    check_rows<256, float>(lengths);
    check_rows<256, double>(lengths);
    check_rows<512, float>(lengths);
    check_rows<1024, double>(lengths);
  }
}

// A step of Jacobi's method, which also counts its calls.
struct Jacobi {
  const double* b;
  double diagonal;
  unsigned* calls;  // per row
  __device__ double operator()(int row, double sum, double old) const {
    atomicAdd(&calls[row], 1u);
    return old + (b[row] - sum) / diagonal;
  }
};

// z and y, which may be the same, for a matrix whose values are in memory as `Value`.
template <typename Value>
void check_epilogue(const Lengths& lengths, OnePassPath path, bool in_place) {
  Input<double, Value> input(lengths);
  const Index rows = input.host.rows;
  const std::vector<double> b = test_vector<double>(rows, 3);
  const Buffer<double> b_device("b", b);
  Buffer<double> z_device("z", std::vector<double>(rows, -7.0));
  Buffer<unsigned> calls("calls", std::vector<unsigned>(rows));
  const auto plan = plan_of<double, Value>(pattern_of(input.a), {.path = path});
  CHECK((plan.lanes_per_row() > 0) == (path == OnePassPath::kAutomatic));
  Buffer<double>& z = in_place ? input.y : z_device;
  REQUIRE(plan.multiply(input.a.values.data(), input.x.data(), input.y.data(), z.data(),
                        Jacobi{b_device.data(), 4, calls.data()}, nullptr) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(calls.download() == std::vector<unsigned>(rows, 1));
  if (!in_place) CHECK(input.y.download() == input.y0);
  std::vector<double> without_sum = input.y0;
  for (Index row = 0; row < rows; ++row) without_sum[row] += b[row] / 4;
  // In double precision, also where the values are not.
  check_product(z.download(), make_reference(input.host, -0.25, input.x_host, 1.0, without_sum));
}

TEST_CASE("one pass: an epilogue is called once per row, with its sum and old element", "[06]") {
  const Lengths mixed = joined(random_lengths(300, 30, 5), {3000, 0, 0});
  for (const bool in_place : {false, true}) {
    CAPTURE(in_place);
    check_epilogue<double>(mixed, OnePassPath::kTiles, in_place);
    check_epilogue<double>(Lengths(300, 40), OnePassPath::kAutomatic, in_place);
    check_epilogue<float>(mixed, OnePassPath::kTiles, in_place);
    check_epilogue<float>(Lengths(300, 40), OnePassPath::kAutomatic, in_place);
  }
}

// By a plan, which takes this path.
template <typename T, typename Value = T>
void check_several(const Lengths& lengths, int vectors, T alpha, T beta, OnePassPath path) {
  Input<T, Value> input(lengths, vectors);
  const auto plan = plan_of<T, Value>(pattern_of(input.a), {.most_vectors = 8});
  CHECK((plan.groups_per_row() > 0) == (path == OnePassPath::kAutomatic));
  input.check(alpha, beta, [&] {
    CHECK(plan.multiply_several(vectors, alpha, input.a.values.data(), input.x.data(), beta,
                                input.y.data(), nullptr) == cudaSuccess);
  });
}

TEST_CASE("one pass: several vectors, whole and cut rows", "[06]") {
  const Lengths mixed =
      joined(joined(random_lengths(300, 30, 5), {3000, 0, 0, 255, 256, 257, 1}), Lengths(40, 0));
  constexpr OnePassPath kTiles = OnePassPath::kTiles;
  for (const int vectors : {2, 4, 8}) {
    check_several<double>(mixed, vectors, 3, 2, kTiles);
    check_several<float>(mixed, vectors, 3, 0, kTiles);
    check_several<double, float>(random_lengths(70, 900, 3), vectors, 1, 0, kTiles);
    check_several<double>({0, 9000}, vectors, 1, 0, kTiles);  // a row in many tiles, and no others
    check_several<float>(Lengths(5, 0), vectors, 1, 3, kTiles);
  }
}

TEST_CASE("one pass: several vectors, rows that are alike", "[06]") {
  STATIC_REQUIRE(several_width(-1, 5) == -1);
  STATIC_REQUIRE(several_width(0, 24) == 0);
  STATIC_REQUIRE(several_width(3, 120) == 3);
  STATIC_REQUIRE(several_width(5, 384) == 4);
  STATIC_REQUIRE(several_width(5, 385) == -1);  // more than 3 iterations of 16 lanes
  STATIC_REQUIRE(several_width(10, 10'500) == -1);
  const Lengths alike = joined(random_lengths(333, 16, 5), {17, 0, 24, 0});
  constexpr OnePassPath kAutomatic = OnePassPath::kAutomatic;
  for (const int vectors : {2, 4, 8}) {
    check_several<double>(alike, vectors, 3, 2, kAutomatic);
    check_several<float>(alike, vectors, 3, 0, kAutomatic);
    check_several<double, float>(Lengths(70, 40), vectors, 1, 0, kAutomatic);
  }
  check_several<float>(Lengths(65'537, 1), 2, 3, 2, kAutomatic);
  check_several<double>(Lengths(16'385, 6), 8, 1, 0, kAutomatic);
  const Input<double> input(alike);
  const auto plan =
      plan_of<double>(pattern_of(input.a), {.path = OnePassPath::kTiles, .most_vectors = 8});
  CHECK(plan.groups_per_row() == 0);
}

// pcsr_several_rows_kernel with any number of groups per row.
template <int groups, int vectors, typename T, typename Value = T>
void check_several_rows(const Lengths& lengths) {
  CAPTURE(groups);
  constexpr int kRows = kSeveralRowsThreads / SeveralPolicy<T, vectors>::kLanes / groups;
  Input<T, Value> input(lengths, vectors);
  for (const T beta : {T{0}, T{2}}) {
    input.check(T{3}, beta, [&] {
      device::launch(pcsr_several_rows_kernel<groups, T, vectors, Value>,
                     {dim3(device::divide_up(input.host.rows, kRows)), dim3(kSeveralRowsThreads)},
                     input.host.rows, beta == T{0}, input.a.row_offsets.data(),
                     input.a.column_indices.data(), input.a.values.data(),
                     SeveralVectors<T, vectors>{input.x.data(), input.y.data(), T{3}, beta});
    });
  }
}

TEST_CASE("one pass: several vectors, rows multiplied by any number of groups", "[06]") {
  for (const Lengths& lengths :
       {Lengths(256, 8), Lengths(5, 0), joined(random_lengths(70, 300, 3), {5000, 0, 1})}) {
    check_several_rows<1, 2, double>(lengths);
    check_several_rows<16, 2, float>(lengths);
    check_several_rows<2, 4, double, float>(lengths);
    check_several_rows<4, 4, float>(lengths);
    check_several_rows<8, 8, double>(lengths);
    check_several_rows<1, 8, float>(lengths);
    check_several_rows<4, 8, double, float>(lengths);
  }
}

TEST_CASE("one pass: several vectors, other numbers and misaligned ones are refused", "[06]") {
  const Buffer<int> offsets("row_offsets", std::vector<int>{0, 0, 0});
  Buffer<double> y("y", std::vector<double>(17));
  const CsrPattern empty{2, 5, 0, offsets.data(), nullptr};
  CHECK(OnePassPlan<double>().create(empty, {.most_vectors = 3}) == cudaErrorInvalidValue);
  const auto plan = plan_of<double>(empty, {.most_vectors = 4});
  const auto multiply = [&](int vectors, double* to) {
    return plan.multiply_several(vectors, 1, nullptr, nullptr, 0, to, nullptr);
  };
  CHECK(multiply(4, y.data()) == cudaSuccess);
  CHECK(multiply(4, y.data() + 1) == cudaErrorInvalidValue);
  for (const int vectors : {-1, 0, 1, 3, 8}) {
    CHECK(multiply(vectors, y.data()) == cudaErrorInvalidValue);
  }
}

// y = alpha A^T x + beta y by atomics, and with the transpose that was built.
template <typename T>
void check_transposed(const Lengths& lengths, T alpha, T beta) {
  CAPTURE(lengths.size(), beta, sizeof(T));
  const Csr<T> host = csr_of<T>(lengths);
  const device::DeviceCsr<T> a(host);
  const std::vector<T> x = test_vector<T>(host.rows, 1);
  std::vector<T> y0 = test_vector<T>(host.cols, 2);
  if (beta == T{0}) y0.assign(y0.size(), std::numeric_limits<T>::quiet_NaN());
  Coo<T> triplets = to_coo(host);
  std::swap(triplets.rows, triplets.cols);
  std::swap(triplets.row_indices, triplets.column_indices);
  const Reference reference = make_reference(to_csr(triplets), alpha, x, beta, y0);
  const Buffer<T> x_device("x", x);
  const auto check = [&](const auto& multiply) {
    Buffer<T> y_device("y", y0);
    REQUIRE(multiply(y_device.data()) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    check_product(y_device.download(), reference);
  };
  const CsrPattern pattern = pattern_of(a);
  auto plan = plan_of<T>(pattern);
  check([&](T* y) {
    return plan.multiply_transposed(alpha, a.values.data(), x_device.data(), beta, y, nullptr);
  });

  OnePassTranspose transpose;
  REQUIRE(transpose.create(pattern, nullptr) == cudaSuccess);
  Buffer<T> values("transposed values", host.values.size());
  REQUIRE(transpose.gather(a.values.data(), values.data(), nullptr) == cudaSuccess);
  plan = plan_of<T>(transpose.pattern());
  check(
      [&](T* y) { return plan.multiply(alpha, values.data(), x_device.data(), beta, y, nullptr); });
  // Transposed once more, the nonzeros stand where they began: columns of csr_of() ascend.
  OnePassTranspose back;
  REQUIRE(back.create(transpose.pattern(), nullptr) == cudaSuccess);
  Buffer<T> again("values again", host.values.size());
  REQUIRE(back.gather(values.data(), again.data(), nullptr) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  if (host.nnz() > 0) CHECK(again.download() == host.values);
}

TEST_CASE("one pass: transposed products, by atomics and with the transpose", "[06]") {
  const Lengths mixed =
      joined(joined(random_lengths(300, 30, 5), {900, 0, 0, 255, 256, 257, 1}), Lengths(40, 0));
  check_transposed<double>(mixed, 3, 2);
  check_transposed<float>(mixed, 3, 0);
  check_transposed<double>({0, 9000}, 1, 0);
  check_transposed<float>(Lengths(5, 0), 1, 3);
  OnePassTranspose transpose;
  CHECK(transpose.create({-1, 0, 0, nullptr, nullptr}, nullptr) == cudaErrorInvalidValue);
  CHECK(transpose.create({1, 1, 1, nullptr, nullptr}, nullptr) == cudaErrorInvalidValue);
}

struct AddRow {
  __device__ double operator()(int row, double sum, double old) const { return row + sum + old; }
};

TEST_CASE("one pass: without y an epilogue gets 0, and without rows it is not called", "[06]") {
  const Buffer<int> offsets("row_offsets", std::vector<int>{0, 0, 0});
  Buffer<double> z("z", std::vector<double>{-1, -1});
  const auto plan = plan_of<double>({2, 5, 0, offsets.data(), nullptr});
  CHECK(plan.multiply(nullptr, nullptr, nullptr, z.data(), AddRow{}, nullptr) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(z.download() == std::vector<double>{0, 1});
  const auto empty = plan_of<double>({});
  CHECK(empty.multiply(nullptr, nullptr, nullptr, nullptr, AddRow{}, nullptr) == cudaSuccess);
}

TEST_CASE("one pass: alpha and beta may be in device memory", "[06]") {
  for (const OnePassPath path : {OnePassPath::kTiles, OnePassPath::kAutomatic}) {
    Input<double> input(joined(random_lengths(300, 30, 5), Lengths(20, 60)));
    const auto plan = plan_of<double>(pattern_of(input.a), {.path = path});
    for (const double beta : {0.0, 2.0}) {
      const Buffer<double> scalars("scalars", std::vector<double>{3, beta});
      input.check(3.0, beta, [&] {
        REQUIRE(plan.multiply(input.a.values.data(), input.x.data(), input.y.data(), input.y.data(),
                              ScaledOnDevice<double>{scalars.data(), scalars.data() + 1},
                              nullptr) == cudaSuccess);
      });
    }
  }
}

template <typename T>
void check_dot(int n) {
  CAPTURE(n, sizeof(T));
  const std::vector<T> u = test_vector<T>(n, 1);
  const std::vector<T> v = test_vector<T>(n, 2);
  const Buffer<T> u_device("u", u);
  const Buffer<T> v_device("v", v);
  long double expected = 0;
  long double magnitude = 0;
  for (int i = 0; i < n; ++i) {
    expected += static_cast<long double>(u[i]) * v[i];
    magnitude += std::abs(static_cast<long double>(u[i]) * v[i]);
  }
  DotProduct<T> dot;
  Buffer<T> result("result", 1);
  REQUIRE(dot.create() == cudaSuccess);
  std::vector<T> first;
  test::under_every_schedule([&] {
    REQUIRE(dot(n, u_device.data(), v_device.data(), result.data(), nullptr) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    const std::vector<T> got = result.download();
    if (first.empty()) first = got;
    CHECK(got == first);
  });
  const long double most = (n + 8) * std::numeric_limits<T>::epsilon() * magnitude;
  CHECK(std::abs(first[0] - expected) <= most);
}

TEST_CASE("one pass: a dot product is right, and has the same bits in every order of blocks",
          "[06]") {
  check_dot<double>(0);
  check_dot<float>(1);
  check_dot<double>(kDotThreads + 1);
  check_dot<float>(kDotBlocks * kDotThreads + 77);
}

// The lanes per row that a plan chooses; 0: tiles.
template <typename T>
int chosen_lanes(const Lengths& lengths, const OnePassOptions& options = {}) {
  Planned<T> planned(lengths, options, true);
  planned.check(T{1}, T{0});
  planned.check(T{3}, T{2});
  return planned.plan.lanes_per_row();
}

TEST_CASE("one pass: a plan chooses groups of lanes for rows that are alike, tiles for others",
          "[06]") {
  CHECK(chosen_lanes<double>(Lengths(70000, 5)) == 1);
  CHECK(chosen_lanes<float>(Lengths(9000, 30)) == 8);  // 4 for the length, 8 to occupy the device
  CHECK(chosen_lanes<double>(Lengths(300, 40)) == 32);
  CHECK(chosen_lanes<float>(Lengths(100, 800)) == 128);
  CHECK(chosen_lanes<double>(joined(Lengths(100, 800), {4000})) == 256);  // at most 3 iterations
  CHECK(chosen_lanes<float>(joined(Lengths(100, 800), {7000})) == 512);
  CHECK(chosen_lanes<double>(joined(Lengths(20, 5000), {10500})) == 1024);
  CHECK(chosen_lanes<float>(joined(Lengths(100, 800), {25000})) == 0);
  CHECK(chosen_lanes<double>(joined(Lengths(9000, 3), {700})) == 0);  // 9000 rows of 32 lanes
  CHECK(chosen_lanes<float>(joined({3}, Lengths(100, 0))) == 0);  // rows cost more than nonzeros
  CHECK(chosen_lanes<float>(Lengths(300, 40), {.path = OnePassPath::kTiles}) == 0);
}

TEST_CASE("one pass: long rows of any lengths have whole warps if the device is occupied", "[06]") {
  constexpr RowsStatistics kLongest2314{2314, {}, 0, 0, 0};  // 6,040 rows of 164 on average
  STATIC_REQUIRE(long_rows_width(6'040, 990'000, 2'314) == 6);
  STATIC_REQUIRE(rows_width(6'040, 990'000, kLongest2314, true) == 6);
  STATIC_REQUIRE(rows_width(6'040, 990'000, kLongest2314, false) == -1);
  STATIC_REQUIRE(long_rows_width(507, 400'000, 7'334) == 9);
  STATIC_REQUIRE(long_rows_width(36, 640'000, 42'032) == -1);  // 36 blocks of a row each
  STATIC_REQUIRE(long_rows_width(4'284, 1'100'000, 20'000) ==
                 -1);  // the longest row takes too long
}

TEST_CASE("one pass: blocks own the tiles where tiles are short and a row is long, not too long",
          "[06]") {
  constexpr OnePassShape kShort{300, 3000, 12, 250};
  STATIC_REQUIRE(block_tiles_suit(kShort, 300));
  STATIC_REQUIRE(block_tiles_suit(kShort, 10'800));
  STATIC_REQUIRE(!block_tiles_suit(kShort, 10'801));  // a block would be the last
  STATIC_REQUIRE(!block_tiles_suit(kShort, 256));
  STATIC_REQUIRE(!block_tiles_suit({769, 3000, 12, 250}, 3000));
  STATIC_REQUIRE(!block_tiles_suit({192, 100, 1, 100}, 300));  // a warp per block

  Planned<double> planned(joined(random_lengths(5000, 60, 6), {700, 0, 1400}), {}, true);
  CHECK(planned.plan.block_tiles());
  planned.check(1, 0);
  planned.check(3, 2);
}

TEST_CASE("one pass: beyond the L2, groups of lanes for short rows and for rows of whole warps",
          "[06]") {
  constexpr RowsStatistics kOneIteration{8, {}, 100, 50, 0};
  constexpr RowsStatistics kTwoIterations{9, {1}, 100, 50, 0};
  constexpr RowsStatistics kScattered{8, {}, 100, 49, 0};
  for (const bool l1_has_room : {false, true}) {
    CHECK(rows_suit_memory(4'000'000, 20'000'000, 0, kScattered, l1_has_room));
    CHECK(rows_suit_memory(4'000'000, 28'000'000, 0, kOneIteration, l1_has_room));
    CHECK(!rows_suit_memory(4'000'000, 28'000'000, 0, kScattered, l1_has_room));
    CHECK(rows_suit_memory(4'000'000, 28'000'000, 0, kTwoIterations, l1_has_room) == l1_has_room);
    CHECK(rows_suit_memory(500'000'000, 2'000'000'000, 0, kTwoIterations, l1_has_room));
    CHECK(rows_suit_memory(1'000'000, 16'000'000, 2, kTwoIterations, l1_has_room) == l1_has_room);
    CHECK(!rows_suit_memory(1'000'000, 16'000'000, 2, kScattered, l1_has_room));
    CHECK(!rows_suit_memory(1'000'000, 27'000'000, 2, kTwoIterations, l1_has_room));
    CHECK(!rows_suit_memory(1'000'000, 60'000'000, 4, kTwoIterations, l1_has_room));
    CHECK(!rows_suit_memory(100'000, 16'000'000, 5, kTwoIterations, l1_has_room));
    CHECK(rows_suit_memory(20'000, 16'000'000, 7, kTwoIterations, l1_has_room));
  }
  constexpr RowsStatistics kAlike{18, {}, 0, 0, 0};
  STATIC_REQUIRE(rows_width(1'500'000, 27'000'000, kAlike, true) == 2);
  STATIC_REQUIRE(rows_width(1'500'000, 27'000'000, kAlike, false) == -1);
  // Long and alike, with columns that cross: as few lanes as occupy the device.
  constexpr RowsStatistics kCrossing{2'500, {}, 100, 60, 40};
  STATIC_REQUIRE(crossing_rows_width(4'000, 7'500'000, kCrossing) == 6);
  STATIC_REQUIRE(crossing_rows_width(20'000, 30'000'000, kCrossing) == 5);
  STATIC_REQUIRE(crossing_rows_width(4'000, 7'500'000, {2'500, {}, 100, 60, 39}) == -1);
  STATIC_REQUIRE(crossing_rows_width(4'000, 7'500'000, {5'000, {}, 100, 60, 40}) == -1);
  STATIC_REQUIRE(crossing_rows_width(100, 200'000, kCrossing) == -1);
  STATIC_REQUIRE(crossing_rows_width(1'000'000, 60'000'000, kCrossing) == -1);
  STATIC_REQUIRE(rows_width(4'000, 7'500'000, kCrossing, false) == 6);
  STATIC_REQUIRE(rows_width(4'000, 7'500'000, {2'500, {}, 0, 0, 0}, false) == 8);
}

// What two blocks find out about rows with these offsets, and their columns unless there are none.
RowsStatistics statistics_of(const std::vector<int>& offsets, const std::vector<int>& columns) {
  const Buffer<int> row_offsets("row_offsets", offsets);
  const Buffer<int> column_indices("column_indices", columns);
  Buffer<RowsStatistics> statistics("statistics", std::vector<RowsStatistics>(2));
  device::launch(prepare_one_pass_kernel<float>, {dim3(2), dim3(kPrepareThreads)}, 0, 0, 1u,
                 static_cast<int>(offsets.size()) - 1, offsets.back(), row_offsets.data(),
                 static_cast<Tile*>(nullptr), static_cast<PartialSum<float>*>(nullptr),
                 static_cast<unsigned*>(nullptr), statistics.data(), column_indices.data());
  const std::vector<RowsStatistics> found = statistics.download();
  RowsStatistics both = found[0];
  both.add(found[1]);
  return both;
}

TEST_CASE("one pass: a sample of columns tells whether rows share x with their neighbours",
          "[06]") {
  static constexpr int kRows = 1'000;
  static constexpr int kLength = 6;
  const auto found = [](const auto& column) {
    std::vector<int> columns;
    for (int row = 0; row < kRows; ++row) {
      for (int k = 0; k < kLength; ++k) columns.push_back(column(row, k));
    }
    return statistics_of(offsets_of(Lengths(kRows, kLength)), columns);
  };
  const RowsStatistics banded = found([](int row, int k) { return row + k; });
  CHECK(banded.pairs >= kRows - 40);
  CHECK(banded.columns_are_near());
  CHECK(!banded.columns_cross());
  const RowsStatistics crossing = found([](int row, int k) { return 5'000 * k + row; });
  CHECK(crossing.columns_are_near());
  CHECK(crossing.columns_cross());
  const RowsStatistics scattered = found([](int row, int k) { return 1'000 * row + k; });
  CHECK(!scattered.columns_are_near());
  CHECK(!scattered.columns_cross());
  CHECK(!statistics_of({0, 2}, {0, 1}).columns_are_near());  // no pair
}

TEST_CASE("one pass: large matrices have tiles in waves, as the device's memory and L1 ask",
          "[06]") {
  constexpr DeviceFigures kH100{132, 1'980'000, 2'619'000, 5120};
  constexpr DeviceFigures kH200{132, 1'980'000, 3'201'000, 6016};
  STATIC_REQUIRE(kH100.l1_has_room());
  STATIC_REQUIRE(!kH200.l1_has_room());
  STATIC_REQUIRE(DeviceFigures{}.l1_has_room());  // a device that does not say
  int multiprocessors = 0;
  REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0) ==
          cudaSuccess);
  for (int time : {1, 2}) {  // the second is not asked of the device
    CAPTURE(time);
    DeviceFigures figures;
    REQUIRE(read_figures(&figures) == cudaSuccess);
    CHECK(figures.multiprocessors == multiprocessors);
    CHECK(figures.clock_khz > 0);
  }
  constexpr long long kL2 = 50LL << 20;
  const auto shape = [](auto value, int rows, int nnz, bool l1_has_room) {
    return one_pass_shape<decltype(value)>(rows, rows, nnz, 264, kL2, l1_has_room);
  };
  constexpr int kRows = 2'744'000;
  constexpr int kNonzeros = 73'034'632;  // 27 points on 140^3
  for (const OnePassShape& in_waves :
       {shape(1.0, kRows, kNonzeros, true), shape(1.0f, kRows, kNonzeros, true)}) {
    CHECK(in_waves.in_waves);
    CHECK(in_waves.tile_items == 1024);
    CHECK(in_waves.blocks * in_waves.warps_per_block >= in_waves.tile_count);
    CHECK((in_waves.blocks - 1) * in_waves.warps_per_block < in_waves.tile_count);
  }
  const OnePassShape per_warp = shape(1.0, kRows, kNonzeros, false);
  CHECK(!per_warp.in_waves);
  constexpr RowsStatistics kNear{27, {}, 10, 10, 0};
  constexpr RowsStatistics kScattered{27, {}, 10, 1, 0};
  constexpr RowsStatistics kOneLongRow{1'000'000, {}, 10, 10, 0};
  CHECK(far_warps(per_warp, 12, 12, kNear) == 12);
  CHECK(far_warps(per_warp, 12, 12, kOneLongRow) == 8);
  CHECK(far_warps(per_warp, 5, 12, kOneLongRow) == 5);
  const OnePassShape waves = shape(1.0f, kRows, kNonzeros, true);
  CHECK(far_warps(waves, 4, 12, kNear) == 4);
  CHECK(far_warps(waves, 4, 12, kScattered) == 12);
  CHECK(shape(1.0f, kRows, kNonzeros, false).tile_items == 2048);
  CHECK(!shape(1.0f, 1'000'000, 26'000'000, false).in_waves);  // fewer than 10 waves
  CHECK(!shape(1.0, 500'000, 9'000'000, true).in_waves);       // fewer than 4
  // In the L2 (of 200 MB) there are none.
  CHECK(!one_pass_shape<float>(kRows, kRows, 13'000'000, 264, 200LL << 20, true).in_waves);
}

// Products of kernels whose nonzeros end at the limit: of shifted arrays, since no machine here has
// as many. T: of all.
template <typename T>
void check_at_limit(const Lengths& lengths) {
  // An iteration begins at a multiple of 8 of the array's elements: so does the shift.
  const int pad = (kOnePassMost - offsets_of(lengths).back()) % 8;
  // No row is cut: counters are of absolute tiles.
  OnePassInput<T> input(joined(lengths, {pad}), 192, 5000);
  const int nnz = input.host.row_offsets.back();
  const int shift = kOnePassMost - nnz;
  std::vector<int> shifted = input.host.row_offsets;
  for (int& offset : shifted) offset += shift;
  const Buffer<int> offsets("row_offsets", shifted);
  std::vector<Tile> tiles = input.tiles.tiles.download();
  for (Tile& tile : tiles) tile.nnz_begin += shift;
  const Buffer<Tile> tiles_device("tiles", tiles);
  const auto before = [&](auto* array) {
    return reinterpret_cast<decltype(array)>(reinterpret_cast<std::uintptr_t>(array) -
                                             sizeof(*array) * static_cast<std::size_t>(shift));
  };
  const int* columns = before(input.a.column_indices.data());
  const T* values = before(input.a.values.data());
  const auto check = [&](auto kernel, int lanes, int blocks, int threads, auto... arguments) {
    CAPTURE(lanes);
    input.y.upload(input.y0);
    device::launch(kernel, {dim3(blocks), dim3(threads), sizeof(OnePassShared<T>)}, arguments...,
                   input.vectors(T{3}, T{2}));
    input.Input<T>::check_y(T{3}, T{2});
  };
  const int rows = input.host.rows;
  check(pcsr_rows_kernel<1, T>, 1, device::divide_up(rows, 256), 256, rows, true, offsets.data(),
        columns, values);
  check(pcsr_rows_kernel<1024, T>, 1024, rows, 1024, rows, true, offsets.data(), columns, values);
  OnePassArguments<T> arguments = input.arguments();
  arguments.tiles = tiles_device.data();
  arguments.row_offsets = offsets.data();
  arguments.column_indices = columns;
  arguments.values = values;
  check(pcsr_one_pass_kernel<T>, 0, input.tiles.count, 32, arguments);
}

TEST_CASE("one pass: the limit of nonzeros and rows holds, and one more is refused", "[06]") {
  check_at_limit<double>({300, 0, 7, 255, 1});
  check_at_limit<float>(joined(Lengths(70, 3), {1500, 0, 0, 9}));
  const Buffer<int> some("some", std::vector<int>{0, 0});
  const int* array = some.data();
  CHECK(OnePassPlan<double>().create({1, 1, kOnePassMost, array, array}) == cudaSuccess);
  CHECK(OnePassPlan<double>().create({1, 1, kOnePassMost + 1, array, array}) ==
        cudaErrorInvalidValue);
  CHECK(OnePassPlan<float>().create({kOnePassMost, 1, 1, array, array}) == cudaSuccess);
  CHECK(OnePassPlan<float>().create({kOnePassMost + 1, 1, 1, array, array}) ==
        cudaErrorInvalidValue);
}

TEST_CASE("one pass: rows of fewer than 4 nonzeros have a lane each", "[06]") {
  constexpr RowsStatistics kTwo{2, {}, 0, 0, 0};
  STATIC_REQUIRE(rows_width(400'000, 800'000, kTwo, true) == 0);
  STATIC_REQUIRE(rows_width(30'000'000, 60'000'000, kTwo, false) == 0);
  constexpr RowsStatistics kUpTo12{12, {100}, 0, 0, 0};
  STATIC_REQUIRE(rows_width(400'000, 800'000, kUpTo12, true) == 0);
  STATIC_REQUIRE(rows_width(30'000'000, 60'000'000, kUpTo12, false) == -1);  // not alike
  constexpr RowsStatistics kUpTo60{
      60, {40'000, 15'000, 2'000}, 0, 0, 0};  // 4 lanes, most without nonzeros
  STATIC_REQUIRE(rows_width(400'000, 800'000, kUpTo60, true) == -1);
}

TEST_CASE("one pass: more lanes where they save later iterations, in the L2", "[06]") {
  constexpr RowsStatistics kHalfTwice{
      31, {20'000, 7'000}, 0, 0, 0};  // of the warps, with 2 lanes per row
  STATIC_REQUIRE(rows_width(100'000, 1'500'000, kHalfTwice, true) == 2);
  constexpr RowsStatistics kFewTwice{31, {20'000, 2'000}, 0, 0, 0};
  STATIC_REQUIRE(rows_width(100'000, 1'500'000, kFewTwice, true) == 1);
}

TEST_CASE("one pass: statistics of row lengths", "[06]") {
  const Lengths lengths = joined(random_lengths(1000, 90, 4), {3000, 0});
  const auto rows = static_cast<int>(lengths.size());
  const RowsStatistics both = statistics_of(offsets_of(lengths), {});
  CHECK(both.longest == 3000);
  CHECK(both.pairs == 0);
  for (int w = 0; w < kRowsWidths; ++w) {
    const int rows_per_warp = std::max(32 >> w, 1);
    long long iterations = 0;
    for (int first = 0; first < rows; first += rows_per_warp) {
      const int last = std::min(first + rows_per_warp, rows);
      const int longest = *std::max_element(&lengths[first], &lengths[first] + (last - first));
      iterations += std::max(device::divide_up(longest, kRowsItemsPerThread << w), 1);
    }
    CAPTURE(w);
    CHECK(both.iterations(w, rows) == iterations);
  }
}

TEST_CASE("one pass: a plan in a graph, moved, and used twice", "[06]") {
  for (const OnePassPath path : {OnePassPath::kTiles, OnePassPath::kAutomatic}) {
    Planned<double> planned(joined(random_lengths(300, 30, 5), Lengths(20, 60)),
                            {.overlap = true, .path = path});
    CHECK((planned.plan.lanes_per_row() > 0) == (path == OnePassPath::kAutomatic));
    OnePassPlan<double> moved(std::move(planned.plan));
    planned.plan = std::move(moved);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    device::check(cudaStreamBeginCapture(planned.stream.get(), cudaStreamCaptureModeGlobal), "");
    CHECK(planned.multiply(2, 0) == cudaSuccess);
    CHECK(planned.multiply(3, 0) == cudaSuccess);
    device::check(cudaStreamEndCapture(planned.stream.get(), &graph), "");
    device::check(cudaGraphInstantiate(&executable, graph, 0), "");
    for (int repetition = 0; repetition < 2; ++repetition) {
      planned.y.upload(planned.y0);
      device::check(cudaGraphLaunch(executable, planned.stream.get()), "");
      planned.stream.synchronize();
      planned.check_y(3, 0);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
}

#ifndef SPMV_CUDA
// Whether overlapped products, each of which reads what the one before writes, give A^4 x.
template <typename Multiply>
bool powers_are_right(const Csr<double>& host, const Multiply& multiply) {
  std::vector<double> expected = test_vector<double>(host.cols, 1);
  Buffer<double> x("x", expected);
  for (int i = 0; i < 4; ++i) {
    std::vector<double> next(host.rows);
    for (Index row = 0; row < host.rows; ++row) {
      for (Index k = host.row_offsets[row]; k < host.row_offsets[row + 1]; ++k) {
        next[row] += host.values[k] * expected[host.column_indices[k]];
      }
    }
    expected = next;
  }
  Buffer<double> y("y", std::vector<double>(host.rows, 0.0));
  const device::Stream stream;
  for (int i = 0; i < 4; ++i) {
    multiply(i % 2 ? y.data() : x.data(), i % 2 ? x.data() : y.data(), stream.get());
  }
  stream.synchronize();
  const std::vector<double> got = x.download();
  for (Index row = 0; row < host.rows; ++row) {
    if (!(std::abs(got[row] - expected[row]) <= 1e-9 * (1 + std::abs(expected[row])))) return false;
  }
  return true;
}

TEST_CASE("one pass: overlapped products wait for x; a wait that is too late is found out",
          "[06]") {
  const auto square_of = [](const Lengths& lengths) {
    Csr<double> square = csr_of<double>(lengths);
    for (Index& column : square.column_indices) column %= square.rows;
    square.cols = square.rows;
    return square;
  };
  for (const Lengths& lengths : {Lengths(300, 7), joined(Lengths(299, 2), {2000})}) {
    const Csr<double> host = square_of(lengths);
    const device::DeviceCsr<double> a(host);
    const auto plan = plan_of<double>(pattern_of(a), {.overlap = true});
    CHECK(powers_are_right(host, [&](const double* x, double* y, cudaStream_t stream) {
      CHECK(plan.multiply(1, a.values.data(), x, 0, y, stream) == cudaSuccess);
    }));
  }
  if (!simt::is_instrumented()) return;
  // Tiles of one iteration, so that the mutant needs no loop.
  const Csr<double> host = square_of(Lengths(300, 7));
  const device::DeviceCsr<double> a(host);
  Tiles<double> tiles(host.row_offsets, 192, 40);
  const auto late_wait = [&](const double* x, double* y, cudaStream_t stream) {
    device::launch(late_wait_kernel<double>, {dim3(tiles.count), dim3(32), 0, stream, true},
                   tiles.arguments(a), PlainVectors<double>{x, nullptr, y, {1, 0}});
  };
  simt::set_quiet_reports(true);
  std::string report;
  try {
    powers_are_right(host, late_wait);
  } catch (const device::DeviceError& error) {
    report = error.what();
  }
  simt::set_quiet_reports(false);
  CHECK(report.find("before it waits by cudaGridDependencySynchronize()") != std::string::npos);
}
#endif

TEST_CASE("one pass: a plan that is not ready refuses, and writes nothing", "[06]") {
  Input<double> input({3, 0, 5});
  const CsrPattern good = pattern_of(input.a);
  CsrPattern bad = good;
  bad.nnz = -1;
  const double* values = input.a.values.data();
  const auto refuses = [&](const OnePassPlan<double>& plan) {
    input.y.upload(input.y0);
    const double* x = input.x.data();
    double* y = input.y.data();
    CHECK(!plan.is_prepared());
    CHECK(plan.multiply(1, values, x, 0, y, nullptr) == cudaErrorIllegalState);
    CHECK(plan.multiply(values, x, y, y, AddRow{}, nullptr) == cudaErrorIllegalState);
    CHECK(plan.multiply_several(2, 1, values, x, 0, y, nullptr) == cudaErrorIllegalState);
    CHECK(plan.multiply_transposed(1, values, x, 0, y, nullptr) == cudaErrorIllegalState);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(input.y.download() == input.y0);
  };
  refuses(OnePassPlan<double>());
  CHECK(OnePassPlan<double>().prepare(nullptr) == cudaErrorIllegalState);

  OnePassPlan<double> plan = plan_of<double>(good);
  OnePassPlan<double> taken(std::move(plan));
  refuses(plan);
  plan = std::move(taken);
  refuses(taken);
  CHECK(taken.prepare(nullptr) == cudaErrorIllegalState);
  CHECK(plan.multiply(1, values, input.x.data(), 0, input.y.data(), nullptr) == cudaSuccess);

  CHECK(plan.create(bad) == cudaErrorInvalidValue);  // and what it was before is gone
  refuses(plan);
  REQUIRE(plan.create(good) == cudaSuccess);
  refuses(plan);
  REQUIRE(plan.prepare(nullptr) == cudaSuccess);
  CHECK(plan.multiply(3, values, input.x.data(), 0, input.y.data(), nullptr) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  input.check_y(3, 0);

  OnePassTranspose transpose;
  Buffer<double> transposed("transposed values", 8);
  CHECK(transpose.gather(values, transposed.data(), nullptr) == cudaErrorIllegalState);
  REQUIRE(transpose.create(good, nullptr) == cudaSuccess);
  OnePassTranspose its_pattern(std::move(transpose));
  CHECK(transpose.gather(values, transposed.data(), nullptr) == cudaErrorIllegalState);
  CHECK(its_pattern.gather(values, transposed.data(), nullptr) == cudaSuccess);
  CHECK(DotProduct<double>()(0, nullptr, nullptr, nullptr, nullptr) == cudaErrorIllegalState);
}

TEST_CASE("one pass: row offsets that are not 0 to nnz, ascending, are refused on every path",
          "[06]") {
  const Lengths lengths(300, 40);
  Input<float> input(lengths);
  const std::vector<int> good = offsets_of(lengths);
  const auto prepared = [&](const std::vector<int>& offsets, OnePassPath path) {
    const Buffer<int> row_offsets("row_offsets", offsets);
    CsrPattern pattern = pattern_of(input.a);
    pattern.row_offsets = row_offsets.data();
    OnePassPlan<float> plan;
    REQUIRE(plan.create(pattern, {.path = path}) == cudaSuccess);
    const cudaError_t error = plan.prepare(nullptr);
    CHECK(plan.is_prepared() == (error == cudaSuccess));
    return error;
  };
  for (const OnePassPath path : {OnePassPath::kTiles, OnePassPath::kAutomatic}) {
    CHECK(prepared(good, path) == cudaSuccess);
    std::vector<int> from_one = good;
    for (int& offset : from_one) ++offset;
    CHECK(prepared(from_one, path) == cudaErrorInvalidValue);
    std::vector<int> too_short = good;
    --too_short.back();
    CHECK(prepared(too_short, path) == cudaErrorInvalidValue);
    std::vector<int> descends = good;
    std::swap(descends[100], descends[101]);
    CHECK(prepared(descends, path) == cudaErrorInvalidValue);
  }
}

#ifndef SPMV_CUDA
TEST_CASE("one pass: products overlap only if they were compiled to wait", "[06]") {
  const Buffer<int> offsets("row_offsets", std::vector<int>{0, 0});
  const CsrPattern pattern{1, 1, 0, offsets.data(), nullptr};
  for (const int compiled_for : {75, 80, 90, 100}) {
    simt::settings().compiled_for = compiled_for;
    OnePassPlan<double> plan;
    REQUIRE(plan.create(pattern, {.overlap = true}) == cudaSuccess);
    CHECK(plan.overlaps() == (compiled_for >= 90));
    bool can = false;
    CHECK(can_overlap(pcsr_rows_kernel<1, double>, &can) == cudaSuccess);
    CHECK(can == (compiled_for >= 90));
  }
  simt::settings().compiled_for = 90;
}
#endif

TEST_CASE("one pass: a plan refuses what it cannot do, and empty matrices need nothing", "[06]") {
  OnePassPlan<float> plan;
  const Buffer<int> offsets("row_offsets", std::vector<int>{0, 0});
  Buffer<float> workspace("workspace", 8);
  CHECK(plan.create({-1, 1, 0, nullptr, nullptr}) == cudaErrorInvalidValue);
  CHECK(plan.create({1, 1, -1, offsets.data(), nullptr}) == cudaErrorInvalidValue);
  CHECK(plan.create({1, 1, 0, nullptr, nullptr}) == cudaErrorInvalidValue);
  CHECK(plan.create({1, 1, 1, offsets.data(), nullptr}) == cudaErrorInvalidValue);
  const CsrPattern largest{std::numeric_limits<int>::max(), 1, std::numeric_limits<int>::max(),
                           offsets.data(), offsets.data()};
  CHECK(plan.create(largest) == cudaErrorInvalidValue);
  CHECK(plan.create({0, 1, 1, nullptr, offsets.data()}) == cudaErrorInvalidValue);
  CHECK(plan.create({1, 0, 1, offsets.data(), offsets.data()}) == cudaErrorInvalidValue);
  std::size_t bytes = 1;
  CHECK(OnePassPlan<float>::workspace_bytes(largest, &bytes) == cudaErrorInvalidValue);
  CHECK(bytes == 0);
  CHECK(OnePassPlan<float>::workspace_bytes({1, 1, 0, nullptr, nullptr}, &bytes) ==
        cudaErrorInvalidValue);
  CHECK(OnePassPlan<float>::workspace_bytes({}, &bytes, {.most_vectors = 3}) ==
        cudaErrorInvalidValue);
  const CsrPattern one_empty_row{1, 1, 0, offsets.data(), nullptr};
  CHECK(plan.create(one_empty_row, {}, workspace.data() + 1) == cudaErrorInvalidValue);
  CHECK(plan.create({}) == cudaSuccess);
  CHECK(plan.workspace_bytes() == 0);
  CHECK(plan.prepare(nullptr) == cudaSuccess);
  CHECK(plan.multiply(1, nullptr, nullptr, 0, nullptr, nullptr) == cudaSuccess);
}

}  // namespace
}  // namespace spmv
