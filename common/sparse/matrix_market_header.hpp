// The first lines of a Matrix Market file, which say how to read the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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
  std::size_t size_line = 0;
  std::size_t body_begin = 0;  // offset in the file

  std::size_t stored_entries() const { return static_cast<std::size_t>(header.stored_entries); }

  // What a line of the body holds.
  const char* entry_words() const;
  // Length of the shortest line that can hold an entry, its end included.
  std::size_t shortest_entry() const;
  // "the size line announces ..."
  std::string announced() const;
};

// Reads the banner, the comments behind it and the size line. Throws InputError when they are not
// as they should be, or announce more than 32-bit indices can count; `name` stands for the file.
Layout read_header(std::string_view text, const std::string& name, const LoadOptions& options);

// Throws InputError when `nonzeros`, to which the file expands, are too many for 32-bit indices.
void check_nonzeros(const std::string& name, const Layout& layout, std::size_t nonzeros);

// How many nonzeros what the size line announces becomes when expanded, if no position of the
// diagonal is stored twice: every other entry has a mirror image.
std::size_t least_nonzeros(const Layout& layout);

}  // namespace spmv
