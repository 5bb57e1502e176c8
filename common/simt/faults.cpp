#ifndef __EMSCRIPTEN__
// Signals of the processor, in the instrumented build. Those that a kernel raises become reports;
// where the host touched device memory, the process ends and says so.
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "simt/block.hpp"

// The program's own code, without libraries (names of the linker).
extern "C" const char __executable_start, etext;

namespace simt {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous_actions[std::size(kSignals)];

// Instead of what `lane` was executing at `pc`, and on its stack, of which nothing is needed.
[[noreturn]] void report_fault(Lane* lane, Fault fault, const void* pc, std::uintptr_t address) {
  lane->block->observer().check.reject_fault(*lane, fault, pc, address);
}

Fault fault_of(const siginfo_t& info) {
  if (info.si_signo == SIGFPE) return Fault::kDivision;
  const bool alignment =
      info.si_signo == SIGBUS ? info.si_code == BUS_ADRALN : info.si_code == SI_KERNEL;  // x86
  return alignment ? Fault::kAlignment : Fault::kAddress;
}

// Makes `context` go on in report_fault(). False if the code was none of the kernel's, which may
// hold locks, or if the machine is not known.
bool go_on_with_report(Lane* lane, Fault fault, std::uintptr_t address, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  // (As aligned as if called; a context's own data lie above.)
  const std::uintptr_t top = address_of(lane->fiber->stack) + kStackBytes;
  // Whatever the address: what a frame touches may be far from its end. (A function may store below
  // the stack pointer, by up to 512 bytes, before it moves it.)
  const auto find_overflow = [&](auto stack_pointer) {
    const auto used = top - static_cast<std::uintptr_t>(stack_pointer);
    if (fault == Fault::kAddress && used > kUsableBytes - 512) fault = Fault::kStack;
  };
  const auto in_program = [](auto pc) {
    return static_cast<std::uintptr_t>(pc) - address_of(&__executable_start) <
           static_cast<std::uintptr_t>(&etext - &__executable_start);
  };
#if defined(__x86_64__)
  auto& r = registers.gregs;
  if (!in_program(r[REG_RIP])) return false;
  find_overflow(r[REG_RSP]);
  r[REG_RDI] = reinterpret_cast<greg_t>(lane);
  r[REG_RSI] = static_cast<greg_t>(fault);
  r[REG_RDX] = r[REG_RIP] + 1;  // (as behind a call: see find_sources())
  r[REG_RCX] = static_cast<greg_t>(address);
  r[REG_RSP] = static_cast<greg_t>(top - 512 - 8);
  r[REG_RIP] = reinterpret_cast<greg_t>(&report_fault);
  return true;
#elif defined(__aarch64__)
  if (!in_program(registers.pc)) return false;
  find_overflow(registers.sp);
  registers.regs[0] = address_of(lane);
  registers.regs[1] = static_cast<std::uint64_t>(fault);
  registers.regs[2] = registers.pc + 1;
  registers.regs[3] = address;
  registers.sp = top - 512;
  registers.pc = reinterpret_cast<std::uintptr_t>(&report_fault);
  return true;
#else
  return false;
#endif
}

// "file.cu:12: " of the host's instruction. (Its fault is no interruption: it may ask.)
std::string line_of_host(void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto pc = static_cast<std::uintptr_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  const auto pc = static_cast<std::uintptr_t>(registers.pc);
#else
  const std::uintptr_t pc = 0;
#endif
  const std::string line = source_line(reinterpret_cast<const void*>(pc + 1));
  return line.empty() ? line : line + ": ";
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const std::uintptr_t address = address_of(info->si_addr);
  if (current_lane && go_on_with_report(current_lane, fault_of(*info), address, context)) return;
  const Allocation* allocation = find_allocation(address);
  if (signal == SIGSEGV && allocation) {
    char text[512];
    const std::string place = current_lane ? "" : line_of_host(context);
    const int length = std::snprintf(
        text, sizeof text, "error: %s%s touched device memory: byte %zu of '%s'; %s\n",
        place.c_str(), current_lane ? "a function that is not device code" : "the host",
        static_cast<std::size_t>(address - allocation->begin), allocation->name.c_str(),
        current_lane ? "in a kernel, copy with a loop" : "copy it with cudaMemcpy first");
    [[maybe_unused]] const auto written =
        write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  }
  // The instruction is executed again: its signal goes to the handler that was installed before, or
  // ends the process.
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == signal) sigaction(signal, &previous_actions[i], nullptr);
  }
}

}  // namespace

void watch_faults() {
  if (!is_instrumented()) return;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now = {};
    sigaction(kSignals[i], nullptr, &now);  // (test frameworks replace it)
    if (now.sa_sigaction == on_fault) continue;
    previous_actions[i] = now;
    sigaction(kSignals[i], &action, nullptr);
  }
}

void watch_faults_of_thread() {
  if (!is_instrumented()) return;
  static thread_local std::vector<char> stack(std::size_t{64} << 10);
  const stack_t alternative{stack.data(), 0, stack.size()};
  sigaltstack(&alternative, nullptr);
}

}  // namespace simt
#endif
