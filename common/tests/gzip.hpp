// Compresses what a test feeds to the reader.
#pragma once

#include <zlib.h>

#include <new>
#include <string>
#include <string_view>

namespace spmv::test {

// The smallest window and tables: they are set up fast, and the texts of tests are short.
inline std::string gzip(std::string_view text) {
  z_stream stream{};
  if (::deflateInit2(&stream, 1, Z_DEFLATED, 16 + 9, 1, Z_DEFAULT_STRATEGY) != Z_OK) {
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

}  // namespace spmv::test
