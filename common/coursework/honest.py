"""Right submissions in many styles.

What students write and none of which may cost a point or raise a flag. Each construct is a few lines for the right
kernels of a step; all that can stand together do, so that judging them takes seconds.
"""

import re
from pathlib import Path

from exercises import ROOT, without_marks, write_files

# Before everything else in a file.
HEADS = {
    "a byte-order mark": "\ufeff",
    "an include guard": "#ifndef MINE_CUH\n#define MINE_CUH\n",
    "standard headers": "#include <algorithm>\n#include <stdio.h>\n#include <math.h>\n#include <stdint.h>\n#include <utility>\n#include <cooperative_groups.h>\n",
    "a comment that looks like a directive": "/*\n# My solution\n#1 of 2\n*/\n",
    "trigraphs in a comment": "// why does this work??! who knows??/ not I\n",
    "an emoji and accents": "// done \U0001f389, c'est l'été, 完成 ✔️\n",
    "code that is switched off": '#if 0\n  asm("nothing"); this is no C++ at all\n#endif\n',
    "conditional compilation": "#ifdef __CUDA_ARCH__\n#define ON_DEVICE 1\n#else\n#define ON_DEVICE 0\n#endif\n#if defined(ON_DEVICE) && ON_DEVICE\n#endif\n",
    "macros": "#define FULL_MASK 0xffffffffu\n#define min3(a, b, c) ((a) < (b) ? min((a), (c)) : min((b), (c)))\n#undef NOT_THERE\n",
    "a macro of several lines": "#define ADD_TO(a, b) \\\n  do {               \\\n    (a) += (b);      \\\n  } while (0)\n",
    "a helper outside of the namespace": "template <typename A>\n__device__ __forceinline__ A square_root_of_square(A a) { return a * a == A{} ? A{} : a; }\n",
}

