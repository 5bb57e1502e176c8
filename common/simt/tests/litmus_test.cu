// Litmus tests (litmus/): what is right is accepted under every schedule and with late streams, and
// what is wrong is reported, or shows, or stands in the table of README.md.
#include <fstream>
#include <map>
#include <sstream>

#include "simt/tests/litmus/host.cuh"
#include "simt/tests/litmus/lanes.cuh"
#include "simt/tests/litmus/limits.cuh"
#include "simt/tests/litmus/memory.cuh"
#include "simt/tests/testing.hpp"

namespace simt_test {

using simt::Schedule;

// Of a program that is wrong.
enum class Found {
  kReported,  // under every schedule, in these words
  kShows,     // in its results, under the default schedule
  kReverse,   // likewise under Schedule::kReverse, which `make check` and `make grade` use
  kLate,      // likewise with late streams, in one order of their work at least
  kNot,       // it is in the table of README.md, with the reason
};
struct Expected {
  Found found;
  std::string report;
};

const std::map<std::string, Expected>& expected() {
  const Expected undefined{Found::kReported, "is used, and undefined"};
  const Expected mask{Found::kReported, "CUDA promises only that it names the lane itself"};
  const Expected race{Found::kReported, "race: "};
  const Expected no_fence{Found::kReported, "which may find an older value in its L1 cache"};
  const Expected read_only{Found::kReported, "for what no thread of the launch writes"};
  const Expected barrier{Found::kReported, "a barrier in divergent code"};
  const Expected deadlock{Found::kReported, "deadlock: "};
  const Expected shows{Found::kShows, ""}, late{Found::kLate, ""}, no{Found::kNot, ""};
  static const std::map<std::string, Expected> all{
      {"activemask_last_iteration_2", mask},
      {"activemask_last_iteration_8", mask},
      {"activemask_last_iteration_32", mask},
      {"activemask_break_2", mask},
      {"activemask_break_8", mask},
      {"activemask_break_32", mask},
      {"activemask_after_loop_2", mask},
      {"activemask_after_loop_8", mask},
      {"activemask_after_loop_32", mask},
      {"activemask_reduce_in_row_loop_8", shows},
      {"activemask_full_after_branch", shows},
      {"coalesced_last_iteration_2", shows},
      {"coalesced_last_iteration_8", shows},
      {"coalesced_last_iteration_32", shows},
      {"coalesced_group_in_branch", undefined},
      {"shuffle_in_branch", undefined},
      {"shuffle_from_returned", undefined},
      {"ballot_in_branch_others_return", shows},
      {"ballots_in_both_branches", no},
      {"shuffles_in_both_branches", no},
      {"full_mask_in_last_iteration_32", no},
      {"syncwarp_in_branch", no},
      {"tile_sync_in_branch", no},
      {"mask_names_lanes_that_left_the_loop", deadlock},
      {"mask_names_lanes_that_left_and_returned", no},
      {"volatile_without_syncwarp", {Found::kReported, "that was not written"}},
      {"volatile_tree_of_kepler", {Found::kReported, "that was not written"}},
      {"lanes_in_order", {Found::kReverse, ""}},
      {"barrier_in_if_others_return", no},
      {"barrier_in_if_others_at_next", barrier},
      {"barriers_in_both_branches", barrier},
      {"barrier_in_half_of_each_warp", no},
      {"barrier_in_loops_of_different_lengths", race},
      {"more_threads_than_launch_bounds", no},
      {"more_registers_than_a_block_has", no},
      {"recursion_deeper_than_the_stack", no},
      {"more_shared_memory_than_allowed", {Found::kReported, "cudaErrorInvalidValue"}},
      {"extern_shared_declared_twice", {Found::kReported, "begin at the same address"}},
      {"host_writes_device_variable", no},
      {"host_reads_device_variable", no},
      {"float_to_int_out_of_range", no},
      {"negative_float_to_unsigned", no},
      {"shift_by_the_width", no},
      {"products_rounded_before_they_are_subtracted", no},
      {"restrict_aliases", no},
      {"restrict_aliases_and_reloads", shows},
      {"ldg_of_what_the_kernel_wrote", read_only},
      {"ldg_of_what_the_block_wrote", read_only},
      {"texture_of_what_the_kernel_wrote", read_only},
      {"polls_with_plain_loads",
       {Found::kReported, "kernel poll_plain_kernel"}},  // no end, or a race
      {"polls_with_ldg", read_only},
      {"polls_with_ldcg", no},
      {"message_without_acquire", no_fence},
      {"message_with_barrier_for_acquire", no_fence},
      {"message_without_release", race},
      {"message_with_block_fences", race},
      {"atomic_ref_relaxed", race},
      {"atomic_ref_of_block_scope", race},
      {"volatile_message_without_fences", no},
      {"shared_message_without_fences", no},
      {"store_buffering_volatile", no},
      {"store_buffering_atomics", no},
      {"message_order_volatile", no},
      {"message_order_atomics", no},
      {"load_buffering_volatile", no},
      {"atomic_block_across_blocks", race},
      {"fetch_add_of_block_scope_across_blocks", race},
      {"spin_lock_without_fences", race},
      {"spin_lock_released_by_plain_store", race},
      {"last_block_without_release", race},
      {"last_block_without_acquire", no},
      {"blocks_wait_for_the_last_of_too_many", deadlock},
      {"results_read_before_the_stream_is_waited_for", late},
      {"event_never_recorded", late},
      {"event_recorded_before_the_work", late},
      {"pinned_memory_changed_early", late},
      {"nonblocking_stream_and_plain_copy", late},
      {"two_blocking_streams_without_event", late},
      {"nonblocking_stream_and_memset", late},
      {"mapped_memory_read_before_a_wait", late},
  };
  return all;
}

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
    if (!program.right) continue;
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
    if (program.right) continue;
    CAPTURE(program.name);
    const auto it = expected().find(program.name);
    REQUIRE(it != expected().end());
    const auto& [found, report] = it->second;
    simt::settings() = restore.saved;
    if (found == Found::kReverse) simt::settings().schedule = Schedule::kReverse;
    Came came;
    if (found == Found::kLate) {
      simt::settings().late_streams = true;
      for (simt::settings().seed = 1; came.right() && simt::settings().seed < 9;) {
        came = run(program);
        ++simt::settings().seed;
      }
    } else {
      came = run(program);
    }
    CAPTURE(came.wrong, came.report);
    CHECK(came.right() == (found == Found::kNot));
    CHECK(contains(came.report, report));
    if (found == Found::kNot) CHECK(is_in_table(it->first));
  }
}

}  // namespace simt_test
