// The command line, read into variables. CLI11 does it, in options.cpp alone: its header takes
// seconds to compile.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace spmv {

// What is asked of an option's text.
using Rule = std::function<void(CLI::Option&)>;

Rule required();
Rule may_be_empty();     // the option may stand without a text
Rule comma_separated();  // of a list: "1,2,4"
Rule above_zero();
Rule size_in_bytes();  // such as 500M or 8G
Rule one_of(std::vector<std::string> words);
template <typename T>  // int, long long or double
Rule between(T low, T high);

// The keys of a map from words to what they stand for.
template <typename Map>
Rule key_of(const Map& map) {
  std::vector<std::string> words;
  for (const auto& entry : map) words.push_back(entry.first);
  return one_of(std::move(words));
}

// A program's options, or those of one of its commands.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary);

  void footer(const std::string& text);
  // What stands behind one of `names` ("-m,--matrix"; "MATRIX": behind nothing) is stored in
  // `variable`, which must outlive parse() and has the default. T: std::string, a number, or a
  // vector of either. bool: the option has no text.
  template <typename T>
  void add(const std::string& names, T& variable, const std::string& meaning,
           const std::vector<Rule>& rules = {});
  // An option that is an InputError, with this text.
  void refuse(const std::string& name, const std::string& why);
  // The options above may stand behind the command's name, too.
  CommandLine command(const std::string& name, const std::string& summary);

  // Reads all. Returns the help text if that was asked for. Throws InputError, which names the
  // option, for whatever CLI11 refuses, and for what it lets pass: an empty text, a number beyond
  // its type, NaN and infinities.
  std::optional<std::string> parse(int argc, char** argv);
  // Then: whether the option was given; whether the command was.
  bool has(const std::string& name) const;
  bool is_given() const;

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

  std::shared_ptr<CLI::App> app_;
};

}  // namespace spmv