# In namespace spmv, before the kernel; then, after the arrow, what is done with it in the kernel, on `sum`.
TOPS = {
    "a helper named multiply": (
        "template <typename A>\n__device__ A multiply(A a, A b) { return a * b; }",
        "sum = multiply(sum, decltype(sum)(1));",
    ),
    "helpers named lane, warp, load_row and launch": (
        "__device__ unsigned lane(unsigned thread) { return thread % 32; }\n__device__ unsigned warp(unsigned thread) { return thread / 32; }\n"
        "__device__ inline int load_row(const int* offsets, int row) { return offsets[row]; }\n__device__ inline int launch(int a) { return a; }",
        "sum += spmv::lane(32) + spmv::warp(31) + 0 * load_row(row_offsets, row) + launch(0);",
    ),
    "a structure with a constructor and members": (
        "template <typename A>\nstruct Sum {\n  A value;\n  __device__ explicit Sum(A a) : value(a) {}\n"
        "  __device__ Sum& operator+=(A a) { value += a; return *this; }\n  __device__ A get() const { return value; }\n};",
        "{ Sum<T> of(sum); of += T{0}; sum = of.get(); }",
    ),
    "a constexpr table": (
        "constexpr int kPowers[] = {1, 2, 4, 8, 16, 32};\ninline constexpr struct { int a, b; } kPair{1, 2};",
        "sum += kPowers[lane % 6] * 0 + kPair.b - 2;",
    ),
    "a recursive template": (
        "template <int n>\nstruct Power { static constexpr int value = 2 * Power<n - 1>::value; };\ntemplate <>\nstruct Power<0> { static constexpr int value = 1; };",
        "sum += Power<5>::value - 32;",
    ),
    "a variadic template": (
        "template <typename... A>\n__device__ auto total(A... a) { return (a + ...); }",
        "sum += total(1, 2, -3);",
    ),
    "const at namespace scope": ("const int my_warp_size = 32;", "sum += my_warp_size - 32;"),
    "static constants": (
        "static const unsigned my_mask = 0xffffffffu;\nstatic constexpr int kNothing = 0;",
        "sum += kNothing + (my_mask == 0);",
    ),
    "noexcept and decltype": (
        "template <typename A>\n__device__ inline auto twice(A a) noexcept -> decltype(a + a) { return a + a; }",
        "sum = twice(sum) / 2;",
    ),
    "__inline__ __device__": (
        "__inline__ __device__ int zero_of(int a) { return a - a; }",
        "sum += zero_of(row);",
    ),
    "static __device__ inline": (
        "static __device__ inline int nought() { return 0; }",
        "sum += nought();",
    ),
    "__host__ __device__": (
        "__host__ __device__ constexpr int pad(int n) { return (n + 31) / 32 * 32; }",
        "sum += pad(32) - 32;",
    ),
    "a helper named load": (
        "template <typename A>\n__device__ A load(const A* p) { return *p; }",
        "sum += 0 * load(&sum);",
    ),
    "a helper named add": (
        "template <typename A>\n__device__ A add(A a, A b) { return a + b; }",
        "sum = add(sum, sum) - sum;",
    ),
    "a helper named reduce": (
        "template <typename A>\n__device__ A reduce(A a) { return a; }",
        "sum = reduce(sum);",
    ),
    "a helper named combine": (
        "template <typename A>\n__device__ A combine(A a, A b) { return a + b; }",
        "sum = combine(sum, decltype(sum)(0));",
    ),
    "a helper named find": (
        "__device__ inline int find(const int* a, int n, int v) { for (int i = 0; i < n; ++i) if (a[i] == v) return i; return n; }",
        "{ const int some[2] = {row, lane}; sum += 0 * find(some, 2, lane); }",
    ),
    "a helper named next": (
        "__device__ inline int next(int i) { return i + 1; }",
        "sum += next(row) - row - 1;",
    ),
    "a helper named get": (
        "template <typename A>\n__device__ A get(A a) { return a; }",
        "sum = get(sum);",
    ),
    "a helper named count": (
        "__device__ inline int count(unsigned mask) { return __popc(mask); }",
        "sum += count(7u) - 3;",
    ),
    "helpers named sum, init, store, swap and size": (
        "template <typename A>\n__device__ void store(A* p, A v) { *p = v; }\ntemplate <typename A>\n__device__ void swap(A& a, A& b) { const A c = a; a = b; b = c; }\n__device__ inline int size(int n) { return n; }\n__device__ inline int init() { return 0; }",
        "{ auto other = sum; swap(sum, other); store(&sum, other); sum += size(0) + init(); }",
    ),
    "a function object": (
        "struct Plus { template <typename A> __device__ A operator()(A a, A b) const { return a + b; } };",
        "sum = Plus()(sum, 0 * sum);",
    ),
    "operators on a type": (
        "struct Pair { int first, second; };\n__device__ inline Pair operator+(Pair a, Pair b) { return {a.first + b.first, a.second + b.second}; }",
        "sum += (Pair{row, 0} + Pair{-row, 0}).first;",
    ),
    "using std::max": ("using std::max;", "sum += max(0, 0) + std::min(0, 1);"),
    "typedef and using": (
        "typedef unsigned int uint;\nusing Offset = int;",
        "{ uint u = 0; Offset o = 0; sum += u + o; }",
    ),
    "an enumeration and a union": (
        "enum Side { kLeft, kRight };\nunion Bits { float f; unsigned u; };",
        "{ Bits bits; bits.f = 0.0f; sum += bits.u + (kRight - 1); }",
    ),
    "a specialised template of its own": (
        "template <typename A>\nstruct Zero { static constexpr int value = 1; };\ntemplate <>\nstruct Zero<float> { static constexpr int value = 0; };\ntemplate <>\nstruct Zero<double> { static constexpr int value = 0; };",
        "sum += Zero<std::remove_cvref_t<decltype(sum)>>::value;",
    ),
    "a namespace of its own": (
        "namespace {\n__device__ inline int hidden_nought() { return 0; }\n}\nnamespace mine {\n__device__ inline int nought() { return 0; }\n}",
        "sum += hidden_nought() + mine::nought();",
    ),
    "namespace cg": (
        "namespace cg = cooperative_groups;",
        "{ auto block = cg::this_thread_block(); sum += 0 * block.thread_rank(); }",
    ),
    "thread_block_tile of this_thread_block()": (
        "using namespace cooperative_groups;",
        "{ thread_block_tile<32> t = tiled_partition<32>(this_thread_block()); sum += 0 * t.thread_rank(); }",
    ),
    "static __constant__": ("static __constant__ int my_table[2] = {0, 1};", "sum += my_table[0];"),
    "an array type and a concept": (
        "template <typename A>\nusing In = const A* __restrict__;\ntemplate <typename A>\nconcept Real = std::is_floating_point_v<A>;\ntemplate <Real A, int n>\nstruct Sums {\n  A part[n] = {};\n  __device__ A total() const {\n    A all = 0;\n    for (int i = 0; i < n; ++i) all += part[i];\n    return all;\n  }\n};",
        "{ In<int> offsets = row_offsets; Sums<decltype(sum + 0), 4> sums; sums.part[1] = 0 * offsets[row]; sum += sums.total(); }",
    ),
    "a large object by value, twice": (
        "template <typename A>\nstruct Work { int begin, end, step, extra; const A* v; const A* w; };\ntemplate <typename A>\nstruct Part { A sum; int count; };\ntemplate <typename A>\n__device__ Part<A> walk(Work<A> work, int half) {\n  Part<A> part{A(0), 0};\n  for (int k = work.begin + half; k < work.end; k += work.step) {\n    part.sum += 0 * work.v[k];\n    if (++part.count > 1000) part.count = 0;\n  }\n  return part;\n}",
        "{ const Work<decltype(sum + 0)> work{row_offsets[row + 1], row_offsets[row], 1, 0, values, values}; sum += walk(work, lane).sum + walk(work, lane).sum; }",
    ),
    "attributes": (
        "[[nodiscard]] __device__ inline int answered() { return 0; }\n__device__ __noinline__ inline int apart(int a) { return a; }",
        "[[maybe_unused]] const int unused = row; sum += answered() + apart(0);",
    ),
}

