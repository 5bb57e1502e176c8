// Step 05 for the harness: what calls Thrust. Left out where Thrust is not to be had (see
// common/build/build.mk).
#include "device/thrust.hpp"

#include "harness/kernel.hpp"
#include "segscan_thrust.cuh"

namespace spmv {
namespace {

template <typename T>
class SegscanThrust final : public Spmv<T> {
 public:
  explicit SegscanThrust(const Problem<T>& problem) : segscan_(triplets_of(problem.host)) {}

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    segscan_.multiply(device::thrust_policy(stream), alpha, x, beta, y);
  }
  std::size_t matrix_bytes() const override {
    return segscan_.values.size() * (2 * sizeof(Index) + sizeof(T)) +
           segscan_.rows_with_nonzeros.size() * sizeof(Index);
  }

 private:
  ThrustSegscan<T> segscan_;
};

[[maybe_unused]] const bool registered =
    add_kernel({.step = 5,
                .name = "segscan_thrust",
                .format = "COO",
                .idea = "Thrust's reduce_by_key",
                .source = "the library Thrust",
                .runs_on = device::kThrustRunsOnDevice ? RunsOn::kDevice : RunsOn::kHost,
                .needs_triplets = true},
               [](const auto& problem) { return make<SegscanThrust>(problem); });

}  // namespace
}  // namespace spmv
