#include "coursework/filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spmv::coursework {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64, kLargestCall = 0x3fffffff;  // above: x32
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64, kLargestCall = ~0u;
#else
constexpr std::uint32_t kMachine = 0, kLargestCall = ~0u;
#endif

// What needs a right that an unprivileged user lacks is not among them.
constexpr std::uint32_t kForbidden[] = {
#ifdef SYS_fork  // not on AArch64
    SYS_fork,
    SYS_vfork,
#endif
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_socket,
    SYS_unshare,
    SYS_io_uring_setup};

}  // namespace

void forbid_attacks() {
  if (kMachine == 0) return;
  const auto load = [](std::size_t offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  const auto answer = [](std::uint32_t value) -> sock_filter {
    return BPF_STMT(BPF_RET | BPF_K, value);
  };
  // The next statement is executed only if the loaded word compares so.
  const auto if_equal = [](std::uint32_t value) -> sock_filter {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  };
  const auto unless = [](std::uint16_t comparison, std::uint32_t value) -> sock_filter {
    return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), value, 1, 0);
  };
  constexpr std::size_t kFirstArgument = offsetof(seccomp_data, args);  // its low half
  const sock_filter kill = answer(SECCOMP_RET_KILL_PROCESS);
  const sock_filter allow = answer(SECCOMP_RET_ALLOW);
  const sock_filter call = load(offsetof(seccomp_data, nr));

  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch)), unless(BPF_JEQ, kMachine),
                                   kill, call};
  program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLargestCall, 0, 1), kill});
  for (const std::uint32_t number : kForbidden) {
    program.insert(program.end(), {if_equal(number), kill});
  }
  // Threads may start, processes not. (What clone3 starts stands in memory, which a filter does not
  // see: the C library uses clone where that is missing.)
  program.insert(program.end(), {if_equal(SYS_clone3), answer(SECCOMP_RET_ERRNO | ENOSYS)});
  const auto argument = [&](std::uint32_t number, const sock_filter& condition) {
    program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
                                   load(kFirstArgument), condition, kill, allow});
  };
  argument(SYS_clone, unless(BPF_JSET, CLONE_THREAD));
  // Signals go to this process alone, as from abort().
  argument(SYS_kill, unless(BPF_JEQ, static_cast<std::uint32_t>(getpid())));
  argument(SYS_tgkill, unless(BPF_JEQ, static_cast<std::uint32_t>(getpid())));
  program.push_back(allow);

  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
  }
}

}  // namespace spmv::coursework