# In the kernel, on `sum`, `row` and `lane`.
STATEMENTS = {
    "hints to the compiler": "{ const T* v = static_cast<const T*>(__builtin_assume_aligned(values, 8)); if (row_end < row_begin) __builtin_unreachable(); sum += 0 * (v == values); }",
    "a lambda with captures": "{ auto add = [&sum, row](T a) { sum += a * T(row - row); }; add(T{2}); }",
    "copies of local arrays": "{ T a[4] = {sum, 0, 0, 0}, b[4]; memcpy(b, a, sizeof a); std::swap(b[0], b[1]); sum = b[1]; }",
    "printf for debugging": 'if (row == 1 && lane == 0 && rows < 0) printf("row %d: %g %s\\n", row, double(sum), "so far");',
    "static_assert and if constexpr": "static_assert(sizeof(T) == 4 || sizeof(T) == 8); if constexpr (lanes_per_row > 64) sum = 0;",
    "const_cast": "{ const int* p = const_cast<int*>(&row); sum += 0 * *p; }",
    "goto": "if (row < 0) goto finish;\n  sum += 0;\nfinish:",
    "__popc whose result is used": "sum += __popc(static_cast<unsigned>(row)) * 0;",
    "__clz, __ffs, __brev": "sum += 0 * (__clz(row) + __ffs(row) + static_cast<int>(__brev(1u) >> 31));",
    "sincos": "{ double s, c; sincos(0.0, &s, &c); sum += s; }",
    "remainder and nextafter": "sum += remainder(4.0, 2.0) + 0 * nextafter(1.0, 2.0) + fmod(4.0, 2.0) + 0 * rsqrt(1.0);",
    "fma, fabs, sqrt, floor": "sum = fma(decltype(sum + 0)(0), sum, sum) + 0 * (fabs(sum) + sqrt(4.0) + floor(1.5));",
    "labeled_partition": "{ auto same = cooperative_groups::labeled_partition(cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block()), row); sum += 0 * same.size(); }",
    "__activemask and ballots": "sum += 0 * __popc(__ballot_sync(__activemask(), row >= 0));",
    "an array of locals": "{ int some[4] = {0, 1, 2, 3}; for (int i = 0; i < 4; ++i) sum += 0 * some[(i + row) % 4]; }",
    "a lambda": "{ auto add_to = [&](int v) { sum += v; }; add_to(0); }",
    "a comma, a conditional and shifts": "{ int a = 0, b = 0; a = (b = 1, b - 1); sum += a ? b << 3 : a >> 1; }",
    "do, while, switch": "{ int i = 0; do { ++i; } while (i < 2); while (i > 0) --i; switch (i) { case 0: break; default: sum = 0; } }",
    "#pragma unroll": "\n#pragma unroll 4\n  for (int i = 0; i < 4; ++i) sum += 0;",
    "reinterpret_cast and pointer arithmetic": "{ const unsigned* p = reinterpret_cast<const unsigned*>(&row) + 0; sum += 0 * *(p + 0); }",
    "printf and assert": 'assert(row >= 0);\n  if (row < 0) printf("row %d of %s\\n", row, "A");',
    "what one lane has, for all": "{ int first; if (lane == 0) first = row; first = __shfl_sync(0xffffffffu, first, 0, lanes_per_row); sum += 0 * first; }",
    "set and used under the same condition": "{ int column; const bool some = row_begin < row_end; if (some) column = column_indices[row_begin]; if (some) sum += 0 * x[column]; }",
    "set in loops that run": "{ int last; for (int i = 0; i < lanes_per_row; ++i) last = i; do last += row; while (last < 0); sum += 0 * last; }",
    "clock64": "{ const long long begin = clock64(); sum += 0 * (clock64() - begin > 1); }",
    "volatile": "{ volatile int v = 0; sum += v; }",
    "ON_DEVICE and macros": "ADD_TO(sum, ON_DEVICE * min3(0, 1, 2)); sum += FULL_MASK - 0xffffffffu;",
    "__shared__ in a block": "{ __shared__ int flag[1024]; flag[threadIdx.x] = 0; sum += flag[threadIdx.x]; }",
    "invoke_one": "cooperative_groups::invoke_one(cooperative_groups::tiled_partition<1>(cooperative_groups::this_thread_block()), [&] { sum += 0; });",
    "[] __device__ ()": "sum += [=] __device__ (int a) -> int { return a - row; }(row);",
    "__builtin_expect": "if (__builtin_expect(row < 0, 0)) sum += 1;",
    "isnan, min and max of two types": "if (isnan(sum)) sum += ::min(1u, 2) + ::max(0, 1u);",
    "thread_group": "{ cooperative_groups::thread_group g = cooperative_groups::tiled_partition(cooperative_groups::this_thread_block(), 16); sum += 0 * g.thread_rank(); }",
    "_Pragma and pragmas for other tools": '_Pragma("unroll") for (int i = 0; i < 2; ++i) sum += 0;\n#pragma region mine\n#pragma endregion',
    "rounding in the name": "sum = __dadd_rn(static_cast<double>(sum), 0.0);",
    "__ldg": "sum += 0 * __ldg(row_offsets + row);",
}

