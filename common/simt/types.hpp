// The qualifiers and the vector types of CUDA C++.
#pragma once

#include <cstddef>

// (`make program` keeps the word, by which it finds kernels: primer/launches.py.)
#ifndef __global__
#define __global__
#endif
#define __device__
#define __host__
#define __constant__ inline
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// (Empty, since libstdc++ has it among the attributes of functions.)
#define __noinline__
#define __managed__ \
  _Pragma("GCC error \"simt has no __managed__ memory: allocate with cudaMalloc\"")
#define __cluster_dims__(...) _Pragma("GCC error \"simt has no thread block clusters\"")

// A block runs on one thread of the host, so a variable that exists once a host thread exists once
// a block. (At block scope thread_local implies static; `extern __shared__ T a[]` names an array
// that the build defines: see build.mk.) simt/shared_memory.hpp finds these variables in the
// executable's symbol table to poison, bound and name them.
#define __shared__ thread_local

namespace simt {

// What one access of a number of bytes moves.
template <std::size_t kBytes>
struct PieceOf {
  typedef int Type __attribute__((vector_size(kBytes), may_alias));
};
template <>
struct PieceOf<2> {
  typedef unsigned short Type __attribute__((may_alias));
};
template <>
struct PieceOf<4> {
  typedef unsigned Type __attribute__((may_alias));
};

// Copies a vector in pieces of up to 16 bytes, each with one load and one store, as the device
// does. (A compiler that sees a structure would load the members that are used, one by one.)
template <typename Vector>
__forceinline__ void copy_vector(Vector* to, const Vector* from) {
  constexpr std::size_t kBytes = sizeof(Vector) < 16 ? sizeof(Vector) : 16;
  using Piece = typename PieceOf<kBytes>::Type;
  auto* const pieces = reinterpret_cast<Piece*>(to);
  const auto* const others = reinterpret_cast<const Piece*>(from);
  static_assert(sizeof(Vector) <= 2 * kBytes);
  pieces[0] = others[0];
  if constexpr (sizeof(Vector) > kBytes) pieces[1] = others[1];
}

}  // namespace simt

#define SIMT_COPIED_AS_A_WHOLE(name)                   \
  name() = default;                                    \
  __forceinline__ name(const name& other) {            \
    simt::copy_vector(this, &other);                   \
  }                                                    \
  __forceinline__ name& operator=(const name& other) { \
    simt::copy_vector(this, &other);                   \
    return *this;                                      \
  }
// As in CUDA, vectors of three have the alignment of their elements, and are three accesses.
#define SIMT_VECTOR_TYPES(name, T)                                            \
  struct name##1 {                                                            \
    T x;                                                                      \
  };                                                                          \
  struct name##3 {                                                            \
    T x, y, z;                                                                \
  };                                                                          \
  struct alignas(2 * sizeof(T)) name##2 {                                     \
    T x, y;                                                                   \
    constexpr name##2(T x_, T y_) : x(x_), y(y_) {}                           \
    SIMT_COPIED_AS_A_WHOLE(name##2)                                           \
  };                                                                          \
  struct alignas(sizeof(T) == 8 ? 16 : 4 * sizeof(T)) name##4 {               \
    T x, y, z, w;                                                             \
    constexpr name##4(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {} \
    SIMT_COPIED_AS_A_WHOLE(name##4)                                           \
  };                                                                          \
  constexpr name##1 make_##name##1(T x) {                                     \
    return {x};                                                               \
  }                                                                           \
  constexpr name##2 make_##name##2(T x, T y) {                                \
    return {x, y};                                                            \
  }                                                                           \
  constexpr name##3 make_##name##3(T x, T y, T z) {                           \
    return {x, y, z};                                                         \
  }                                                                           \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) {                      \
    return {x, y, z, w};                                                      \
  }
SIMT_VECTOR_TYPES(char, signed char)
SIMT_VECTOR_TYPES(uchar, unsigned char)
SIMT_VECTOR_TYPES(short, short)
SIMT_VECTOR_TYPES(ushort, unsigned short)
SIMT_VECTOR_TYPES(int, int)
SIMT_VECTOR_TYPES(uint, unsigned)
SIMT_VECTOR_TYPES(long, long)
SIMT_VECTOR_TYPES(ulong, unsigned long)
SIMT_VECTOR_TYPES(longlong, long long)
SIMT_VECTOR_TYPES(ulonglong, unsigned long long)
SIMT_VECTOR_TYPES(float, float)
SIMT_VECTOR_TYPES(double, double)
#undef SIMT_VECTOR_TYPES
#undef SIMT_COPIED_AS_A_WHOLE

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
