// CUDA on the CPU: the calls of a host program, and the errors that they return.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "simt/tests/testing.hpp"

namespace simt_test {

__global__ void nothing_kernel() {}
__global__ void copy_kernel(const int* from, int* to) {
  to[threadIdx.x] = from[threadIdx.x];
}
__global__ void reverse_kernel(const int* from, int* to) {
  __shared__ int cells[1024];
  cells[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = cells[blockDim.x - 1 - threadIdx.x];
}
__global__ void static_shared_kernel(int* out) {
  __shared__ int cells[8192];
  cells[threadIdx.x] = 1;
  __syncthreads();
  out[0] = cells[blockDim.x - 1 - threadIdx.x];
}
__global__ void large_dynamic_kernel(int last, int* out) {
  extern __shared__ int dynamic_ints[];
  dynamic_ints[last] = last;
  out[0] = dynamic_ints[last];
}

cudaError_t launch_raw(dim3 grid, dim3 block, std::size_t shared = 0,
                       cudaStream_t stream = nullptr) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, nothing_kernel);
}

// Included first, before the test's own headers: a CUDA Toolkit's would clash with simt, or be
// none.
static_assert(_CCCL_HAS_CTK() == 0, "NVIDIA's libraries must not look for more of a toolkit");
TEST_CASE("the runtime API's header is simt's", "[simt]") {
  int version = 0;
  CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(version == CUDART_VERSION);
}

TEST_CASE("errors have names and texts, and the last one is remembered", "[simt]") {
  for (const int code : {0, 1, 2, 9, 21, 98, 101, 217, 400, 600, 700, 704, 719, 801}) {
    const auto error = static_cast<cudaError_t>(code);
    CHECK(std::strncmp(cudaGetErrorName(error), "cuda", 4) == 0);
    CHECK(std::strlen(cudaGetErrorString(error)) > 5);
  }
  CHECK(std::string(cudaGetErrorName(cudaErrorIllegalAddress)) == "cudaErrorIllegalAddress");
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(1000))) == "unrecognized error code");

  cudaGetLastError();
  CHECK(cudaSetDevice(77) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);  // a success does not forget the error
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaEventCreate(nullptr) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device memory: allocation", "[simt]") {
  float* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 1001 * sizeof(float)) == cudaSuccess);
  CHECK(reinterpret_cast<std::uintptr_t>(pointer) % 256 == 0);
  std::vector<float> host(1001);
  REQUIRE(cudaMemcpy(host.data(), pointer, 4004, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (const float value : host) CHECK(std::isnan(value));

  CHECK_ERROR(cudaErrorInvalidValue, cudaFree(pointer + 1));
  CHECK(cudaFree(pointer) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, cudaFree(pointer));
  CHECK_ERROR(cudaErrorInvalidValue, cudaFree(host.data()));
  CHECK(cudaFree(nullptr) == cudaSuccess);

  void* none = &host;
  CHECK(cudaMalloc(&none, 0) == cudaSuccess);
  CHECK(none == nullptr);
  CHECK_ERROR(cudaErrorInvalidValue, cudaMalloc(nullptr, 8));
  CHECK_ERROR(cudaErrorMemoryAllocation,
              cudaMalloc(&none, std::numeric_limits<std::size_t>::max()));
  CHECK_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&none, std::size_t{1} << 50));
  CHECK(none == nullptr);

  std::size_t free_bytes = 0, total_bytes = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  CHECK(free_bytes > 0);
  CHECK(free_bytes <= total_bytes);
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemGetInfo(nullptr, &total_bytes));
}

TEST_CASE("pinned memory", "[simt]") {
  double* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 80) == cudaSuccess);
  pinned[9] = 1;
  CHECK(cudaMemset(pinned, 0, 80) == cudaSuccess);
  CHECK(pinned[9] == 0);
  CHECK(cudaMemsetAsync(pinned + 9, 0xff, 8, nullptr) == cudaSuccess);
  CHECK(std::isnan(pinned[9]));
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemsetAsync(pinned + 9, 0, 9, nullptr));
  CHECK_ERROR(cudaErrorInvalidValue, cudaFreeHost(pinned + 1));
  CHECK_ERROR(cudaErrorInvalidValue, cudaFree(pinned));
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, cudaFreeHost(pinned));
  CHECK(cudaFreeHost(nullptr) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, cudaMallocHost(static_cast<void**>(nullptr), 8));
}

