// A program of its own: what is said of its errors, and its status.
#ifndef __EMSCRIPTEN__
#include "simt/program.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "simt/lanes.hpp"
#include "simt/memory.hpp"

namespace simt {
namespace {

bool reported = false;  // a kernel has failed
// (Neither is ever destroyed: end_program() runs late.)
thread_local PendingLaunch& pending = *new PendingLaunch;
// What was told of errors: once, in a loop.
std::set<std::string>& told() {
  static auto& texts = *new std::set<std::string>;
  return texts;
}

// "file.cu:12" and the text of the line that called the runtime.
std::pair<std::string, std::string> calling_line() {
  void* pcs[32];
  const int depth = backtrace(pcs, 32);
  const std::vector<const void*> callers(pcs + 1, pcs + depth);
  for (const SourceLine& source : find_sources(callers)) {
    if (source.file.empty() || source.file.starts_with("/usr/")) continue;
    std::ifstream file(source.file);
    std::string text;
    for (unsigned i = 0; i < source.line && std::getline(file, text);) ++i;
    text.erase(0, text.find_first_not_of(" \t"));
    return {shown_path(source.file) + ":" + std::to_string(source.line), text};
  }
  return {"?", ""};
}

void on_error(cudaError_t error, const std::string& why) {
  // (Of a kernel that failed its report has told.)
  if (error == cudaErrorIllegalAddress || error == cudaErrorMisalignedAddress ||
      error == cudaErrorLaunchFailure || error == cudaErrorNotReady) {
    return;
  }
  const auto [place, line] = calling_line();
  const std::string text =
      fmt::format("{}: {} ({}){}\n    {}", place, cudaGetErrorString(error),
                  cudaGetErrorName(error), why.empty() ? "" : ": " + why, line);
  if (!told().insert(text).second) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", text.c_str());
}

[[noreturn]] void refuse(const std::string& what) {
  std::fflush(nullptr);
  std::fprintf(stderr, "error: %s\n", what.c_str());
  _exit(1);
}

// A kernel that was called, and not launched.
void refuse_pending() {
  const std::string name = kernel_name(pending.kernel);
  refuse(name + " is called as if it were a function: write " + name +
         "<<<blocks, threads per block>>>(arguments)");
}

void end_program() {
  std::fflush(nullptr);
  if (pending.kernel) refuse_pending();
  Remarks found = take_remarks();
  if (!reported) found.if_wrong.clear();
  for (const auto* texts : {&found.unpromised, &found.if_wrong}) {
    for (const std::string& text : *texts) std::fprintf(stderr, "remark: %s\n", text.c_str());
  }
  const std::vector<std::string> kept = names_of_allocations();
  if (!kept.empty() && !reported && std::getenv("SIMT_FREED")) {
    std::fprintf(stderr, "error: %zu arrays are never freed: %s\n", kept.size(),
                 fmt::format("'{}'", fmt::join(kept, "', '")).c_str());
    _exit(1);
  }
  if (!reported && cudaPeekAtLastError() == cudaSuccess) return;
  if (!reported && !told().empty()) {
    std::fputs(
        "error: the program never asked whether that succeeded; every call returns it, and "
        "cudaGetLastError() after a launch\n",
        stderr);
  }
  _exit(1);
}

}  // namespace

bool begin_program() {
  static const bool begun = [] {
    error_listener = on_error;
    report_listener = [] {
      reported = true;
      std::fflush(stdout);
    };
    return std::atexit(end_program) == 0;
  }();
  return begun;
}

bool is_on_device() {
  return current_lane;
}

void set_pending(PendingLaunch launch) {
  if (pending.kernel) refuse_pending();
  pending = std::move(launch);
}

void launch(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream, bool may_be) {
  const PendingLaunch called = std::exchange(pending, {});
  if (!called.kernel && may_be) return;
  if (!called.kernel) {
    const auto [place, line] = calling_line();
    refuse(place + ": this launches no kernel: __global__ is missing\n    " + line);
  }
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream};
  launch(&config, function_of(called.kernel), called.body, called.arguments.get(), called.bytes);
}

}  // namespace simt
#endif
