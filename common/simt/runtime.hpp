// The part of the CUDA runtime API that a host program calls, over memory and cores of this
// machine.
//
// Work on a stream is done when it is asked for, which is one of the orders that CUDA allows; with
// Settings::late_streams it is done when something waits for it, in an order drawn at random.
// Every function checks its arguments and returns the error that CUDA documents for them. Device
// memory is memory of its own, filled with NaN when it is allocated; in the instrumented build the
// host cannot touch it, nor a kernel touch the host's.
#pragma once

#include <cstddef>
#include <type_traits>

#include "simt/builtins.hpp"
#include "simt/engine.hpp"
#include "simt/types.hpp"

#define CUDART_VERSION 13000

// Name, number and text.
#define SIMT_ERRORS(ERROR)                                                                    \
  ERROR(cudaSuccess, 0, "no error")                                                           \
  ERROR(cudaErrorInvalidValue, 1, "invalid argument")                                         \
  ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                                        \
  ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                   \
  ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")             \
  ERROR(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                        \
  ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                \
  ERROR(cudaErrorDeviceUninitialized, 201, "invalid device context")                          \
  ERROR(cudaErrorPeerAccessUnsupported, 217,                                                  \
        "peer access is not supported between these two devices")                             \
  ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                       \
  ERROR(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state") \
  ERROR(cudaErrorNotReady, 600, "device not ready")                                           \
  ERROR(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")             \
  ERROR(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")             \
  ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                                \
  ERROR(cudaErrorLaunchFailure, 719, "unspecified launch failure")                            \
  ERROR(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")     \
  ERROR(cudaErrorNotSupported, 801, "operation not supported")                                \
  ERROR(cudaErrorStreamCaptureUnsupported, 900,                                               \
        "operation not permitted when stream is capturing")                                   \
  ERROR(cudaErrorStreamCaptureInvalidated, 901,                                               \
        "operation failed due to a previous error during capture")                            \
  ERROR(cudaErrorStreamCaptureMerge, 902,                                                     \
        "operation would result in a merge of separate capture sequences")                    \
  ERROR(cudaErrorStreamCaptureUnmatched, 903,                                                 \
        "capture was not ended in the same stream as it began")                               \
  ERROR(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")            \
  ERROR(cudaErrorStreamCaptureIsolation, 905,                                                 \
        "dependency created on uncaptured work in another stream")                            \
  ERROR(cudaErrorCapturedEvent, 907,                                                          \
        "operation not permitted on an event last recorded in a capturing stream")
#define SIMT_ERROR(name, number, text) name = number,
enum cudaError_t { SIMT_ERRORS(SIMT_ERROR) };
using cudaError = cudaError_t;
#undef SIMT_ERROR

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;

inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventDisableTiming = 2;
inline constexpr unsigned cudaEventRecordDefault = 0, cudaEventRecordExternal = 1;
inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1,
                          cudaHostAllocMapped = 2;

// The device that is modelled: an H200's figures, the same on every machine, so that a grid chosen
// from them, and what it is counted to do, is the same everywhere.
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int warpSize;
  int major, minor;
  int multiProcessorCount;
  int maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  int maxThreadsDim[3], maxGridSize[3];
  std::size_t sharedMemPerBlock, sharedMemPerMultiprocessor, totalConstMem;
  int l2CacheSize;
};

enum cudaDeviceAttr {
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrGlobalMemoryBusWidth = 37,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrReservedSharedMemoryPerBlock = 111,
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};

// --- Errors -------------------------------------------------------------------------------------

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// --- Devices ------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);

// --- Memory -------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes);
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream = nullptr);

namespace simt {
// `symbol`: a __constant__ or __device__ variable of `symbol_bytes` bytes.
cudaError_t copy_to_symbol(const void* symbol, std::size_t symbol_bytes, const void* from,
                           std::size_t bytes, std::size_t offset, cudaMemcpyKind kind);
cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t symbol_bytes,
                             std::size_t bytes, std::size_t offset, cudaMemcpyKind kind);
}  // namespace simt
template <typename T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes,
                               std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return simt::copy_to_symbol(&symbol, sizeof symbol, from, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes,
                                 std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return simt::copy_from_symbol(to, &symbol, sizeof symbol, bytes, offset, kind);
}

template <typename T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <typename T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes);
}
template <typename T>
cudaError_t cudaHostAlloc(T** pointer, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

// --- Streams and events -------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
// cudaEventRecordExternal: in a capture, a piece of the graph that sets the event's time.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

// --- Graphs -------------------------------------------------------------------------------------

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};

// What streams are asked for from here on is not done but kept, with the order that streams and
// events give it. A stream that waits for an event of a stream that is captured is captured, too.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

// --- Textures -----------------------------------------------------------------------------------

struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits
};

enum cudaResourceType { cudaResourceTypeArray = 0, cudaResourceTypeLinear = 2 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };

struct cudaResourceDesc {
  cudaResourceType resType;
  struct {
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t sizeInBytes;
    } linear;
  } res;
};

struct cudaTextureDesc {
  cudaTextureReadMode readMode;
  int normalizedCoords;
};

struct cudaResourceViewDesc;

// Of one, two or four components of 32 bits.
template <typename T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  static_assert(!std::is_same_v<T, double> && !std::is_same_v<T, double2>);
  return {32, sizeof(T) > 4 ? 32 : 0, sizeof(T) > 8 ? 32 : 0, sizeof(T) > 8 ? 32 : 0};
}

// Elements that a texture over linear memory may have: 2^28, whatever they are.
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* elements,
                                                 const cudaChannelFormatDesc* format, int device);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description,
                                    const cudaResourceViewDesc* view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);

// --- Kernels ------------------------------------------------------------------------------------

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace simt {

// Checks the configuration against the device and runs the grid. A cooperative one runs when
// something waits for it, together with all others that have been launched by then: so those that
// wait for each other must all be launched before any of them is waited for.
cudaError_t launch(const cudaLaunchConfig_t* config, const void* kernel,
                   void (*body)(const void* arguments), const void* arguments,
                   std::size_t argument_bytes);
cudaError_t set_attribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t blocks_per_multiprocessor(int* blocks, const void* kernel, int block_size,
                                      std::size_t dynamic_shared_bytes);

// Gives the allocation at `pointer` the name that counters and reports use for it.
void name_allocation(const void* pointer, const char* name);

}  // namespace simt

template <typename... Parameters>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               std::type_identity_t<Parameters>... arguments) {
  // Fetching its arguments is none of a kernel's loads.
  const auto call = [=]() __attribute__((no_sanitize("thread"))) {
    kernel(arguments...);
  };
  using Call = decltype(call);
  const auto body = [](const void* erased) __attribute__((no_sanitize("thread"))) {
    (*static_cast<Call*>(erased))();
  };
  return simt::launch(config, reinterpret_cast<const void*>(kernel), body, &call, sizeof call);
}

template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return simt::set_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

// Of its members those that have an answer here: for which architecture the kernel was compiled.
struct cudaFuncAttributes {
  int binaryVersion;
  int ptxVersion;
};
template <typename... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*)(Parameters...)) {
  attributes->binaryVersion = attributes->ptxVersion = simt::settings().compiled_for;
  return cudaSuccess;
}

template <typename... Parameters>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          void (*kernel)(Parameters...),
                                                          int block_size,
                                                          std::size_t dynamic_shared_bytes) {
  return simt::blocks_per_multiprocessor(blocks, reinterpret_cast<const void*>(kernel), block_size,
                                         dynamic_shared_bytes);
}
