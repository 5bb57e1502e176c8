#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

TEST_CASE("step 01: every kernel is right on every matrix", "[01]") {
  spmv::test::check_kernels_of_step(1);
}
