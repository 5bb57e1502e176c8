// How much memory there is, and taking much of it fast.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spmv {

// Bytes that can be allocated now without swapping; a very large number where that is unknown.
std::size_t available_memory();

// What a matrix may take unless a user says otherwise (--memory-limit): a quarter of that, since a
// program holds it several times, on the host and on the device, in the formats of its kernels.
std::size_t default_memory_limit();

// "needs 16.0 GiB of memory, more than the limit of 4.8 GiB; ...": `needed` and `limit` in bytes.
std::string more_than_limit(double needed, double limit);

// Asks the system to back `bytes` from `begin`, not yet written, with large pages.
void prefer_large_pages(void* begin, std::size_t bytes);

// reserve() for arrays that are about to be filled faster than the system hands out small pages:
// it does so one fault at a time, which would be a sixth of the time in which a file is read.
template <typename Element>
void reserve_large(std::vector<Element>& elements, std::size_t count) {
  elements.reserve(count);
  prefer_large_pages(elements.data(), elements.capacity() * sizeof(Element));
}

// The same for resize().
template <typename Element>
void resize_large(std::vector<Element>& elements, std::size_t count) {
  reserve_large(elements, count);
  elements.resize(count);
}

}  // namespace spmv
