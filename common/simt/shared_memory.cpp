#include "simt/shared_memory.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "simt/executable.hpp"

namespace simt {

constinit thread_local std::byte anchor{};

namespace {

const Range* range_at(const std::vector<Range>& ranges, std::uintptr_t address) {
  auto it = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](std::uintptr_t value, const Range& range) { return value < range.begin; });
  if (it == ranges.begin()) return nullptr;
  --it;
  return address < it->end ? &*it : nullptr;
}

const Range* function_at(const void* pc) {
  return range_at(symbols().functions, address_of(pc));
}

std::string demangle(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : mangled;
}

// The variable's name in a local name, "_ZZ<function>E<length><name>[_<n>]": the last identifier.
std::string local_name(const std::string& mangled) {
  const std::string name = demangle(mangled);
  return name.substr(name.rfind(':') + 1);
}

// Libraries keep function-local thread_local variables too; those are none of ours. (The last one
// is where libstdc++, linked statically, counts exceptions.)
bool is_foreign(std::string_view mangled) {
  for (const char* prefix :
       {"_ZZN4simt", "_ZZNSt", "_ZZSt", "_ZZN5Catch", "_ZZN5boost", "_ZZN3fmt", "_ZZN2__",
        "_ZZN6__", "_ZZN11__", "_ZZN12_GLOBAL__N_110get_globalEvE"}) {
    if (mangled.starts_with(prefix)) return true;
  }
  return false;
}

struct SharedLayout {
  std::vector<SharedVariable> variables;
  std::size_t static_bytes = 0;
};

// How the names of a function's local variables begin.
std::string prefix_of_locals(const void* function) {
  const Range* const range = function_at(function);
  if (!range) return "?";
  const std::string& name = range->mangled;
  const bool is_c = !name.starts_with("_Z");  // extern "C"
  return "_ZZ" + (is_c ? std::to_string(name.size()) + name : name.substr(2)) + "E";
}

std::mutex layouts_mutex;

SharedLayout find_layout(const void* kernel) {
  SharedLayout layout;
  const std::string own_prefix = prefix_of_locals(kernel);
  for (const auto& symbol : symbols().thread_locals) {
    if (symbol.mangled.starts_with("_ZZ")) {
      // Kernels' names end in "_kernel" here, which in a mangled name stands before the template
      // arguments ("I") or the parameters. Of a program's kernels (program.hpp) the body is a
      // lambda expression: a "Z" more, and its parameter's type.
      const bool in_program = symbol.mangled.find("4simt8OnDevice") != std::string::npos;
      const bool of_kernel = in_program || symbol.mangled.find("_kernel") != std::string::npos;
      const bool own = symbol.mangled.starts_with(own_prefix) ||
                       (in_program && symbol.mangled.find(own_prefix.substr(2)) == 3);
      if (is_foreign(symbol.mangled) || (of_kernel && !own)) continue;
      layout.variables.push_back({local_name(symbol.mangled), symbol.offset, symbol.bytes, false});
      if (own) layout.static_bytes += symbol.bytes;
    } else if (symbol.bytes == kMaxSharedBytes) {
      // Only the arrays that the build makes for `extern __shared__` have exactly this size.
      layout.variables.push_back({demangle(symbol.mangled), symbol.offset, symbol.bytes, true});
    }
  }
  return layout;
}

const SharedLayout& layout_of(const void* kernel) {
  static std::map<const void*, SharedLayout> layouts;
  const std::lock_guard lock(layouts_mutex);
  auto it = layouts.find(kernel);
  if (it == layouts.end()) it = layouts.emplace(kernel, find_layout(kernel)).first;
  return it->second;
}

}  // namespace

const std::vector<SharedVariable>& shared_variables(const void* kernel) {
  return layout_of(kernel).variables;
}

std::size_t static_shared_bytes(const void* kernel) {
  return layout_of(kernel).static_bytes;
}

std::byte* shared_address(std::size_t offset) {
  return &anchor - symbols().anchor + offset;
}

bool is_program_storage(std::uintptr_t address, bool guards_alone) {
  for (const std::size_t offset : symbols().guards) {
    if (address == address_of(shared_address(offset))) return true;
  }
  return !guards_alone && is_static_storage(address);
}

NamedRange find_program_variable(std::uintptr_t address) {
  const Range* const variable = range_at(symbols().variables, address);
  if (!variable) return {};
  return {variable->begin, variable->end - variable->begin, demangle(variable->mangled)};
}

const void* function_of(const void* pc) {
  const Range* const function = function_at(pc);
  return function ? reinterpret_cast<const void*>(function->begin) : pc;
}

std::string kernel_name(const void* pc) {
  const Range* const function = function_at(pc);
  if (!function) return "?";
  std::string name = demangle(function->mangled);
  const std::string_view unnamed = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(unnamed)) != std::string::npos;) {
    name.erase(at, unnamed.size());
  }
  // From behind the last space or colon up to the parameters, outside of template arguments.
  std::size_t begin = 0, end = 0;
  for (int depth = 0; end < name.size() && (depth > 0 || name[end] != '('); ++end) {
    depth += (name[end] == '<') - (name[end] == '>');
    if (depth == 0 && (name[end] == ' ' || name[end] == ':')) begin = end + 1;
  }
  return name.substr(begin, end - begin);
}

std::string shown_path(const std::string& path) {
  const char* const root = std::getenv("SIMT_ROOT");
  const std::string folder = root ? std::string(root) + "/" : "";
  if (root && path.starts_with(folder)) return path.substr(folder.size());
  return root && path.starts_with('/') ? path : path.substr(path.find_last_of('/') + 1);
}

std::string source_line(const void* pc) {
  const SourceLine source = find_sources({pc}).front();
  if (source.file.empty()) return {};
  return shown_path(source.file) + ":" + std::to_string(source.line);
}

}  // namespace simt
