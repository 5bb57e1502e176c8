#include "simt/trace.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "simt/block.hpp"

namespace simt {
namespace {

std::unique_ptr<Recorder> recorder;

// The kernel's text alone tells the type of an element; its bits nearly always do: small integers
// are denormal floating-point numbers, and floating-point numbers are very large integers. All bits
// set is -1 as an integer and NaN as floating point; it is written as "~".
template <typename Integer, typename Float>
std::string number(Integer bits) {
  if (bits == static_cast<Integer>(-1)) return "\"~\"";
  constexpr Integer kSmall = sizeof(Integer) == 4 ? 1 << 23 : Integer{1} << 40;
  if (bits > -kSmall && bits < kSmall) return fmt::format("{}", bits);
  const Float value = std::bit_cast<Float>(bits);
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  const Float size = std::abs(value);
  if (size > Float(1e-30) && size < Float(1e30)) return fmt::format("{}", value);
  return fmt::format("\"{:#x}\"", static_cast<std::make_unsigned_t<Integer>>(bits));
}

template <typename Integer, typename Float>
std::string number_at(std::uintptr_t address) {
  Integer bits;
  std::memcpy(&bits, reinterpret_cast<const void*>(address), sizeof bits);
  std::string text = number<Integer, Float>(bits);
  std::erase(text, '"');
  return text == "~" ? "-1" : text;
}

// (Most of what a trace costs is writing its numbers: a dozen per lane and iteration.)
template <typename... Parts>
void put(fmt::memory_buffer& text, const Parts&... parts) {
  (fmt::format_to(fmt::appender(text), FMT_COMPILE("{}"), parts), ...);
}

}  // namespace

constinit thread_local cudaStream_t OnStream::current = nullptr;

std::string value_text(std::uintptr_t address, unsigned size) {
  if (size < 4) return std::to_string(*reinterpret_cast<const unsigned char*>(address));
  if (size == 4) return number_at<std::int32_t, float>(address);
  if (size == 8) return number_at<std::int64_t, double>(address);
  return number_at<std::int64_t, double>(address) + " and " +
         number_at<std::int64_t, double>(address + 8);
}

Recorder* active_recorder() {
  return recorder.get();
}

void start_trace(std::size_t limit) {
  recorder = std::make_unique<Recorder>(limit);
}

Trace stop_trace() {
  const std::unique_ptr<Recorder> done = std::move(recorder);
  return done ? done->take() : Trace{};
}

// --- While lanes run ----------------------------------------------------------------------------

void Recorder::start_launch(const Grid& grid) {
  launch_of_[&grid] = trace_.launches.size();
  write_launch(trace_.launches.size());
  const auto triple = [](const dim3& v) { return fmt::format("[{},{},{}]", v.x, v.y, v.z); };
  trace_.launches.push_back(fmt::format(
      R"({{"kernel":"{}","grid":{},"block":{},"dynamic_shared_bytes":{},"device":{},"stream":{}}})",
      kernel_name(grid.kernel), triple(grid.grid), triple(grid.block), grid.dynamic_shared_bytes,
      grid.device, stream(OnStream::current, grid.device)));
}

void Recorder::write_launch(std::size_t number) {
  launch_ = number;
  block_ = ~std::uint64_t{0};
  write(fmt::format("[\"launch\",{}]", number));
}

void Recorder::finish_store() {
  if (!store_.address) return;
  Note& note = notes_[store_.lane].back();
  std::memcpy(&note.words[store_.atomic], reinterpret_cast<const void*>(store_.address),
              store_.size);
  store_.address = 0;
}

void Recorder::finish_store(std::uint64_t value) {
  if (store_.address) notes_[store_.lane].back().words[0] = value;
  store_.address = 0;
}

void Recorder::access(const Lane& lane, std::uintptr_t address, unsigned size, Access access) {
  finish_store();
  Note& note = notes_[lane.id].emplace_back();
  if (access != Access::kStore) {
    std::memcpy(note.words.data(), reinterpret_cast<const void*>(address), size);
  }
  if (access == Access::kStore || access == Access::kAtomic) {
    store_ = {address, size, lane.id, access == Access::kAtomic};
  }
}

void Recorder::meet(const Lane& lane, Access access) {
  finish_store();
  Note& note = notes_[lane.id].emplace_back();
  if (access == Access::kWarpOperation) note.words[0] = lane.request.value;
}

void Recorder::complete(const Lane& lane) {
  // (Lanes that waited for others of their warp at a barrier have been lined up already.)
  if (notes_[lane.id].empty()) return;
  Note& note = notes_[lane.id].back();
  note.words[1] = lane.result;
  note.has_result = true;
  note.source = static_cast<std::uint8_t>(shuffle_source(lane.request, lane.id));
}

// --- When a warp is lined up --------------------------------------------------------------------

void Recorder::start_lining_up(const Grid& grid, std::uint64_t block, unsigned warp) {
  finish_store();
  if (const std::size_t launch = launch_of_.at(&grid); launch != launch_) write_launch(launch);
  if (std::exchange(block_, block) != block) {
    warp_ = ~0u;
    write(fmt::format("[\"block\",{}]", block));
  }
  if (std::exchange(warp_, warp) != warp) write(fmt::format("[\"warp\",{}]", warp));
}

void Recorder::finish_lining_up() {
  for (std::vector<Note>& notes : notes_) notes.clear();
  std::fill(std::begin(next_note_), std::end(next_note_), std::size_t{0});
}

void Recorder::step(const void* pc, unsigned mask) {
  event_.clear();
  put(event_, "[\"at\",", place(pc), ',', mask, ']');
  write({event_.data(), event_.size()});
}

void Recorder::request(const Target& target, const std::uintptr_t (&addresses)[kWarpSize],
                       unsigned mask) {
  const Note* notes[kWarpSize];
  for_each_lane(mask, [&](unsigned id) { notes[id] = &notes_[id][next_note_[id]++]; });
  event_.clear();
  put(event_, "[\"", target.access == Access::kBarrier ? "wait" : to_string(target.access), "\",",
      instruction(target), ',', mask);
  const auto list = [this, mask](auto&& element) {
    put(event_, ",[");
    for (unsigned rest = mask; rest; rest &= rest - 1) {
      element(static_cast<unsigned>(std::countr_zero(rest)));
      put(event_, rest & (rest - 1) ? ',' : ']');
    }
  };

  const std::string& name = *target.array;
  if (target.access == Access::kWarpOperation && name != "__syncwarp") {
    const bool is_mask =
        name == "__ballot_sync" || name == "__activemask" || name.starts_with("__match");
    list([&](unsigned id) { put(event_, value(notes[id]->words[0], form(notes[id]->words[0]))); });
    if (name.starts_with("__shfl")) {
      put(event_, ',', sources(notes, mask));
    } else {
      list([&](unsigned id) {
        const std::uint64_t bits = notes[id]->words[1];
        if (notes[id]->has_result) {
          put(event_, value(bits, is_mask ? Form::kMask : form(bits)));
        } else {
          put(event_, "null");
        }
      });
    }
  }
  if (target.space != Space::kNone) {
    std::uintptr_t last = target.begin;
    list([&](unsigned id) {
      put(event_, static_cast<std::ptrdiff_t>(addresses[id] - last));
      last = addresses[id];
    });
    const auto words = [&](unsigned id, unsigned first) {
      const auto& w = notes[id]->words;
      if (target.size <= 4) {
        put(event_, value(static_cast<std::uint32_t>(w[first]), Form::kFourBytes));
      } else if (target.size == 8) {
        put(event_, value(w[first], Form::kEightBytes));
      } else {
        const std::size_t low = value(w[0], Form::kEightBytes);  // numbered before the other
        put(event_, '[', low, ',', value(w[1], Form::kEightBytes), ']');
      }
    };
    list([&](unsigned id) { words(id, 0); });
    if (target.access == Access::kAtomic) list([&](unsigned id) { words(id, 1); });
  }
  put(event_, ']');
  write({event_.data(), event_.size()});
  if (!trace_.truncated) counted_ = counts_.size();
}

Trace Recorder::take() {
  counts_.resize(counted_);
  for (const AccessCounts& c : counts_) {
    trace_.requests +=
        fmt::format("{}[{},{},{},{},{},{},{}]", trace_.requests.empty() ? "" : ",", c.bytes_used,
                    c.sectors, c.lines, c.passes, c.ideal_passes, c.l2_sectors, c.dram_sectors);
  }
  return std::move(trace_);
}

// --- Tables -------------------------------------------------------------------------------------

// What travels between lanes has no size of its own.
Recorder::Form Recorder::form(std::uint64_t bits) {
  return bits >> 32 ? Form::kEightBytes : Form::kFourBytes;
}

std::size_t Recorder::place(const void* pc) {
  const auto [it, is_new] = places_.try_emplace(pc, trace_.places.size());
  if (is_new) trace_.places.push_back(pc);
  return it->second;
}

int Recorder::array(std::uintptr_t begin, std::size_t bytes, Space space, const std::string& name) {
  // Shared memory is where the thread of the host has it, and blocks that are resident together
  // have a thread each.
  const bool is_shared = space == Space::kShared;
  if (is_shared) begin -= address_of(shared_address(0));
  const auto [it, is_new] =
      arrays_.try_emplace({begin, bytes, name}, static_cast<int>(trace_.arrays.size()));
  if (is_new) {
    const Allocation* const allocation = is_shared ? nullptr : find_allocation(begin);
    trace_.arrays.push_back(fmt::format(
        R"({{"name":"{}","space":"{}","bytes":{},"{}":{}}})", name.substr(name.rfind(':') + 1),
        to_string(is_shared ? space : Space::kGlobal), bytes, is_shared ? "offset" : "device",
        is_shared    ? begin
        : allocation ? static_cast<std::size_t>(allocation->device)
                     : 0));
  }
  return it->second;
}

std::size_t Recorder::instruction(const Target& target) {
  const bool is_access = target.space != Space::kNone;
  const int array_number =
      is_access ? array(target.begin, target.end - target.begin, target.space, *target.array) : -1;
  const auto [it, is_new] =
      instructions_.try_emplace({target.pc, target.size, array_number}, trace_.instructions.size());
  if (is_new) {
    const std::string acts =
        is_access ? fmt::format(R"("array":{},"size":{}{})", array_number, target.size,
                                target.access == Access::kTexture ? R"(,"texture":true)" : "")
                  : fmt::format(R"("operation":"{}")", *target.array);
    trace_.instructions.push_back(fmt::format(R"({{"place":{},"access":"{}",{}}})",
                                              place(target.pc), to_string(target.access), acts));
  }
  return it->second;
}

std::size_t Recorder::value(std::uint64_t bits, Form form) {
  auto& known = values_[static_cast<std::size_t>(form)];
  auto& last = last_value_[static_cast<std::size_t>(form)];
  if (last && last->first == bits) return last->second;
  const auto [it, is_new] = known.try_emplace(bits, trace_.values.size());
  last = &*it;
  if (is_new) {
    trace_.values.push_back(form == Form::kMask ? fmt::format("\"{:#x}\"", bits)
                            : form == Form::kFourBytes
                                ? number<std::int32_t, float>(static_cast<std::int32_t>(bits))
                                : number<std::int64_t, double>(static_cast<std::int64_t>(bits)));
  }
  return it->second;
}

std::size_t Recorder::sources(const Note* const* notes, unsigned mask) {
  std::array<std::uint8_t, kWarpSize> lanes = {};
  for_each_lane(mask, [&](unsigned id) { lanes[id] = notes[id]->source; });
  const auto [it, is_new] = sources_.try_emplace({mask, lanes}, trace_.values.size());
  if (is_new) {
    std::string text;
    for_each_lane(mask, [&](unsigned id) {
      const bool known = lanes[id] != kNoLane && mask >> lanes[id] & 1u;
      text += (text.empty() ? "[" : ",") + (known ? std::to_string(lanes[id]) : "null");
    });
    trace_.values.push_back(text + "]");
  }
  return it->second;
}

// --- By the host --------------------------------------------------------------------------------

void Recorder::copy(const void* to, const void* from, std::size_t bytes) {
  const int device = OnStream::current ? device_of_stream(OnStream::current) : current_device();
  const std::lock_guard lock(mutex_);
  std::string event = "[\"copy\"";
  for (const void* const pointer : {to, from}) {
    const std::uintptr_t address = address_of(pointer);
    const Allocation* const allocation = find_allocation(address);
    if (allocation) {
      event += fmt::format(
          ",{},{}", array(allocation->begin, allocation->bytes, Space::kGlobal, allocation->name),
          address - allocation->begin);
    } else {
      event += ",null,null";
    }
  }
  append(event + fmt::format(",{},{}]", bytes, stream(OnStream::current, device)));
}

void Recorder::record_event(cudaEvent_t event, cudaStream_t on, int device) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = events_.try_emplace(event, events_.size()).first->second;
  append(fmt::format("[\"record\",{},{}]", number, stream(on, device)));
}

void Recorder::wait_for_event(cudaStream_t on, int device, cudaEvent_t event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return;  // recorded before the trace began: it has been waited for
  append(fmt::format("[\"stream wait\",{},{}]", stream(on, device), found->second));
}

std::size_t Recorder::stream(cudaStream_t stream, int device) {
  const auto [it, is_new] = streams_.try_emplace({stream, device}, trace_.streams.size());
  if (is_new) trace_.streams.push_back(device);
  return it->second;
}

void Recorder::failure(const std::string& what) {
  std::string text;
  for (const char c : what) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  write("[\"failure\",\"" + text + "\"]");
}

void Recorder::write(std::string_view event) {
  const std::lock_guard lock(mutex_);
  append(event);
}

void Recorder::append(std::string_view event) {
  // The reason why a run ended is never left out.
  if (trace_.events.size() + event.size() > limit_ && !event.starts_with("[\"failure\"")) {
    trace_.truncated = true;
  }
  if (trace_.truncated && !event.starts_with("[\"failure\"")) return;
  if (!trace_.events.empty()) trace_.events += ',';
  trace_.events += event;
}

}  // namespace simt
