// What CUDA's headers declare for nvcc alone, declared for a host compiler, so that it can read the
// kernels of a file whose host code is checked against CUDA 12's headers (check.py). Kernels
// themselves are compiled by NVRTC: here, only the names and the types of results matter.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <math.h>

#include <type_traits>

#define __launch_bounds__(...)

// cuda_runtime.h declares this form of cudaFuncSetAttribute, which takes a kernel, for nvcc alone.
template <typename... A>
cudaError_t cudaFuncSetAttribute(void (*kernel)(A...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

// Functions of any arguments that return nothing, a T, the second argument's type, or what the
// first points to.
#define NOTHING(name)      \
  template <typename... A> \
  void name(const A&...);
#define RESULT(T, name)    \
  template <typename... A> \
  T name(const A&...);
#define SECOND(name)                   \
  template <typename T, typename... A> \
  T name(unsigned, const T&, const A&...);
#define POINTEE(name)                  \
  template <typename T, typename... A> \
  T name(const T*, const A&...);

NOTHING(__syncthreads)
NOTHING(__syncwarp)
NOTHING(__threadfence)
NOTHING(__threadfence_block)
NOTHING(__threadfence_system)
NOTHING(__stcs)
NOTHING(__stcg)
NOTHING(cudaGridDependencySynchronize)
NOTHING(cudaTriggerProgrammaticLaunchCompletion)
RESULT(int, __syncthreads_or)
RESULT(int, __popc)
RESULT(int, __ffs)
RESULT(int, __clz)
RESULT(int, __double2loint)
RESULT(int, __double2hiint)
RESULT(unsigned, __ballot_sync)
RESULT(unsigned, __match_any_sync)
RESULT(unsigned, __activemask)
RESULT(unsigned, __brev)
RESULT(unsigned, __float_as_uint)
RESULT(float, __uint_as_float)
RESULT(double, __hiloint2double)
SECOND(__shfl_sync)
SECOND(__shfl_up_sync)
SECOND(__shfl_down_sync)
SECOND(__shfl_xor_sync)
POINTEE(__ldg)
POINTEE(__ldcs)
POINTEE(__ldcg)
POINTEE(atomicAdd)
POINTEE(atomicMax)
POINTEE(atomicInc)
POINTEE(atomicSub)
POINTEE(atomicOr)
POINTEE(atomicCAS)

template <typename T>
T tex1Dfetch(cudaTextureObject_t, int);
template <typename A, typename B>
constexpr std::common_type_t<A, B> min(const A&, const B&);
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(const A&, const B&);

namespace cooperative_groups {
struct grid_group {
  void sync() const;
};
grid_group this_grid();
}  // namespace cooperative_groups
