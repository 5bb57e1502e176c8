// Conjugate gradients on OnePassPlan: what a program needs to use the kernel of this directory.
//
//   nvcc -O2 -std=c++17 -arch=native -o conjugate_gradients conjugate_gradients.cu
//   ./conjugate_gradients                  the 5-point stencil on a 500 x 500 grid
//   ./conjugate_gradients 1000             on a 1000 x 1000 grid
//
// Solves A x = b with b = A (1, ..., 1). One iteration is captured in a CUDA graph; its products
// overlap the kernel before them, which writes the vector that they read, but not the matrix.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../spmv/one_pass.cuh"
#include "matrix.hpp"

constexpr int kThreads = 256;

// What multiply() stores for each row, if not alpha A x + beta y: b - A x, where y is b.
struct Residual {
  __device__ double operator()(int, double sum, double old) const { return old - sum; }
};

// --- Vectors ------------------------------------------------------------------------------------

// x += a p, r -= a q, with a = rr / pq (0 where all is solved).
__global__ void step_kernel(int n, const double* rr, const double* pq, const double* p,
                            const double* q, double* x, double* r) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const double a = *pq != 0 ? *rr / *pq : 0;
  x[i] += a * p[i];
  r[i] -= a * q[i];
}

// p = r + (rr / rr of the iteration before) p; p = r where that is 0.
__global__ void direction_kernel(int n, const double* rr, const double* rr_before, const double* r,
                                 double* p) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  p[i] = r[i] + (*rr_before > 0 ? *rr / *rr_before * p[i] : 0);
}

template <typename... Parameters, typename... Arguments>
static void launch(void (*kernel)(Parameters...), int blocks, cudaStream_t stream,
                   Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), "launch");
}

int main(int argc, char** argv) {
  const int side = argc > 1 ? std::atoi(argv[1]) : 500;
  if (side < 1) {
    std::fprintf(stderr, "usage: conjugate_gradients [POINTS PER SIDE]\n");
    return 2;
  }
  const Csr a = stencil(side);
  const int n = a.rows;
  const int nnz = static_cast<int>(a.values.size());

  const double* values = device(a.values);
  double* x = device(std::vector<double>(n, 1.0));
  double* b = device(std::vector<double>(n));
  double* r = device(std::vector<double>(n));
  double* p = device(std::vector<double>(n));
  double* q = device(std::vector<double>(n));
  double* rr = device<double>({0});         // r . r
  double* rr_before = device<double>({0});  // of the iteration before
  double* pq = device<double>({0});         // p . A p
  const int blocks = (n - 1) / kThreads + 1;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check(cudaStreamSynchronize(nullptr), "copies");

  spmv::OnePassOptions options;
  options.overlap = true;
  spmv::OnePassPlan<double> plan;
  check(plan.create({n, n, nnz, device(a.offsets), device(a.columns)}, options), "plan");
  check(plan.prepare(stream), "prepare");
  spmv::DotProduct<double> dot;  // which has the same bits in every run, like the plan's products
  check(dot.create(), "dot product");

  // x = 0, r = b.
  check(plan.multiply(1, values, x, 0, b, stream), "product");
  check(cudaMemcpyAsync(r, b, n * sizeof(double), cudaMemcpyDeviceToDevice, stream), "copy");
  check(cudaMemsetAsync(x, 0, n * sizeof(double), stream), "memset");
  check(dot(n, r, r, rr, stream), "dot product");

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t iteration = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  launch(direction_kernel, blocks, stream, n, rr, rr_before, r, p);
  check(plan.multiply(1, values, p, 0, q, stream), "product");
  check(dot(n, p, q, pq, stream), "dot product");
  launch(step_kernel, blocks, stream, n, rr, pq, p, q, x, r);
  check(cudaMemcpyAsync(rr_before, rr, sizeof(double), cudaMemcpyDeviceToDevice, stream), "copy");
  check(dot(n, r, r, rr, stream), "dot product");
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&iteration, graph, 0), "graph");

  // r . r, on the host.
  const auto squares_of_r = [&] {
    double sum = 0;
    check(cudaMemcpyAsync(&sum, rr, sizeof(double), cudaMemcpyDeviceToHost, stream), "copy");
    check(cudaStreamSynchronize(stream), "iterations");
    return sum;
  };
  const double first = squares_of_r();
  int iterations = 0;
  for (; iterations <= 10000 && squares_of_r() > 1e-20 * first; iterations += 10) {
    for (int i = 0; i < 10; ++i) check(cudaGraphLaunch(iteration, stream), "graph");
  }
  // r has been updated in each iteration, with a rounding error each: b - A x tells.
  check(plan.multiply(values, x, b, r, Residual{}, stream), "product");
  check(dot(n, r, r, rr, stream), "dot product");
  const double residual = first > 0 ? std::sqrt(squares_of_r() / first) : 0;
  std::printf("%d rows, %d nonzeros: %d iterations, residual %.1e\n", n, nnz, iterations, residual);
  if (residual <= 1e-9) return 0;
  std::fprintf(stderr, "error: no convergence\n");
  return 1;
}
