// Devices, errors and launches.
#include "simt/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "simt/block.hpp"

namespace simt {
namespace {

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string last_reason;

// The modelled device. Its figures are an H200's (compute capability 9.0).
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kBlocksPerMultiprocessor = 32;
constexpr unsigned kThreadsPerBlock = 1024;
constexpr std::size_t kSharedPerMultiprocessor = 228 * 1024;
constexpr std::size_t kReservedSharedPerBlock = 1024;
constexpr int kL2Bytes = 60 * 1024 * 1024;

std::mutex attributes_mutex;

// By device and kernel. It is there before and after main(), when objects of the program may
// launch.
auto& max_dynamic_shared() {
  static auto& sizes = *new std::map<std::pair<int, const void*>, std::size_t>;
  return sizes;
}

// Bytes of shared memory, static and dynamic, that a block of `kernel` may have.
std::size_t shared_limit(const void* kernel) {
  const std::lock_guard lock(attributes_mutex);
  const auto it = max_dynamic_shared().find({current_device(), kernel});
  return it == max_dynamic_shared().end() ? kDefaultSharedBytes
                                          : static_shared_bytes(kernel) + it->second;
}

// What a launch has too much or too little of; empty if nothing.
std::string beyond_limits(dim3 grid, dim3 block) {
  const auto check = [](const char* what, std::uint64_t n, std::uint64_t limit) {
    return n >= 1 && n <= limit ? std::string()
                                : fmt::format("{} {}, and must be from 1 to {}", what, n, limit);
  };
  const std::tuple<const char*, std::uint64_t, std::uint64_t> limits[] = {
      {"blockDim.x is", block.x, 1024},
      {"blockDim.y is", block.y, 1024},
      {"blockDim.z is", block.z, 64},
      {"the number of threads per block is", count_of(block), kThreadsPerBlock},
      {"gridDim.x is", grid.x, 0x7fffffffu},
      {"gridDim.y is", grid.y, 65535},
      {"gridDim.z is", grid.z, 65535},
  };
  for (const auto& [what, n, limit] : limits) {
    if (const std::string why = check(what, n, limit); !why.empty()) return why;
  }
  return {};
}

cudaError_t answer(int* asked, int value) {
  if (!asked) return set_error(cudaErrorInvalidValue);
  *asked = value;
  return cudaSuccess;
}

}  // namespace

cudaError_t error_of(Outcome outcome) {
  return set_error(outcome == Outcome::kDone             ? cudaSuccess
                   : outcome == Outcome::kIllegalAddress ? cudaErrorIllegalAddress
                   : outcome == Outcome::kMisaligned     ? cudaErrorMisalignedAddress
                                                         : cudaErrorLaunchFailure);
}

void (*error_listener)(cudaError_t, const std::string&) = nullptr;

cudaError_t set_error(cudaError_t error, const std::string& why) {
  if (error == cudaSuccess) return error;
  last_error = error;
  last_reason = why;
  if (error_listener) error_listener(error, why);
  return error;
}

std::string take_reason() {
  return std::exchange(last_reason, {});
}

int current_device() {
  return device_of_thread;
}
bool is_device(int device) {
  return device >= 0 && device < settings().devices;
}

cudaError_t launch(const cudaLaunchConfig_t* config, const void* kernel, void (*body)(const void*),
                   const void* arguments, std::size_t argument_bytes) {
  if (!config) return set_error(cudaErrorInvalidValue);
  if (!kernel) return set_error(cudaErrorInvalidDeviceFunction);
  if (config->stream && device_of_stream(config->stream) != current_device()) {
    return set_error(cudaErrorInvalidResourceHandle);
  }
  const dim3 grid = config->gridDim;
  const dim3 block = config->blockDim;
  if (const std::string why = beyond_limits(grid, block); !why.empty()) {
    return set_error(cudaErrorInvalidConfiguration, why);
  }
  const std::size_t shared_bytes = static_shared_bytes(kernel) + config->dynamicSmemBytes;
  if (shared_bytes > shared_limit(kernel)) {
    return set_error(
        cudaErrorInvalidValue,
        fmt::format("a block asks for {} bytes of shared memory and may have {}; up to {} are "
                    "given after cudaFuncSetAttribute(kernel, "
                    "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)",
                    shared_bytes, shared_limit(kernel), kMaxSharedBytes));
  }
  bool cooperative = false, may_start_early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) {
      cooperative = attribute.val.cooperative != 0;
    } else if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      may_start_early = attribute.val.programmaticStreamSerializationAllowed != 0;
    }
  }
  if (cooperative) {
    int resident = 0;
    const cudaError_t error = blocks_per_multiprocessor(
        &resident, kernel, static_cast<int>(count_of(block)), config->dynamicSmemBytes);
    if (error != cudaSuccess) return error;
    if (count_of(grid) > 1ull * resident * settings().multiprocessors) {
      return set_error(cudaErrorCooperativeLaunchTooLarge);
    }
  }
  const Grid now{
      kernel, grid,      block,         config->dynamicSmemBytes, current_device(), may_start_early,
      body,   arguments, argument_bytes};
  const cudaStream_t stream = config->stream;
  const auto run = [stream](const Grid& g) {
    const OnStream on(stream);
    return error_of(run_grid(g));
  };
  if (!cooperative && !is_deferred(stream)) return enqueue(stream, [&] { return run(now); });
  // The arguments, which a kernel gets as bytes, are gone by then.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  auto kept = std::make_shared<std::vector<Line>>(argument_bytes / sizeof(Line) + 1);
  std::memcpy(kept->data(), arguments, argument_bytes);
  Grid later = now;
  later.arguments = kept->data();
  if (cooperative) return enqueue_cooperative(stream, later, kept);
  return enqueue(stream, [run, later, kept] { return run(later); });
}

