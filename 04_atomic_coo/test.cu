#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

TEST_CASE("step 04: every kernel is right on every matrix", "[04]") {
  spmv::test::check_kernels_of_step(4);
}
