// One product with OnePassPlan, the whole program: prints y = A x.
//
//   nvcc -std=c++17 -arch=native -o first_product first_product.cu && ./first_product
#include <cstdio>
#include <vector>

#include "../spmv/one_pass.cuh"
#include "matrix.hpp"  // check() ends the program on an error; device() copies a vector to the GPU

int main() {
  //      2 -1  0          1
  // A = -1  2 -1 ,   x =  2 ,   A in CSR
  //      0 -1  2          3
  const int* offsets = device<int>({0, 2, 5, 7});
  const int* columns = device<int>({0, 1, 0, 1, 2, 1, 2});
  const double* values = device<double>({2, -1, -1, 2, -1, -1, 2});
  const double* x = device<double>({1, 2, 3});
  std::vector<double> result(3);
  double* y = device(result);
  cudaStream_t stream = nullptr;  // the default stream

  spmv::OnePassPlan<double> plan;
  check(plan.create({3, 3, 7, offsets, columns}), "create");     // rows, columns, nonzeros
  check(plan.prepare(stream), "prepare");                        // looks at the rows, once
  check(plan.multiply(1, values, x, 0, y, stream), "multiply");  // y = 1 A x + 0 y

  // In the same stream as the product, so after it.
  check(cudaMemcpy(result.data(), y, 3 * sizeof(double), cudaMemcpyDeviceToHost), "copy");
  std::printf("%g %g %g\n", result[0], result[1], result[2]);
}
