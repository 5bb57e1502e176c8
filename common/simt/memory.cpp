// Device memory, textures and the instrumented build's walls around them.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <vector>

#include "simt/block.hpp"
#include "simt/runtime.hpp"

#ifdef SIMT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace simt {
namespace {

constexpr std::size_t kPageBytes = 4096;
#ifndef __EMSCRIPTEN__
// Allocations lie far apart, so that a wrong index hardly ever finds another one, and none where
// one was before, so that a pointer to freed memory never does: 64 TiB are enough for 260,000 of
// them.
constexpr std::uintptr_t kFirstAddress = 0x2000'0000'0000, kEndAddress = 0x6000'0000'0000;
constexpr std::size_t kGapBytes = std::size_t{256} << 20;
#else
constexpr std::uintptr_t kFirstAddress = 0;
constexpr std::size_t kGapBytes = std::size_t{64} << 10;
#endif

struct Heap {
  std::shared_mutex mutex;
  std::uintptr_t next_address = kFirstAddress;
  std::map<std::uintptr_t, Allocation> allocations;  // by their first byte
  std::map<std::uintptr_t, Allocation> freed;        // of which reports tell
  std::map<std::uintptr_t, std::size_t> pinned;      // cudaMallocHost: first byte, bytes
  std::set<std::pair<int, int>> peers;               // (device, peer that it may use)
  int users = 0;                                     // DeviceMemoryAccess objects alive
};

// Never destroyed: buffers with static storage may outlive any order of destruction.
Heap& heap() {
  static Heap& instance = *new Heap;
  return instance;
}

// The heap, while no other thread uses it (std::unique_lock) or changes it (std::shared_lock).
template <template <typename> typename Lock>
class Locked {
 public:
  Heap* operator->() const { return &heap(); }

 private:
  Lock<std::shared_mutex> lock_{heap().mutex};
};

// Of a map by first bytes, the entry that begins at `address` or nearest below it; null if none
// does.
template <typename Map>
auto* at_or_below(Map& map, std::uintptr_t address) {
  const auto after = map.upper_bound(address);
  return after == map.begin() ? nullptr : &*std::prev(after);
}

std::size_t physical_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * kPageBytes;
}

#ifdef __EMSCRIPTEN__
// Memory has no protection there.
void set_open(Allocation& allocation, bool open) {
  allocation.open = open;
}

void* map_pages(std::size_t bytes) {
  void* const pages = std::aligned_alloc(kPageBytes, bytes + kGapBytes);
  return pages ? pages : MAP_FAILED;
}

void unmap_pages(void* pages, std::size_t) {
  std::free(pages);
}
#else
void set_open(Allocation& allocation, bool open) {
  mprotect(reinterpret_cast<void*>(allocation.begin), allocation.mapped_bytes,
           open ? PROT_READ | PROT_WRITE : PROT_NONE);
  allocation.open = open;
}

// Pages at an address that no allocation had before.
void* map_pages(std::size_t bytes) {
  const Locked<std::unique_lock> h;
  const auto map = [=](std::uintptr_t address, int flags) {
    return mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  };
  while (h->next_address + bytes < kEndAddress) {
    const std::uintptr_t address = h->next_address;
    h->next_address += (bytes + 2 * kGapBytes - 1) / kGapBytes * kGapBytes;
    void* const mapped = map(address, MAP_FIXED_NOREPLACE);
    if (mapped != MAP_FAILED || errno != EEXIST) return mapped;
  }
  return map(0, 0);
}

void unmap_pages(void* pages, std::size_t bytes) {
  munmap(pages, bytes);
}
#endif

void add_allocation(Allocation allocation) {
  if (is_instrumented()) {
    allocation.written = std::make_shared<WrittenBytes>(allocation.bytes);
    set_open(allocation, false);
  }
  const Locked<std::unique_lock> h;
  h->allocations.emplace(allocation.begin, std::move(allocation));
}

