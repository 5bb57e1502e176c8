#include <algorithm>
#include <limits>
#include <numeric>

#include "csr_adaptive.cuh"
#include "csr_adaptive_blocks.cuh"
#include "device/launch.hpp"
#include "device/texture.hpp"
#include "harness/kernel.hpp"
#include "harness/verify.hpp"
#include "pcsr_sums.cuh"
#include "test_lengths.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"
#include "tests/schedules.hpp"

namespace spmv {

// Algorithm 3 letter by letter, to show what is wrong in it; `line_15` tells whether that line is
// mended. Needs arrays with room for whole blocks, or it would reach past their ends.
template <int threadsPerBlock, bool line_15_mended>
__global__ void printed_sums_kernel(const double* v, const int* ptr, double* y,
                                    int sizeSharedMemory) {
  extern __shared__ __align__(16) unsigned char printed_piece[];
  double* const v_s = reinterpret_cast<double*>(printed_piece);                // (01)
  __shared__ int ptr_s[threadsPerBlock + 1];                                   // (02)
  const int gid = threadIdx.x + blockIdx.x * blockDim.x;                       // (03)
  const int tid = threadIdx.x;                                                 // (04)
  ptr_s[tid] = ptr[gid];                                                       // (05)
  if (tid == 0) ptr_s[threadsPerBlock] = ptr[gid + threadsPerBlock];           // (06)
  __syncthreads();                                                             // (07)
  const int temp = (ptr_s[threadsPerBlock] - ptr_s[0]) / threadsPerBlock + 1;  // (08)
  const int nlen = min(temp * threadsPerBlock, sizeSharedMemory);              // (09)
  double sum = 0.0;                                                            // (10)
  const int maxlen = ptr_s[threadsPerBlock];                                   // (10)
  for (int i = ptr_s[0]; i < maxlen; i += nlen) {                              // (11)
    int index = i + tid;                                                       // (12)
    __syncthreads();                                                           // (13)
    for (int j = 0; j < nlen / threadsPerBlock; ++j) {                         // (14)
      if (index < (line_15_mended ? maxlen : nlen)) {                          // (15)
        v_s[tid + j * threadsPerBlock] = v[index];                             // (16)
        index += threadsPerBlock;                                              // (17)
      }
    }
    __syncthreads();                                            // (20)
    if (!(ptr_s[tid + 1] <= i || ptr_s[tid] > i + nlen - 1)) {  // (21)
      const int row_s = max(ptr_s[tid] - i, 0);                 // (22)
      const int row_e = min(ptr_s[tid + 1] - i, nlen);          // (23)
      for (int j = row_s; j < row_e; ++j) sum += v_s[j];        // (24) to (26)
    }
  }
  y[gid] = sum;  // (29)
}
namespace {

using device::Buffer;

// A matrix with a kernel set up for it, by name, and an x.
template <typename T>
class Product {
 public:
  Product(const std::string& kernel, const Csr<T>& a)
      : csr_(a),
        x_host_(test_vector<T>(a.cols, 1)),
        reference_(make_reference(a, T{1}, x_host_, T{0}, {})),
        x_("x", x_host_),
        spmv_(find_kernels(kernel)[0]->set_up(Problem<T>{host_, csr_})) {
    spmv_->preprocess(stream_.get());
  }
  std::vector<T> multiply() { return multiply(x_); }
  std::vector<T> multiply(const Buffer<T>& x) {
    Buffer<T> y("y", std::vector<T>(csr_.rows, std::numeric_limits<T>::quiet_NaN()));
    spmv_->multiply(T{1}, x.data(), T{0}, y.data(), stream_.get());
    stream_.synchronize();
    return y.download();
  }
  const std::vector<T>& x_host() const { return x_host_; }
  const Reference& reference() const { return reference_; }

