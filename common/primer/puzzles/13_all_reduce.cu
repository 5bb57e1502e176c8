// Puzzle 13, after step 10: a sum over all GPUs.
//
// Solvers need sums to which every GPU contributes, and which every GPU needs before it goes on. A
// block may store into the memory of another GPU. What it stores arrives later, and other stores of
// the block may arrive before it, unless a release orders them. But a word of 64 bits is written as
// a whole. So the upper half of a word can say which sum it is part of, and the lower half be the
// part. Step 10 does so in 10_multigpu/conjugate_gradients.cu.
#include <cmath>
#include <cstdio>
#include <cuda/atomic>
#include <vector>

using Word = unsigned long long;
using AtomicWord = cuda::atomic_ref<Word>;  // load(order), store(word, order): as std::atomic_ref

constexpr int kMostGpus = 8, kSteps = 6;

struct Gpus {
  int count, own;          // how many there are, and the number of this one
  Word* words[kMostGpus];  // words[g], in the memory of GPU g: 0 at first, 2 * count * gridDim.x
  float* x[kMostGpus];     // x[g], in the memory of GPU g: an element per block of all GPUs
};

// The sum of `part` over all blocks of all GPUs, in all threads, added up in the same order
// everywhere. The calls have the numbers k = 1, 2, 3 and so on, the same ones in all blocks. All
// threads of a block, a warp, call it with the same `part`. After it, what any block stored before
// is here, and all blocks have read what they read before.
__device__ float all_reduce(const Gpus& gpus, unsigned k, float part) {
  __syncwarp();  // a release by one lane is now one for all lanes of the block
  // TODO (puzzle 13): about ten lines. Lane g stores this block's word to GPU g. Then add up the
  // words of all blocks, and wait for each. Two sets of words, for odd and for even k, suffice.
  return part;
}

// There is nothing to change from here on.
__global__ void steps_kernel(Gpus gpus) {
  const int count = gpus.count * gridDim.x, place = gpus.own * gridDim.x + blockIdx.x;
  float* const x = gpus.x[gpus.own];
  for (int step = 0; step < kSteps; ++step) {
    const float part = x[place] + 2 * x[(place + 1) % count];
    const float sum = all_reduce(gpus, 2 * step + 1, part);
    if (threadIdx.x < gpus.count) gpus.x[threadIdx.x][place] = fmodf(part + sum, 7);
    all_reduce(gpus, 2 * step + 2, 0);
  }
}

std::vector<float> on_the_host(std::vector<float> x) {
  const int count = static_cast<int>(x.size());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> parts(count);
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += parts[i] = x[i] + 2 * x[(i + 1) % count];
    for (int i = 0; i < count; ++i) x[i] = std::fmod(parts[i] + sum, 7.0f);
  }
  return x;
}

int main() {
  constexpr int kBlocks = 2;
  Gpus gpus{};
  cudaGetDeviceCount(&gpus.count);
  if (gpus.count > kMostGpus) gpus.count = kMostGpus;
  const int count = gpus.count * kBlocks;
  std::vector<float> x(count);
  for (int i = 0; i < count; ++i) x[i] = i * i % 7;  // all sums are exact
  std::vector<cudaStream_t> streams(gpus.count);
  for (int g = 0; g < gpus.count; ++g) {
    cudaSetDevice(g);
    for (int other = 0; other < gpus.count; ++other) {
      if (other != g) cudaDeviceEnablePeerAccess(other, 0);
    }
    cudaMalloc(&gpus.words[g], 2 * count * sizeof(Word));
    cudaMemset(gpus.words[g], 0, 2 * count * sizeof(Word));
    cudaMalloc(&gpus.x[g], count * sizeof(float));
    cudaMemcpy(gpus.x[g], x.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    cudaStreamCreateWithFlags(&streams[g], cudaStreamNonBlocking);
    cudaDeviceSynchronize();
  }
  for (int g = 0; g < gpus.count; ++g) {  // all are launched before any is waited for
    gpus.own = g;
    cudaLaunchAttribute cooperative{};  // all blocks are resident, since they wait for each other
    cooperative.id = cudaLaunchAttributeCooperative, cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config{dim3(kBlocks), dim3(32), 0, streams[g], &cooperative, 1};
    cudaSetDevice(g);
    const cudaError_t error = cudaLaunchKernelEx(&config, steps_kernel, gpus);
    if (error != cudaSuccess) std::printf("WRONG: %s\n", cudaGetErrorName(error));
  }
  const std::vector<float> expected = on_the_host(x);
  int wrong = 0;
  for (int g = 0; g < gpus.count; ++g) {
    cudaSetDevice(g);
    if (cudaStreamSynchronize(streams[g]) != cudaSuccess) return 1;
    cudaMemcpy(x.data(), gpus.x[g], count * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; ++i) {
      if (x[i] == expected[i]) continue;
      if (!wrong++)
        std::printf("WRONG: x[%d] on GPU %d is %g; %g is expected\n", i, g, x[i], expected[i]);
    }
    cudaFree(gpus.words[g]);
    cudaFree(gpus.x[g]);
    cudaStreamDestroy(streams[g]);
  }
  if (wrong) return 1;
  std::printf("right: %d steps on %d GPUs\n", kSteps, gpus.count);
}
