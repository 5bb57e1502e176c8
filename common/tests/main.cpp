// The tests' main program, for Catch2 of either major version.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.hpp"

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
