// OnePassPlan behind the C interface of c_interface.h; used by spmv_one_pass.py.
#include "c_interface.h"

#include <new>
#include <variant>

#include "spmv/one_pass.cuh"

struct spmv_plan {
  std::variant<spmv::OnePassPlan<float>, spmv::OnePassPlan<double>> of;
};

namespace {

cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

// function(plan, T{}) with the plan of the type T that it has.
template <typename Function>
int with_type(const spmv_plan* plan, const Function& function) {
  if (!plan) return cudaErrorIllegalState;
  const auto* in_double = std::get_if<spmv::OnePassPlan<double>>(&plan->of);
  return in_double ? function(*in_double, double{})
                   : function(*std::get_if<spmv::OnePassPlan<float>>(&plan->of), float{});
}

}  // namespace

int spmv_create(spmv_plan** plan, int is_double, int rows, int cols, int nnz,
                const int* row_offsets, const int* column_indices, int most_vectors, int overlap,
                void* stream) {
  *plan = nullptr;
  spmv::OnePassOptions options;
  options.overlap = overlap != 0;
  options.most_vectors = most_vectors;
  auto* fresh = new (std::nothrow) spmv_plan;
  if (!fresh) return cudaErrorMemoryAllocation;
  if (is_double) fresh->of.emplace<spmv::OnePassPlan<double>>();
  const cudaError_t error = std::visit(
      [&](auto& its) {
        const cudaError_t created =
            its.create({rows, cols, nnz, row_offsets, column_indices}, options);
        return created == cudaSuccess ? its.prepare(stream_of(stream)) : created;
      },
      fresh->of);
  if (error == cudaSuccess) {
    *plan = fresh;
  } else {
    delete fresh;
  }
  return error;
}

void spmv_destroy(spmv_plan* plan) {
  delete plan;
}

int spmv_multiply(const spmv_plan* plan, int vectors, double alpha, const void* values,
                  const void* x, double beta, void* y, void* stream) {
  return with_type(plan, [&](const auto& its, auto zero) {
    using T = decltype(zero);
    const auto* a = static_cast<const T*>(values);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    const T scale = static_cast<T>(alpha);
    const T keep = static_cast<T>(beta);
    if (vectors == 1) return its.multiply(scale, a, from, keep, to, stream_of(stream));
    return its.multiply_several(vectors, scale, a, from, keep, to, stream_of(stream));
  });
}

int spmv_multiply_transposed(const spmv_plan* plan, double alpha, const void* values, const void* x,
                             double beta, void* y, void* stream) {
  return with_type(plan, [&](const auto& its, auto zero) {
    using T = decltype(zero);
    return its.multiply_transposed(static_cast<T>(alpha), static_cast<const T*>(values),
                                   static_cast<const T*>(x), static_cast<T>(beta),
                                   static_cast<T*>(y), stream_of(stream));
  });
}

int spmv_lanes_per_row(const spmv_plan* plan) {
  return plan ? std::visit([](const auto& its) { return its.lanes_per_row(); }, plan->of) : 0;
}

const char* spmv_error_string(int error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

int spmv_version(void) {
  return SPMV_ONE_PASS_VERSION;
}
