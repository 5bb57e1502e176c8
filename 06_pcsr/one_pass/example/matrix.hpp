// What the examples share: a check, copies in device memory, and matrices on the host (a stencil,
// and files).
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
  std::fflush(stdout);
  std::_Exit(1);
}

// A copy in device memory, which lives as long as the program.
template <typename T>
T* device(const std::vector<T>& host) {
  T* data = nullptr;
  check(cudaMalloc(&data, host.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return data;
}

struct Csr {
  int rows = 0;
  std::vector<int> offsets, columns;
  std::vector<double> values;
};

using Entries = std::vector<std::tuple<int, int, double>>;  // row, column, value

inline Csr from_entries(int rows, Entries entries) {
  std::sort(entries.begin(), entries.end());
  Csr a{rows, std::vector<int>(rows + 1), {}, {}};
  for (const auto& [row, column, value] : entries) {
    ++a.offsets[row + 1];
    a.columns.push_back(column);
    a.values.push_back(value);
  }
  for (int row = 0; row < rows; ++row) a.offsets[row + 1] += a.offsets[row];
  return a;
}

// The 5-point stencil on a grid of n x n points.
inline Csr stencil(int n) {
  Entries entries;
  for (int i = 0; i < n * n; ++i) {
    entries.emplace_back(i, i, 4.0);
    if (i % n > 0) entries.emplace_back(i, i - 1, -1.0);
    if (i % n < n - 1) entries.emplace_back(i, i + 1, -1.0);
    if (i >= n) entries.emplace_back(i, i - n, -1.0);
    if (i < n * (n - 1)) entries.emplace_back(i, i + n, -1.0);
  }
  return from_entries(n * n, std::move(entries));
}

// A symmetric matrix in Matrix Market format; ends the program if the file is not one.
inline Csr read_symmetric(const std::string& path) {
  int number = 1;
  const auto refuse = [&](const char* why) {
    std::fprintf(stderr, "error: %s:%d: %s\n", path.c_str(), number, why);
    std::fflush(stdout);
    std::_Exit(2);
  };
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) refuse("cannot be read");
  const std::string banner = "%%MatrixMarket matrix coordinate ";
  if (line.rfind(banner + "real symmetric", 0) != 0 &&
      line.rfind(banner + "integer symmetric", 0) != 0) {
    refuse("not a 'matrix coordinate real symmetric' (or integer) in Matrix Market format");
  }
  do {
    ++number;
  } while (std::getline(file, line) && line[0] == '%');
  int rows = 0;
  int cols = 0;
  int count = 0;
  if (!(std::istringstream(line) >> rows >> cols >> count) || rows != cols || rows < 1) {
    refuse("expected 'rows columns entries' of a square matrix");
  }
  Entries entries;
  for (int k = 0; k < count; ++k) {
    int row = 0;
    int column = 0;
    double value = 0;
    ++number;
    if (!std::getline(file, line) || !(std::istringstream(line) >> row >> column >> value) ||
        row > rows || column < 1 || column > row) {
      refuse("expected 'row column value' of the lower triangle");
    }
    entries.emplace_back(row - 1, column - 1, value);
    if (row != column) entries.emplace_back(column - 1, row - 1, value);
  }
  return from_entries(rows, std::move(entries));
}
