// Where the __shared__ variables of a kernel are.
//
// __shared__ makes a variable thread_local, so the executable's symbol table has its name, its size
// and its offset in the thread-local block of a host thread: enough to poison it when a block
// starts, to bound accesses, and to name it in a report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simt {

inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;  // of a block, on compute capability 9.0
inline constexpr std::size_t kDefaultSharedBytes = 48 * 1024;

// As the number that is compared and reported.
inline std::uintptr_t address_of(const volatile void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

struct SharedVariable {
  std::string name;        // as in the source
  std::size_t offset = 0;  // in the thread-local block
  std::size_t bytes = 0;   // of a dynamic array: kMaxSharedBytes, the launch says how many count
  bool dynamic = false;    // extern __shared__ T name[]
};

// The variables that a block of `kernel` (the address of its function) may use: those of the
// function itself, those of device functions (which any kernel may call), and the dynamic arrays.
const std::vector<SharedVariable>& shared_variables(const void* kernel);

// Bytes of static shared memory that the function of `kernel` declares.
std::size_t static_shared_bytes(const void* kernel);

// The calling thread's copy of the variable at `offset`.
std::byte* shared_address(std::size_t offset);

// Whether `address` is a variable of the program itself: static or constant, or the guard of a
// thread_local (g++ notes whether a shared array of vectors is initialised, which takes no code).
// `guards_alone`: only the latter.
bool is_program_storage(std::uintptr_t address, bool guards_alone);

// The static variable, `__device__` perhaps, that holds `address`.
struct NamedRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;  // 0: there is none
  std::string name;
};
NamedRange find_program_variable(std::uintptr_t address);

// Where the function that holds `pc` begins.
const void* function_of(const void* pc);
// "csr_vector_kernel<2, double>" for the function that holds `pc`; "?" if there is none.
std::string kernel_name(const void* pc);
// Where the executable was loaded: subtracted from an address it gives the one in the file.
std::uintptr_t executable_address();

struct SourceLine {
  std::string file;  // its path; empty without debug information
  unsigned line = 0;
};
// The lines that the calls which return to `pcs` stand in, in the kernels' own sources (functions
// of simt are inlined into them), by addr2line. Answers are kept; new addresses are asked for
// together.
std::vector<SourceLine> find_sources(const std::vector<const void*>& pcs);
// A source's path as a report shows it: from SIMT_ROOT on, a folder that the environment may name,
// so that a terminal or an editor opens it; else its name alone.
std::string shown_path(const std::string& path);
// "file.cuh:31" for one of them; "" without debug information.
std::string source_line(const void* pc);

}  // namespace simt
