// A launch: its blocks on threads of the host, and the runs that it takes to say whether it is
// right; see races.hpp.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "simt/block.hpp"
#include "simt/cooperative.hpp"
#include "simt/random.hpp"

// --- Threads of the host ------------------------------------------------------------------------

namespace simt {
namespace {

// Each job in its queue has an idle thread, since jobs may wait for each other.
class Threads {
 public:
  ~Threads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::future<void> start(std::function<void()> job) {
    std::packaged_task<void()> task(std::move(job));
    std::future<void> end = task.get_future();
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(task));
    if (jobs_.size() > idle_) {
      ++idle_;
      threads_.emplace_back([this] { loop(); });
    } else {
      wake_.notify_one();
    }
    return end;
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;; ++idle_) {
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      std::packaged_task<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      --idle_;
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<void()>> jobs_;
  std::size_t idle_ = 0;  // threads that wait for a job, or have one in the queue
  bool stopping_ = false;
};

}  // namespace

std::future<void> on_thread(std::function<void()> job) {
  static Threads threads;
  return threads.start(std::move(job));
}

Block& own_block() {
  thread_local Block block;
  return block;
}

namespace {

// Runs the blocks of a grid on up to `workers` threads of the host.
Ending run_blocks(GridState& state, unsigned workers) {
  const std::uint64_t count = count_of(state.grid().grid);
  workers = static_cast<unsigned>(std::min<std::uint64_t>(workers, count));
  if (Recorder* const recorder = active_recorder(); recorder && !state.is_replay) {
    recorder->start_launch(state.grid());
  }

  std::vector<std::uint64_t> order(count);
  set_order(order.data(), count, state.schedule, mix(state.seed));
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    Block& block = own_block();
    block.start_grid(state);
    for (std::uint64_t i; (i = next.fetch_add(1)) < count && !state.has_ended();) {
      state.block_begins();
      block.run(order[i]);
      state.block_ends();
    }
    block.end_grid();
  };
  std::mutex mutex;
  std::vector<std::future<void>> others;
  state.start_another = [&] {
    const std::lock_guard lock(mutex);
    if (!settings().more_workers) return;
    if (next >= count || others.size() + 1 >= kMaxResidentBlocks || profile_active()) return;
    if (state.races) state.races->one_worker = false;
    try {
      others.push_back(on_thread(work));
    } catch (const std::system_error&) {  // as many as the system allows
    }
  };
  for (unsigned i = 1; i < workers; ++i) others.push_back(on_thread(work));
  work();
  for (std::size_t i = 0;; ++i) {
    std::future<void> other;
    {
      const std::lock_guard lock(mutex);
      if (i == others.size()) break;
      other = std::move(others[i]);
    }
    other.get();
  }
  return state.ending();
}

// What is known of a run, as bits. kSuspicious: it ended, but the filter is suspicious.
using Found = unsigned;
constexpr Found kNotRun = 1, kRight = 2, kSuspicious = 4, kAbandoned = 8, kRace = 16, kFailed = 32,
                kEnded = kRight | kSuspicious, kAny = ~0u;
// The runs: the first, as the settings say; one with blocks, warps and lanes in order, on one
// worker; one likewise, with accesses compared; and the last resort.
enum Run { kFirst, kInOrder, kCompared, kUnordered };
// By what is known of the first three runs, which one is next, or, if it has been made, is
// reported. The first row that fits counts. Which of several failures comes first depends on the
// schedule and the workers. In order, on one worker, it does not, so that report stands, also
// before that of a race.
constexpr struct {
  Found known[3];
  Run run;
} kRules[] = {
    {{kAny, kRace | kFailed, kAny}, kInOrder},
    {{kFailed, kNotRun, kAny}, kInOrder},
    {{kSuspicious, kAny, kNotRun}, kCompared},
    {{kFailed, kSuspicious, kNotRun}, kCompared},
    {{kRight, kAny, kNotRun}, kFirst},
    {{kEnded, kAny, kRight}, kCompared},
    {{kEnded, kNotRun, kRace | kFailed}, kInOrder},
    {{kAny, kAny, kRace | kFailed}, kCompared},
    // It cannot end in order, or fails only as the settings say.
    {{kAny, kAny, kAny}, kUnordered},
};

// Whether a launch is right, and what that takes; see races.hpp.
class Check {
 public:
  Check(const RunOnce& run_once, unsigned workers, bool fits_at_once, GlobalRaces& races)
      : run_once_(run_once), workers_(workers), fits_at_once_(fits_at_once), races_(races) {}
  Ending look_for_races();
  Ending look_for_races_of_residents(bool again = false);
  Ending vary_shuffles(const Ending& ending);

