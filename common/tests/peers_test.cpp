// Libraries that multiply on the host. Those of a GPU are verified whenever they are measured.
#ifndef SPMV_CUDA
#include <string>

#include "harness/kernel.hpp"
#include "sparse/matrix.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"
#include "tests/scratch.hpp"

using namespace spmv;

TEST_CASE("peers: every library's product is right on every matrix", "[peers]") {
  if (kernels().empty() || kernels().back().info.step != 0) {
    WARN("skipped: neither Eigen nor oneMKL is here");
    return;
  }
  test::check_kernels_of_step(0);
}

TEST_CASE("peers: asking for a missing library tells how to install it", "[peers]") {
  for (const std::string pattern : {"cusparse_spmvop_alg1", "cusparse_spmvop*"}) {
    const std::string error = test::error_of([&] { find_kernels(pattern); });
    CHECK(error.find("'" + pattern + "'") != std::string::npos);
    CHECK(error.find("`make cusparse` fetches it") != std::string::npos);
  }
}
#endif
