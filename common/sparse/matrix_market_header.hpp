// The first lines of a Matrix Market file, which say how to read the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sparse/input_file.hpp"
#include "sparse/load.hpp"
#include "sparse/matrix_market.hpp"

namespace spmv {

// What the body must look like.
struct Layout {
  MatrixMarketHeader header;
  bool is_array = false;
  bool is_integer = false;
  bool is_complex = false;
  bool has_value = true;     // false: a pattern
  bool is_mirrored = false;  // only one triangle is stored
  bool is_skew = false;
  std::size_t size_line = 0;  // its number; the body begins behind it

  std::size_t stored_entries() const { return static_cast<std::size_t>(header.stored_entries); }

  // What a line of the body holds.
  const char* entry_words() const;
  // How many entries `bytes` of the body can hold.
  std::size_t most_entries(std::size_t bytes) const;
  // "the size line announces ..."
  std::string announced() const;
};

// Reads the banner, the comments behind it and the size line. Throws InputError when they are not
// as they should be, announce more than 32-bit indices can count, or more than the file is long
// enough to hold. `text` becomes the first lines of the body.
Layout read_header(TextInPieces& pieces, std::string_view& text, const LoadOptions& options);

// Throws InputError when `nonzeros`, to which the file expands, are too many for 32-bit indices.
void check_nonzeros(const std::string& name, const Layout& layout, std::size_t nonzeros);

// How many nonzeros what the size line announces becomes when expanded, if no position of the
// diagonal is stored twice: every other entry has a mirror image.
std::size_t least_nonzeros(const Layout& layout);

}  // namespace spmv
