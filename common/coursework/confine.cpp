#include "coursework/confine.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <semaphore>
#include <thread>
#include <utility>

#include "coursework/protocol.hpp"
#include "simt/executable.hpp"
#include "simt/shared_memory.hpp"

namespace spmv::coursework {
namespace {

constexpr std::size_t kMostRequest = std::size_t{1} << 30;
constexpr int kFirstOfJudge = 10;  // descriptor; those below are /dev/null and addr2line's

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64, kLargestCall = 0x3fffffff;  // above: x32
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64, kLargestCall = ~0u;
#else
constexpr std::uint32_t kMachine = 0, kLargestCall = ~0u;
#endif

// No kernel makes these: they end the process. All others that are in neither list fail, as the C
// library expects of some that it tries (it may look at /proc, say).
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
// Memory, signals, what abort() and exit() need, the time, and what waits for the other thread.
constexpr std::uint32_t kAllowed[] = {SYS_mmap,         SYS_munmap,         SYS_mprotect,
                                      SYS_mremap,       SYS_madvise,        SYS_brk,
                                      SYS_futex,        SYS_rt_sigaction,   SYS_rt_sigprocmask,
                                      SYS_rt_sigreturn, SYS_sigaltstack,    SYS_tgkill,
                                      SYS_getpid,       SYS_gettid,         SYS_exit,
                                      SYS_exit_group,   SYS_clock_gettime,  SYS_gettimeofday,
                                      SYS_sched_yield,  SYS_getrandom,      SYS_sched_getaffinity,
                                      SYS_sysinfo,      SYS_restart_syscall};
// With a descriptor below kFirstOfJudge.
constexpr std::uint32_t kOfFiles[] = {SYS_read, SYS_write, SYS_writev, SYS_sendto, SYS_fstat};

// Of the calling thread alone. Where Linux has no such filter (on processors that are not known,
// too), nothing changes.
void forbid_system_calls() {
  if (kMachine == 0) return;
  constexpr sock_filter kKill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  constexpr sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  constexpr sock_filter kFail = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
                                   kKill,
                                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLargestCall, 0, 1),
                                   kKill};
  const auto answer = [&](std::uint32_t number, const std::vector<sock_filter>& then) {
    const auto length = static_cast<std::uint8_t>(then.size());
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, length));
    program.insert(program.end(), then.begin(), then.end());
  };
  for (const std::uint32_t number : kForbidden) answer(number, {kKill});
  for (const std::uint32_t number : kAllowed) answer(number, {kAllow});
  for (const std::uint32_t number : kOfFiles) {
    // (The lower half of the argument, on a machine whose numbers begin with it.)
    answer(number, {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
                    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstOfJudge, 1, 0), kAllow, kFail});
  }
  program.push_back(kFail);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
  }
}

// The two threads take turns.
std::binary_semaphore kernel_waits{0}, has_come{0};
std::vector<std::string> to_send;
std::optional<std::string> next_request;

void talk(int requests, int answers) {
  bool open = true;
  for (bool first = true; open; first = false) {
    kernel_waits.acquire();
    if (first) open = send_frame(answers, kHello);
    for (const std::string& frame : to_send) open = open && send_frame(answers, frame);
    next_request = open ? receive_frame(requests, kMostRequest) : std::nullopt;
    open = next_request.has_value();
    has_come.release();
  }
}

// With arguments the runner asks no judge.
void confine(int count, char**, char**) {
  if (count > 1) return;
  const int requests = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kFirstOfJudge);
  const int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, kFirstOfJudge);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (requests < 0 || answers < 0 || nowhere < 0) std::_Exit(2);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO}) {
    if (dup2(nowhere, file) < 0) std::_Exit(2);
  }
  // These read the program's file, and start what looks for lines.
  simt::symbols();
  simt::find_sources({reinterpret_cast<const void*>(&talk)});
  std::thread(talk, requests, answers).detach();
  forbid_system_calls();
}

// Called after the initialisers of the libraries, before those of the kernels' objects, of which
// none may be as early (flags.py). (As an attribute g++ reserves this priority.)
[[gnu::section(".init_array.00001"), gnu::used]] void (*const first)(int, char**, char**) = confine;

}  // namespace

std::optional<std::string> exchange(std::vector<std::string> answers) {
  to_send = std::move(answers);
  kernel_waits.release();
  has_come.acquire();
  return std::exchange(next_request, std::nullopt);
}

}  // namespace spmv::coursework
