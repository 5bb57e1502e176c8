// How much memory there is.
#pragma once

#include <cstddef>
#include <string>

namespace spmv {

// Bytes that can be allocated now without swapping; a very large number where that is unknown.
std::size_t available_memory();

// What a matrix may take unless a user says otherwise (--memory-limit): a quarter of that, since a
// program holds it several times, on the host and on the device, in the formats of its kernels.
std::size_t default_memory_limit();

// "needs 16.0 GiB of memory, more than the limit of 4.8 GiB; ...": `needed` and `limit` in bytes.
std::string more_than_limit(double needed, double limit);

}  // namespace spmv
