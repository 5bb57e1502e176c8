#include "coursework/runner_process.hpp"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace spmv::coursework {
namespace {

constexpr std::chrono::seconds kToStart{60};

// The signal that ended a process, or 0. Shells and bubblewrap exit with 128 + N when signal N
// ended what they ran.
int signal_of(int status) {
  return WIFSIGNALED(status)         ? WTERMSIG(status)
         : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                     : 0;
}

// What is said of a process that ended so.
std::string describe(int status) {
  const int signal = signal_of(status);
  switch (signal) {
    case 0:
      return "the program ended before the tests were over, with status " +
             std::to_string(WEXITSTATUS(status));
    case SIGXCPU:
      return "it did not end in time: a loop that no thread leaves, or far too much work";
    case SIGSEGV:
      return "it ended with signal 11: memory that is not there, or more than 128 KiB of stack in "
             "a thread";
    case SIGABRT:
      return "it ended with signal 6: it wrote past the objects of a function's stack frame, or to "
             "a return address";
    case SIGSYS:
      return "it made a system call that no kernel makes, as an attack would";
    case SIGKILL:
      throw RunnerFailed("it was killed from outside");
    default:
      return "it ended with signal " + std::to_string(signal);
  }
}

}  // namespace

RunnerProcess::RunnerProcess(const std::vector<std::string>& command, double seconds) {
  int to_runner[2], from_runner[2];
  if (pipe2(to_runner, O_CLOEXEC) != 0 || pipe2(from_runner, O_CLOEXEC) != 0) {
    throw RunnerFailed("no pipe is to be had");
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    setsid();                        // so that all of it can be killed
    personality(ADDR_NO_RANDOMIZE);  // what depends on an address is the same in every run
    dup2(to_runner[0], STDIN_FILENO);
    dup2(from_runner[1], STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(to_runner[0]);
  close(from_runner[1]);
  requests_ = to_runner[1];
  answers_ = from_runner[0];
  if (process_ < 0) throw RunnerFailed("no process is to be had");
  const auto now = std::chrono::steady_clock::now();
  deadline_ = now + kToStart;
  try {
    if (receive_frame(answers_, kHello.size(), deadline_) != kHello) {
      throw RunnerFailed("it did not start");
    }
  } catch (const std::exception&) {
    stop();
    throw RunnerFailed("it did not start");
  }
  deadline_ =
      now + std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

RunnerProcess::~RunnerProcess() {
  stop();
}

void RunnerProcess::stop() {
  if (requests_ >= 0) close(requests_);
  if (answers_ >= 0) close(answers_);
  requests_ = answers_ = -1;
  if (process_ < 0) return;
  kill(-process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void RunnerProcess::ended(bool timed_out) {
  if (timed_out) {
    stop();
    throw RunnerEnded("it did not end in time: a loop that no thread leaves, or far too much work");
  }
  // Its pipe is closed: it ends, or it closed the pipe itself.
  int status = 0;
  for (int i = 0; i < 200 && process_ > 0; ++i) {
    if (waitpid(process_, &status, WNOHANG) == process_) {
      kill(-process_, SIGKILL);  // what it left
      process_ = -1;
      stop();
      throw RunnerEnded(describe(status), signal_of(status) == SIGSYS);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  stop();
  throw RunnerEnded("it stopped answering");
}

void RunnerProcess::send(const std::string& frame) {
  if (!send_frame(requests_, frame)) ended(false);
}

Reply RunnerProcess::receive(std::size_t y_bytes) {
  bool timed_out = false;
  try {
    if (const auto text = receive_frame(answers_, kMostAnswer, deadline_, &timed_out)) {
      Reply reply = read_reply(*text);
      if (!reply.is_done()) return reply;
      if (auto y = receive_frame(answers_, y_bytes, deadline_, &timed_out)) {
        if (y->size() != y_bytes) throw ProtocolError("y has another size");
        reply.y = std::move(*y);
        return reply;
      }
    }
  } catch (const ProtocolError& error) {
    stop();
    throw RunnerEnded(std::string("its answer is none: ") + error.what(), true);
  }
  ended(timed_out);
}

}  // namespace spmv::coursework
