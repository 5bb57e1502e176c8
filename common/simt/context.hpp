// Calls that can be set aside, each on a stack of its own: what the engine switches between.
#pragma once

#include <cstddef>

#ifdef __EMSCRIPTEN__
#include <emscripten/fiber.h>
#else
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

inline constexpr std::size_t kStackBytes = 128 * 1024;  // of address space, not of memory
inline constexpr std::size_t kGuardBytes = 4096;        // of those, the lowest

class Context {
 public:
  // The first switch to it calls `entry`, which must not return, on the `kStackBytes` from `stack`
  // on but the lowest `kGuardBytes`.
  template <void (*entry)()>
  void prepare(std::byte* stack) {
    place_ = boost::context::detail::make_fcontext(stack + kStackBytes, kStackBytes - kGuardBytes,
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

// Asyncify keeps in the lowest part of a stack what the call had in WebAssembly's own.
inline constexpr std::size_t kStackBytes = 32 * 1024;
inline constexpr std::size_t kGuardBytes = 8 * 1024;

extern "C" void simt_call(void (*work)(void*), void* argument);
extern "C" void simt_call_apart(void (*work)(void*), void* argument);

class Context {
 public:
  template <void (*entry)()>
  void prepare(std::byte* stack) {
    emscripten_fiber_init(
        &fiber_, [](void*) { entry(); }, nullptr, stack + kGuardBytes, kStackBytes - kGuardBytes,
        stack, kGuardBytes);
  }
  void prepare_current(std::byte* spare) {
    emscripten_fiber_init_from_current_context(&fiber_, spare, kGuardBytes);
  }
  void switch_to(Context& next) { emscripten_fiber_swap(&fiber_, &next.fiber_); }

 private:
  emscripten_fiber_t fiber_ = {};
};

// A switch unwinds all calls up to JavaScript's. So `work` is called from there: what called this
// function stays where it is.
template <typename Work>
void run_with_contexts(Context& current, Work&& work) {
  static std::byte spare[kGuardBytes];
  current.prepare_current(spare);
  simt_call_apart([](void* argument) { (*static_cast<Work*>(argument))(); }, &work);
}

#endif

}  // namespace simt
