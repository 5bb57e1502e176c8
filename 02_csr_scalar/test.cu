#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

TEST_CASE("step 02: every kernel is right on every matrix", "[02]") {
  spmv::test::check_kernels_of_step(2);
}