TEST_CASE("copies check directions and sizes", "[simt]") {
  std::vector<int> host(10, 3), other(10);
  Buffer<int> a("a", 10), b("b", 10);
  const auto copy = [](void* to, const void* from, int kind, std::size_t bytes = 40) {
    return cudaMemcpy(to, from, bytes, static_cast<cudaMemcpyKind>(kind));
  };
  CHECK(copy(a.data(), host.data(), cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(copy(b.data(), a.data(), cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(copy(other.data(), b.data(), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(other == host);
  CHECK(copy(other.data(), host.data(), cudaMemcpyHostToHost) == cudaSuccess);
  CHECK(copy(a.data(), host.data(), cudaMemcpyDefault) == cudaSuccess);
  CHECK(copy(other.data(), a.data(), cudaMemcpyDefault) == cudaSuccess);
  CHECK(copy(nullptr, nullptr, cudaMemcpyDefault, 0) == cudaSuccess);

  CHECK_ERROR(cudaErrorInvalidValue, copy(a.data(), host.data(), cudaMemcpyDeviceToHost));
  CHECK_ERROR(cudaErrorInvalidValue, copy(other.data(), a.data(), cudaMemcpyHostToDevice));
  CHECK_ERROR(cudaErrorInvalidValue, copy(a.data(), b.data(), cudaMemcpyHostToDevice));
  CHECK_ERROR(cudaErrorInvalidValue, copy(a.data(), host.data(), cudaMemcpyHostToDevice, 41));
  CHECK_ERROR(cudaErrorInvalidValue, copy(other.data(), a.data() + 1, cudaMemcpyDeviceToHost));
  CHECK_ERROR(cudaErrorInvalidValue, copy(nullptr, host.data(), cudaMemcpyHostToDevice));
  CHECK_ERROR(cudaErrorInvalidMemcpyDirection, copy(a.data(), host.data(), 7));

  CHECK(cudaMemset(a.data(), 0x11, 20) == cudaSuccess);
  CHECK(a.download()[4] == 0x11111111);
  CHECK(a.download()[5] == 3);
  CHECK(cudaMemset(nullptr, 0, 0) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemset(a.data(), 0, 41));
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemset(host.data(), 0, 4));
}

TEST_CASE("streams and events", "[simt]") {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr, untimed = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&stop) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  float milliseconds = -1;
  CHECK_ERROR(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, stop));
  CHECK(cudaEventRecord(start, stream) == cudaSuccess);
  CHECK(launch_raw(100, 100, 0, stream) == cudaSuccess);
  CHECK(cudaEventRecord(stop, stream) == cudaSuccess);
  CHECK(cudaEventRecord(untimed, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, stop) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(stop) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop) == cudaSuccess);
  CHECK(milliseconds > 0);
  CHECK_ERROR(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, untimed));
  CHECK_ERROR(cudaErrorInvalidValue, cudaEventElapsedTime(nullptr, start, stop));

  std::vector<int> host{1, 2, 3, 4};
  Buffer<int> buffer("buffer", host), to("to", 4);
  CHECK(cudaMemcpyAsync(to.data(), buffer.data(), 16, cudaMemcpyDeviceToDevice, stream) ==
        cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(to.download() == host);
  CHECK(cudaMemsetAsync(to.data(), 0, 16, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(to.download() == std::vector<int>(4));

  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaEventDestroy(stop) == cudaSuccess);
  for (const cudaError_t error :
       {cudaStreamDestroy(stream), cudaStreamSynchronize(stream),
        cudaStreamWaitEvent(stream, start), cudaStreamWaitEvent(nullptr, stop),
        cudaEventRecord(start, stream), cudaEventRecord(stop), cudaEventSynchronize(stop),
        cudaEventDestroy(stop), cudaEventElapsedTime(&milliseconds, start, stop),
        launch_raw(1, 1, 0, stream),
        cudaMemcpyAsync(to.data(), buffer.data(), 16, cudaMemcpyDeviceToDevice, stream),
        cudaMemsetAsync(to.data(), 0, 16, stream)}) {
    CHECK(error == cudaErrorInvalidResourceHandle);
  }
  cudaGetLastError();
  CHECK_ERROR(cudaErrorInvalidValue, cudaStreamCreate(nullptr));
  CHECK_ERROR(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 2));
  CHECK_ERROR(cudaErrorInvalidValue, cudaEventCreate(nullptr));
  CHECK_ERROR(cudaErrorInvalidValue, cudaEventCreateWithFlags(&stop, 8));
  CHECK_ERROR(cudaErrorInvalidValue, cudaStreamWaitEvent(nullptr, start, 1));
  cudaEventDestroy(start);
  cudaEventDestroy(untimed);
}

TEST_CASE("launches check their configuration", "[simt]") {
  for (const dim3 block : {dim3(1024), dim3(1, 1024), dim3(4, 4, 64)}) {
    CHECK(launch_raw(1, block) == cudaSuccess);
  }
  for (const dim3 block : {dim3(0), dim3(1, 0), dim3(1, 1, 0), dim3(1025), dim3(33, 32),
                           dim3(1, 1, 65), dim3(1u << 31, 2), dim3(1u << 16, 1u << 16)}) {
    CHECK_ERROR(cudaErrorInvalidConfiguration, launch_raw(1, block));
  }
  CHECK(launch_raw({3, 65535, 1}, 1) == cudaSuccess);
  for (const dim3 grid :
       {dim3(0), dim3(1, 0), dim3(1, 1, 0), dim3(1u << 31), dim3(1, 65536), dim3(1, 1, 65536)}) {
    CHECK_ERROR(cudaErrorInvalidConfiguration, launch_raw(grid, 1));
  }
  CHECK_ERROR(cudaErrorInvalidValue, cudaLaunchKernelEx(nullptr, nothing_kernel));
  const cudaLaunchConfig_t config = {};
  CHECK_ERROR(cudaErrorInvalidDeviceFunction,
              cudaLaunchKernelEx(&config, static_cast<void (*)()>(nullptr)));
}

TEST_CASE("shared memory beyond 48 KiB must be asked for", "[simt]") {
  Buffer<int> out("out", 1);
  const auto try_dynamic = [&](std::size_t bytes) {
    cudaLaunchConfig_t config = {};
    config.dynamicSmemBytes = bytes;
    return cudaLaunchKernelEx(&config, large_dynamic_kernel, static_cast<int>(bytes / 4) - 1,
                              out.data());
  };
  CHECK(try_dynamic(48 * 1024) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, try_dynamic(48 * 1024 + 4));
  const auto allow = [](int bytes) {
    return cudaFuncSetAttribute(large_dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
  };
  CHECK_ERROR(cudaErrorInvalidValue, allow(227 * 1024 + 1));
  CHECK_ERROR(cudaErrorInvalidValue, allow(-1));
  CHECK(allow(227 * 1024) == cudaSuccess);
  CHECK(try_dynamic(227 * 1024) == cudaSuccess);
  CHECK(out.download()[0] == 227 * 256 - 1);
  CHECK_ERROR(cudaErrorInvalidValue, try_dynamic(227 * 1024 + 4));
  CHECK(allow(1024) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, try_dynamic(2048));

  // Static shared memory counts: 32 KiB of it leave 16.
  cudaLaunchConfig_t config = {};
  config.dynamicSmemBytes = 16 * 1024;
  CHECK(cudaLaunchKernelEx(&config, static_shared_kernel, out.data()) == cudaSuccess);
  config.dynamicSmemBytes += 1;
  CHECK_ERROR(cudaErrorInvalidValue, cudaLaunchKernelEx(&config, static_shared_kernel, out.data()));
  CHECK_ERROR(cudaErrorInvalidValue,
              cudaFuncSetAttribute(static_shared_kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));

  CHECK(cudaFuncSetAttribute(nothing_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50) ==
        cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue,
              cudaFuncSetAttribute(nothing_kernel, static_cast<cudaFuncAttribute>(0), 50));
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing_kernel, 256, 0) ==
        cudaSuccess);
  CHECK(blocks == 8);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, static_shared_kernel, 64, 0) ==
        cudaSuccess);
  CHECK(blocks == 6);
  CHECK_ERROR(cudaErrorInvalidValue,
              cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing_kernel, 1025, 0));
}

