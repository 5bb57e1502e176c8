#include "simt/shared_memory.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

namespace simt {
namespace {

struct Range {  // of a function or of a static variable
  std::uintptr_t begin, end;
  std::string mangled;
};

struct Symbols {
  std::vector<Range> functions, variables;  // by address
  struct Variable {
    std::string mangled;
    std::size_t offset, bytes;
  };
  std::vector<Variable> thread_locals;
  std::vector<std::size_t> guards;  // offsets of one-byte variables, see is_program_storage()
};

// What the loader knows of the executable, which is the first object it lists.
dl_phdr_info executable() {
  dl_phdr_info found{};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<dl_phdr_info*>(out) = *info;
        return 1;
      },
      &found);
  return found;
}

std::uintptr_t load_address() {
  return executable().dlpi_addr;
}

Symbols read_symbols() {
  Symbols symbols;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto read = [&file](std::size_t offset, std::size_t bytes) {
    std::string data(bytes, '\0');
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(data.data(), static_cast<std::streamsize>(bytes));
    return data;
  };
  const auto as = []<typename T>(const std::string& data, std::size_t index, T) {
    T value;
    std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
    return value;
  };

  const auto header = as(read(0, sizeof(Elf64_Ehdr)), 0, Elf64_Ehdr{});
  const std::string sections = read(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  const std::uintptr_t base = load_address();
  for (std::size_t s = 0; s < header.e_shnum; ++s) {
    const auto section = as(sections, s, Elf64_Shdr{});
    if (section.sh_type != SHT_SYMTAB) continue;
    const std::string table = read(section.sh_offset, section.sh_size);
    const auto strings_section = as(sections, section.sh_link, Elf64_Shdr{});
    const std::string strings = read(strings_section.sh_offset, strings_section.sh_size);
    for (std::size_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = as(table, i, Elf64_Sym{});
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
      const char* name = strings.c_str() + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS) {
        symbols.thread_locals.push_back({name, symbol.st_value, symbol.st_size});
        if (std::strncmp(name, "_ZGV", 4) == 0) symbols.guards.push_back(symbol.st_value);
        continue;
      }
      const std::uintptr_t begin = base + symbol.st_value;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
        symbols.functions.push_back({begin, begin + symbol.st_size, name});
      } else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) {
        symbols.variables.push_back({begin, begin + symbol.st_size, name});
      }
    }
  }
  for (auto* ranges : {&symbols.functions, &symbols.variables}) {
    std::sort(ranges->begin(), ranges->end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
  }
  return symbols;
}

const Symbols& symbols() {
  static const Symbols instance = read_symbols();
  return instance;
}

const Range* range_at(const std::vector<Range>& ranges, std::uintptr_t address) {
  auto it = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](std::uintptr_t value, const Range& range) { return value < range.begin; });
  if (it == ranges.begin()) return nullptr;
  --it;
  return address < it->end ? &*it : nullptr;
}

const Range* function_at(const void* pc) {
  return range_at(symbols().functions, reinterpret_cast<std::uintptr_t>(pc));
}

std::string demangle(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : mangled;
}

// The variable's name in a local name, "_ZZ<function>E<length><name>[_<n>]": the last identifier.
std::string local_name(const std::string& mangled) {
  for (std::size_t at = mangled.size(); at-- > 0;) {
    if (std::isdigit(static_cast<unsigned char>(mangled[at])) == 0) continue;
    std::size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(mangled[begin - 1])) != 0) --begin;
    const std::size_t length = std::strtoul(mangled.c_str() + begin, nullptr, 10);
    if (length > 0 && at + 1 + length <= mangled.size() && begin > 0 && mangled[begin - 1] == 'E') {
      return mangled.substr(at + 1, length);
    }
    at = begin;
  }
  return mangled;
}

bool is_kernel(std::string_view local_variable) {
  // Kernels' names end in "_kernel" here, which in a mangled name stands before the template
  // arguments ("I") or the parameters.
  return local_variable.find("_kernel") != std::string_view::npos;
}

// Libraries keep function-local thread_local variables too; those are none of ours.
bool is_foreign(std::string_view mangled) {
  for (const char* prefix : {"_ZZN4simt", "_ZZNSt", "_ZZSt", "_ZZN5Catch", "_ZZN5boost", "_ZZN3fmt",
                             "_ZZN2__", "_ZZN6__", "_ZZN11__"}) {
    if (mangled.starts_with(prefix)) return true;
  }
  return false;
}

