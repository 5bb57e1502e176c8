// A trace: what a run did, request by request, as data. common/watch/README.md documents the file
// that the harness writes from it.
//
// Tracing is a part of profiling: between start_profile() and stop_profile(), one host thread runs
// the blocks in the order of the schedule, and the trails of a warp's lanes are lined up to
// requests (profile.hpp). A trace keeps those requests, in that order, with addresses and values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simt/engine.hpp"
#include "simt/profile.hpp"

namespace simt {

// The tables and the events of the file, as JSON: each element of a table its text.
struct Trace {
  std::vector<const void*> places;  // addresses of instructions, for find_sources()
  std::vector<std::string> arrays, instructions, launches, values;
  std::vector<int> streams;  // the device of each
  std::string events;        // the elements of a JSON array, with commas
  std::string requests;    // likewise: counts of each request to memory, in the order of the events
  bool truncated = false;  // `events` reached the limit; what came after is missing
};

// To be called between start_profile() and stop_profile(). `limit`: bytes of Trace::events.
void start_trace(std::size_t limit);
Trace stop_trace();

}  // namespace simt
