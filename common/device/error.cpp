#include "device/error.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::device {

void check(cudaError_t status, const std::string& what, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a later check must not find this error again
  std::string place = file;
  place = place.substr(place.find_last_of('/') + 1) + ":" + std::to_string(line);
  std::string text = place + ": " + what + ": " + cudaGetErrorString(status) + " (" +
                     cudaGetErrorName(status) + ")";
#ifndef SPMV_CUDA
  const std::string reason = simt::take_reason();
  if (!reason.empty()) text += ": " + reason;
  // What a thread did says more than the call that heard of it.
  const std::string report = simt::take_report();
  if (!report.empty()) text = report + " (" + text + ")";
#endif
  throw DeviceError(text);
}

}  // namespace spmv::device
