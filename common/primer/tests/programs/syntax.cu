// says 0: 20 launches, 20 times 1
// Where launches stand, and what looks like one: kernel<<<1, 1>>>(in a comment)
#include <cstdio>
#define GRID 1
#define LAUNCH(kernel, ...) kernel<<<GRID, 1>>>(__VA_ARGS__)
#define BRACKETS <<<
/* and in another one: add<<<2, 2>>>(a);
   over lines */
template <typename A, typename B = int, int... kNumbers>
struct Traits {
  static constexpr int value = 1;
  template <typename C>
  static int of(C) {
    return 1;
  }
};
template <typename T>
struct Box {
  T element;
};
struct Counter {
  int* at;
};
__global__ void add(int* a);
namespace outer::inner {
template <typename T, int kBy = 1>
__global__ void __launch_bounds__(128) by(T* a) {
  *a += kBy;
}
template <typename... Rest>
__global__ void all(int* a, Rest... rest) {
  *a += static_cast<int>(sizeof...(rest));
}
template <>
__global__ void by<unsigned, 7>(unsigned* a) {
  *a += 1;
}
}  // namespace outer::inner
using namespace outer;
extern "C" __global__ void from_c(int* a) {
  __shared__ int one;
  one = 1;
  *a += one;
}
static __global__ void add(int* a, Box<Traits<Box<int>>> box) {
  (void)box, *a += 1;
}
__global__ void add(int* a) {
  *a += 1;
}
template <class F>
__global__ void apply(F f, int* a) {
  f(a);
}
template <typename T>
void in_template(T* a) {
  inner::by<T><<<1, 1>>>(a);
}
int once(int* a) {
  add<<<1, 1>>>(a);
  return 1;
}

int main() {
  const char *text = "add<<<1, 1>>>(a)", *raw = R"x(add<<<1, 1>>>(a) " )x";
  const char quote = '"', angle = '<';
  const long big = 1'000'000L;
  int n = 1, *a, count;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMalloc(&a, sizeof *a);
  cudaMemset(a, 0, sizeof *a);
  Counter counter{a};

  add<<<1, 1>>>(a);
  add<<<dim3(1, 1), dim3{1, 1, 1}>>>(a, {});
  add<<<n < 2 ? 1 : 2, n << 0 >> 0, 16>>>(a);
  add  <<< 1, 1, 0, stream >>>  (a);
  ::add<<<Traits<Box<Box<int>>>::value, 1>>>(counter.at);
  add<<<1, Traits<Box<Box<int>>>::of<Box<Box<int>>>({1}), 0>>>(a), add<<<1, 1>>>(a);
  outer::inner::by<int, 1><<<1, 1>>>(a);
  inner::by<<<1,
              1>>>(
      a);
  inner::by<unsigned, 7><<<1, 1>>>(reinterpret_cast<unsigned*>(a));
  if (n) from_c<<<1, 1>>>(a);
  else add<<<2, 1>>>(a);
  LAUNCH(add, a);
  add BRACKETS 1, 1>>>(a);
  void (*pointer)(int*) = add;
  pointer<<<1, 1>>>(a);
  void (*several[])(int*) = {add, from_c};
  several[n]<<<1, 1>>>(a);
  apply<<<1, 1>>>([] __device__(int* at) { *at += 1; }, a);
  inner::all<<<1, 1>>>(a, n);
  in_template(a);
  n ? add<<<1, 1>>>(a) : from_c<<<1, 1>>>(a);
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = 1;
  cudaLaunchKernelEx(&config, from_c, a);
  cudaMemcpy(&count, a, sizeof count, cudaMemcpyDeviceToHost);
  printf("%d launches, %d times 1%s%s\n", count, count, text[3] == angle && raw[3] == angle ? "" : "!",
         quote == '"' && big == 1000000 ? "" : "!");
  return __LINE__ != 104;
}