struct SharedLayout {
  std::vector<SharedVariable> variables;
  std::size_t static_bytes = 0;
};

SharedLayout find_layout(const void* kernel) {
  SharedLayout layout;
  const Range* function = function_at(kernel);
  const std::string own_prefix = function ? "_ZZ" + function->mangled.substr(2) + "E" : "?";
  for (const auto& symbol : symbols().thread_locals) {
    if (symbol.mangled.starts_with("_ZZ")) {
      const bool own = symbol.mangled.starts_with(own_prefix);
      if (is_foreign(symbol.mangled) || (!own && is_kernel(symbol.mangled))) continue;
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
  static std::mutex mutex;
  static std::map<const void*, SharedLayout> layouts;
  const std::lock_guard lock(mutex);
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
  static thread_local std::byte* const block = static_cast<std::byte*>(executable().dlpi_tls_data);
  return block + offset;
}

bool is_program_storage(std::uintptr_t address, bool guards_alone) {
  for (const std::size_t offset : symbols().guards) {
    if (address == reinterpret_cast<std::uintptr_t>(shared_address(offset))) return true;
  }
  if (guards_alone) return false;
  const dl_phdr_info info = executable();
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    if (address - (info.dlpi_addr + segment.p_vaddr) < segment.p_memsz) return true;
  }
  return false;
}

ProgramVariable find_program_variable(std::uintptr_t address) {
  const Range* const variable = range_at(symbols().variables, address);
  if (!variable) return {};
  return {variable->begin, variable->end - variable->begin, demangle(variable->mangled)};
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

std::uintptr_t executable_address() {
  return load_address();
}

std::vector<SourceLine> find_sources(const std::vector<const void*>& pcs) {
  static std::mutex mutex;
  static std::map<const void*, SourceLine> known;
  const std::lock_guard lock(mutex);
  std::vector<const void*> unknown;
  for (const void* const pc : pcs) {
    if (known.try_emplace(pc).second) unknown.push_back(pc);
  }
  constexpr std::size_t kAtOnce = 1000;
  for (std::size_t first = 0; first < unknown.size(); first += kAtOnce) {
    const std::size_t end = std::min(first + kAtOnce, unknown.size());
    std::string command = "addr2line -a -i -e /proc/" + std::to_string(getpid()) + "/exe";
    for (std::size_t i = first; i < end; ++i) {
      // The call ends before the address it returns to, hence - 1.
      char address[32];
      std::snprintf(address, sizeof address, " 0x%zx",
                    reinterpret_cast<std::uintptr_t>(unknown[i]) - load_address() - 1);
      command += address;
    }
    FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
    if (!pipe) break;
    // For each address a line with it, then lines from the innermost function outwards. The
    // kernel's own is the first outside of simt (whose tests have a folder of their own).
    static const std::string_view own_file = __FILE__;
    static const std::string_view own_folder = own_file.substr(0, own_file.find_last_of('/'));
    SourceLine* found = nullptr;
    char buffer[4096];
    for (std::size_t i = first; std::fgets(buffer, sizeof buffer, pipe);) {
      const std::string text(buffer, std::strcspn(buffer, "\n"));
      if (text.starts_with("0x") && i < end) {
        found = &known[unknown[i++]];
      } else if (found && found->file.empty() && !text.starts_with("??") &&
                 text.substr(0, text.find_last_of('/')) != own_folder) {
        const std::size_t colon = text.find_last_of(':');
        found->file = text.substr(0, colon);
        found->line = static_cast<unsigned>(std::strtoul(text.c_str() + colon + 1, nullptr, 10));
      }
    }
    pclose(pipe);
  }
  std::vector<SourceLine> lines;
  for (const void* const pc : pcs) lines.push_back(known[pc]);
  return lines;
}

std::string source_line(const void* pc) {
  const SourceLine source = find_sources({pc}).front();
  if (source.file.empty()) return {};
  return source.file.substr(source.file.find_last_of('/') + 1) + ":" + std::to_string(source.line);
}

}  // namespace simt
