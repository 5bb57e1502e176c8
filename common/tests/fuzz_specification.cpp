// libFuzzer target for generators' specifications; built and run by fuzz.sh.
//
// What is accepted must be a sound matrix, and the same one under its full name; what is refused
// must be refused in one short line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sparse/generators.hpp"
#include "tests/fuzz.hpp"

namespace {

using spmv::Csr;
using spmv::Index;
using spmv::InputError;

void require_one_line(const std::string& message) {
  REQUIRE(!message.empty() && message.size() < 2000);
  for (const char c : message) REQUIRE(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
}

void require_sound(const Csr<float>& csr) {
  REQUIRE(csr.rows >= 0 && csr.cols >= 0);
  REQUIRE(csr.row_offsets.size() == static_cast<std::size_t>(csr.rows) + 1);
  REQUIRE(csr.row_offsets.front() == 0 && csr.row_offsets.back() == csr.nnz());
  REQUIRE(csr.column_indices.size() == csr.values.size());
  for (Index row = 0; row < csr.rows; ++row) {
    REQUIRE(csr.row_length(row) >= 0);
    for (Index k = csr.row_offsets[row]; k < csr.row_offsets[row + 1]; ++k) {
      REQUIRE(csr.column_indices[k] >= 0 && csr.column_indices[k] < csr.cols);
      REQUIRE(k == csr.row_offsets[row] || csr.column_indices[k - 1] < csr.column_indices[k]);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string full = spmv::full_specification(text);
    REQUIRE(full.starts_with(text));
    REQUIRE(spmv::full_specification(full) == full);
    const Csr<float> csr = spmv::generate<float>(text, 1 << 12);
    require_sound(csr);
    const Csr<float> again = spmv::generate<float>(full, 1 << 12);
    REQUIRE(csr.column_indices == again.column_indices && csr.values == again.values);
  } catch (const InputError& error) {
    require_one_line(error.what());
  }
  return 0;
}