cudaError_t set_attribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (!kernel) return set_error(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) + static_shared_bytes(kernel) > kMaxSharedBytes) {
    return set_error(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(attributes_mutex);
  max_dynamic_shared()[{current_device(), kernel}] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t blocks_per_multiprocessor(int* blocks, const void* kernel, int block_size,
                                      std::size_t dynamic_shared_bytes) {
  if (!blocks || block_size <= 0 || block_size > static_cast<int>(kThreadsPerBlock)) {
    return set_error(cudaErrorInvalidValue);
  }
  // Registers, which only a GPU's compiler knows, are left out.
  const int threads = (block_size + warpSize - 1) / warpSize * warpSize;
  const std::size_t shared =
      static_shared_bytes(kernel) + dynamic_shared_bytes + kReservedSharedPerBlock;
  *blocks = std::min({kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / threads,
                      static_cast<int>(kSharedPerMultiprocessor / shared)});
  return cudaSuccess;
}

}  // namespace simt

using simt::set_error;

// --- Errors -------------------------------------------------------------------------------------

#define SIMT_NAME_OF(name, number, text) \
  if (error == name) return #name;
#define SIMT_TEXT_OF(name, number, text) \
  if (error == name) return text;
const char* cudaGetErrorName(cudaError_t error) {
  SIMT_ERRORS(SIMT_NAME_OF)
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  SIMT_ERRORS(SIMT_TEXT_OF)
  return "unrecognized error code";
}
#undef SIMT_NAME_OF
#undef SIMT_TEXT_OF
cudaError_t cudaGetLastError() {
  return std::exchange(simt::last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return simt::last_error;
}

// --- Devices ------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  return simt::answer(count, simt::settings().devices);
}

cudaError_t cudaSetDevice(int device) {
  if (!simt::is_device(device)) return set_error(cudaErrorInvalidDevice);
  simt::device_of_thread = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  return simt::answer(device, simt::device_of_thread);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!properties) return set_error(cudaErrorInvalidValue);
  if (!simt::is_device(device)) return set_error(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "CPU (simt)");
  std::size_t free_bytes = 0;
  cudaMemGetInfo(&free_bytes, &properties->totalGlobalMem);
  properties->warpSize = simt::kWarpSize;
  properties->major = 9;
  properties->multiProcessorCount = simt::settings().multiprocessors;
  properties->maxThreadsPerBlock = simt::kThreadsPerBlock;
  properties->maxThreadsPerMultiProcessor = simt::kThreadsPerMultiprocessor;
  std::copy_n(std::begin({1024, 1024, 64}), 3, properties->maxThreadsDim);
  std::copy_n(std::begin({0x7fffffff, 65535, 65535}), 3, properties->maxGridSize);
  properties->sharedMemPerBlock = simt::kDefaultSharedBytes;
  properties->sharedMemPerMultiprocessor = simt::kSharedPerMultiprocessor;
  properties->totalConstMem = 64 * 1024;
  properties->l2CacheSize = simt::kL2Bytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value) return set_error(cudaErrorInvalidValue);
  if (!simt::is_device(device)) return set_error(cudaErrorInvalidDevice);
  const std::map<cudaDeviceAttr, int> values = {
      {cudaDevAttrMultiProcessorCount, simt::settings().multiprocessors},
      {cudaDevAttrClockRate, 1'980'000},
      {cudaDevAttrMemoryClockRate, 3'201'000},
      {cudaDevAttrGlobalMemoryBusWidth, 6016},
      {cudaDevAttrL2CacheSize, simt::kL2Bytes},
      {cudaDevAttrComputeCapabilityMajor, 9},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, simt::kSharedPerMultiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, simt::kReservedSharedPerBlock},
  };
  const auto found = values.find(attribute);
  if (found == values.end()) return set_error(cudaErrorInvalidValue);
  *value = found->second;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const auto error = simt::refuse_in_capture(simt::InCapture::kWaitForDevice)) return error;
  return set_error(simt::finish_device(simt::current_device()));
}

// (What it keeps: allocations. A kernel that used one of them afterwards would be a mistake.)
cudaError_t cudaDeviceReset() {
  return cudaDeviceSynchronize();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return simt::answer(version, CUDART_VERSION);
}

cudaError_t cudaDriverGetVersion(int* version) {
  return simt::answer(version, 0);  // CUDA's answer where no driver is installed
}
