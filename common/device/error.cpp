#include "device/error.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::device {

void check(cudaError_t status, const std::string& what, std::source_location where) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a later check must not find this error again
  std::string file = where.file_name();
  file = file.substr(file.find_last_of('/') + 1);
  std::string text = file + ":" + std::to_string(where.line()) + ": " + what + ": " +
                     cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")";
#ifndef SPMV_CUDA
  const std::string report = simt::take_report();
  if (!report.empty()) text += ": " + report;
#endif
  throw DeviceError(text);
}

}  // namespace spmv::device
