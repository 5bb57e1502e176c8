#include "harness/options.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "sparse/matrix.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

// Whether the whole number `text` (which CLI11 has accepted, or clamped) is beyond 64 bits.
bool is_beyond_64_bits(std::string_view text, bool has_sign) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  std::uint64_t natural = 0;
  const char* const end = text.data() + text.size();
  const std::errc error = has_sign ? std::from_chars(text.data(), end, number).ec
                                   : std::from_chars(text.data(), end, natural).ec;
  return error == std::errc::result_out_of_range;
}

void check_texts(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    for (const std::string& text : option->results()) {
      const auto fail = [&](const char* what) {
        throw InputError(
            fmt::format("{}: {} {}; see --help", option->get_name(), spmv::in_quotes(text), what));
      };
      const bool is_whole = type.starts_with("INT") || type.starts_with("UINT");
      // (An option that takes no text, or none at times, has an empty one in place of it.)
      if (text.empty() && option->get_items_expected_min() > 0) fail("is empty");
      if (type.starts_with("FLOAT") && !std::isfinite(std::strtod(text.c_str(), nullptr))) {
        fail("is not a finite number");
      }
      if (is_whole && is_beyond_64_bits(text, type.starts_with("INT"))) fail("is too large");
      if (type.starts_with("UINT") && text.starts_with('-')) fail("is negative");
    }
  }
}

}  // namespace

std::optional<std::string> parse_options(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.help();
    std::string what = error.what();
    for (char& c : what) c = c == '\n' ? ' ' : c;
    throw InputError(printable(what) + "; see --help");
  }
  check_texts(app);
  for (const CLI::App* program : app.get_subcommands()) check_texts(*program);
  return {};
}

CLI::Validator above_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        const bool is_good = !text.empty() && *end == '\0' && number > 0 && std::isfinite(number);
        return is_good ? std::string() : spmv::in_quotes(text) + " is not a number above 0";
      },
      "ABOVE 0");
}

}  // namespace spmv
