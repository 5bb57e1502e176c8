// What simt knows of the program that it is part of: its symbols and its source lines. ELF files
// are read (executable_elf.cpp); in WebAssembly every object file registers its own when the
// program starts (executable_wasm.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simt {

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
  std::size_t anchor = 0;           // offset of that variable
};

const Symbols& symbols();
// Where the calling thread has its thread_local variables follows from the place of this one.
extern constinit thread_local std::byte anchor;

// Whether a static or constant variable of the program has `address`.
bool is_static_storage(std::uintptr_t address);

}  // namespace simt