 private:
  Matrix<T> host_;  // no kernel of this step looks at it
  device::DeviceCsr<T> csr_;
  std::vector<T> x_host_;
  Reference reference_;
  Buffer<T> x_;
  device::Stream stream_;
  std::unique_ptr<Spmv<T>> spmv_;
};

// --- PCSR ---------------------------------------------------------------------------------------

// The sums of kernel 2 must be those of a loop, bit for bit: it adds a row in order, whatever the
// pieces. The first of the products stands at `first` of an array that is not there before it.
template <int threads, typename T>
void check_sums(const Lengths& lengths, int piece_size, int first = 0) {
  const std::vector<int> offsets = offsets_of(lengths, first);
  std::vector<T> products;
  std::vector<T> expected;
  Rng rng(lengths.size());
  for (const int length : lengths) {
    T sum = 0;
    for (int j = 0; j < length; ++j) {
      products.push_back(signed_unit_value<T>(rng.bits64()) / T{3});
      sum += products.back();
    }
    expected.push_back(sum);
  }
  const auto rows = static_cast<int>(lengths.size());
  const Buffer<int> row_offsets("row_offsets", offsets);
  const Buffer<T> middle("middle", products);
  Buffer<T> y("y", rows);
  device::launch(pcsr_sums_kernel<threads, T>,
                 {dim3(device::divide_up(rows, threads)), dim3(threads), piece_size * sizeof(T)},
                 rows, row_offsets.data(), middle.data() - first, piece_size, T{1}, T{0}, y.data());
  CAPTURE(threads, piece_size, rows, first);
  CHECK(same_bits(y.download(), expected));
}

TEST_CASE("PCSR's sums do not depend on the size of shared memory", "[06]") {
  constexpr int kThreads = 32;
  for (const int rows :
       {1, kThreads - 1, kThreads, kThreads + 1, 3 * kThreads - 1, 3 * kThreads + 1}) {
    // A piece of one product, pieces around a block's threads, and one for all.
    for (const int piece_size : {1, 2, 31, 32, 33, 63, 64, 65, 200, 5000}) {
      const Lengths lengths = random_lengths(rows, 12, static_cast<std::uint64_t>(rows));
      check_sums<kThreads, float>(lengths, piece_size);
      check_sums<kThreads, double>(lengths, piece_size);
    }
  }
  check_sums<128, float>(random_lengths(700, 20, 7), 1024);  // as the step launches it
}

TEST_CASE("PCSR's pieces end at, before and after the ends of rows", "[06]") {
  constexpr int kPiece = 64;
  for (const int length : {kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 5 * kPiece + 3}) {
    test::under_every_schedule([&] {
      check_sums<32, double>(Lengths(5, length), kPiece);                // every row
      check_sums<32, double>({0, 0, length, 0, 1, 0}, kPiece);           // one among empty ones
      check_sums<32, double>(joined(Lengths(31, 0), {length}), kPiece);  // the block's last
      check_sums<32, double>(joined(Lengths(32, 2), {length}), kPiece);  // the next block's first
    });
  }
}

TEST_CASE("PCSR's positions up to 2^31 - 1 do not overflow", "[06]") {
  const Lengths lengths = joined(random_lengths(70, 12, 3), {400, 0, 0});
  const int nonzeros = std::accumulate(lengths.begin(), lengths.end(), 0);
  for (const int piece_size : {1, 50, 3000}) {
    check_sums<32, float>(lengths, piece_size, std::numeric_limits<int>::max() - nonzeros);
  }
}

// How many of `rows` rows of 4 products Algorithm 3 gets wrong; and how many elements of y after
// them it writes.
struct Wrong {
  int rows, after;
};
template <bool line_15_mended>
Wrong wrong_in_print(int rows, int piece_size) {
  constexpr int kThreads = 32;
  const int blocks = device::divide_up(rows, kThreads);
  std::vector<int> offsets = offsets_of(Lengths(rows, 4));
  offsets.resize(blocks * kThreads + 1, offsets.back());
  std::vector<double> products(4 * rows + 2 * kThreads);
  std::iota(products.begin(), products.end(), 1.0);
  const Buffer<int> ptr("row_offsets", offsets);
  const Buffer<double> v("middle", products);
  Buffer<double> y_device("y", std::vector<double>(blocks * kThreads, -1.0));
  device::launch(printed_sums_kernel<kThreads, line_15_mended>,
                 {dim3(blocks), dim3(kThreads), piece_size * sizeof(double)}, v.data(), ptr.data(),
                 y_device.data(), piece_size);
  const std::vector<double> y = y_device.download();
  Wrong wrong{0, 0};
  for (int row = 0; row < rows; ++row) wrong.rows += y[row] != 16.0 * row + 10.0;
  for (int i = rows; i < blocks * kThreads; ++i) wrong.after += y[i] != -1.0;
  return wrong;
}

TEST_CASE("Algorithm 3 as it is printed is wrong", "[06]") {
  [[maybe_unused]] const test::Unchecked unchecked;
  // Line 15: a block loads what lies before position nlen. The first finds its products there if
  // they are one piece; the second and third do not.
  CHECK(wrong_in_print<false>(32, 1024).rows == 0);
  CHECK(wrong_in_print<false>(32, 64).rows > 0);
  CHECK(wrong_in_print<false>(96, 1024).rows > 32);
  CHECK(wrong_in_print<true>(32, 64).rows == 0);
  CHECK(wrong_in_print<true>(96, 1024).rows == 0);
  // Lines 9 and 14: of 100 elements of shared memory 96 are loaded, and 100 are added up; of fewer
  // than a block has threads, none are loaded.
  CHECK(wrong_in_print<true>(96, 96).rows == 0);
#ifndef SPMV_CUDA
  // (On a GPU the four hold what they held before: the right products, if a block left them there.)
  CHECK(wrong_in_print<true>(96, 100).rows > 0);
#endif
  CHECK(wrong_in_print<true>(96, 31).rows > 64);
  // Lines 5, 6 and 29: the last block reads and writes as if it were full.
  CHECK(wrong_in_print<true>(70, 1024).rows == 0);
  CHECK(wrong_in_print<true>(70, 1024).after == 26);
}

template <typename T>
void check_texture_limit() {
  const std::size_t limit = device::LinearTexture<T>::max_elements();
  if (limit >= static_cast<std::size_t>(std::numeric_limits<Index>::max())) return;
  const Matrix<T> host;
  Csr<T> a = csr_of<T>({1});
  a.cols = static_cast<Index>(limit);
  const Kernel& kernel = *find_kernels("pcsr_texture")[0];
  const device::DeviceCsr<T> fits(a);
  CHECK_NOTHROW(kernel.set_up(Problem<T>{host, fits}));
  ++a.cols;
  const device::DeviceCsr<T> does_not(a);
  CHECK_THROWS_AS(kernel.set_up(Problem<T>{host, does_not}), Unsuitable);
  CHECK_THROWS_WITH(kernel.set_up(Problem<T>{host, does_not}),
                    "x has " + std::to_string(limit + 1) + " elements; a texture has at most " +
                        std::to_string(limit));
  CHECK_NOTHROW(find_kernels("pcsr")[0]->set_up(Problem<T>{host, does_not}));
}

TEST_CASE("a vector too long for a texture is refused, and only there", "[06]") {
  check_texture_limit<float>();
  check_texture_limit<double>();
}

template <typename T>
void check_texture_of_each_vector() {
  const Csr<T> a = csr_of<T>(random_lengths(300, 40, 5));
  Product<T> texture("pcsr_texture", a);
  Product<T> plain("pcsr", a);
  const Buffer<T> first("x", texture.x_host());
  const Buffer<T> second("x", test_vector<T>(a.cols, 2));
  for (int round = 0; round < 2; ++round) {
    for (const Buffer<T>* x : {&first, &second}) {
      CHECK(same_bits(texture.multiply(*x), plain.multiply(*x)));
    }
  }
  CHECK_FALSE(same_bits(texture.multiply(first), texture.multiply(second)));
}

TEST_CASE("a texture gives what a plain load gives, for each of several vectors", "[06]") {
  check_texture_of_each_vector<float>();
  check_texture_of_each_vector<double>();
}

// --- CSR-Adaptive -------------------------------------------------------------------------------

// What row_blocks_kernel must promise of rows of these lengths.
template <int row_block>
void check_row_blocks(const Lengths& lengths, int first = 0) {
  const std::vector<int> offsets = offsets_of(lengths, first);
  const auto rows = static_cast<int>(lengths.size());
  const auto blocks = static_cast<int>((1LL * rows + offsets.back() + row_block - 1) / row_block);
  const Buffer<int> row_offsets("row_offsets", offsets);
  Buffer<int> block_rows_device("block_rows", blocks + 1);
  // Set beforehand, since all of it is read here, not only what the kernel wrote.
  Buffer<int> shared_rows_device("shared_rows",
                                 std::vector<int>(offsets.back() / shared_row(row_block)));
  Buffer<int> counter("shared_row_counter", std::vector<int>{0});
  device::launch(row_blocks_kernel<row_block>, {dim3(blocks / 64 + 1), dim3(64)}, rows, blocks,
                 row_offsets.data(), block_rows_device.data(), shared_rows_device.data(),
                 counter.data());
  const std::vector<int> block_rows = block_rows_device.download();
  std::vector<int> shared_rows = shared_rows_device.download();
  shared_rows.resize(counter.download()[0]);
  CAPTURE(row_block, rows, first);

  // Every row in one block.
  REQUIRE(block_rows.front() == 0);
  REQUIRE(block_rows.back() == rows);
  REQUIRE(std::is_sorted(block_rows.begin(), block_rows.end()));

  int blocks_too_large = 0;
  std::vector<int> blocks_within(rows);  // of each row: blocks that have no row and lie in it
  for (int b = 0; b < blocks; ++b) {
    const int begin = block_rows[b];
    const int end = block_rows[b + 1];
    if (begin == end) {
      if (begin > 0) ++blocks_within[begin - 1];
      continue;
    }
    // Rows before the last are short, and fit; so does the last with them, unless it is long.
    const int before_last = offsets[end - 1] - offsets[begin];
    const bool last_is_long = lengths[end - 1] > long_row(row_block);
    blocks_too_large += end - begin > row_block || before_last >= row_block ||
                        (!last_is_long && offsets[end] - offsets[begin] > 2 * row_block);
  }
  CHECK(blocks_too_large == 0);

  // Just the rows that are long enough are shared, each listed once, and by at least 7 blocks.
  std::vector<int> expected;
  int shared_by_too_few = 0;
  for (int row = 0; row < rows; ++row) {
    if (lengths[row] <= shared_row(row_block)) continue;
    expected.push_back(row);
    shared_by_too_few += blocks_within[row] < 7;
  }
  std::sort(shared_rows.begin(), shared_rows.end());
  CHECK(shared_rows == expected);
  CHECK(shared_by_too_few == 0);
}

TEST_CASE("CSR-Adaptive: row blocks have every row once, and none too many", "[06]") {
  constexpr int kBlock = 32;
  for (const int n : {1, kBlock - 1, kBlock, kBlock + 1, 10 * kBlock}) {
    check_row_blocks<kBlock>(Lengths(n, 0));
    check_row_blocks<kBlock>(Lengths(n, 1));
    check_row_blocks<kBlock>({n});
    check_row_blocks<kBlock>(joined({n}, Lengths(n, 0)));
    check_row_blocks<kBlock>(joined(Lengths(n, 0), {n, 8 * n}));
  }
  // Lengths around those where a row becomes long, and shared; at the end, too.
  for (const int n :
       {kBlock - 1, kBlock, kBlock + 1, 8 * kBlock - 1, 8 * kBlock, 8 * kBlock + 1, 5000}) {
    check_row_blocks<kBlock>(Lengths(6, n));
    for (int shift = 0; shift < kBlock; shift += 3) {
      check_row_blocks<kBlock>(joined(Lengths(shift, 0), {n, 0, 3, n}));
    }
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    check_row_blocks<kBlock>(random_lengths(300, 1 << (seed % 12), seed));
  }
}

TEST_CASE("CSR-Adaptive: row blocks of 2^31 - 1 nonzeros", "[06]") {
  constexpr int kMost = std::numeric_limits<int>::max();
  constexpr int kBlock = 1 << 20;
  check_row_blocks<kBlock>({kMost});
  check_row_blocks<kBlock>({5, kMost - 8, 0, 3});
  check_row_blocks<kBlock>(Lengths(1000, kMost / 1000));
  check_row_blocks<kBlock>(joined(Lengths(4 * kBlock, 0), {kMost}));
}

// --- All ----------------------------------------------------------------------------------------

TEST_CASE("PCSR, CSR-Adaptive and one pass give the same bits in every run", "[06]") {
  // Rows of every kind: many short ones, empty ones, and those that several blocks share, also as
  // long as the shortest that csr_adaptive's do.
  const Lengths lengths = joined({20000, 3, 1500, 8191, 0, 8192, 8193, 8194},
                                 joined(random_lengths(900, 30, 9), {9000, 0, 30000}));
  const Csr<float> a = csr_of<float>(lengths);
  for (const std::string name : {"pcsr_texture", "pcsr", "csr_adaptive", "pcsr_one_pass"}) {
    Product<float> product(name, a);
    const std::vector<float> once = product.multiply();
    CHECK(verify(once, product.reference()).ok);
    test::under_every_schedule([&] {
      CAPTURE(name);
      CHECK(same_bits(product.multiply(), once));
    });
  }
}

TEST_CASE("step 06: every kernel is right on every matrix", "[06]") {
  test::check_kernels_of_step(6);
}

}  // namespace
}  // namespace spmv
