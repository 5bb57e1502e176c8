#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

TEST_CASE("step 05: every kernel is right on every matrix", "[05]") {
  spmv::test::check_kernels_of_step(5);
}
