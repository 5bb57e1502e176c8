// Calls that can be set aside, each on a stack of its own: what the engine switches between.
#pragma once

#include <cstddef>

#ifndef __EMSCRIPTEN__
// fcontext is Boost.Context's lowest layer. A CUDA thread is nothing but a call that may be set
// aside for ever (when another one fails), so the layers above it, which own and unwind, have
// nothing to do here.
#include <boost/context/detail/fcontext.hpp>
#endif

// Where the call of a function of simt returns to, in a kernel. In WebAssembly, which does not
// tell, the kernel says it before the call (executable_wasm.cpp).
#ifdef __EMSCRIPTEN__
extern "C" const void* simt_site;
#define SIMT_CALLER() simt_site
#else
#define SIMT_CALLER() __builtin_return_address(0)
#endif

namespace simt {

#ifndef __EMSCRIPTEN__

// Address space, not memory. A frame that fits into the stack cannot reach beyond the guard,
// however little of it is touched. (The odd page: stacks' tops fall into different sets of caches
// and TLB.)
inline constexpr std::size_t kUsableBytes = 128 * 1024;
inline constexpr std::size_t kGuardBytes = kUsableBytes + 4096;  // the lowest
inline constexpr std::size_t kStackBytes = kGuardBytes + kUsableBytes;

class Context {
 public:
  // The first switch to it calls `entry`, which must not return, on the `kStackBytes` from `stack`
  // on but the lowest `kGuardBytes`.
  template <void (*entry)()>
  void prepare(std::byte* stack) {
    place_ = boost::context::detail::make_fcontext(stack + kStackBytes, kUsableBytes,
                                                   [](transfer_t transfer) {
                                                     arrive(transfer);
                                                     entry();
                                                   });
  }
  // Sets this call, which runs, aside, and goes on with `next` until something switches back.
  void switch_to(Context& next) {
    arrive(boost::context::detail::jump_fcontext(next.place_, this));
  }

 private:
  using transfer_t = boost::context::detail::transfer_t;
  static void arrive(transfer_t transfer) {
    static_cast<Context*>(transfer.data)->place_ = transfer.fctx;
  }
  boost::context::detail::fcontext_t place_ = nullptr;
};

// Calls `work`, which may switch to other contexts.
template <typename Work>
void run_with_contexts(Context&, Work&& work) {
  work();
}

#else

// Asyncify (wasm-opt) changes the functions from which a lane can be set aside, so that a call of
// theirs can be left, and made again up to where it was. It keeps that place and local variables
// in the lowest part of a stack; what has an address is in the rest.
inline constexpr std::size_t kStackBytes = 32 * 1024;
inline constexpr std::size_t kGuardBytes = 8 * 1024;
inline constexpr std::size_t kUsableBytes = kStackBytes - kGuardBytes;

class Context {
 public:
  template <void (*entry)()>
  void prepare(std::byte* stack) {
    begin(entry, stack, stack + kStackBytes);
  }
  // Unwinds all calls up to run(), which makes those of `next` again, or begins them.
  void switch_to(Context& next);

 private:
  template <typename Work>
  friend void run_with_contexts(Context&, Work&&);

  void begin(void (*entry)(), std::byte* saved, void* stack_top) {
    entry_ = entry;
    is_new_ = true;
    stack_top_ = stack_top;
    saved_ = {saved, saved + kGuardBytes};
  }
  void run();

  void (*entry_)() = nullptr;
  bool is_new_ = false;
  void* stack_top_ = nullptr;
  struct {  // as Asyncify reads and writes it
    std::byte* filled_up_to = nullptr;
    std::byte* end = nullptr;
  } saved_;
};

// What called this function stays where it is.
template <typename Work>
void run_with_contexts(Context& current, Work&& work) {
  static std::byte saved[kGuardBytes];
  static Work* now;
  now = &work;
  current.begin([] { (*now)(); }, saved, nullptr);
  current.run();
}

#endif

}  // namespace simt
