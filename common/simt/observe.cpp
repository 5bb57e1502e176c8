#include "simt/observe.hpp"

#include <fmt/format.h>

#include "simt/builtins.hpp"
#include "simt/cooperative.hpp"

namespace simt {
namespace {

bool is_builtin_variable(std::uintptr_t address) {
  const auto within = [=](const auto& v) { return address - address_of(&v) < sizeof v; };
  return within(threadIdx) || within(blockIdx) || within(blockDim) || within(gridDim);
}

std::string verb(Access access) {
  constexpr const char* kVerbs[] = {"reads ", "writes ", "updates ", "reads "};
  return kVerbs[static_cast<int>(access)];
}

}  // namespace

std::string Tally::describe(std::uintptr_t address) const {
  return fmt::format("{}{} bytes, {} bytes into {}'{}'", verb(access), size, address - begin,
                     space == Space::kShared ? "shared " : "", *array);
}

bool is_instrumented() {
#ifdef SIMT_INSTRUMENTED
  return true;
#else
  return false;
#endif
}

// --- All three ----------------------------------------------------------------------------------

void Observer::start(GridState& state, const std::vector<SharedVariable>& shared,
                     unsigned threads) {
  if (!is_instrumented()) return;
  *this = {};
  check.start(state, shared);
  races.start(state, threads, check.tallies);
  count.start(state, threads, check.tallies);
}

void Observer::start_block(std::uint64_t number, std::uint64_t id) {
  check.start_block();
  races.start_block(id);
  count.start_block(number);
}

void Observer::access(Lane& lane, std::uintptr_t address, unsigned size, Access access,
                      Strength strength, const void* pc) {
  if (!is_instrumented()) return;
  Block::settle(lane);
  lane.empty_loops = 0;
  if (check.waits_for_warp(lane, address)) lane.block->wait_for_access(lane, pc);
  if (address & (size - 1)) check.unaligned(lane, size, {access, pc, address});
  Instruction& instruction = check.instruction(pc, size, access, strength);
  if (address - instruction.begin >= instruction.room) {
    // A local array: of each lane, another, which is not worth a look at what else it may be.
    const std::uintptr_t stack = lane.fiber->usable();
    if (access != Access::kAtomic && address - stack <= kUsableBytes - size) return;
    if (check.classify(lane, instruction, address)) races.watch(*instruction.tally);
  }
  const Tally* const tally = instruction.tally;
  if (!tally) {
    // An instruction that found its lane's own memory may find another's.
    if (!lane.fiber->holds(address) && lane.block->on_a_stack(address)) {
      check.reject(lane, instruction, address);
    }
    return;
  }
  // (First of all: a trace has also the access that is reported.)
  if (current_trail && tally->counted) count.access(lane, *tally, address);
  // (A lane that polls may be set aside here: before it is said what it reads.)
  std::uintptr_t& last =
      instruction.last_of_lanes ? (*instruction.last_of_lanes)[lane.id] : instruction.last;
  if (access == Access::kLoad && address == last) {
    lane.block->polled(lane, pc);
  } else if (access != Access::kAtomic) {
    if (access == Access::kStore) lane.block->changed();
    lane.polls = 0;
    last = address;
  }
  if (tally->space == Space::kPeer && lane.block->is_late(address)) {
    if (access == Access::kStore) {
      races.access(lane, *tally, address);
      lane.block->expect_late_store(lane, address, size);
      return;
    }
    lane.block->gang()->forward(lane.block->seat(), address, size);
  }
  check.written(lane, *tally, address);
  races.access(lane, *tally, address);
}

void Observer::note_draw(const void* pc, unsigned size, bool merges) {
  if (!count.counting()) return;
  if (Tally* const tally = check.instruction(pc, size, Access::kAtomic).tally) {
    tally->draws = true;
    tally->merges = merges;
  }
}

void Observer::meet(Lane& lane, Access access, const char* name, const void* pc) {
  if (access == Access::kBarrier) races.meet(lane, pc);
  if (count.counting()) count.meet(lane, check.meeting(pc, access, name));
}

// --- What may not be ----------------------------------------------------------------------------

void AccessCheck::start(const GridState& state, const std::vector<SharedVariable>& shared) {
  grid_ = &state.grid();
  shared_ = &shared;
  lockstep_ = state.schedule == Schedule::kLockstep;
  check_uninitialised_ = settings().check_uninitialised;
}

void AccessCheck::start_block() {
  for (auto& [variable, written] : shared_written_) written.clear();
}

Instruction& AccessCheck::look_up(const void* pc, unsigned size, Access access, Strength strength) {
  const auto [it, is_new] = instructions_.try_emplace({pc, size});
  Instruction& instruction = it->second;
  found_[slot_of(pc)] = &instruction;
  if (is_new) {
    instruction = {pc, size, access, strength};
    if (lockstep_)
      instruction.last_of_lanes = std::make_unique<std::array<std::uintptr_t, kWarpSize>>();
  }
  return instruction;
}

// Whether no other lane has a use for `address`: on the lane's stack, or constant.
bool AccessCheck::is_of_lane(const Lane& lane, std::uintptr_t address) const {
  return lane.fiber->holds(address) ||
         address - address_of(grid_->arguments) < grid_->argument_bytes ||
         is_builtin_variable(address);
}

const Tally& AccessCheck::meeting(const void* pc, Access access, const char* name) {
  Instruction& meeting = instruction(pc, 0, access);
  if (meeting.tally) return *meeting.tally;
  const Unobserved unobserved;  // strings may be linked from a kernel's object
  return add_tally(meeting, Space::kNone, names_.emplace_back(name));
}

void AccessCheck::written(Lane& lane, const Tally& tally, std::uintptr_t address) {
  if (!tally.written) return;  // (Memory of the host is taken for written.)
  const std::size_t offset = address - tally.begin;
  if (tally.access == Access::kStore) return tally.written->add(offset, tally.size);
  if (!check_uninitialised_ || tally.written->all(offset, tally.size)) return;
  const Unobserved unobserved;
  const char* const since = tally.space == Space::kShared
                                ? " since the block started (or not yet: is there a barrier, and "
                                  "do all threads reach it?)"
                                : "";
  lane.block->fail(lane, tally.describe(address) + ", that was not written" + since, tally.pc);
}

bool AccessCheck::classify(Lane& lane, Instruction& instruction, std::uintptr_t address) {
  const Unobserved unobserved;
  const auto is_in = [&](std::uintptr_t begin, std::size_t bytes) {
    if (address - begin >= bytes || bytes - (address - begin) < instruction.size) return false;
    instruction.begin = begin;
    instruction.room = bytes - instruction.size + 1;
    return true;
  };
  instruction.tally = nullptr;
  if (is_in(lane.fiber->usable(), kUsableBytes)) {
    if (instruction.access != Access::kAtomic) return false;
    lane.block->fail(lane,
                     "updates a local variable by an atomic: they are for global and shared memory",
                     instruction.pc, Outcome::kIllegalAddress);
  }
  for (Tally* tally = instruction.tallies; tally; tally = tally->next) {
    if (is_in(tally->begin, tally->end - tally->begin)) {
      instruction.tally = tally;
      return false;
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
      WrittenBytes& written = shared_written_.try_emplace(&variable, variable.bytes).first->second;
      add_tally(instruction, Space::kShared, variable.name).written = &written;
      return true;
    }
  }
  const Allocation* allocation = find_allocation(address);
  if (allocation && can_reach(grid_->device, allocation->device) &&
      is_in(allocation->begin, allocation->bytes)) {
    DeviceMemoryAccess::open(address);
    const Space space = allocation->device == grid_->device ? Space::kGlobal : Space::kPeer;
    WrittenBytes* const written = allocation->written.get();
    add_tally(instruction, space, allocation->name).written =
        written->complete() ? nullptr : written;
    return true;
  }
  // The lane's arguments, and what the program keeps for itself.
  if (is_in(address_of(grid_->arguments), grid_->argument_bytes)) return false;
  const bool constant = settings().constant_program && instruction.access != Access::kLoad;
  NamedRange variable = find_pinned(address);
  if (variable.bytes == 0 && !constant) variable = find_program_variable(address);  // __device__
  if (is_in(variable.begin, variable.bytes)) {
    add_tally(instruction, Space::kGlobal, names_.emplace_back(variable.name)).counted = false;
    return true;
  }
  const bool reads = instruction.access == Access::kLoad;
  if ((reads && is_builtin_variable(address)) || is_program_storage(address, constant)) {
    is_in(address, instruction.size);
    return false;
  }
  reject(lane, instruction, address);
}

void AccessCheck::reject(Lane& lane, const Instruction& instruction, std::uintptr_t address) {
  const Unobserved unobserved;
  lane.block->fail(lane,
                   fmt::format("{}{} bytes at an address that is {}", verb(instruction.access),
                               instruction.size, describe_place(lane, address)),
                   instruction.pc, Outcome::kIllegalAddress);
}

// Where `address` is, which `lane` may not touch, or not so.
std::string AccessCheck::describe_place(const Lane& lane, std::uintptr_t address) const {
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

void AccessCheck::reject_misaligned(Lane& lane, unsigned size, const Unaligned& access) {
  const Unobserved unobserved;
  const auto& [how, pc, address] = access;
  lane.block->fail(
      lane,
      fmt::format("misaligned address: {}{} bytes at a multiple of {}, where one of "
                  "{} is needed; the address is {}",
                  verb(how), size, address & -address, size, describe_place(lane, address)),
      pc, Outcome::kMisaligned);
}

void AccessCheck::reject_fault(Lane& lane, Fault fault, const void* pc, std::uintptr_t address) {
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

void AccessCheck::reject_outside(Lane& lane, bool is_store, const void* pc) {
  const Unobserved unobserved;
  const Access access = is_store ? Access::kStore : Access::kLoad;
  lane.block->fail(lane, verb(access) + "outside of the local or shared array that the line names",
                   pc, Outcome::kIllegalAddress);
}

Tally& AccessCheck::add_tally(Instruction& instruction, Space space, const std::string& array) {
  const std::uintptr_t end =  // of the array; of what is none, nothing
      instruction.begin + (instruction.room ? instruction.room + instruction.size - 1 : 0);
  tallies.push_back({{instruction.pc, instruction.size, instruction.access, space, &array,
                      instruction.begin, end},
                     instruction.strength,
                     instruction.tallies,
                     static_cast<std::uint32_t>(tallies.size() + 1),
                     place_of(instruction.pc)});
  instruction.tally = instruction.tallies = &tallies.back();
  return tallies.back();
}

}  // namespace simt