cudaError_t remove_allocation(void* pointer) {
  finish_all();
  const Locked<std::unique_lock> h;
  const auto it = h->allocations.find(address_of(pointer));
  if (it == h->allocations.end()) {
    const auto before = h->freed.find(address_of(pointer));
    return set_error(cudaErrorInvalidValue,
                     before == h->freed.end()
                         ? "no allocation of device memory begins there"
                         : "'" + before->second.name + "' has been freed before");
  }
  Allocation& allocation = it->second;
#ifdef SIMT_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(pointer, allocation.mapped_bytes);
#endif
  unmap_pages(pointer, allocation.mapped_bytes);
  allocation.written = nullptr;
  h->freed.insert(h->allocations.extract(it));
  return cudaSuccess;
}

}  // namespace

DeviceMemoryAccess::DeviceMemoryAccess() {
  if (!is_instrumented()) return;
  const Locked<std::unique_lock> h;
  ++h->users;
#if defined(__clang__) && __clang_major__ < 16
  // These copy structures with memcpy and announce nothing.
  for (auto& [begin, allocation] : h->allocations) set_open(allocation, true);
#endif
}

DeviceMemoryAccess::~DeviceMemoryAccess() {
  if (!is_instrumented()) return;
  const Locked<std::unique_lock> h;
  if (--h->users > 0) return;
  for (auto& [begin, allocation] : h->allocations) {
    if (allocation.open) set_open(allocation, false);
  }
}

void DeviceMemoryAccess::open(std::uintptr_t address) {
  if (!is_instrumented()) return;
  const Locked<std::unique_lock> h;
  auto* const found = at_or_below(h->allocations, address);
  if (found && found->second.contains(address) && !found->second.open) {
    set_open(found->second, true);
  }
}

const Allocation* find_allocation(std::uintptr_t address) {
  const Locked<std::shared_lock> h;
  const auto* const found = at_or_below(h->allocations, address);
  return found && found->second.contains(address) ? &found->second : nullptr;
}

std::string describe_address(std::uintptr_t address) {
  const Locked<std::shared_lock> h;
  const auto text = [&](std::uintptr_t offset, const char* where, const Allocation& allocation) {
    return fmt::format("{} bytes {} '{}', which has {}", offset, where, allocation.name,
                       allocation.bytes);
  };
  const auto* const below = at_or_below(h->allocations, address);
  if (below && address - below->first < below->second.bytes + kGapBytes / 2) {
    return text(address - below->first, "into", below->second);
  }
  const auto* const freed = at_or_below(h->freed, address);
  if (freed && freed->second.contains(address)) {
    return "in '" + freed->second.name + "', which has been freed";
  }
  const auto after = h->allocations.upper_bound(address);
  if (after != h->allocations.end() && after->first - address < kGapBytes / 2) {
    return text(after->first - address, "before", after->second);
  }
  return "";
}

NamedRange find_pinned(std::uintptr_t address) {
  const Locked<std::shared_lock> h;
  const auto* const found = at_or_below(h->pinned, address);
  if (!found || address - found->first >= found->second) return {};
  return {found->first, found->second, "pinned memory"};
}

bool can_reach(int device, int owner) {
  if (device == owner) return true;
  const Locked<std::shared_lock> h;
  return h->peers.contains({device, owner});
}

std::vector<std::string> names_of_allocations() {
  const Locked<std::shared_lock> h;
  std::vector<std::string> names;
  for (const auto& [begin, allocation] : h->allocations) names.push_back(allocation.name);
  return names;
}

void name_allocation(const void* pointer, const char* name) {
  const Locked<std::unique_lock> h;
  const auto it = h->allocations.find(address_of(pointer));
  if (it != h->allocations.end()) it->second.name = name;
}

void mark_written(std::uintptr_t to, std::size_t bytes, std::uintptr_t from) {
  const Allocation* const target = find_allocation(to);
  if (!target || !target->written) return;
  const std::size_t offset = to - target->begin;
  const Allocation* const source = find_allocation(from);
  if (!source || source->written->all(from - source->begin, bytes)) {
    target->written->add(offset, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i) {
    if (source->written->all(from - source->begin + i, 1)) target->written->add(offset + i, 1);
  }
}

}  // namespace simt

using simt::address_of;
using simt::Allocation;
using simt::DeviceMemoryAccess;
using simt::find_allocation;
using simt::Locked;
using simt::set_error;

