// The first lines of a Matrix Market file, which say how to read the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sparse/load.hpp"
#include "sparse/text_file.hpp"

namespace spmv {

// What a file says of itself, and what its body must look like.
struct Layout {
  std::string symmetry;  // general | symmetric | skew-symmetric | hermitian
  Index rows = 0;
  Index cols = 0;
  std::size_t stored_entries = 0;
  bool is_integer = false;
  bool is_complex = false;
  bool has_value = true;     // false: a pattern
  bool is_mirrored = false;  // only one triangle is stored
  bool is_skew = false;
  std::size_t size_line = 0;  // its number; the body begins behind it

  // What a line of the body holds.
  const char* entry_words() const;
  // How many entries `bytes` of the body can hold.
  std::size_t most_entries(std::size_t bytes) const;
  // "the size line announces ..."
  std::string announced() const;
};

// Reads the banner, the comments behind it and the size line. Throws InputError when they are not
// as they should be, announce more than 32-bit indices can count, or more than the file is long
// enough to hold. `text` becomes the first lines of the body, or nothing if the piece of
// the file ends before them.
Layout read_header(TextFile& file, std::string_view& text, const LoadOptions& options);

// Throws InputError when `nonzeros`, to which the file expands, are too many for 32-bit indices.
void check_nonzeros(const std::string& name, const Layout& layout, std::size_t nonzeros);

// How many nonzeros what the size line announces becomes when expanded, if no position of the
// diagonal is stored twice: every other entry has a mirror image.
std::size_t least_nonzeros(const Layout& layout);

}  // namespace spmv
