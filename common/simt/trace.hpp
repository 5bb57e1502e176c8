// A trace: what a run did, request by request, as data. common/watch/README.md documents the file
// that the harness writes from it.
//
// Tracing is a part of profiling: between start_profile() and stop_profile(), one host thread runs
// the blocks in the order of the schedule, and the trails of a warp's lanes are lined up to
// requests (profile.hpp). A trace keeps those requests, in that order, with addresses and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simt/engine.hpp"
#include "simt/profile.hpp"

namespace simt {

// An array that the run touched.
struct TraceArray {
  std::string name;
  Space space{};   // global or shared
  int device = 0;  // that owns it; another one's requests to it go over the link
  std::size_t bytes = 0;
  std::size_t offset = 0;  // shared memory: where it begins in the block's, which gives the bank
};

// An instruction of a kernel, and the array on which it acted.
struct TraceInstruction {
  std::size_t place = 0;  // in Trace::places
  Access access{};
  std::string operation;  // of a warp operation or barrier, else empty
  int array = -1;         // in Trace::arrays; -1: none
  unsigned size = 0;      // bytes per lane
};

struct TraceLaunch {
  const void* kernel = nullptr;  // address of its function
  dim3 grid, block;
  std::size_t dynamic_shared_bytes = 0;
  int device = 0;
  std::size_t stream = 0;  // in Trace::streams
};

struct Trace {
  std::vector<const void*> places;  // addresses of instructions, for find_sources()
  std::vector<TraceArray> arrays;
  std::vector<TraceInstruction> instructions;
  std::vector<TraceLaunch> launches;
  std::vector<int> streams;         // the device of each
  std::vector<std::string> values;  // as JSON
  std::string events;               // the elements of a JSON array, with commas
  std::size_t event_count = 0;
  bool truncated = false;  // `events` reached the limit; what came after is missing
};

// To be called between start_profile() and stop_profile(). `limit`: bytes of Trace::events.
void start_trace(std::size_t limit);
Trace stop_trace();

}  // namespace simt
