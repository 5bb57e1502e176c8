// How fast the Matrix Market reader is: read_benchmark [FILE...]
//
// Without a file it writes one, plain and compressed, into the temporary directory. Each is read by
// one thread and by all; speed is in megabytes (10^6) of uncompressed text a second, the median of
// several readings after one that is not counted, which brings the file into the page cache. What
// is measured ends with the triplets in memory: no sorting to CSR.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sparse/matrix_market.hpp"

namespace {

namespace fs = std::filesystem;

constexpr int kReadings = 7;

// Entries in row order with all the digits of a double, as most files from applications have them.
spmv::Coo<double> example() {
  constexpr spmv::Index kRows = 1'000'000;
  constexpr int kEntriesPerRow = 4;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<spmv::Index> column(0, kRows - 1);
  std::uniform_real_distribution<double> value(-1, 1);
  spmv::Coo<double> coo;
  coo.rows = kRows;
  coo.cols = kRows;
  for (spmv::Index row = 0; row < kRows; ++row) {
    for (int k = 0; k < kEntriesPerRow; ++k) {
      coo.row_indices.push_back(row);
      coo.column_indices.push_back(column(random));
      coo.values.push_back(value(random));
    }
  }
  return coo;
}

// Length of the text in `path`, inflated if need be. zlib passes what is not gzip through.
double megabytes_of_text(const fs::path& path) {
  const gzFile file = ::gzopen(path.c_str(), "rb");
  if (!file) return 0;
  std::vector<char> buffer(std::size_t{1} << 20);
  double bytes = 0;
  for (int count = 0;
       (count = ::gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;) {
    bytes += count;
  }
  ::gzclose(file);
  return bytes / 1e6;
}

double median_seconds(const fs::path& path, const spmv::LoadOptions& options) {
  std::array<double, kReadings> seconds{};
  spmv::read_matrix_market<double>(path, options);
  for (double& elapsed : seconds) {
    const auto begin = std::chrono::steady_clock::now();
    const auto file = spmv::read_matrix_market<double>(path, options);
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void measure(const fs::path& path) {
  const double megabytes = megabytes_of_text(path);
  const unsigned all = std::max(std::thread::hardware_concurrency(), 1u);
  std::vector<unsigned> thread_counts = {1};
  if (all > 1) thread_counts.push_back(all);
  for (const unsigned threads : thread_counts) {
    spmv::LoadOptions options;
    options.complex_part = spmv::ComplexPart::kReal;
    options.threads = threads;
    const double seconds = median_seconds(path, options);
    std::printf("%-12s %7u %9.1f %9.4f %9.0f %9.0f  %s\n", "this reader", threads, megabytes,
                seconds, megabytes / seconds, megabytes / seconds / threads, path.c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<fs::path> paths(argv + 1, argv + argc);
    if (paths.empty()) {
      const spmv::Coo<double> coo = example();
      for (const char* name : {"read_benchmark.mtx", "read_benchmark.mtx.gz"}) {
        paths.push_back(fs::temp_directory_path() / name);
        spmv::write_matrix_market(paths.back(), coo);
      }
    }
    // read_benchmark.py continues this table.
    std::printf("%-12s %7s %9s %9s %9s %9s  %s\n", "reader", "threads", "text MB", "seconds",
                "MB/s", "per core", "file");
    for (const fs::path& path : paths) measure(path);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
  return 0;
}
