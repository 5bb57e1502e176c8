// What the conversions of step 08 share: launches, a scan, layout.
#pragma once

#include <algorithm>
#include <vector>

#include "device/csr.hpp"
#include "device/launch.hpp"
#include "padding.hpp"
#include "scan.cuh"

namespace spmv {

// Kernels with a thread for each of `count`, in blocks of `most` or, if that is enough, one smaller
// one.
inline device::Shape threads_for(std::size_t count, std::size_t most = 128) {
  const std::size_t threads = std::min(device::divide_up(count, std::size_t{32}) * 32, most);
  if (count == 0) return {dim3(0), dim3(32)};
  return {dim3(static_cast<unsigned>(device::divide_up(count, threads))),
          dim3(static_cast<unsigned>(threads))};
}

template <typename Element>
void fill_with_zero(device::Buffer<Element>& buffer) {
  if (buffer.size() == 0) return;
  device::check(cudaMemset(buffer.data(), 0, buffer.bytes()), "clearing device memory");
}

// begins[k] = counts[0] + ... + counts[k - 1], for k from 0 to count: count + 1 of them.
template <typename Count, typename Sum>
void exclusive_scan(const Count* counts, long long count, Sum* begins) {
  const long long tiles = count / kScanTile + 1;
  const device::Shape shape{dim3(static_cast<unsigned>(tiles)), dim3(kScanThreads)};
  device::Buffer<Sum> tile_sums, tile_begins;
  if (tiles > 1) {
    tile_sums = device::Buffer<Sum>("tile_sums", tiles);
    tile_begins = device::Buffer<Sum>("tile_begins", tiles + 1);
    device::launch(tile_sums_kernel<Count, Sum>, shape, count, counts, tile_sums.data());
    exclusive_scan(tile_sums.data(), tiles, tile_begins.data());
  }
  device::launch(scan_tiles_kernel<Count, Sum>, shape, count, counts, tile_begins.data(), begins);
}

// The last `count` elements, which are waited for.
template <typename Element>
std::vector<Element> read_last(const device::Buffer<Element>& buffer, std::size_t count) {
  std::vector<Element> last(count);
  device::check(cudaMemcpy(last.data(), buffer.data() + buffer.size() - count,
                           count * sizeof(Element), cudaMemcpyDeviceToHost),
                "copying from the device");
  return last;
}

// Elements from the beginning of one row or diagonal to that of the next: whole sectors.
inline std::size_t pitch_for(Index rows) {
  return device::divide_up(static_cast<std::size_t>(rows), std::size_t{32}) * 32;
}

}  // namespace spmv
