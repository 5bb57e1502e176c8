// What the examples share: a check, copies in device memory, and a matrix on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
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

// The 5-point stencil on a grid of n x n points.
inline Csr stencil(int n) {
  Csr a{n * n, {0}, {}, {}};
  for (int i = 0; i < n * n; ++i) {
    const auto add = [&](bool exists, int column, double value) {
      if (!exists) return;
      a.columns.push_back(column);
      a.values.push_back(value);
    };
    add(i >= n, i - n, -1);
    add(i % n > 0, i - 1, -1);
    add(true, i, 4);
    add(i % n < n - 1, i + 1, -1);
    add(i < n * (n - 1), i + n, -1);
    a.offsets.push_back(static_cast<int>(a.values.size()));
  }
  return a;
}