 private:
  Ending attempt(Schedule order, unsigned workers, bool again,
                 std::uint64_t seed = settings().seed) {
    races_.one_worker = workers <= 1;
    return run_once_({order, seed, &races_, again}, workers);
  }
  Ending run_again(RaceMode mode, Schedule order, unsigned workers) {
    Ending ending;
    do {
      races_.restore(mode);
      ending = attempt(order, workers, true);
    } while (races_.watch_readers());
    return ending;
  }
  Ending run_unchecked(unsigned workers) {
    return run_once_({settings().schedule, settings().seed, nullptr, true}, workers);
  }
  Found found(const Ending& ending) const {
    if (!ending.failed()) return races_.suspicious ? kSuspicious : kRight;
    if (ending.outcome == Outcome::kAbandoned) return kAbandoned;
    return races_.race.address ? kRace : kFailed;
  }
  Ending compare();
  Ending explain(Ending ending);
  Ending run_unordered(const Ending& first);

  const RunOnce& run_once_;
  const unsigned workers_;
  const bool fits_at_once_;  // all blocks may be resident together
  GlobalRaces& races_;
};

// Runs the launch as the settings say, and again where it failed or races must be looked for more
// closely.
Ending Check::look_for_races() {
  const Schedule schedule = settings().schedule;
  Ending first = attempt(schedule, workers_, false);
  // (What a trace shows is the run that failed.)
  if (first.failed() && (active_recorder() || is_ending())) return first;
  if (races_.watch_readers()) first = run_again(RaceMode::kFilter, schedule, workers_);
  Ending endings[] = {first, first, {}};
  Found known[] = {found(first), kNotRun, kNotRun};
  if (workers_ == 1 && schedule == Schedule::kForward) known[kInOrder] = known[kFirst];
  for (;;) {
    const auto fits = [&](const auto& rule) {
      return rule.known[0] & known[0] && rule.known[1] & known[1] && rule.known[2] & known[2];
    };
    const Run run = std::find_if(std::begin(kRules), std::end(kRules), fits)->run;
    if (run == kUnordered) return run_unordered(first);
    if (run == kCompared && known[run] == kRace) return explain(endings[run]);
    if (known[run] != kNotRun) return endings[run];
    endings[run] =
        run == kInOrder ? run_again(RaceMode::kFilter, Schedule::kForward, 1) : compare();
    known[run] = found(endings[run]);
  }
}

// Runs the launch in order, and in reverse where only luck may have kept accesses apart, and
// compares every access with those before it.
Ending Check::compare() {
  Ending ending;
  for (const Schedule order : {Schedule::kForward, Schedule::kReverse}) {
    ending = run_again(RaceMode::kOrder, order, 1);
    // (Of two races a counter that is read beside its atomic updates is the cause: threads that
    // draw the same number then share more than that.)
    if ((!ending.failed() || races_.race.address) && !races_.unchecked.empty()) {
      races_.race = races_.unchecked.begin()->second;
      ending = {Outcome::kFailed, races_.race.report};
    }
    if (ending.failed() || !races_.relied_on_order) break;
  }
  return ending;
}

// (With a seed of its own: the report depends on no setting.)
Ending Check::explain(Ending ending) {
  races_.restore(RaceMode::kExplain);
  attempt(Schedule::kLockstep, 1, true, 1);
  ending.failure += races_.race.explanation();
  return ending;
}

// Either the launch has failed, or its blocks wait for each other.
Ending Check::run_unordered(const Ending& first) {
  if (!first.failed() && fits_at_once_ && settings().more_workers) {
    return look_for_races_of_residents(true);
  }
  races_.restore(RaceMode::kOrder);
  if (!first.failed()) return run_unchecked(workers_);
  const Ending ending = workers_ > 1 ? run_unchecked(1) : first;
  return ending.failed() ? ending : first;
}

// Runs grids that are resident together, in the order of the settings, on which it depends what
// their blocks learn of each other: every access is compared with those before it at once. `again`:
// they are not known to be that, but wait for each other.
Ending Check::look_for_races_of_residents(bool again) {
  const Schedule schedule = settings().schedule;
  Ending ending;
  if (!again) {
    races_.mode = RaceMode::kOrder;
    ending = attempt(schedule, kAllAtOnce, false);
    if (ending.failed() && active_recorder()) return ending;
  }
  if (again || races_.watch_readers()) {
    ending = run_again(RaceMode::kOrder, schedule, kAllAtOnce);
  }
  if (!ending.failed() && !races_.unchecked.empty()) {
    const Race& race = races_.unchecked.begin()->second;
    return {Outcome::kFailed, race.report + race.missing};
  }
  return ending;
}

// The ending of a launch that ended in `ending`, and that had undefined shuffles: it fails if it
// does anything else, on one worker and in order, when their results vary. (All at once first:
// mostly nothing depends on them.)
Ending Check::vary_shuffles(const Ending& ending) {
  UndefinedShuffles& shuffles = races_.shuffles;
  const auto run_once = [&] {
    races_.restore(RaceMode::kOverlook);
    const Ending its_ending = attempt(Schedule::kForward, 1, true);
    return std::pair(its_ending, races_.written_memory());
  };
  shuffles.collecting = true;
  const auto usual = run_once();
  shuffles.collecting = false;
  const auto matter = [&](std::vector<const void*> instructions) {
    using Result = UndefinedShuffles::Result;
    shuffles.varied = std::move(instructions);
    for (const Result result : {Result::kOwnValue, Result::kLargeNumber}) {
      shuffles.result = result;
      if (run_once() != usual) return true;
    }
    return false;
  };
  std::vector<const void*> all;
  for (const UndefinedShuffles::Read& read : shuffles.reads) all.push_back(read.pc);
  if (matter(all)) {
    const auto read = std::find_if(shuffles.reads.begin(), shuffles.reads.end(),
                                   [&](const auto& r) { return matter({r.pc}); });
    const auto& cause = read == shuffles.reads.end() ? shuffles.reads.front() : *read;
    return {Outcome::kFailed, cause.report};
  }
  if (!ending.failed() && usual.first.outcome == Outcome::kAbandoned) {
    races_.restore(RaceMode::kOverlook);
    run_unchecked(workers_);
  }
  return ending;
}

std::string sizes_of(const Grid& grid) {
  return to_text(grid.grid) + to_text(grid.block);
}

// Of kernels: the sizes of the last launch that was checked and right.
std::map<const void*, std::string> checked_launches;

// The last kernel, if nothing has been waited for since; see GlobalRaces::previous.
struct LastKernel {
  cudaStream_t stream = nullptr;
  std::unique_ptr<GlobalRaces> races;
};
std::mutex last_kernel_mutex;
LastKernel last_kernel;

// Runs the launch, and whatever else is needed to say whether it is right.
Ending run_checked(const std::vector<const Grid*>& grids, bool resident, unsigned workers,
                   const RunOnce& run_once, GlobalRaces& races) {
  const bool fits_at_once = grids.size() == 1 && count_of(grids[0]->grid) <= kMaxResidentBlocks;
  Check check(run_once, workers, fits_at_once, races);
  const Ending ending = resident ? check.look_for_races_of_residents() : check.look_for_races();
  for (const Grid* const grid : grids) {
    checked_launches[grid->kernel] = ending.failed() ? "" : sizes_of(*grid);
  }
  if (!races.shuffles.any() || is_ending() || (ending.failed() && active_recorder())) return ending;
  return check.vary_shuffles(ending);
}

}  // namespace

