// Litmus tests (litmus/): what is right is accepted under every schedule and with late streams, and
// what is wrong is reported, or shows, or stands in the table of README.md.
#include <fstream>
#include <sstream>

#include "simt/tests/litmus/host.cuh"
#include "simt/tests/litmus/lanes.cuh"
#include "simt/tests/litmus/limits.cuh"
#include "simt/tests/litmus/memory.cuh"
#include "simt/tests/testing.hpp"

namespace simt_test {

using simt::Schedule;

using litmus::Verdict;

// Of one run: how many results are wrong, or the report of what failed.
struct Came {
  int wrong = 0;
  std::string report;
  bool right() const { return wrong == 0 && report.empty(); }
};
Came run(const litmus::Program& program) {
  Came came;
  came.report = report_of([&] { came.wrong = program.run(); });
  return came;
}

TEST_CASE("litmus: what is right is accepted in every order", "[simt]") {
  const ScopedSettings restore;
  for (const litmus::Program& program : litmus::programs()) {
    if (!program.is_right()) continue;
    CAPTURE(program.name);
    under_every_schedule([&] {
      const Came came = run(program);
      CAPTURE(came.wrong, came.report);
      CHECK(came.right());
    });
    for (simt::settings().seed = 1; simt::settings().seed < 5; ++simt::settings().seed) {
      simt::settings().late_streams = true;
      simt::settings().schedule = Schedule::kRandom;
      simt::settings().check_races = simt::settings().seed % 2 == 0;
      const Came came = run(program);
      CAPTURE(simt::settings().seed, came.wrong, came.report);
      CHECK(came.right());
    }
    simt::settings() = restore.saved;
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(SPMV_SOURCE_DIR "/common/simt/" + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// What an H100 made of a program, "right / wrong": optimised, and not.
std::string on_a_gpu(const std::string& name) {
  std::string outcomes[2];
  for (const std::string& line : lines_of("tests/litmus/h100.csv")) {
    std::istringstream in(line);
    std::string its_name, verdict, level, outcome;
    std::getline(in, its_name, ','), std::getline(in, verdict, ',');
    std::getline(in, level, ','), std::getline(in, outcome, ',');
    if (its_name == name) outcomes[level == "O0"] = outcome.substr(0, outcome.find(' '));
  }
  return outcomes[0] + " / " + outcomes[1];
}

// Whether README.md's table says of the program what an H100 made of it.
bool is_in_table(const std::string& name) {
  for (const std::string& line : lines_of("README.md")) {
    if (contains(line, "| `" + name + "`") || contains(line, ", `" + name + "`")) {
      return contains(line, "| " + on_a_gpu(name) + " |");
    }
  }
  return false;
}

TEST_CASE("litmus: what is wrong is found, or in the table of what is not", "[simt]") {
  const ScopedSettings restore;
  for (const litmus::Program& program : litmus::programs()) {
    if (program.is_right()) continue;
    CAPTURE(program.name);
    const auto [found, report] = program.verdict;
    simt::settings() = restore.saved;
    if (found == Verdict::kReverse) simt::settings().schedule = Schedule::kReverse;
    Came came;
    if (found == Verdict::kLate) {
      simt::settings().late_streams = true;
      for (simt::settings().seed = 1; came.right() && simt::settings().seed < 9;) {
        came = run(program);
        ++simt::settings().seed;
      }
    } else {
      came = run(program);
    }
    CAPTURE(came.wrong, came.report);
    CHECK(came.right() == (found == Verdict::kNot));
    CHECK(contains(came.report, report));
    if (found == Verdict::kNot) CHECK(is_in_table(program.name));
  }
}

}  // namespace simt_test
