// The runner, as the judge sees it: a process that may end, hang or lie.
#pragma once

#include <sys/types.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "coursework/protocol.hpp"
#include "sparse/matrix.hpp"

namespace spmv::coursework {

// The runner ended before it answered. The text says how.
class RunnerEnded : public std::runtime_error {
 public:
  explicit RunnerEnded(const std::string& how, bool forged = false)
      : std::runtime_error(how), is_forged(forged) {}
  bool is_forged;  // it was attacked: something else wrote to its pipe, or made a forbidden system
                   // call
};

// It never began to work, or something other than the kernel and its limits ended it: no fault of
// the kernel's.
class RunnerFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RunnerProcess {
 public:
  // Starts `command`, in a session of its own; all of it ends when `seconds` have passed, and with
  // this object. Throws RunnerFailed if it does not begin to work.
  RunnerProcess(const std::vector<std::string>& command, double seconds);
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;
  ~RunnerProcess();

  // Neither waits for an answer. Throws RunnerEnded or RunnerFailed.
  void send(const std::string& frame);
  // The answer to the product that was asked for last, with a y of `y_bytes` bytes. Throws
  // RunnerEnded or RunnerFailed.
  Reply receive(std::size_t y_bytes);

 private:
  [[noreturn]] void ended(bool timed_out);
  void stop();

  pid_t process_ = -1;
  int requests_ = -1, answers_ = -1;
  Deadline deadline_;
};

}  // namespace spmv::coursework
