#include "harness/command.hpp"

#include <algorithm>

namespace spmv {
namespace {

// A function's static, because commands register before main() in any order of source files.
std::vector<Command>& registry() {
  static std::vector<Command> instance;
  return instance;
}

}  // namespace

bool add_command(std::string name, std::string summary,
                 std::function<CommandBody(CommandLine&)> declare) {
  std::vector<Command>& all = registry();
  const auto place = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Command& command, const std::string& other) { return command.name < other; });
  all.insert(place, {std::move(name), std::move(summary), std::move(declare)});
  return true;
}

const std::vector<Command>& commands() {
  return registry();
}

}  // namespace spmv
