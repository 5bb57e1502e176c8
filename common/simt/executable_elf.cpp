#ifndef __EMSCRIPTEN__
#include "simt/executable.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>

#include "simt/shared_memory.hpp"

namespace simt {
namespace {

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
  const std::uintptr_t base = executable_address();
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
        if (std::strcmp(name, "_ZN4simt6anchorE") == 0) symbols.anchor = symbol.st_value;
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

}  // namespace

const Symbols& symbols() {
  // (Never destroyed, as what is below: a program's end asks for names, too.)
  static const Symbols& instance = *new Symbols(read_symbols());
  return instance;
}

bool is_static_storage(std::uintptr_t address) {
  const dl_phdr_info info = executable();
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    if (address - (info.dlpi_addr + segment.p_vaddr) < segment.p_memsz) return true;
  }
  return false;
}

std::uintptr_t executable_address() {
  return executable().dlpi_addr;
}

namespace {

// addr2line, one process for as long as the program runs: it answers each address that it reads.
// Null where there is none. (Started by the first to ask: a sandbox may forbid processes later.)
FILE* addr2line() {
  static FILE* answers = nullptr;
  static pid_t owner = 0;
  if (std::exchange(owner, getpid()) == getpid()) return answers;
  answers = nullptr;  // of the process that forked this one
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  std::string program = "/proc/" + std::to_string(owner) + "/exe";
  char* const words[] = {const_cast<char*>("addr2line"), const_cast<char*>("-aie"), program.data(),
                         nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool started = posix_spawnp(&child, words[0], &actions, nullptr, words, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (started) {
    answers = fdopen(ends[0], "r");
  } else {
    close(ends[0]);
  }
  return answers;
}

}  // namespace

std::vector<SourceLine> find_sources(const std::vector<const void*>& pcs) {
  static std::mutex mutex;
  static auto& known = *new std::map<const void*, SourceLine>;
  const std::lock_guard lock(mutex);
  std::vector<const void*> unknown;
  for (const void* const pc : pcs) {
    if (known.try_emplace(pc).second) unknown.push_back(pc);
  }
  constexpr std::size_t kAtOnce = 100;  // answers to more could fill the socket
  for (std::size_t first = 0; first < unknown.size(); first += kAtOnce) {
    const std::size_t end = std::min(first + kAtOnce, unknown.size());
    FILE* const answers = addr2line();
    if (!answers) break;
    std::string question;
    for (std::size_t i = first; i < end; ++i) {
      // The call ends before the address it returns to, hence - 1.
      question += fmt::format("{:#x}\n", address_of(unknown[i]) - executable_address() - 1);
    }
    question += "0\n";  // where nothing is: behind it, no more comes
    if (send(fileno(answers), question.data(), question.size(), MSG_NOSIGNAL) < 0) break;
    // For each address a line with it, then lines from the innermost function outwards. The
    // kernel's own is the first outside of simt (whose tests have a folder of their own) and, if
    // there is one, of device/, whose helpers kernels call.
    static const std::string_view own_file = __FILE__;
    static const std::string_view own_folder = own_file.substr(0, own_file.find_last_of('/'));
    const auto of_helper = [](const std::string& line) {
      const std::string folder = line.substr(0, line.find_last_of('/'));
      return folder.ends_with("/device");
    };
    SourceLine* found = nullptr;
    bool is_helper = false;
    char buffer[4096];
    for (std::size_t i = first; std::fgets(buffer, sizeof buffer, answers);) {
      const std::string text(buffer, std::strcspn(buffer, "\n"));
      if (text.starts_with("0x")) {
        if (i == end) {
          std::ignore = std::fgets(buffer, sizeof buffer, answers);
          break;
        }
        found = &known[unknown[i++]];
        is_helper = true;
      } else if (found && is_helper && !text.starts_with("??") &&
                 text.substr(0, text.find_last_of('/')) != own_folder) {
        if (of_helper(text) && !found->file.empty()) continue;
        is_helper = of_helper(text);
        const std::size_t colon = text.find_last_of(':');
        found->file = text.substr(0, colon);
        found->line = static_cast<unsigned>(std::strtoul(text.c_str() + colon + 1, nullptr, 10));
      }
    }
  }
  std::vector<SourceLine> lines;
  for (const void* const pc : pcs) lines.push_back(known[pc]);
  return lines;
}

}  // namespace simt
#endif
