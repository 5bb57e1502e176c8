#include "harness/command.hpp"

#include <utility>

namespace spmv {

bool add_command(std::string name, std::string summary,
                 std::function<CommandBody(CommandLine&)> declare) {
  return commands()
      .try_emplace(std::move(name), Command{std::move(summary), std::move(declare)})
      .second;
}

// A function's static, because commands register before main() in any order of source files.
std::map<std::string, Command>& commands() {
  static std::map<std::string, Command> all;
  return all;
}

}  // namespace spmv
