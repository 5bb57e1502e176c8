// Watching what the lanes of a block do: every access is checked, and what is to be counted is
// noted in the lane's trail.
#include <fmt/format.h>

#include <algorithm>

#include "simt/builtins.hpp"
#include "simt/cooperative.hpp"
#include "simt/internal.hpp"
#include "simt/profile.hpp"

namespace simt {
namespace {

bool is_global(Space space) {
  return space == Space::kGlobal || space == Space::kPeer;
}

bool is_builtin_variable(std::uintptr_t address) {
  const auto within = [=](const auto& v) { return address - address_of(&v) < sizeof v; };
  return within(threadIdx) || within(blockIdx) || within(blockDim) || within(gridDim);
}

}  // namespace

bool is_instrumented() {
#ifdef SIMT_INSTRUMENTED
  return true;
#else
  return false;
#endif
}

void Observer::start(GridState& state, const std::vector<SharedVariable>& shared,
                     unsigned threads) {
  if (!is_instrumented()) return;
  *this = {};
  grid_ = &state.grid();
  shared_ = &shared;
  state_ = &state;
  resident_ = state.resident;
  lockstep_ = state.schedule == Schedule::kLockstep;
  check_uninitialised_ = settings().check_uninitialised;
  races_ = state.races;
  mode_ = races_ ? races_->mode : RaceMode::kOverlook;
  of_shared_.resize(shared.size());
  warps_.resize((threads + kWarpSize - 1) / kWarpSize);
  if (mode_ == RaceMode::kOrder || mode_ == RaceMode::kExplain) clocks_.resize(warps_.size());
  lane_work_.resize(threads);
  kernel_.shared_bytes = static_shared_bytes(grid_->kernel) + grid_->dynamic_shared_bytes;
  counting_ = profile_active() && !state.is_replay;
  caches_ = counting_ ? profile_caches() : nullptr;
  recorder_ = counting_ ? active_recorder() : nullptr;
  if (caches_) caches_->start_grid(threads, kernel_.shared_bytes);
}

void Observer::start_block(std::uint64_t number, std::uint64_t id) {
  ++epoch_;
  interval_ = barrier_ = 0;
  for (Warp& warp : warps_) warp.interval = 0;
  for (const auto& shared : of_shared_) {
    if (!shared) continue;
    shared->written.clear();
    shared->region.forget_order();
  }
  block_number_ = id;
  grid_block_ = number;
  if (number == 0) kernel_.launches = 1;
  updates_.clear();
  common_ = {};
  learnt_.clear();
  if (caches_) caches_->start_block();
}

Observer::Instruction& Observer::look_up(const void* pc, unsigned size, Access access,
                                         Strength strength) {
  const auto [it, is_new] = instructions_.try_emplace({pc, size});
  Instruction& instruction = it->second;
  found_[slot_of(pc)] = &instruction;
  if (is_new) {
    instruction = {pc, size, access, strength};
    if (lockstep_) instruction.last_of_lanes = last_of_lanes_.emplace_back().data();
  }
  return instruction;
}

void Observer::access(Lane& lane, std::uintptr_t address, unsigned size, Access access,
                      Strength strength, const void* pc) {
  if (!is_instrumented()) return;
  Block::settle(lane);
  lane.empty_loops = 0;
  if (lockstep_ && !is_of_lane(lane, address)) lane.block->wait_for_access(lane, pc);
  // (Of 16 bytes only the processor knows whether they must be aligned: a structure of two numbers
  // of 8 bytes is announced like a vector, but loaded in another way.)
  if (address & (size - 1)) {
    const Unaligned unaligned{access, pc, address};
    if (size < 16 || address % 8 != 0) reject_misaligned(lane, size, unaligned);
    half_aligned_ = unaligned;
  }
  Instruction& instruction = find_instruction(pc, size, access, strength);
  if (address - instruction.begin >= instruction.room) {
    // A local array: of each lane, another, which is not worth a look at what else it may be.
    const std::uintptr_t stack = lane.fiber->usable();
    if (access != Access::kAtomic && address - stack <= kUsableBytes - size) return;
    classify(lane, instruction, address);
  }
  const Tally* const tally = instruction.tally;
  if (!tally) {
    // An instruction that found its lane's own memory may find another's.
    if (!lane.fiber->holds(address) && lane.block->on_a_stack(address)) {
      reject(lane, instruction, address);
    }
    return;
  }
  // (First of all: a trace has also the access that is reported.)
  if (current_trail && tally->counted) {
    current_trail->push_back({tally->place, tally->number, address});
    if (recorder_) recorder_->access(lane, address, size, access);
  }
  // (A lane that polls may be set aside here: before it is said what it reads.)
  std::uintptr_t& last = lockstep_ ? instruction.last_of_lanes[lane.id] : instruction.last;
  if (access == Access::kLoad && address == last) {
    lane.block->polled(lane, pc);
  } else if (access != Access::kAtomic) {
    if (access == Access::kStore) lane.block->changed();
    lane.polls = 0;
    last = address;
  }
  if (tally->space == Space::kPeer && lane.block->is_late(address)) {
    if (access == Access::kStore) {
      check_order(lane, *tally, address);
      lane.block->expect_late_store(lane, address, size);
      return;
    }
    lane.block->gang()->forward(lane.block->seat(), address, size);
  }
  check_written(lane, *tally, address);
  check_order(lane, *tally, address);
}

// Whether no other lane has a use for `address`: on the lane's stack, or constant.
bool Observer::is_of_lane(const Lane& lane, std::uintptr_t address) const {
  return lane.fiber->holds(address) ||
         address - address_of(grid_->arguments) < grid_->argument_bytes ||
         is_builtin_variable(address);
}

void Observer::meet(Lane& lane, Access access, const char* name, const void* pc) {
  if (mode_ == RaceMode::kExplain && access == Access::kBarrier) {
    if (Race::Thread* const thread = racing_thread(lane)) ++thread->barriers[pc];
  }
  if (!counting_) return;
  Instruction& instruction = find_instruction(pc, 0, access);
  if (!instruction.tally) {
    const Unobserved unobserved;  // strings may be linked from a kernel's object
    instruction.tally = add_tally(instruction, Space::kNone, operations_.emplace_back(name));
  }
  trails_[lane.id].push_back({instruction.tally->place, instruction.tally->number, 0});
  if (recorder_) recorder_->meet(lane, access);
}

// --- What may not be ----------------------------------------------------------------------------

void Observer::check_written(Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (!tally.written) return;  // (Memory of the host is taken for written.)
  const std::size_t offset = address - tally.begin;
  if (tally.access == Access::kStore) return tally.written->add(offset, tally.size);
  if (!check_uninitialised_ || tally.written->all(offset, tally.size)) return;
  const Unobserved unobserved;
  const char* const since = tally.space == Space::kShared
                                ? " since the block started (or not yet: is there a barrier, and "
                                  "do all threads reach it?)"
                                : "";
  lane.block->fail(lane, describe_access(tally, address) + ", that was not written" + since,
                   tally.pc);
}

void Observer::check_order(Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (races_ && races_->previous && !lane.waited) check_previous(lane, tally, address);
  if (!tally.region) return;
  if (mode_ == RaceMode::kFilter) {
    filter(lane, tally, address);
  } else if (mode_ == RaceMode::kOrder) {
    order(lane, tally, address);
  } else if (mode_ == RaceMode::kExplain) {
    explain(lane, tally, address);
  }
}

// The kernel may start before the previous one has completed, and `lane` has not waited for that.
void Observer::check_previous(Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (tally.space == Space::kShared) return;
  const Unobserved unobserved;
  const GlobalRaces& previous = *races_->previous;
  const char* const did =
      previous.conflict_with(tally.begin, address - tally.begin, tally.size, tally.access);
  if (!did) return;
  lane.block->fail(lane,
                   fmt::format("race: {}, which the previous kernel, {}, {}, before it waits by "
                               "cudaGridDependencySynchronize()",
                               describe_access(tally, address), kernel_name(previous.kernel), did),
                   tally.pc);
}

void Observer::warp_synchronized(unsigned warp, unsigned mask, bool all) {
  if (!is_instrumented()) return;
  if (all) warps_[warp].interval = ++interval_;
  if (clocks_.empty()) return;
  WarpClock& known = clocks_[warp];
  Steps joined = {};
  for_each_lane(mask, [&](unsigned id) {
    for (unsigned i = 0; i < kWarpSize; ++i) joined[i] = std::max(joined[i], known[id][i]);
  });
  for_each_lane(mask, [&](unsigned id) { known[id] = joined; });
  if (mode_ == RaceMode::kOrder) join_warp(warp, mask);
}

void Observer::block_synchronized() {
  if (!is_instrumented()) return;
  ++epoch_;
  barrier_ = ++interval_;
  for (Warp& warp : warps_) warp.interval = barrier_;
  ++kernel_.barriers;
  for (const auto& [thread, learnt] : learnt_) common_.meet(learnt);
  learnt_.clear();
  if (recorder_) recorder_->block_synchronized();
}

std::string Observer::verb(Access access) {
  constexpr const char* kVerbs[] = {"reads ", "writes ", "updates ", "reads "};
  return kVerbs[static_cast<int>(access)];
}

std::string Observer::describe_access(const Tally& tally, std::uintptr_t address) {
  return fmt::format("{}{} bytes, {} bytes into {}'{}'", verb(tally.access), tally.size,
                     address - tally.begin, tally.space == Space::kShared ? "shared " : "",
                     *tally.array);
}

// Finds what `address` is part of, or reports that the kernel may not touch it.
void Observer::classify(Lane& lane, Instruction& instruction, std::uintptr_t address) {
  const Unobserved unobserved;
  const auto is_in = [&](std::uintptr_t begin, std::size_t bytes) {
    if (address - begin >= bytes || bytes - (address - begin) < instruction.size) return false;
    instruction.begin = begin;
    instruction.room = bytes - instruction.size + 1;
    return true;
  };
  instruction.tally = nullptr;
  if (is_in(lane.fiber->usable(), kUsableBytes)) {
    if (instruction.access != Access::kAtomic) return;
    lane.block->fail(lane,
                     "updates a local variable by an atomic: they are for global and shared memory",
                     instruction.pc, Outcome::kIllegalAddress);
  }
  for (Tally* tally = instruction.tallies; tally; tally = tally->next) {
    if (is_in(tally->begin, tally->end - tally->begin)) {
      instruction.tally = tally;
      return;
    }
  }
  const SharedVariable* const first_dynamic = dynamic_;
  for (const SharedVariable& variable : *shared_) {
    if (is_in(address_of(shared_address(variable.offset)), variable.bytes)) {
      if (variable.dynamic && std::exchange(dynamic_, &variable) != &variable && first_dynamic) {
        lane.block->fail(
            lane,
            fmt::format("uses two extern __shared__ arrays, '{}' and '{}': on a GPU they begin at "
                        "the same address, and each overwrites the other. Declare one, and let the "
                        "second part begin behind the first",
                        first_dynamic->name, variable.name),
            instruction.pc);
      }
      auto& shared = of_shared_[static_cast<std::size_t>(&variable - shared_->data())];
      if (!shared) shared = std::make_unique<Shared>(variable.bytes);
      Tally& tally = *add_tally(instruction, Space::kShared, variable.name);
      tally.written = &shared->written;
      if (!races_) return;
      shared->region.begin_cells(tally.begin, variable.bytes, tally.size);
      tally.region = &shared->region;
      return;
    }
  }
  const Allocation* allocation = find_allocation(address);
  if (allocation && can_reach(grid_->device, allocation->device) &&
      is_in(allocation->begin, allocation->bytes)) {
    DeviceMemoryAccess::open(address);
    const Space space = allocation->device == grid_->device ? Space::kGlobal : Space::kPeer;
    Tally& tally = *add_tally(instruction, space, allocation->name);
    WrittenBytes* const written = allocation->written.get();
    tally.written = written->complete() ? nullptr : written;
    watch(tally);
    return;
  }
  // The lane's arguments, and what the program keeps for itself.
  if (is_in(address_of(grid_->arguments), grid_->argument_bytes)) return;
  const bool constant = settings().constant_program && instruction.access != Access::kLoad;
  NamedRange variable = find_pinned(address);
  if (variable.bytes == 0 && !constant) variable = find_program_variable(address);  // __device__
  if (is_in(variable.begin, variable.bytes)) {
    Tally& tally = *add_tally(instruction, Space::kGlobal, operations_.emplace_back(variable.name));
    tally.counted = false;
    watch(tally);
    return;
  }
  const bool reads = instruction.access == Access::kLoad;
  if ((reads && is_builtin_variable(address)) || is_program_storage(address, constant)) {
    is_in(address, instruction.size);
    return;
  }
  reject(lane, instruction, address);
}

void Observer::reject(Lane& lane, const Instruction& instruction, std::uintptr_t address) {
  const Unobserved unobserved;
  lane.block->fail(lane,
                   fmt::format("{}{} bytes at an address that is {}", verb(instruction.access),
                               instruction.size, describe_place(lane, address)),
                   instruction.pc, Outcome::kIllegalAddress);
}

// Where `address` is, which `lane` may not touch, or not so.
std::string Observer::describe_place(const Lane& lane, std::uintptr_t address) const {
  const SharedVariable* overrun = nullptr;  // the shared variable that begins nearest below
  std::uintptr_t overrun_begin = 0;
  for (const SharedVariable& variable : *shared_) {
    const std::uintptr_t begin = address_of(shared_address(variable.offset));
    if (address >= begin && address - begin < variable.bytes + kMaxSharedBytes &&
        begin >= overrun_begin) {
      overrun = &variable;
      overrun_begin = begin;
    }
  }
  const Allocation* const allocation = find_allocation(address);
  if (address + 4096 < 2 * 4096) {  // or just below null
    return "null, or of an array without elements";
  }
  if (lane.block->on_a_stack(address)) {
    return lane.fiber->holds(address) ? "the thread's own" : "another thread's own";
  }
  if (is_builtin_variable(address)) {
    return "in threadIdx, blockIdx, blockDim or gridDim, which can only be read";
  }
  if (overrun) {
    return fmt::format("{} bytes into shared '{}', which has {}", address - overrun_begin,
                       overrun->name, overrun->bytes);
  }
  if (allocation && !can_reach(grid_->device, allocation->device)) {
    return fmt::format("in '{}' on device {}; device {} has no peer access to it", allocation->name,
                       allocation->device, grid_->device);
  }
  const std::string place = describe_address(address);
  if (!place.empty()) return place;
  const NamedRange variable = find_program_variable(address);  // settings().constant_program
  if (address - variable.begin < variable.bytes) {
    return "in the variable '" + variable.name +
           "', which would outlive the launch; here a kernel may write only to its arrays";
  }
  return "neither device memory nor shared memory of the block (the host's, or wild)";
}

// An access that is not aligned to its size.
void Observer::reject_misaligned(Lane& lane, unsigned size, const Unaligned& access) {
  const Unobserved unobserved;
  const auto& [how, pc, address] = access;
  lane.block->fail(
      lane,
      fmt::format("misaligned address: {}{} bytes at a multiple of {}, where one of "
                  "{} is needed; the address is {}",
                  verb(how), size, address & -address, size, describe_place(lane, address)),
      pc, Outcome::kMisaligned);
}

void Observer::reject_fault(Lane& lane, Fault fault, const void* pc, std::uintptr_t address) {
  const Unobserved unobserved;
  if (fault == Fault::kDivision) lane.block->fail(lane, "divides an integer by zero", pc);
  // (The processor does not say which address it was that is not aligned.)
  if (fault == Fault::kAlignment && half_aligned_.pc) reject_misaligned(lane, 16, half_aligned_);
  if (fault == Fault::kStack) {
    lane.block->fail(lane, fmt::format("needs more than {} KiB of stack", kUsableBytes >> 10), pc);
  }
  lane.block->fail(lane, "touches an address that is " + describe_place(lane, address), pc,
                   Outcome::kIllegalAddress);
}

void Observer::reject_outside(Lane& lane, bool is_store, const void* pc) {
  const Unobserved unobserved;
  const Access access = is_store ? Access::kStore : Access::kLoad;
  lane.block->fail(lane, verb(access) + "outside of the local or shared array that the line names",
                   pc, Outcome::kIllegalAddress);
}

// Looks for races in what `tally` touches, if the kernel is known to write there.
void Observer::watch(Tally& tally) {
  const bool writes = tally.access == Access::kStore || tally.access == Access::kAtomic;
  if (races_ && (writes || GlobalRaces::is_watched(tally.pc))) {
    tally.region =
        races_->touch(tally.begin, tally.end - tally.begin, tally.size, writes, tally.written);
  }
  if (mode_ != RaceMode::kFilter || !writes || counting_) return;
  for (const Tally& other : tallies_) {
    if (!is_global(other.space) || other.region || other.begin != tally.begin) continue;
    races_->read_unwatched(other.pc, other.begin);
    races_->must_begin_again = true;
  }
}

void Observer::end_races() {
  if (!races_) return;
  for (const Tally& tally : tallies_) {
    if (is_global(tally.space) && !tally.region) races_->read_unwatched(tally.pc, tally.begin);
  }
}

Observer::Tally* Observer::add_tally(Instruction& instruction, Space space,
                                     const std::string& array) {
  const std::uintptr_t end =  // of the array; of what is none, nothing
      instruction.begin + (instruction.room ? instruction.room + instruction.size - 1 : 0);
  tallies_.push_back({{instruction.pc, instruction.size, instruction.access, space, &array,
                       instruction.begin, end},
                      instruction.strength,
                      instruction.tallies,
                      static_cast<std::uint32_t>(tallies_.size() + 1),
                      place_of(instruction.pc)});
  instruction.tallies = &tallies_.back();
  instruction.tally = instruction.tallies;
  return instruction.tally;
}

}  // namespace simt
