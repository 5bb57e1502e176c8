// Schedule::kLockstep: lanes of a warp make each access together, so that updates which are not
// atomic are lost. (That nothing else changes, all tests under_every_schedule() show.)
#include <set>

#include "simt/tests/testing.hpp"

namespace simt_test {
namespace {

__device__ int lane_id() {
  return static_cast<int>(threadIdx.x % 32);
}

// y after a launch of a warp under a schedule, races unlooked for.
std::vector<double> run_unchecked(void (*kernel)(double*), simt::Schedule schedule,
                                  std::uint64_t seed = 1) {
  const ScopedSettings restore;
  simt::settings().schedule = schedule;
  simt::settings().seed = seed;
  simt::settings().check_races = false;
  Buffer<double> y("y", std::vector<double>(128));
  launch(kernel, {1, 32}, y.data());
  return y.download();
}

std::vector<double> in_lockstep(void (*kernel)(double*), std::uint64_t seed = 1) {
  return run_unchecked(kernel, simt::Schedule::kLockstep, seed);
}

// --- Lost updates -------------------------------------------------------------------------------

__global__ void plain_add_kernel(double* y) {
  y[0] += lane_id() + 1;
}
__global__ void atomic_add_kernel(double* y) {
  atomicAdd(&y[0], lane_id() + 1.0);
}
__global__ void volatile_add_kernel(double* y) {
  volatile double* const cell = y;
  *cell = *cell + (lane_id() + 1);
}
template <bool kAtomic>
__global__ void shared_add_kernel(double* y) {
  __shared__ double sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (kAtomic) {
    atomicAdd(&sum, lane_id() + 1.0);
  } else {
    sum += lane_id() + 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) y[0] = sum;
}

TEST_CASE("in lockstep, of updates that are not atomic one is left", "[simt][lockstep]") {
  constexpr double kAll = 32 * 33 / 2;
  const auto one_lane_s = [](double sum) { return sum >= 1 && sum <= 32; };
  CHECK(run_unchecked(plain_add_kernel, simt::Schedule::kForward)[0] == kAll);
  CHECK(one_lane_s(in_lockstep(plain_add_kernel)[0]));
  CHECK(one_lane_s(in_lockstep(volatile_add_kernel)[0]));
  CHECK(one_lane_s(in_lockstep(shared_add_kernel<false>)[0]));
  CHECK(in_lockstep(atomic_add_kernel)[0] == kAll);
  CHECK(in_lockstep(shared_add_kernel<true>)[0] == kAll);
}

TEST_CASE("the order of stores in lockstep follows from the seed", "[simt][lockstep]") {
  std::set<double> last;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const double sum = in_lockstep(plain_add_kernel, seed)[0];
    CHECK(sum == in_lockstep(plain_add_kernel, seed)[0]);
    last.insert(sum);
  }
  CHECK(last.size() > 5);
}

LINE(kStoreLine, 2);
__global__ void store_kernel(double* y) {
  y[1] = lane_id() * 0.5;
}

// What launching says, which must be the same under all schedules.
std::string race_of(void (*kernel)(double*)) {
  std::set<std::string> reports;
  const auto add = [&] {
    Buffer<double> y("y", std::vector<double>(128));
    reports.insert(failure_of(kernel, {1, 64}, y.data()));
  };
  under_every_schedule(add);
  const ScopedSettings restore;
  simt::settings().schedule = simt::Schedule::kLockstep;
  for (simt::settings().seed = 1; simt::settings().seed < 4; ++simt::settings().seed) add();
  REQUIRE(reports.size() == 1);
  return *reports.begin();
}

TEST_CASE("the report of a race tells a lost update", "[simt][lockstep]") {
  check_contains(
      race_of(plain_add_kernel),
      {"race: reads 8 bytes, 0 bytes into 'y', which thread (0,0,0) wrote",
       "; with the lanes of the warp in lockstep, thread (",
       ", which read the old value before, overwrites at lockstep_test.cu:", ": it is lost"});

  const std::string place = " at lockstep_test.cu:" + std::to_string(kStoreLine);
  const std::string stored = race_of(store_kernel);
  check_contains(stored, {"race: writes 8 bytes, 8 bytes into 'y', which thread (0,0,0) wrote",
                          ",0,0) overwrites" + place + " the value "});
  // The value is the one that the thread which is named stored: half of its number.
  const auto number_after = [&](const std::string& text) {
    const std::size_t at = stored.find(text);
    REQUIRE(at != std::string::npos);
    return std::stod(stored.substr(at + text.size()));
  };
  CHECK(2 * number_after(" the value ") == number_after(" that thread ("));

  CHECK(contains(race_of(shared_add_kernel<false>), "that thread ("));
  CHECK(contains(race_of(volatile_add_kernel), "that thread ("));
  CHECK(race_of(atomic_add_kernel).empty());
  CHECK(race_of(shared_add_kernel<true>).empty());
}

// --- Lanes that part ----------------------------------------------------------------------------

__global__ void branches_kernel(double* y) {
  if (lane_id() % 2) {
    y[0] += 1;
  } else {
    y[1] += 1;
  }
  // All are together again.
  y[2] += 1;
}
// Lane i makes i + 1 iterations.
__global__ void trip_counts_kernel(double* y) {
  for (int i = 0; i <= lane_id(); ++i) {
    y[0] += 1;
    y[32 + lane_id()] += 1;
  }
  y[1] += 1;
}
__global__ void early_return_kernel(double* y) {
  if (lane_id() >= 16) return;
  y[0] += 1;
  if (lane_id() >= 8) return;
  atomicAdd(&y[1], 1.0);
}

TEST_CASE("in lockstep, lanes in branches and loops advance with those at their place",
          "[simt][lockstep]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<double> branches = in_lockstep(branches_kernel, seed);
    for (int i = 0; i < 3; ++i) CHECK(branches[i] == 1);
    const std::vector<double> loops = in_lockstep(trip_counts_kernel, seed);
    CHECK(loops[0] == 32);
    CHECK(loops[1] == 1);
    for (int i = 0; i < 32; ++i) CHECK(loops[32 + i] == i + 1);
    const std::vector<double> returned = in_lockstep(early_return_kernel, seed);
    CHECK(returned[0] == 1);
    CHECK(returned[1] == 8);
  }
}

}  // namespace
}  // namespace simt_test
