// Reading an array through the texture units, in a kernel.
#pragma once

#include <cuda_runtime.h>

namespace spmv::device {

// Element `index` of a LinearTexture<T> (texture.hpp). (He and Gao 2016, equations 3 and 4.)
// Textures have no elements of type double: two ints are fetched, and put together.
template <typename T>
__device__ __forceinline__ T fetch(cudaTextureObject_t texture, int index) {
  if constexpr (sizeof(T) == 4) {
    return tex1Dfetch<T>(texture, index);
  } else {
    const int2 halves = tex1Dfetch<int2>(texture, index);
    return __hiloint2double(halves.y, halves.x);
  }
}

}  // namespace spmv::device
