// Which machine code a measurement ran: records name it, so that a later build can tell whether its
// own is the same (plots/measure/evidence.py).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace spmv {

// A hash of the instructions of each CUDA function in an ELF file (a program, an object) that nvcc
// made with --no-compress, by the function's mangled name. Of several architectures it is the one
// that a device of compute capability `arch` (90 for 9.0) would load: of the same major version,
// the newest that is not newer. What is not there, or is compressed, is not in the answer. Throws
// InputError if the file cannot be read.
std::map<std::string, std::string> machine_code(const std::string& file, int arch);

// The same of the program that runs, read once.
const std::map<std::string, std::string>& own_machine_code(int arch);

// 16 hexadecimal digits that tell two texts apart.
std::string hash_of(std::string_view bytes);

// While one exists, it notes the CUDA functions that this program launches, those of header
// libraries (CUB, Thrust) included; not those of a shared library (cuSPARSE), which launches by
// itself. One at a time. On the CPU backend nothing is launched.
class LaunchLog {
 public:
  LaunchLog();
  ~LaunchLog();
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;
  std::set<std::string> functions() const;  // mangled names; "" is one whose name is not known
};

// nvcc names an anonymous namespace after the file and two numbers, which another directory
// changes: without them, as g++ names it.
std::string without_file(std::string name);

}  // namespace spmv