VECTOR, SHARED = "csr_vector.cuh", "csr_vector_shared.cuh"
STEP = "03_csr_vector"


# Bodies of exercises: {(step, file): [(name, what is included or defined before all else, what stands before the kernel, body)]}.
BODIES = {
    ("02_csr_scalar", "csr_scalar.cuh"): [
        (
            "columns in pairs where they are aligned",
            "",
            "",
            r"""
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int k = row_offsets[row];
  const int end = row_offsets[row + 1];
  T sum = 0;
  if (k < end && (k & 1)) { sum += values[k] * x[column_indices[k]]; ++k; }
  for (; k + 1 < end; k += 2) {
    const int2 c = *reinterpret_cast<const int2*>(column_indices + k);
    sum += values[k] * x[c.x] + values[k + 1] * x[c.y];
  }
  if (k < end) sum += values[k] * x[column_indices[k]];
  y[row] = scale(alpha, sum, beta, &y[row]);
""",
        ),
        (
            "a grid-stride loop and pointers that advance",
            "",
            "",
            r"""
  const size_t stride = (size_t)blockDim.x * gridDim.x;
  for (size_t r = blockIdx.x * (size_t)blockDim.x + threadIdx.x; r < (size_t)rows; r += stride) {
    T acc = T(0);
    const int *cols = column_indices + row_offsets[r], *cols_end = column_indices + row_offsets[r + 1];
    const T* v = values + row_offsets[r];
    while (cols != cols_end) acc += *v++ * x[*cols++];
    y[r] = scale(alpha, acc, beta, y + r);
  }
""",
        ),
    ],
    ("03_csr_vector", "csr_vector.cuh"): [
        (
            "cooperative_groups::reduce",
            r"""#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
""",
            "",
            r"""
  auto tile = cg::tiled_partition<lanes_per_row>(cg::this_thread_block());
  T sum = 0;
  for (int k = row_offsets[row] + (int)tile.thread_rank(); k < row_offsets[row + 1]; k += (int)tile.size())
    sum += values[k] * x[column_indices[k]];
  sum = cg::reduce(tile, sum, cg::plus<T>());
  if (tile.thread_rank() == 0) y[row] = scale(alpha, sum, beta, &y[row]);
""",
        ),
        (
            "two nonzeros of a lane at a time, where they are aligned",
            "",
            "",
            r"""
  using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;
  const int begin = row_offsets[row], end = row_offsets[row + 1], aligned = (begin + 1) & ~1;
  T sum = 0;
  if (lane == 0 && begin < end && begin != aligned) sum = values[begin] * x[column_indices[begin]];
  int k = aligned + 2 * lane;
  for (; k + 1 < end; k += 2 * lanes_per_row) {
    const Pair v = *reinterpret_cast<const Pair*>(&values[k]);
    const int2 c = *reinterpret_cast<const int2*>(&column_indices[k]);
    sum += v.x * x[c.x] + v.y * x[c.y];
  }
  if (k < end) sum += values[k] * x[column_indices[k]];
  for (int d = lanes_per_row / 2; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d, lanes_per_row);
  if (lane == 0) y[row] = scale(alpha, sum, beta, y + row);
""",
        ),
        (
            "four nonzeros of a lane at a time: 32 bytes of values",
            "",
            "",
            r"""
  using Four = std::conditional_t<sizeof(T) == 8, double4, float4>;
  const int begin = row_offsets[row], end = row_offsets[row + 1], aligned = (begin + 3) & ~3;
  T sum = 0;
  for (int k = begin + lane; k < min(aligned, end); k += lanes_per_row) sum += values[k] * x[column_indices[k]];
  int k = aligned + 4 * lane;
  for (; k + 3 < end; k += 4 * lanes_per_row) {
    const Four v = *reinterpret_cast<const Four*>(&values[k]);
    const int4 c = *reinterpret_cast<const int4*>(&column_indices[k]);
    sum += v.x * x[c.x] + v.y * x[c.y] + v.z * x[c.z] + v.w * x[c.w];
  }
  for (; k < end; ++k) sum += values[k] * x[column_indices[k]];
  for (int d = lanes_per_row / 2; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d, lanes_per_row);
  if (lane == 0) y[row] = scale(alpha, sum, beta, y + row);
""",
        ),
    ],
    ("04_atomic_coo", "atomic_coo.cuh"): [
        (
            "pairs of neighbours",
            "",
            "",
            r"""
  using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;
  for (unsigned i = 0, k = thread / 32 * 256 + 2 * (thread % 32); i < kItemsPerThread / 2; ++i, k += 64) {
    if (k + 1 < nnz) {
      const int2 r = *(const int2*)(row_indices + k), c = *(const int2*)(column_indices + k);
      const Pair v = *(const Pair*)(values + k);
      atomicAdd(y + r.x, alpha * v.x * x[c.x]);
      atomicAdd(y + r.y, alpha * v.y * x[c.y]);
    } else if (k < nnz) {
      atomicAdd(y + row_indices[k], alpha * values[k] * x[column_indices[k]]);
    }
  }
""",
        ),
        (
            "atomic_ref",
            "#include <cuda/atomic>\n",
            "",
            r"""
  for (unsigned i = 0, k = thread / 32 * 256 + thread % 32; i < kItemsPerThread && k < nnz; ++i, k += 32) {
    cuda::atomic_ref<T, cuda::thread_scope_device> element(y[row_indices[k]]);
    element += alpha * (values[k] * x[column_indices[k]]);
  }
""",
        ),
        (
            "an addition by atomicCAS, from the programming guide",
            "",
            r"""// CUDA Programming Guide, atomicCAS
__device__ __forceinline__ void add_to(double* address, double val) {
  unsigned long long int* address_as_ull = (unsigned long long int*)address;
  unsigned long long int old = *address_as_ull, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
  } while (assumed != old);
}
__device__ __forceinline__ void add_to(float* address, float val) { atomicAdd(address, val); }""",
            r"""
  for (unsigned i = 0, k = thread / 32 * 256 + thread % 32; i < 8; ++i, k += 32) {
    if (k < nnz) add_to(&y[row_indices[k]], alpha * (values[k] * x[column_indices[k]]));
  }
""",
        ),
    ],
    ("04_atomic_coo", "atomic_coo_warp.cuh"): [
        (
            "labeled_partition and reduce",
            r"""#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
""",
            "",
            r"""
  namespace cg = cooperative_groups;
  for (unsigned i = 0; i < kItemsPerThread && warp_begin + 32 * i < nnz; ++i) {
    const unsigned k = warp_begin + 32 * i + lane;
    const int row = k < nnz ? row_indices[k] : -1;
    const T product = k < nnz ? values[k] * x[column_indices[k]] : T{0};
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto same = cg::labeled_partition(warp, row);
    const T sum = cg::reduce(same, product, cg::plus<T>());
    if (row >= 0 && same.thread_rank() == 0) atomicAdd(&y[row], alpha * sum);
  }
""",
        )
    ],
    ("07_lightspmv", "lightspmv.cuh"): [
        (
            "a loop left by a vote",
            "",
            "",
            r"""
  for (;;) {
    unsigned row;
    if (lane_of_team == 0) row = fetch_by_inc ? atomicInc(row_counter, 0xffffffffu) : atomicAdd(row_counter, (unsigned)(lanes_per_fetch / lanes_per_row));
    row = __shfl_sync(team, row, 0, lanes_per_fetch) + lane_of_team / lanes_per_row;
    if (__all_sync(team, row >= rows)) break;
    unsigned b = 0, e = 0;
    if (row < rows) { b = row_offsets[row]; e = row_offsets[row + 1]; }
    T sum = T{0};
    for (unsigned k = b + lane; k < e; k += lanes_per_row) sum += values[k] * device::fetch<T>(x, column_indices[k]);
    for (int d = lanes_per_row >> 1; d; d >>= 1) sum += __shfl_down_sync(team, sum, d, lanes_per_row);
    if (lane == 0 && row < rows) y[row] = scale(alpha, sum, beta, &y[row]);
    __syncwarp(team);
  }
""",
        ),
        (
            "tiles of a tile",
            "#include <cooperative_groups.h>\n",
            "",
            r"""
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<lanes_per_fetch>(cg::this_thread_block());
  auto vector = cg::tiled_partition<lanes_per_row>(tile);
  do {
    unsigned row = 0;
    if (tile.thread_rank() == 0) row = fetch_by_inc ? atomicInc(row_counter, 0xfffffffeu) : atomicAdd(row_counter, lanes_per_fetch / lanes_per_row);
    row = tile.shfl(row, 0);
    if (row >= rows) break;
    row += vector.meta_group_rank();
    if (row < rows) {
      T sum = 0;
      for (unsigned k = row_offsets[row] + vector.thread_rank(), end = row_offsets[row + 1]; k < end; k += vector.size())
        sum += values[k] * device::fetch<T>(x, column_indices[k]);
      for (unsigned d = vector.size() / 2; d > 0; d /= 2) sum += vector.shfl_down(sum, d);
      if (vector.thread_rank() == 0) y[row] = scale(alpha, sum, beta, &y[row]);
    }
    tile.sync();
  } while (true);
""",
        ),
    ],
}


