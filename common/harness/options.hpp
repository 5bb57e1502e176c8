// The command line, with the checks that CLI11 leaves to its user.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace spmv {

// Parses the command line. Returns the help text if that was asked for. Throws InputError, which
// names the option, for whatever CLI11 refuses, and for what it lets pass: an empty text, a number
// beyond its type, NaN and infinities.
std::optional<std::string> parse_options(CLI::App& app, int argc, char** argv);

// Checks a number that has to be above 0.
CLI::Validator above_zero();

}  // namespace spmv
