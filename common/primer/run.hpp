// What the runner (coursework/runner.cpp) asks of the puzzle that it is linked with, if it is.
#pragma once

#include <string>

namespace primer {

// What is wrong with the first array that does not hold what the puzzle expects; "" if all do.
// (Null in a runner without a puzzle.)
[[gnu::weak]] std::string run(int argument);
// Records a run, and writes it as a line of JSON for common/watch.
[[gnu::weak]] void write_trace(const std::string& program, const std::string& path);

}  // namespace primer
