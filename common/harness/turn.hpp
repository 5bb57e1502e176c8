// Processes that share a GPU measure one after the other, and prepare their matrices meanwhile.
#pragma once

#include <string>

namespace spmv {

// The right to use the GPU: from construction to end() or destruction, no other process has a Turn
// of the same file, which holds the id of the process that has it. An empty name stands for no
// file: no process to wait for.
class Turn {
 public:
  // Waits for it. Throws InputError when the file cannot be made.
  explicit Turn(const std::string& file);
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void end();

 private:
  int file_ = -1;
};

}  // namespace spmv
