// libFuzzer target for the Matrix Market reader; built and run by fuzz.sh.
//
// Beyond "does not crash": what is accepted must be a sound matrix, what is refused must be refused
// in one line, and neither may depend on the precision, on how the text was cut into pieces, or on
// whether it came compressed.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sparse/convert.hpp"
#include "tests/bits.hpp"
#include "tests/fuzz.hpp"
#include "tests/matrix_text.hpp"
#include "tests/sound.hpp"

namespace {

using spmv::Coo;
using spmv::Csr;
using spmv::InputError;
using spmv::LoadOptions;
using spmv::test::gzip;
using spmv::test::same_bits;

// Choices (which options, which of the costly checks) must follow from the input alone, or a crash
// could not be repeated.
std::uint64_t hash(std::string_view text) {
  std::uint64_t result = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) result = (result ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return result ^ result >> 29;
}

template <typename T>
struct Outcome {
  std::optional<Coo<T>> coo;
  std::string error;

  bool short_of_memory() const { return error.find(" of memory") != std::string::npos; }
  bool bad_gzip() const { return error.find("the gzip data ") != std::string::npos; }
};

template <typename T>
Outcome<T> parse(std::string_view text, const LoadOptions& options) {
  Outcome<T> outcome;
  try {
    outcome.coo = spmv::test::parse<T>(text, options);
  } catch (const InputError& error) {
    outcome.error = error.what();
    REQUIRE(outcome.error.starts_with("FILE:"));
    REQUIRE(outcome.error.find("; ") != std::string::npos);
    for (const char c : outcome.error) REQUIRE(c >= ' ' && c <= '~');
  }
  return outcome;
}

// Of data that are corrupt, the size of the pieces decides whether the text or zlib fails first.
template <typename T, typename U>
void require_same_error(const Outcome<T>& a, const Outcome<U>& b) {
  const bool either = a.bad_gzip() || b.bad_gzip();
  REQUIRE(a.error == b.error || (either && !a.coo && !b.coo));
}

template <typename T>
void require_same(const Outcome<T>& a, const Outcome<T>& b) {
  require_same_error(a, b);
  if (!a.coo) return;
  REQUIRE(a.coo->row_indices == b.coo->row_indices);
  REQUIRE(a.coo->column_indices == b.coo->column_indices);
  REQUIRE(same_bits(a.coo->values, b.coo->values));
}

template <typename T>
void require_sound(const Coo<T>& coo) {
  REQUIRE(coo.rows >= 0 && coo.cols >= 0);
  REQUIRE(coo.row_indices.size() == coo.values.size());
  REQUIRE(coo.column_indices.size() == coo.values.size());
  for (std::size_t k = 0; k < coo.values.size(); ++k) {
    REQUIRE(coo.row_indices[k] >= 0 && coo.row_indices[k] < coo.rows);
    REQUIRE(coo.column_indices[k] >= 0 && coo.column_indices[k] < coo.cols);
  }

  spmv::Index duplicates = -1;
  const Csr<T> csr = spmv::to_csr(coo, &duplicates);
  REQUIRE(spmv::test::is_sound(csr));
  REQUIRE(csr.nnz() + duplicates == coo.nnz());
}

// Rounding the digits once to float and rounding the double again differ by one step at most.
void require_close(float narrow, double wide) {
  const float rounded = static_cast<float>(wide);
  if (std::isnan(wide)) {
    REQUIRE(std::isnan(narrow));
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    REQUIRE(narrow == rounded || narrow == std::nextafter(rounded, kInfinity) ||
            narrow == std::nextafter(rounded, -kInfinity));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Draws from it, one after the other.
  std::uint64_t choices = hash(text);
  const auto choose = [&choices](std::uint64_t count) {
    const std::uint64_t choice = choices % count;
    choices /= count;
    return choice;
  };

  LoadOptions options;
  options.real_part = choose(2) == 1;
  // Small as a rule: a matrix of a million rows takes a hundred times as long to check as to read.
  options.memory_limit_bytes = std::size_t{1} << (choose(1024) == 0 ? 24 : 13);
  const Outcome<double> whole = parse<double>(text, options);
  if (whole.coo) require_sound(*whole.coo);

  LoadOptions in_pieces = options;
  in_pieces.chunk_bytes = 1 + choose(61);
  if (choose(4) == 0) require_same(parse<double>(text, in_pieces), whole);

  if (choose(4) == 0) {
    const Outcome<float> narrow = parse<float>(text, in_pieces);
    if (!whole.short_of_memory() && !narrow.short_of_memory()) {
      require_same_error(narrow, whole);
    }
    if (narrow.coo) require_sound(*narrow.coo);
    if (narrow.coo && whole.coo) {
      const Coo<float>& a = *narrow.coo;
      const Coo<double>& b = *whole.coo;
      REQUIRE(a.row_indices == b.row_indices && a.column_indices == b.column_indices);
      for (std::size_t k = 0; k < a.values.size(); ++k) require_close(a.values[k], b.values[k]);
    }
  }

  if (choose(64) == 0 && size > 0 && !text.starts_with("\x1f\x8b")) {
    const Outcome<double> inflated = parse<double>(gzip(text), options);
    // How much a compressed text holds is known less well.
    if (whole.error.find(" so short ") == std::string::npos) require_same(inflated, whole);
  }
  return 0;
}