# Each in a submission of its own, besides the right kernels: (before the kernel, in the kernel).
ALONE = {
    "honest_function_passed": (
        "__device__ inline int same(int a) { return a; }\ntemplate <typename F>\n__device__ int apply(F f, int a) { return f(a); }",
        "sum += apply(same, row) - row;",
    )
}


def with_code(text, tops, statements):
    """The right kernel of VECTOR with declarations before it, and statements before y is written."""
    text = text.replace("namespace spmv {\n", "namespace spmv {\n" + "\n".join(tops) + "\n", 1)
    return text.replace(
        "  if (lane == 0) y[row]", "  " + "\n  ".join(statements) + "\n  if (lane == 0) y[row]", 1
    )


def submissions():
    """{name: {file of step 03: text}}: one with all that can stand together, and a helper of one file that the other uses."""
    right = {
        name: without_marks((ROOT / STEP / name).read_text(encoding="utf-8"))
        for name in (VECTOR, SHARED)
    }
    statements = [
        *(statement for _, statement in TOPS.values()),
        *STATEMENTS.values(),
        "sum = square_root_of_square(sum) + 0;",
    ]
    text = with_code(
        right[VECTOR].replace("#pragma once\n", ""), [top for top, _ in TOPS.values()], statements
    )
    helper = "template <typename A>\n__device__ A in_the_other_file(A a) {\n  return a;\n}\n}  // namespace spmv\n#endif\n"
    both = {
        VECTOR: "".join(HEADS.values()) + text.replace("}  // namespace spmv\n", helper),
        SHARED: right[SHARED]
        .replace("#pragma once\n", f'#pragma once\n#include "{VECTOR}"\n')
        .replace("sum +=", "sum += in_the_other_file(0) +", 1),
    }
    alone = {
        name: {**right, VECTOR: with_code(right[VECTOR], [top], [code])}
        for name, (top, code) in ALONE.items()
    }
    return {"honest": both, **alone}


def bodies(step):
    """{name: {file: text}} of the step with another body in one exercise."""
    found = {}
    for (directory, file), versions in BODIES.items():
        text = (ROOT / directory / file).read_text(encoding="utf-8")
        before, _, after = re.split(r" *// exercise: (?:begin|end)\n", text)
        for number, (_, head, top, body) in enumerate(versions if directory == step else ()):
            mine = (
                before.replace("namespace spmv {\n", f"{head}\nnamespace spmv {{\n{top}\n", 1)
                + body
                + after
            )
            found[f"body_{Path(file).stem}_{number}"] = {file: mine}
    return found


def variants():
    return len(HEADS) + len(TOPS) + len(STATEMENTS) + len(ALONE) + sum(map(len, BODIES.values()))


def write(directory):
    """Those for STEP."""
    for name, files in {**submissions(), **bodies(STEP)}.items():
        write_files(Path(directory) / name, files)
