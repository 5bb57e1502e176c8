#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/launch.hpp"
#include "harness/run.hpp"
#include "harness/verify.hpp"
#include "segscan_block.cuh"
#include "segscan_shuffle.cuh"
#include "sorted_triplets.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

using namespace spmv;

namespace {

// Row r has lengths[r] nonzeros, in columns that repeat when they run out.
template <typename T>
Coo<T> coo_with(const std::vector<Index>& lengths, Index cols) {
  Coo<T> coo{static_cast<Index>(lengths.size()), cols, {}, {}, {}};
  std::mt19937 random(7);
  for (Index row = 0; row < coo.rows; ++row) {
    for (Index i = 0; i < lengths[row]; ++i) {
      const auto value = static_cast<T>(static_cast<double>(random() % 2001) / 1000 - 1);
      coo.add(row, (17 * row + i) % cols, value);
    }
  }
  return coo;
}

template <typename T>
Matrix<T> matrix_of(Coo<T> coo) {
  Matrix<T> matrix;
  matrix.csr = to_csr(coo);
  matrix.coo = std::move(coo);
  return matrix;
}

template <typename T>
Coo<T> permuted(const Coo<T>& coo, const std::vector<std::size_t>& order) {
  Coo<T> other = coo;
  for (std::size_t k = 0; k < order.size(); ++k) {
    other.row_indices[k] = coo.row_indices[order[k]];
    other.column_indices[k] = coo.column_indices[order[k]];
    other.values[k] = coo.values[order[k]];
  }
  return other;
}

// Rows shorter and longer than a warp, a chunk and a tile, empty ones among them.
std::vector<Index> mixed_lengths() {
  std::vector<Index> lengths;
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) lengths.push_back(static_cast<Index>(random() % 12));
  for (const Index length : {0, 1, kTile - 1, 1, kChunk, kTile + 1, 0, 3 * kTile + 5, 33, 500}) {
    lengths.push_back(length);
  }
  for (int i = 0; i < 400; ++i) lengths.push_back(static_cast<Index>(random() % 90));
  return lengths;
}

template <typename T>
void check_verified(const Matrix<T>& matrix, const std::string& what) {
  const device::DeviceCsr<T> csr(matrix.csr);
  const Problem<T> problem{matrix, csr};
  for (const double beta : {0.0, -0.5}) {
    const Bench<T> bench(problem, {.alpha = 0.75, .beta = beta, .measure = false});
    for (const Kernel* kernel : find_kernels("segscan_*")) {
      const Record record = bench.run(*kernel);
      INFO(what << ", " << kernel->info.name << ", beta " << beta << ": " << record.failure);
      CHECK(record.verified);
    }
  }
}

std::vector<Index> moved_chunks(const std::vector<Index>& row_indices) {
  const auto nnz = static_cast<Index>(row_indices.size());
  const int chunks = device::divide_up(nnz, kChunk);
  const device::Buffer<Index> rows("row_indices", row_indices);
  device::Buffer<Index> begins("chunk_begins", static_cast<std::size_t>(chunks) + 1);
  device::launch(move_chunks_kernel, {dim3(device::divide_up(chunks + 1, 64)), dim3(64)}, nnz,
                 chunks, rows.data(), begins.data());
  device::check(cudaDeviceSynchronize(), "moving chunks");
  return begins.download();
}

}  // namespace

TEST_CASE("step 05: every kernel is right on every matrix", "[05]") {
  test::check_kernels_of_step(5);
}

TEST_CASE("step 05: chunks are moved to where rows begin", "[05]") {
  const std::vector<std::vector<Index>> shapes = {
      {},
      {1},
      {kChunk},
      {kChunk - 1, 2},
      {kChunk, kChunk},
      {1, 10 * kChunk, 1},
      {10 * kChunk},
      {5, 0, 0, 3 * kChunk - 5, 4, 0},
      mixed_lengths(),
      std::vector<Index>(3 * kChunk, 1),
      std::vector<Index>(700, 7),
  };
  for (const std::vector<Index>& lengths : shapes) {
    const Coo<float> coo = coo_with<float>(lengths, 50);
    const std::vector<Index> begins = moved_chunks(coo.row_indices);
    CAPTURE(lengths.size(), coo.nnz());
    REQUIRE(begins.size() == static_cast<std::size_t>(device::divide_up(coo.nnz(), kChunk)) + 1);
    std::vector<Index> row_begins = {0};
    for (const Index length : lengths) row_begins.push_back(row_begins.back() + length);
    for (std::size_t chunk = 0; chunk < begins.size(); ++chunk) {
      const Index unmoved = std::min(static_cast<Index>(chunk) * kChunk, coo.nnz());
      CHECK(begins[chunk] == *std::lower_bound(row_begins.begin(), row_begins.end(), unmoved));
    }
  }
}

TEMPLATE_TEST_CASE("step 05: a row over many blocks", "[05]", float, double) {
  // More tiles than a warp has lanes, so that the warp that adds up the carries takes several
  // iterations.
  for (const Index length : {32 * kTile, 40 * kTile + 77}) {
    for (const Index before : {0, 1, kTile - 1}) {
      std::vector<Index> lengths(20, 0);
      lengths[2] = before;
      lengths[5] = length;
      lengths[6] = 3;
      lengths[18] = 2 * kTile;
      check_verified(matrix_of(coo_with<TestType>(lengths, length)),
                     std::to_string(length) + " after " + std::to_string(before));
    }
  }
}

TEMPLATE_TEST_CASE("step 05: triplets in any order", "[05]", float, double) {
  const Coo<TestType> sorted = coo_with<TestType>(mixed_lengths(), 7000);
  std::vector<std::size_t> order(sorted.values.size());
  std::iota(order.begin(), order.end(), 0);
  check_verified(matrix_of(sorted), "sorted");
  std::reverse(order.begin(), order.end());
  check_verified(matrix_of(permuted(sorted, order)), "reversed");
  std::shuffle(order.begin(), order.end(), std::mt19937(11));
  check_verified(matrix_of(permuted(sorted, order)), "shuffled");
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sorted.column_indices[a] < sorted.column_indices[b];
  });
  check_verified(matrix_of(permuted(sorted, order)), "by column, as many files are");

  Matrix<TestType> without_triplets = matrix_of(sorted);
  without_triplets.coo = {};
  check_verified(without_triplets, "from CSR");
  check_verified(matrix_of(coo_with<TestType>(mixed_lengths(), 900)), "some of them twice");
}

TEMPLATE_TEST_CASE("step 05: the same bits in every run", "[05]", float, double) {
  const Matrix<TestType> matrix = matrix_of(coo_with<TestType>(mixed_lengths(), 4000));
  test::check_same_bits("segscan_block,segscan_shuffle", matrix);
}
