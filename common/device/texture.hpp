// An array in device memory, read through the texture units.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <type_traits>
#include <utility>

#include "device/error.hpp"
#include "device/fetch.cuh"

namespace spmv::device {

// A texture over `count` elements at `data`, which it does not own. Textures know no double: one
// over doubles has elements of two ints, the low half of the bits first. `data` must be aligned as
// cudaMalloc aligns, and `count` be from 1 to max_elements(); else DeviceError.
template <typename T>
class LinearTexture {
 public:
  using Element = std::conditional_t<std::is_same_v<T, double>, int2, T>;
  static_assert(sizeof(Element) == sizeof(T));

  LinearTexture(const T* data, std::size_t count) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<T*>(data);  // a texture only reads
    resource.res.linear.desc = cudaCreateChannelDesc<Element>();
    resource.res.linear.sizeInBytes = count * sizeof(T);
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    check(cudaCreateTextureObject(&object_, &resource, &description, nullptr), "making a texture");
  }
  LinearTexture(LinearTexture&& other) noexcept : object_(std::exchange(other.object_, 0)) {}
  LinearTexture& operator=(LinearTexture&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~LinearTexture() {
    if (object_) cudaDestroyTextureObject(object_);
  }

  cudaTextureObject_t get() const { return object_; }

  // The most elements that a texture may have on the current device; 2^27 or 2^28.
  static std::size_t max_elements() {
    int device = 0;
    check(cudaGetDevice(&device), "device");
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<Element>();
    std::size_t elements = 0;
    check(cudaDeviceGetTexture1DLinearMaxWidth(&elements, &format, device), "width of textures");
    return elements;
  }

 private:
  cudaTextureObject_t object_ = 0;
};

// Textures over vectors x of `count` elements: one for each address that was ever asked for, since
// an older one may be in use by a kernel that runs.
template <typename T>
class Textures {
 public:
  explicit Textures(std::size_t count) : count_(count) {}

  // Whether a texture may have that many elements.
  bool possible() const { return count_ <= LinearTexture<T>::max_elements(); }

  cudaTextureObject_t of(const T* x) {
    if (count_ == 0) return 0;
    auto found = textures_.find(x);
    if (found == textures_.end()) {
      found = textures_.emplace(x, LinearTexture<T>(x, count_)).first;
    }
    return found->second.get();
  }

 private:
  std::size_t count_;
  std::map<const T*, LinearTexture<T>> textures_;
};

}  // namespace spmv::device
