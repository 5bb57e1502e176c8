// A student's function whose return address, or the caller's frame that is saved beside it, has
// changed does not return: it could go on behind the call that announces an access, and hide it. It
// does not matter what changed it: a store, an atomic operation, or printf's %n.
//
// The compiler calls these functions where each function begins and ends (kit.mk); the linker puts
// them in the place of simt's (--wrap). Kernels are compiled with frame pointers.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <ext/pb_ds/assoc_container.hpp>

#include "simt/lanes.hpp"

#if defined(__GNUC__) && !defined(__clang__)
namespace {

using Frame = std::array<std::uintptr_t, 2>;  // the caller's frame, the return address
struct Hash {                                 // stacks are a power of two apart
  std::size_t operator()(const Frame* frame) const {
    return reinterpret_cast<std::uintptr_t>(frame) * 0x9e3779b97f4a7c15 >> 32;
  }
};
// On lanes' stacks. Half of the kernel's calls look here: the entries of this table are in one
// array.
thread_local __gnu_pbds::gp_hash_table<const Frame*, Frame, Hash> frames;

}  // namespace

// (The own frame begins with the place of the frame of the function that calls.)
extern "C" void __wrap___tsan_func_entry(void*) {
  const Frame* const frame = *static_cast<const Frame* const*>(__builtin_frame_address(0));
  if (simt::current_lane) frames[frame] = *frame;
}
extern "C" void __wrap___tsan_func_exit() {
  const Frame* const frame = *static_cast<const Frame* const*>(__builtin_frame_address(0));
  if (!simt::current_lane) return;
  const auto known = frames.find(frame);
  if (known == frames.end() || known->second != *frame) {
    constexpr char kText[] = "it wrote past an array's end, or to a return address\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
    std::abort();
  }
}
#endif