TEST_CASE("devices", "[simt]") {
  const ScopedSettings restore;
  simt::settings().devices = 3;
  int value = 0;
  CHECK(cudaGetDeviceCount(&value) == cudaSuccess);
  CHECK(value == 3);
  CHECK(cudaSetDevice(2) == cudaSuccess);
  CHECK(cudaGetDevice(&value) == cudaSuccess);
  CHECK(value == 2);
  CHECK_ERROR(cudaErrorInvalidDevice, cudaSetDevice(3));
  CHECK_ERROR(cudaErrorInvalidDevice, cudaSetDevice(-1));
  CHECK(cudaSetDevice(0) == cudaSuccess);

  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 2) == cudaSuccess);
  CHECK(properties.warpSize == 32);
  CHECK(properties.major == 9);
  CHECK_ERROR(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 3));
  CHECK_ERROR(cudaErrorInvalidValue, cudaGetDeviceProperties(nullptr, 0));
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  CHECK(value == properties.multiProcessorCount);
  CHECK_ERROR(cudaErrorInvalidValue,
              cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(127), 0));
  CHECK_ERROR(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, 3));
  CHECK_ERROR(cudaErrorInvalidValue, cudaGetDeviceCount(nullptr));
  CHECK_ERROR(cudaErrorInvalidValue, cudaGetDevice(nullptr));
}

