// libFuzzer target for generators' specifications; built and run by fuzz.sh.
//
// What is accepted must be a sound matrix, and the same one under its full name; what is refused
// must be refused in one short line.
#include <cstddef>
#include <cstdint>
#include <string>

#include "sparse/generators.hpp"
#include "tests/fuzz.hpp"
#include "tests/sound.hpp"

namespace {

using spmv::Csr;
using spmv::InputError;

void require_one_line(const std::string& message) {
  REQUIRE(!message.empty() && message.size() < 2000);
  for (const char c : message) REQUIRE(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string full = spmv::full_specification(text);
    REQUIRE(full.starts_with(text));
    REQUIRE(spmv::full_specification(full) == full);
    const Csr<float> csr = spmv::generate<float>(text, 1 << 12);
    REQUIRE(spmv::test::is_sound(csr));
    const Csr<float> again = spmv::generate<float>(full, 1 << 12);
    REQUIRE(csr.column_indices == again.column_indices && csr.values == again.values);
  } catch (const InputError& error) {
    require_one_line(error.what());
  }
  return 0;
}