// --- Allocation ---------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (!pointer) return set_error(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = simt::refuse_in_capture()) return error;
  if (bytes > simt::physical_bytes()) {
    return set_error(
        cudaErrorMemoryAllocation,
        fmt::format("{} bytes are asked for; this machine has {}", bytes, simt::physical_bytes()));
  }
  if (simt::is_instrumented()) simt::watch_faults();

  const std::size_t mapped_bytes =
      (bytes + simt::kPageBytes - 1) / simt::kPageBytes * simt::kPageBytes;
  void* const mapped = simt::map_pages(mapped_bytes);
  if (mapped == MAP_FAILED) return set_error(cudaErrorMemoryAllocation);
  madvise(mapped, mapped_bytes, MADV_HUGEPAGE);  // fewer pages to fill and to protect
  std::memset(mapped, 0xff, bytes);              // NaN, or -1
#ifdef SIMT_ADDRESS_SANITIZER
  __asan_poison_memory_region(static_cast<char*>(mapped) + bytes, mapped_bytes - bytes);
#endif

  simt::add_allocation(
      {address_of(mapped), bytes, mapped_bytes, simt::current_device(), "unnamed"});
  *pointer = mapped;
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (!pointer) return cudaSuccess;
  const cudaError_t error = simt::refuse_in_capture();
  return error == cudaSuccess ? simt::remove_allocation(pointer) : error;
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  if (!pointer) return set_error(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = simt::refuse_in_capture()) return error;
  *pointer = std::malloc(bytes);
  if (!*pointer) return set_error(cudaErrorMemoryAllocation);
  const Locked<std::unique_lock> h;
  h->pinned.emplace(address_of(*pointer), bytes);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (!pointer) return cudaSuccess;
  if (const cudaError_t error = simt::refuse_in_capture()) return error;
  simt::finish_all();
  const Locked<std::unique_lock> h;
  if (h->pinned.erase(address_of(pointer)) == 0) return set_error(cudaErrorInvalidValue);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  if (!free_bytes || !total_bytes) return set_error(cudaErrorInvalidValue);
  *total_bytes = simt::physical_bytes();
  *free_bytes = static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * simt::kPageBytes;
  return cudaSuccess;
}

// --- Copies -------------------------------------------------------------------------------------

namespace {

// Whether `bytes` bytes at `pointer` are device memory, host memory, or part of both.
enum class Place { kHost, kDevice, kBeyond };

Place place_of(const void* pointer, std::size_t bytes) {
  const std::uintptr_t address = address_of(pointer);
  const Allocation* allocation = find_allocation(address);
  if (!allocation) return Place::kHost;
  return bytes <= allocation->bytes - (address - allocation->begin) ? Place::kDevice
                                                                    : Place::kBeyond;
}

// Of device memory in which `bytes` bytes from `pointer` on do not fit.
std::string too_small(const void* pointer, std::size_t bytes) {
  const Allocation& allocation = *find_allocation(address_of(pointer));
  const std::size_t offset = address_of(pointer) - allocation.begin;
  return fmt::format("'{}' has {} bytes, and {} are asked for{}", allocation.name, allocation.bytes,
                     bytes, offset ? fmt::format(" from byte {} on", offset) : "");
}

cudaError_t check_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (!to || !from) return set_error(cudaErrorInvalidValue);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return set_error(cudaErrorInvalidMemcpyDirection);
  }
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const std::tuple<const void*, bool, const char*> sides[] = {
      {to, to_device, "target, the first argument,"},
      {from, from_device, "source, the second argument,"}};
  for (const auto& [pointer, on_device, name] : sides) {
    const Place place = place_of(pointer, bytes);
    if (place == Place::kBeyond) return set_error(cudaErrorInvalidValue, too_small(pointer, bytes));
    if (kind != cudaMemcpyDefault && on_device != (place == Place::kDevice)) {
      return set_error(cudaErrorInvalidValue,
                       fmt::format("the direction says that the {} is {} memory, and it is {}",
                                   name, on_device ? "device" : "host",
                                   place == Place::kHost ? "the host's" : "the device's"));
    }
  }
  return cudaSuccess;
}

void copy(void* to, const void* from, std::size_t bytes) {
  const DeviceMemoryAccess access;
  simt::forget_last_kernel();
  DeviceMemoryAccess::open(address_of(to));
  DeviceMemoryAccess::open(address_of(from));
  std::memmove(to, from, bytes);
  simt::mark_written(address_of(to), bytes, address_of(from));
  if (simt::Recorder* const recorder = simt::active_recorder()) recorder->copy(to, from, bytes);
}

