#ifdef __EMSCRIPTEN__
// What WebAssembly has in place of an ELF file. There a function's address is a number in a table,
// and return addresses cannot be read. So `common/watch/live/sites.py`, between the compiler
// and the assembler, gives every call from a kernel to simt a *site*: four bytes of an array, whose
// address is stored in simt_site before the call, and which hold file and line. An object file
// registers its sites, its kernels and its shared variables.
#include "simt/executable.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "simt/block.hpp"

extern "C" {
const void* simt_site = nullptr;
extern const unsigned char __global_base, __heap_base;

// What Asyncify provides, and emscripten: the stack of what has an address.
#define SIMT_ASYNCIFY(name) __attribute__((import_module("asyncify"), import_name(#name)))
SIMT_ASYNCIFY(start_unwind) void simt_start_unwind(void* saved);
SIMT_ASYNCIFY(stop_unwind) void simt_stop_unwind();
SIMT_ASYNCIFY(start_rewind) void simt_start_rewind(void* saved);
SIMT_ASYNCIFY(stop_rewind) void simt_stop_rewind();
void* stackSave();
void stackRestore(void* top);
}

namespace simt {
namespace {

struct Site {
  std::uint16_t file, line;
};
struct Symbol {
  const char* mangled;
  const void* begin;
  std::uint32_t bytes;  // 0: a function
};
struct Module {
  const Site* sites;
  std::uint32_t count;
  const char* files;  // each ends with a newline
};

struct Registered {
  std::vector<Module> modules;
  Symbols symbols;
};
Registered& registered() {
  static Registered instance;
  return instance;
}

Context* next_context = nullptr;  // to which a call that unwinds switches
bool rewinding = false;

}  // namespace

void Context::switch_to(Context& next) {
  if (rewinding) {  // back here
    simt_stop_rewind();
    rewinding = false;
    return;
  }
  next_context = &next;
  stack_top_ = stackSave();
  simt_start_unwind(&saved_);
}

void Context::run() {
  void* const top = stackSave();
  for (Context* context = this;;) {
    if (context->stack_top_) stackRestore(context->stack_top_);
    rewinding = !std::exchange(context->is_new_, false);
    if (rewinding) simt_start_rewind(&context->saved_);
    context->entry_();
    context = std::exchange(next_context, nullptr);
    if (!context) break;  // `work` has returned
    simt_stop_unwind();
  }
  stackRestore(top);
}

// The program has one thread: variables that are thread_local are as others.
const Symbols& symbols() {
  Symbols& all = registered().symbols;
  all.anchor = reinterpret_cast<std::uintptr_t>(&anchor);
  return all;
}

bool is_static_storage(std::uintptr_t address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(&__global_base);
  return address >= begin && address < reinterpret_cast<std::uintptr_t>(&__heap_base);
}

std::uintptr_t executable_address() {
  return 0;
}

std::vector<SourceLine> find_sources(const std::vector<const void*>& pcs) {
  std::vector<SourceLine> lines;
  for (const void* const pc : pcs) {
    SourceLine& line = lines.emplace_back();
    for (const Module& module : registered().modules) {
      const std::size_t offset =
          reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(module.sites);
      if (offset / sizeof(Site) >= module.count) continue;
      const Site site = module.sites[offset / sizeof(Site)];
      const char* file = module.files;
      for (unsigned i = 0; i < site.file; ++i) file = std::strchr(file, '\n') + 1;
      line = {std::string(file, std::strcspn(file, "\n")), site.line};
    }
  }
  return lines;
}

// A browser's page has no signals: a fault ends the program.
void watch_faults() {}
void watch_faults_of_thread() {}

}  // namespace simt

extern "C" void simt_register(const simt::Site* sites, std::uint32_t site_count, const char* files,
                              const simt::Symbol* symbols, std::uint32_t symbol_count) {
  simt::Registered& all = simt::registered();
  if (site_count > 0) all.modules.push_back({sites, site_count, files});
  simt::Symbols& known = all.symbols;
  for (const simt::Symbol& symbol : std::vector(symbols, symbols + symbol_count)) {
    const auto begin = reinterpret_cast<std::uintptr_t>(symbol.begin);
    if (symbol.bytes == 0) {
      known.functions.push_back({begin, begin + 1, symbol.mangled});
    } else if (std::none_of(known.thread_locals.begin(), known.thread_locals.end(),
                            [&](const auto& known) { return known.offset == begin; })) {
      known.thread_locals.push_back({symbol.mangled, begin, symbol.bytes});
      if (std::string_view(symbol.mangled).starts_with("_ZGV")) known.guards.push_back(begin);
    }
  }
  std::sort(known.functions.begin(), known.functions.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
}
#endif