TEST_CASE("peers", "[simt]") {
  const ScopedSettings restore;
  simt::settings().devices = 5;
  const std::vector<int> host = {1, 2, 3, 4};
  REQUIRE(cudaSetDevice(3) == cudaSuccess);  // these two are no other test's
  Buffer<int> here("here", 4);
  REQUIRE(cudaSetDevice(4) == cudaSuccess);
  Buffer<int> there("there", host);
  cudaStream_t stream_there = nullptr;
  cudaEvent_t event_there = nullptr;
  REQUIRE(cudaStreamCreate(&stream_there) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event_there) == cudaSuccess);
  REQUIRE(cudaSetDevice(3) == cudaSuccess);

  int can = -1;
  CHECK(cudaDeviceCanAccessPeer(&can, 3, 4) == cudaSuccess);
  CHECK(can == 1);
  CHECK(cudaDeviceCanAccessPeer(&can, 4, 4) == cudaSuccess);
  CHECK(can == 0);
  CHECK_ERROR(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 3, 5));
  CHECK_ERROR(cudaErrorInvalidValue, cudaDeviceCanAccessPeer(nullptr, 3, 4));

  simt::settings().peer_access = false;
  CHECK(!spmv::device::enable_peer_access(3, 4));
  CHECK_ERROR(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(4, 0));
  simt::settings().peer_access = true;
  CHECK_ERROR(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(3, 0));
  CHECK_ERROR(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(5, 0));
  CHECK_ERROR(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(4, 1));

  // Copies need no peer access.
  CHECK(cudaMemcpyAsync(here.data(), there.data(), 16, cudaMemcpyDefault) == cudaSuccess);
  CHECK(here.download() == host);

  // A kernel's stream is of its device, and so is the event that marks a point in it.
  CHECK_ERROR(cudaErrorInvalidResourceHandle, launch_raw(1, 1, 0, stream_there));
  CHECK_ERROR(cudaErrorInvalidResourceHandle, cudaEventRecord(event_there));
  CHECK(cudaEventRecord(event_there, stream_there) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(nullptr, event_there) == cudaSuccess);

  const std::string report = failure_of(copy_kernel, {1, 4}, there.data(), here.data());
  CHECK(contains(report, "cudaErrorIllegalAddress"));
  CHECK(contains(report, "in 'there' on device 4; device 3 has no peer access to it"));
  CHECK(cudaDeviceEnablePeerAccess(4, 0) == cudaSuccess);
  CHECK_ERROR(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(4, 0));
  CHECK(spmv::device::enable_peer_access(3, 4));  // again
  launch(copy_kernel, {1, 4}, there.data(), here.data());
  CHECK(here.download() == host);
  cudaGetLastError();
  cudaStreamDestroy(stream_there);
  cudaEventDestroy(event_there);
  cudaSetDevice(0);
}

