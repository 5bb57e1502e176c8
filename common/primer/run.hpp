// What the runner (coursework/runner.cpp) asks of the puzzle that it is linked with, if it is.
#pragma once

#include <string>
#include <vector>

namespace primer {

// An array of which the puzzle said what it should hold.
struct Outcome {
  std::string name;
  std::vector<double> got, expected;
};

// (Null in a runner without a puzzle.)
[[gnu::weak]] std::vector<Outcome> run(int argument);
// Records a run, and writes it as a line of JSON for common/watch.
[[gnu::weak]] void write_trace(const std::string& program, const std::string& path);

}  // namespace primer
