#include "coursework/filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

// Processes and threads (all that the runner needs are there), and what reaches into others or out
// of here. What needs a right that an unprivileged user lacks is not among them, nor is tgkill, by
// which abort() ends the process.
constexpr std::uint32_t kForbidden[] = {
#ifdef SYS_fork  // not on AArch64
    SYS_fork,
    SYS_vfork,
#endif
    SYS_clone,
    SYS_clone3,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
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
  constexpr sock_filter kKill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
                                   kKill,
                                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLargestCall, 0, 1),
                                   kKill};
  for (const std::uint32_t number : kForbidden) {
    program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), kKill});
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
  }
}

}  // namespace spmv::coursework
