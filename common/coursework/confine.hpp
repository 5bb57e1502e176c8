// Who talks to the judge, and what a student's code may do.
//
// Before any initialiser of a student's object runs (confine.cpp), the runner starts a thread that
// has the judge's descriptors, and takes from its own first thread, which runs initialisers, main()
// and kernels, all system calls but those for memory and signals. So an initialiser finds nothing
// to read requests from, and nothing to write answers to.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace spmv::coursework {

// Sends `answers` (or, at the first call, that the runner has started), and waits for the next
// request. Empty: there is none any more.
std::optional<std::string> exchange(std::vector<std::string> answers = {});

}  // namespace spmv::coursework
