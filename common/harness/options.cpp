#include "harness/options.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

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

Rule required() {
  return [](CLI::Option& option) { option.required(); };
}
Rule may_be_empty() {
  return [](CLI::Option& option) { option.expected(0, 1); };
}
Rule comma_separated() {
  return [](CLI::Option& option) { option.delimiter(','); };
}
Rule size_in_bytes() {
  return [](CLI::Option& option) { option.transform(CLI::AsSizeValue(false)); };
}
Rule one_of(std::vector<std::string> words) {
  return [words = std::move(words)](CLI::Option& option) { option.check(CLI::IsMember(words)); };
}
template <typename T>
Rule between(T low, T high) {
  return [=](CLI::Option& option) { option.check(CLI::Range(low, high)); };
}
Rule above_zero() {
  const auto check = [](const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const bool is_good = !text.empty() && *end == '\0' && number > 0 && std::isfinite(number);
    return is_good ? std::string() : spmv::in_quotes(text) + " is not a number above 0";
  };
  return [=](CLI::Option& option) { option.check(CLI::Validator(check, "ABOVE 0")); };
}

CommandLine::CommandLine(const std::string& name, const std::string& summary)
    : app_(std::make_shared<CLI::App>(summary, name)) {
  app_->option_defaults()->always_capture_default();
}

void CommandLine::footer(const std::string& text) {
  app_->footer(text);
}

template <typename T>
void CommandLine::add(const std::string& names, T& variable, const std::string& meaning,
                      const std::vector<Rule>& rules) {
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<T, bool>) {
    option = app_->add_flag(names, variable, meaning);
  } else {
    option = app_->add_option(names, variable, meaning);
  }
  for (const Rule& rule : rules) rule(*option);
}

void CommandLine::refuse(const std::string& name, const std::string& why) {
  app_->add_flag_callback(name, [why] { throw InputError(why); });
}

CommandLine CommandLine::command(const std::string& name, const std::string& summary) {
  CLI::App* const command = app_->add_subcommand(name, summary);
  command->fallthrough();
  app_->require_subcommand(0, 1);
  return CommandLine({app_, command});
}

bool CommandLine::has(const std::string& name) const {
  return app_->count(name) > 0;
}

bool CommandLine::is_given() const {
  return app_->parsed();
}

std::optional<std::string> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->help();
    std::string what = error.what();
    for (char& c : what) c = c == '\n' ? ' ' : c;
    throw InputError(printable(what) + "; see --help");
  }
  check_texts(*app_);
  for (const CLI::App* command : app_->get_subcommands()) check_texts(*command);
  return {};
}

template Rule between(int, int);
template Rule between(long long, long long);
template Rule between(double, double);

#define SPMV_INSTANTIATE(T)                                                  \
  template void CommandLine::add(const std::string&, T&, const std::string&, \
                                 const std::vector<Rule>&)
SPMV_INSTANTIATE(bool);
SPMV_INSTANTIATE(int);
SPMV_INSTANTIATE(unsigned);
SPMV_INSTANTIATE(long long);
SPMV_INSTANTIATE(unsigned long);  // std::size_t and std::uint64_t are one or the other
SPMV_INSTANTIATE(unsigned long long);
SPMV_INSTANTIATE(double);
SPMV_INSTANTIATE(std::string);
SPMV_INSTANTIATE(std::vector<int>);
SPMV_INSTANTIATE(std::vector<std::string>);
#undef SPMV_INSTANTIATE

}  // namespace spmv
