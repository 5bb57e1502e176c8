#include "device/devices.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sparse/matrix.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::device {

int available_devices(int wanted) {
#ifndef SPMV_CUDA
  if (wanted > simt::settings().devices) simt::settings().devices = wanted;
#endif
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw InputError("there is no GPU here; build with BACKEND=cpu to run without one");
  }
  return std::min(wanted, count);
}

bool enable_peer_access(int device, int peer) {
  // Not asked for twice: compute-sanitizer reports that as an error.
  static std::set<std::pair<int, int>> enabled;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, peer), "asking for peer access");
  if (!can) return false;
  if (enabled.count({device, peer}) > 0) return true;
  const OnDevice on(device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // it is what was wanted, and no later check shall find it
  } else {
    check(error, "peer access of device " + std::to_string(device) + " to " + std::to_string(peer));
  }
  enabled.emplace(device, peer);
  return true;
}

std::string connect_devices(int count) {
  for (int i = 0; i < count * count; ++i) {
    const int from = i / count, to = i % count;
    if (from == to || enable_peer_access(from, to)) continue;
    return "GPUs " + std::to_string(from) + " and " + std::to_string(to) +
           " have no access to each other's memory";
  }
  return "";
}

}  // namespace spmv::device
