#include "harness/machine_code.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>

#include "sparse/matrix.hpp"

#ifdef SPMV_CUDA
#include <cuda_runtime.h>
#endif

namespace spmv {
namespace {

// nvcc's container: regions of a header and entries, each with a header of its own. NVIDIA does not
// document it; offsets are those of CUDA 11 to 13.
constexpr std::uint32_t kRegion = 0xBA55ED50;
constexpr std::uint16_t kIsElf = 2;
constexpr std::size_t kArchAt = 28;
constexpr std::size_t kEntryHeader = 64;

template <typename T>
T at(std::string_view bytes, std::size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset) {
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  }
  return value;
}

// Name and content of each section of an ELF file; empty if it is not an ELF file.
std::multimap<std::string, std::string_view> sections(std::string_view file) {
  std::multimap<std::string, std::string_view> found;
  if (!file.starts_with(ELFMAG)) return found;
  const auto header = at<Elf64_Ehdr>(file, 0);
  const auto section = [&](std::size_t i) {
    return at<Elf64_Shdr>(file, header.e_shoff + i * header.e_shentsize);
  };
  const auto content = [&](const Elf64_Shdr& s) {
    if (s.sh_type == SHT_NOBITS || s.sh_offset > file.size()) return std::string_view{};
    return file.substr(s.sh_offset, s.sh_size);
  };
  const std::string_view names = content(section(header.e_shstrndx));
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (s.sh_name >= names.size()) continue;
    const std::string_view name = names.substr(s.sh_name);
    found.emplace(name.substr(0, name.find('\0')), content(s));
  }
  return found;
}

void add_functions(std::string_view cubin, std::map<std::string, std::string>& to) {
  constexpr std::string_view kText = ".text.";
  for (const auto& [name, content] : sections(cubin)) {
    if (name.starts_with(kText)) {
      to.emplace(without_file(name.substr(kText.size())), hash_of(content));
    }
  }
}

}  // namespace

std::string hash_of(std::string_view bytes) {  // FNV-1a
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return fmt::format("{:016x}", value);
}

std::string without_file(std::string name) {
  constexpr std::string_view kMark = "_GLOBAL__N__", kPlain = "12_GLOBAL__N_1";
  for (std::size_t mark; (mark = name.find(kMark)) != std::string::npos;) {
    std::size_t begin = mark;  // of the length, which stands before the identifier
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
    const auto length = std::strtoul(name.c_str() + begin, nullptr, 10);
    name.replace(begin, mark - begin + std::max<std::size_t>(length, kMark.size()), kPlain);
  }
  return name;
}

std::map<std::string, std::string> machine_code(const std::string& file, int arch) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!in || bytes.empty()) throw InputError(file + ": cannot be read");
  std::map<std::string, std::string> functions;
  const auto parts = sections(bytes);
  const auto [first, last] = parts.equal_range(".nv_fatbin");
  for (auto part = first; part != last; ++part) {
    const std::string_view all = part->second;
    for (std::size_t place = 0; place < all.size();) {
      if (at<std::uint32_t>(all, place) != kRegion) {
        place += 8;  // regions begin at multiples of 8
        continue;
      }
      const std::size_t begin = place + at<std::uint16_t>(all, place + 6);
      const std::size_t end = begin + at<std::uint64_t>(all, place + 8);
      std::string_view chosen;  // one region is one source, for several architectures
      int chosen_arch = 0;
      for (std::size_t entry = begin; entry + kEntryHeader <= std::min(end, all.size());) {
        const std::size_t payload = entry + at<std::uint32_t>(all, entry + 4);
        const auto size = at<std::uint64_t>(all, entry + 8);
        const auto of = static_cast<int>(at<std::uint32_t>(all, entry + kArchAt));
        if (at<std::uint16_t>(all, entry) == kIsElf && of / 10 == arch / 10 && of <= arch &&
            of > chosen_arch && payload <= all.size()) {
          chosen = all.substr(payload, size);
          chosen_arch = of;
        }
        if (size == 0) break;
        entry = payload + size;
      }
      add_functions(chosen, functions);
      place = std::max(end, place + 8);
    }
  }
  return functions;
}

const std::map<std::string, std::string>& own_machine_code(int arch) {
  static std::map<int, std::map<std::string, std::string>> known;
  const auto [entry, is_new] = known.try_emplace(arch);
  if (is_new) entry->second = machine_code("/proc/self/exe", arch);
  return entry->second;
}

namespace {

std::atomic<bool> logging = false;  // else a launch costs nothing more
std::mutex log_mutex;
std::set<std::string> launched;

}  // namespace

LaunchLog::LaunchLog() {
  const std::lock_guard lock(log_mutex);
  launched.clear();
  logging = true;
}
LaunchLog::~LaunchLog() {
  logging = false;
}
std::set<std::string> LaunchLog::functions() const {
  const std::lock_guard lock(log_mutex);
  return launched;
}

}  // namespace spmv

#ifdef SPMV_CUDA
// The linker leads every launch of this program through these (--wrap in build.mk).
namespace {
void note(const void* function) {
  if (!spmv::logging) return;
  const std::lock_guard lock(spmv::log_mutex);
  const char* name = nullptr;
#if CUDART_VERSION >= 12030
  if (cudaFuncGetName(&name, function) != cudaSuccess) {
    name = nullptr;
    cudaGetLastError();  // it was no error of the launch
  }
#endif
  spmv::launched.insert(name ? spmv::without_file(name) : "");
}
}  // namespace

extern "C" {
cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                       void** arguments) {
  note(function);
  return __real_cudaLaunchKernelExC(config, function, arguments);
}

cudaError_t __real_cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t);
cudaError_t __wrap_cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared, cudaStream_t stream) {
  note(function);
  return __real_cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

#if CUDART_VERSION >= 13000
cudaError_t __real___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                      std::size_t shared, cudaStream_t stream) {
  note(reinterpret_cast<const void*>(kernel));
  return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
#endif
}
#endif