void forget_last_kernel() {
  const std::lock_guard lock(last_kernel_mutex);
  last_kernel.races = nullptr;
}

Outcome run_launch(const std::vector<const Grid*>& grids, bool resident, unsigned workers,
                   const RunOnce& run_once) {
  // (A profile costs enough where the kernel has been checked without one.)
  const bool is_checked = is_instrumented() && settings().check_races &&
                          (!profile_active() || active_recorder() ||
                           !std::all_of(grids.begin(), grids.end(), [](const Grid* g) {
                             return checked_launches[g->kernel] == sizes_of(*g);
                           }));
  const LastKernel before = [] {
    const std::lock_guard lock(last_kernel_mutex);
    return std::exchange(last_kernel, {});
  }();
  Ending ending;
  if (is_checked) {
    auto races = std::make_unique<GlobalRaces>();
    races->kernel = grids.front()->kernel;
    const cudaStream_t stream = OnStream::current;
    if (grids.front()->may_start_early && before.stream == stream) {
      races->previous = before.races.get();
    }
    ending = run_checked(grids, resident, workers, run_once, *races);
    races->previous = nullptr;
    races->forget_contents();
    const std::lock_guard lock(last_kernel_mutex);
    if (!resident) last_kernel = {stream, std::move(races)};
  } else {
    ending = run_once({}, workers);
  }
  if (ending.failed()) {
    publish_report(ending.failure);
    if (Recorder* const recorder = active_recorder()) recorder->failure(ending.failure);
  }
  return ending.outcome;
}

Outcome run_grid(const Grid& grid) {
  // One grid at a time: kernels of different streams may run one after the other.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const DeviceMemoryAccess access;

  unsigned workers = settings().workers;
  if (workers == 0) workers = std::max(1u, std::thread::hardware_concurrency());
  // Where blocks compete for their work, what each one does depends on their order; and caches have
  // one.
  if (profile_active()) workers = 1;
  return run_launch({&grid}, false, workers, [&](const Attempt& attempt, unsigned on) {
    if (on == kAllAtOnce) return Gang::run_once({grid}, attempt);
    GridState state(grid, attempt);
    return run_blocks(state, on);
  });
}

}  // namespace simt