// Host memory that is not pinned: CUDA reads or writes it before the call returns.
bool is_pageable(const void* pointer) {
  return place_of(pointer, 1) == Place::kHost && simt::find_pinned(address_of(pointer)).bytes == 0;
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  cudaError_t error = check_copy(to, from, bytes, kind);
  if (error == cudaSuccess) error = set_error(simt::finish_stream(nullptr));
  if (error == cudaSuccess) copy(to, from, bytes);
  return error;
}

namespace {

// A variable is memory of the program, on whichever side: only the other pointer has a place.
cudaError_t copy_symbol(void* to, const void* from, std::size_t symbol_bytes, std::size_t bytes,
                        std::size_t offset, const void* other, bool other_on_device) {
  if (bytes == 0) return cudaSuccess;
  if (!other) return set_error(cudaErrorInvalidValue);
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return set_error(cudaErrorInvalidValue,
                     fmt::format("the variable has {} bytes, and {} are asked for{}", symbol_bytes,
                                 bytes, offset ? fmt::format(" from byte {} on", offset) : ""));
  }
  const Place place = place_of(other, bytes);
  if (place == Place::kBeyond) return set_error(cudaErrorInvalidValue, too_small(other, bytes));
  if (other_on_device != (place == Place::kDevice)) return set_error(cudaErrorInvalidValue);
  const cudaError_t error = set_error(simt::finish_stream(nullptr));
  if (error == cudaSuccess) copy(to, from, bytes);
  return error;
}

}  // namespace

cudaError_t simt::copy_to_symbol(const void* symbol, std::size_t symbol_bytes, const void* from,
                                 std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  auto* const to = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  return copy_symbol(to, from, symbol_bytes, bytes, offset, from, kind == cudaMemcpyDeviceToDevice);
}

cudaError_t simt::copy_from_symbol(void* to, const void* symbol, std::size_t symbol_bytes,
                                   std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  return copy_symbol(to, static_cast<const char*>(symbol) + offset, symbol_bytes, bytes, offset, to,
                     kind == cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!simt::is_stream(stream)) return set_error(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = check_copy(to, from, bytes, kind)) return error;
  const auto copy_on_stream = [=] {
    const simt::OnStream on(stream);
    copy(to, from, bytes);
    return cudaSuccess;
  };
  if (!is_pageable(to) && !is_pageable(from)) return simt::enqueue(stream, copy_on_stream);
  const cudaError_t error = simt::finish_stream(stream);
  return error != cudaSuccess ? error : copy_on_stream();
}

