// libFuzzer target for the Matrix Market reader; built and run by fuzz.sh.
//
// Beyond "does not crash": what is accepted must be a sound matrix, what is refused must be refused
// in one line, and neither may depend on the precision or on whether the text came compressed.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "sparse/convert.hpp"
#include "tests/matrix_text.hpp"
#include "tests/sound.hpp"

#define REQUIRE(condition) require(condition, #condition, __LINE__)

namespace {

using spmv::Coo;
using spmv::LoadOptions;

void require(bool holds, const char* condition, int line) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_reader.cpp:%d: does not hold: %s\n", line, condition);
  std::abort();
}

template <typename T>
std::optional<Coo<T>> parse(std::string_view text, const LoadOptions& options, std::string& error) {
  error.clear();
  try {
    const Coo<T> coo = spmv::test::parse<T>(text, options);
    spmv::Index duplicates = -1;
    const spmv::Csr<T> csr = spmv::to_csr(coo, &duplicates);
    REQUIRE(spmv::test::is_sound(csr));
    REQUIRE(csr.nnz() + duplicates == coo.nnz());
    return coo;
  } catch (const spmv::InputError& refusal) {
    error = refusal.what();
    REQUIRE(error.starts_with("FILE:"));
    REQUIRE(error.find("; ") != std::string::npos);
    for (const char c : error) REQUIRE(c >= ' ' && c <= '~');
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Small ones are quick.
  LoadOptions options{.real_part = size % 2 == 1, .memory_limit_bytes = 1 << 13};
  std::string error, other_error;
  const std::optional<Coo<double>> wide = parse<double>(text, options, error);

  options.memory_limit_bytes *= 2;
  const std::optional<Coo<float>> narrow = parse<float>(text, options, other_error);
  // What is zero in float alone may stand on the diagonal of a skew-symmetric matrix there.
  const bool by_size = error.find(" of memory") != std::string::npos;
  if (!by_size && error.find("skew-symmetric") == std::string::npos) REQUIRE(error == other_error);
  if (narrow && wide) {
    REQUIRE(narrow->row_indices == wide->row_indices);
    REQUIRE(narrow->column_indices == wide->column_indices);
    // Rounding the digits once to float and rounding the double again differ by one step at most.
    for (std::size_t k = 0; k < wide->values.size(); ++k) {
      const float rounded = static_cast<float>(wide->values[k]), value = narrow->values[k];
      REQUIRE(std::isnan(rounded)
                  ? std::isnan(value)
                  : value == rounded || value == std::nextafter(rounded, HUGE_VALF) ||
                        value == std::nextafter(rounded, -HUGE_VALF));
    }
  }
  if (size > 0 && size % 16 == 0 && !text.starts_with("\x1f\x8b")) {
    parse<float>(spmv::test::gzip(text), options, error);
    REQUIRE(error == other_error);
  }
  return 0;
}