TEST_CASE("threads of the host may work with a device each", "[simt]") {
  const ScopedSettings restore;
  simt::settings().devices = 4;
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int device = 0; device < 4; ++device) {
    threads.emplace_back([device, &wrong] {
      wrong[device] += cudaSetDevice(device) != cudaSuccess;
      const std::vector<int> host(1024, device);
      for (int round = 0; round < 50; ++round) {
        const Buffer<int> from("from", host);
        Buffer<int> to("to", 1024);
        launch(reverse_kernel, {1, 1024}, from.data(), to.data());
        wrong[device] += to.download() != host;
        wrong[device] += cudaGetLastError() != cudaSuccess;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("textures are checked when they are made", "[simt]") {
  Buffer<float> buffer("buffer", 8);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {buffer.data(), cudaCreateChannelDesc<float>(), buffer.bytes()};
  cudaTextureDesc description = {};
  cudaTextureObject_t texture = 0;
  const auto create = [&](cudaTextureReadMode mode, std::size_t bytes) {
    description.readMode = mode;
    resource.res.linear.sizeInBytes = bytes;
    return cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  };
  CHECK_ERROR(cudaErrorInvalidValue,
              cudaCreateTextureObject(nullptr, &resource, &description, nullptr));
  CHECK_ERROR(cudaErrorNotSupported, create(cudaReadModeNormalizedFloat, buffer.bytes()));
  CHECK_ERROR(cudaErrorInvalidValue, create(cudaReadModeElementType, buffer.bytes() + 4));
  CHECK(create(cudaReadModeElementType, buffer.bytes()) == cudaSuccess);
  CHECK(cudaDestroyTextureObject(texture) == cudaSuccess);
  CHECK_ERROR(cudaErrorInvalidValue, cudaDestroyTextureObject(texture));
  CHECK_ERROR(cudaErrorInvalidValue, cudaDestroyTextureObject(0));
}

// --- Why ----------------------------------------------------------------------------------------

TEST_CASE("an error says why, where its name does not", "[simt]") {
  Buffer<int> a("a", 4);
  int host[8] = {};
  const auto why = [](cudaError_t error) {
    CHECK(error != cudaSuccess);
    return simt::take_reason();
  };
  CHECK(why(launch_raw(1, 2048)) == "blockDim.x is 2048, and must be from 1 to 1024");
  CHECK(why(launch_raw(1, dim3(64, 32))) ==
        "the number of threads per block is 2048, and must be from 1 to 1024");
  CHECK(why(launch_raw(0, 1)) == "gridDim.x is 0, and must be from 1 to 2147483647");
  check_contains(why(launch_raw(1, 1, 65536)),
                 {"a block asks for 65536 bytes of shared memory and may have 49152"});
  CHECK(why(cudaMemcpy(a.data(), host, 32, cudaMemcpyHostToDevice)) ==
        "'a' has 16 bytes, and 32 are asked for");
  CHECK(why(cudaMemcpy(host, a.data(), 4, cudaMemcpyHostToDevice)) ==
        "the direction says that the target, the first argument, is device memory, and it is the "
        "host's");
  CHECK(why(cudaMemset(a.data() + 1, 0, 16)) ==
        "'a' has 16 bytes, and 16 are asked for from byte 4 on");
  CHECK(why(cudaMemset(host, 0, 4)) == "the memory to set is the host's");
  CHECK(why(cudaFree(host)) == "no allocation of device memory begins there");
  int* freed = nullptr;
  CHECK(cudaMalloc(&freed, 4) == cudaSuccess);
  simt::name_allocation(freed, "freed");
  CHECK(cudaFree(freed) == cudaSuccess);
  CHECK(why(cudaFree(freed)) == "'freed' has been freed before");
  CHECK(simt::take_reason().empty());
  cudaGetLastError();
}

__constant__ int constants[4];
__device__ int counter;
__global__ void constants_kernel() {
  atomicAdd(&counter, constants[threadIdx.x]);
}

TEST_CASE("the host copies to and from variables of the device", "[simt]") {
  const int host[4] = {1, 2, 3, 4}, more[8] = {};
  int sum = 0;
  const Buffer<int> on_device("on_device", std::vector<int>{10, 20});
  CHECK(cudaMemcpyToSymbol(constants, host, sizeof host) == cudaSuccess);
  CHECK(cudaMemcpyToSymbol(constants, on_device.data(), 8, 8, cudaMemcpyDeviceToDevice) ==
        cudaSuccess);
  CHECK(cudaMemcpyToSymbol(counter, more, sizeof counter) == cudaSuccess);
  launch(constants_kernel, {1, 4});
  CHECK(cudaMemcpyFromSymbol(&sum, counter, sizeof counter) == cudaSuccess);
  CHECK(sum == 1 + 2 + 10 + 20);
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(constants, more, sizeof more));
  CHECK(simt::take_reason() == "the variable has 16 bytes, and 32 are asked for");
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(constants, host, 16, 4));
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemcpyFromSymbol(&sum, counter, 4, 8));
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(constants, on_device.data(), 4));
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(counter, nullptr, 4));
}

// --- What ends the process ----------------------------------------------------------------------

// Run by the test below, in a process of its own.
TEST_CASE("the host reads device memory", "[.simt-host-reads]") {
  const Buffer<float> x("x", 8);
  std::printf("%f\n", static_cast<double>(*const_cast<const volatile float*>(x.data() + 3)));
}

TEST_CASE("device memory is out of the host's reach", "[simt]") {
  check_contains(output_of_test("[.simt-host-reads]"),
                 {"error: runtime_test.cu:",
                  ": the host touched device memory: byte 12 of 'x'; copy it with cudaMemcpy first",
                  "status 139"});
}

}  // namespace simt_test