namespace {

// (Of the host's memory what is pinned.)
cudaError_t check_set(const void* to, std::size_t bytes) {
  const Place place = place_of(to, bytes);
  if (place == Place::kBeyond) return set_error(cudaErrorInvalidValue, too_small(to, bytes));
  if (place == Place::kDevice) return cudaSuccess;
  const auto pinned = simt::find_pinned(address_of(to));
  if (pinned.bytes == 0) return set_error(cudaErrorInvalidValue, "the memory to set is the host's");
  const std::size_t room = pinned.bytes - (address_of(to) - pinned.begin);
  return bytes > room ? set_error(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t set(void* to, int value, std::size_t bytes) {
  if (const cudaError_t error = check_set(to, bytes)) return error;
  const DeviceMemoryAccess access;
  simt::forget_last_kernel();
  DeviceMemoryAccess::open(address_of(to));
  std::memset(to, value, bytes);
  simt::mark_written(address_of(to), bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return bytes == 0 ? cudaSuccess : simt::enqueue(nullptr, [=] { return set(to, value, bytes); });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (!simt::is_stream(stream)) return set_error(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = check_set(to, bytes)) return error;
  return simt::enqueue(stream, [=] { return set(to, value, bytes); });
}

// --- Peers --------------------------------------------------------------------------------------

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  if (!can_access) return set_error(cudaErrorInvalidValue);
  if (!simt::is_device(device) || !simt::is_device(peer)) return set_error(cudaErrorInvalidDevice);
  *can_access = device != peer && simt::settings().peer_access;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return set_error(cudaErrorInvalidValue);
  const int device = simt::current_device();
  if (!simt::is_device(peer) || peer == device) return set_error(cudaErrorInvalidDevice);
  if (!simt::settings().peer_access) return set_error(cudaErrorPeerAccessUnsupported);
  const Locked<std::unique_lock> h;
  const bool added = h->peers.insert({device, peer}).second;
  return added ? cudaSuccess : set_error(cudaErrorPeerAccessAlreadyEnabled);
}

// --- Textures -----------------------------------------------------------------------------------

namespace {

struct Texture {
  std::uintptr_t begin = 0;
  std::size_t elements = 0;
  std::size_t element_bytes = 0;
  bool alive = false;
};

std::mutex texture_mutex;
std::vector<Texture> textures;  // object n is textures[n - 1]

constexpr std::size_t kMaxTextureElements = std::size_t{1} << 28;

std::size_t element_bytes(const cudaChannelFormatDesc& description) {
  return static_cast<std::size_t>(description.x + description.y + description.z + description.w) /
         8;
}

}  // namespace

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* elements,
                                                 const cudaChannelFormatDesc* format, int device) {
  if (!elements || !format || element_bytes(*format) == 0) return set_error(cudaErrorInvalidValue);
  if (!simt::is_device(device)) return set_error(cudaErrorInvalidDevice);
  *elements = kMaxTextureElements;
  return cudaSuccess;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description,
                                    const cudaResourceViewDesc* view) {
  if (!texture || !resource || !description || view) return set_error(cudaErrorInvalidValue);
  if (resource->resType != cudaResourceTypeLinear ||
      description->readMode != cudaReadModeElementType || description->normalizedCoords) {
    return set_error(cudaErrorNotSupported);
  }
  const auto& linear = resource->res.linear;
  const std::size_t size = element_bytes(linear.desc);
  if (size == 0 || linear.sizeInBytes / size > kMaxTextureElements ||
      place_of(linear.devPtr, linear.sizeInBytes) != Place::kDevice) {
    return set_error(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(texture_mutex);
  textures.push_back({address_of(linear.devPtr), linear.sizeInBytes / size, size, true});
  *texture = textures.size();
  return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  const std::lock_guard lock(texture_mutex);
  if (texture == 0 || texture > textures.size() || !textures[texture - 1].alive) {
    return set_error(cudaErrorInvalidValue);
  }
  textures[texture - 1].alive = false;
  return cudaSuccess;
}

void simt::read_only_load(const void* address, void* value, std::size_t size) noexcept {
  Lane& lane = *current_lane;
  const void* const pc = SIMT_CALLER();
  const std::size_t piece = std::min<std::size_t>(size, 16);
  for (std::size_t done = 0; done < size; done += piece) {
    lane.block->observer().access(lane, address_of(address) + done, static_cast<unsigned>(piece),
                                  Access::kLoad, Strength::kReadOnly, pc);
  }
  std::memcpy(value, address, size);
}

void simt::texture_fetch(unsigned long long texture, int index, void* element,
                         std::size_t size) noexcept {
  const void* const pc = SIMT_CALLER();
  Lane& lane = *current_lane;
  // Textures are made and destroyed by the host, never while a kernel runs.
  if (texture == 0 || texture > textures.size() || !textures[texture - 1].alive) {
    const Unobserved unobserved;
    lane.block->fail(lane, "tex1Dfetch of a texture object that does not exist", pc);
  }
  const Texture& t = textures[texture - 1];
  if (size != t.element_bytes) {
    const Unobserved unobserved;
    lane.block->fail(lane,
                     fmt::format("tex1Dfetch of {} bytes from a texture whose elements have {}",
                                 size, t.element_bytes),
                     pc);
  }
  std::memset(element, 0, size);
  if (index < 0 || static_cast<std::size_t>(index) >= t.elements) return;
  const std::uintptr_t address = t.begin + static_cast<std::size_t>(index) * size;
  lane.block->observer().access(lane, address, static_cast<unsigned>(size), Access::kTexture,
                                Strength::kPlain, pc);
  std::memcpy(element, reinterpret_cast<const void*>(address), size);
}
