// The one-pass product with a C interface, for languages other than C++: c_interface.cu compiled to
// a shared library,
//
//   nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC -o libspmv_one_pass.so c_interface.cu
//
// contract.md holds for it, too. Every int that is returned is a cudaError_t, 0 if all is well.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmv_plan spmv_plan;  // NOLINT(modernize-use-using): C

// Creates and prepares a plan for the pattern of a CSR matrix on the current device: spmv::
// OnePassPlan<double>, or <float> if is_double is 0. `stream` is a cudaStream_t, and is waited for.
// *plan is NULL after an error.
int spmv_create(spmv_plan** plan, int is_double, int rows, int cols, int nnz,
                const int* row_offsets, const int* column_indices, int most_vectors, int overlap,
                void* stream);
void spmv_destroy(spmv_plan* plan);

// y = alpha A x + beta y with `vectors` vectors: 1, 2, 4 or 8. Arrays are of the plan's type.
int spmv_multiply(const spmv_plan* plan, int vectors, double alpha, const void* values,
                  const void* x, double beta, void* y, void* stream);
// y = alpha A^T x + beta y by one atomic per nonzero.
int spmv_multiply_transposed(const spmv_plan* plan, double alpha, const void* values, const void* x,
                             double beta, void* y, void* stream);

int spmv_lanes_per_row(const spmv_plan* plan);  // 0: tiles
const char* spmv_error_string(int error);
int spmv_version(void);  // SPMV_ONE_PASS_VERSION

#ifdef __cplusplus
}
#endif
