// Libraries that multiply on the host. Those of a GPU are verified whenever they are measured.
#ifndef SPMV_CUDA
#include <string>

#include "harness/kernel.hpp"
#include "sparse/matrix.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"
#include "tests/scratch.hpp"

using namespace spmv;

namespace {

std::string error_for(const std::string& patterns) {
  return test::error_of([&] { find_kernels(patterns); });
}

}  // namespace

TEST_CASE("peers: every library's product is right on every matrix", "[peers]") {
  if (kernels().empty() || kernels().back().info.step != 0) {
    WARN("skipped: neither Eigen nor oneMKL is here");
    return;
  }
  test::check_kernels_of_step(0);
}

TEST_CASE("peers: oneMKL is there, or the error says how to have it", "[peers]") {
  for (const Kernel& kernel : kernels()) {
    if (kernel.info.name == "mkl_csr") {
      CHECK(kernel.info.runs_on == RunsOn::kHost);
      CHECK(kernel.info.source.find("oneMKL, version 20") != std::string::npos);
      return;
    }
  }
  WARN("skipped: products of oneMKL, which `make mkl` fetches");
  CHECK(error_for("csr_sequential,mkl_csr").find("`make mkl` fetches it") != std::string::npos);
}

TEST_CASE("peers: asking for a missing SpMVOp tells how to install it", "[peers]") {
  for (const std::string pattern : {"cusparse_spmvop_alg1", "cusparse_spmvop*"}) {
    CHECK(error_for(pattern).find("'" + pattern + "'") != std::string::npos);
    CHECK(error_for(pattern).find("`make cusparse` fetches it") != std::string::npos);
  }
}
#endif
