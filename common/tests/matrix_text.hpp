// Matrix Market text of a test, as a file.
#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <new>
#include <string>
#include <string_view>

#include "sparse/matrix_market.hpp"

namespace spmv::test {

// As zlib compresses it, with headers by the number of bits (deflateInit2). The smallest tables:
// they are set up fast, and the texts of tests are short.
inline std::string deflated(std::string_view text, int bits) {
  z_stream stream{};
  if (::deflateInit2(&stream, 9, Z_DEFLATED, bits, 1, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string result(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  ::deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  ::deflateEnd(&stream);
  return result;
}

inline std::string gzip(std::string_view text) {
  return deflated(text, 16 + 9);
}

// Reads `text` as a file that is in memory only, called FILE in errors.
template <typename T>
Coo<T> parse(std::string_view text, const LoadOptions& options = {}) {
  struct File {
    int descriptor = ::memfd_create("test", 0);
    ~File() { ::close(descriptor); }
  } const file;
  for (std::string_view rest = text; !rest.empty();) {
    const ::ssize_t count = ::write(file.descriptor, rest.data(), rest.size());
    if (count <= 0) throw std::bad_alloc();
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor);
  try {
    return read_matrix_market<T>(path, options);
  } catch (const InputError& error) {
    throw InputError("FILE" + std::string(error.what()).substr(path.size()));
  }
}

}  // namespace spmv::test
