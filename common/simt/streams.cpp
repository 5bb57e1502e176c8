// Streams, events and graphs: what is to be done, and after what.
//
// Normally a stream's work is done when it is asked for. Two things defer it: a capture, which
// makes a graph of it, and Settings::late_streams. Late work waits until something waits for it,
// and then any piece whose predecessors are done may be next, whatever it is: a kernel that is not
// told to wait for the data it reads is found out. The default stream is late, too, then. It is
// CUDA's legacy one: its work comes after what blocking streams have been asked for before, and
// theirs after its own (cudaStreamNonBlocking takes a stream out of this).
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simt/cooperative.hpp"
#include "simt/random.hpp"
#include "simt/runtime.hpp"

namespace simt {
namespace {

// Late work.
struct Late {
  int device = 0;
  Work work;  // empty: nothing but a meeting of others
  std::vector<std::shared_ptr<Late>> after;
  std::shared_ptr<const Grid> cooperative = nullptr;  // in place of `work`
  cudaStream_t stream = nullptr;                      // of that
  bool done = false;
};
using LatePtr = std::shared_ptr<Late>;

// Work of a graph.
struct Node {
  int device = 0;
  Work work;
  std::vector<std::size_t> after;  // in the graph
};
using Nodes = std::vector<Node>;

struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode{};
  Nodes nodes;
  bool invalid = false;  // after an error: nothing more is captured, and no graph comes of it

  cudaError_t fail(cudaError_t error) {
    invalid = true;
    return set_error(error);
  }
  std::size_t add(Node node) {
    nodes.push_back(std::move(node));
    return nodes.size() - 1;
  }
};
// Where a stream stands in a capture, or stood when an event was recorded in it.
struct Position {
  std::shared_ptr<Capture> capture;  // null: none
  std::vector<std::size_t> after;    // what is next comes after these
};

struct Stream {
  int device = 0;
  bool blocking = false;  // the default stream and it wait for each other
  LatePtr last;
  Position position;
  // Also where a cooperative grid is still to run.
  bool is_late() const { return settings().late_streams || (last && !last->done); }
};
struct Event {
  int device = 0;
  bool timed = true;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  LatePtr late;
  Position position;
};

struct Handles {
  std::mutex mutex;
  std::map<cudaStream_t, Stream> streams;
  std::map<int, Stream> defaults;  // of devices: the default streams
  std::map<cudaEvent_t, Event> events;
  std::map<cudaGraph_t, std::shared_ptr<Nodes>> graphs;
  std::map<cudaGraphExec_t, std::shared_ptr<Nodes>> executables;
  std::uintptr_t next = 1;
  std::vector<LatePtr> late;         // not done yet
  std::uint64_t seed = 0;            // of late work's order,
  std::uint64_t random_numbers = 0;  // and how many have been drawn since it became that
  std::mutex running;                // late work is done by one thread of the host at a time

  template <typename Handle>
  Handle make() {
    return reinterpret_cast<Handle>(next++);
  }
};

Handles& handles() {
  static Handles& instance = *new Handles;
  return instance;
}

// All of them, locked: no other thread uses them.
class LockedStreams {
 public:
  Handles* operator->() const { return &handles(); }

 private:
  std::lock_guard<std::mutex> lock_{handles().mutex};
};

// What a handle stands for; null if nothing does.
template <typename Handle, typename T>
T* find(std::map<Handle, T>& all, Handle handle) {
  const auto it = all.find(handle);
  return it == all.end() ? nullptr : &it->second;
}
Stream& default_stream(const LockedStreams& h, int device) {
  Stream& stream = h->defaults[device];
  stream.device = device;
  return stream;
}
// (The default stream is one like others only while it is late.)
Stream* find(const LockedStreams& h, cudaStream_t stream) {
  if (stream) return find(h->streams, stream);
  Stream& of_device = default_stream(h, current_device());
  return of_device.is_late() ? &of_device : nullptr;
}
Event* find(const LockedStreams& h, cudaEvent_t event) {
  return find(h->events, event);
}

// After what the work comes that `stream` is asked for next: its last, and that of the default
// stream or, for that one, of all blocking streams of the device.
std::vector<LatePtr> before_next(const LockedStreams& h, const Stream& stream) {
  std::vector<LatePtr> before{stream.last};
  const Stream& its_default = default_stream(h, stream.device);
  if (stream.blocking) before.push_back(its_default.last);
  if (&stream == &its_default) {
    for (const auto& [handle, other] : h->streams) {
      if (other.blocking && other.device == stream.device) before.push_back(other.last);
    }
  }
  return before;
}

LatePtr add_late(const LockedStreams& h, int device, Work work, std::vector<LatePtr> after) {
  std::erase_if(after, [](const LatePtr& late) { return !late || late->done; });
  h->late.push_back(std::make_shared<Late>(Late{device, std::move(work), std::move(after)}));
  return h->late.back();
}

void merge(std::vector<std::size_t>& into, const std::vector<std::size_t>& from) {
  for (const std::size_t node : from) {
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
  }
}

// Does late work, drawn at random from what may be next, until `wanted` has nothing left.
// Cooperative grids come last, and all that may be next run together.
template <typename Wanted>
cudaError_t finish(const Wanted& wanted) {
  Handles& h = handles();
  const std::lock_guard one_at_a_time(h.running);
  cudaError_t first_error = cudaSuccess;
  while (true) {
    std::vector<LatePtr> next, together;
    {
      const std::lock_guard lock(h.mutex);
      if (std::none_of(h.late.begin(), h.late.end(), wanted)) break;
      for (const LatePtr& late : h.late) {
        if (std::all_of(late->after.begin(), late->after.end(),
                        [](const LatePtr& before) { return before->done; })) {
          (late->cooperative ? together : next).push_back(late);
        }
      }
      if (h.seed != settings().seed) h.seed = settings().seed, h.random_numbers = 0;
      const std::uint64_t random = mix64(h.seed * kGoldenGamma + ++h.random_numbers);
      // (With an odd seed, such as the default one, the work that was asked for last.)
      const std::size_t count = std::max<std::size_t>(next.size(), 1);
      const std::size_t which = h.seed % 2 ? count - 1 : random % count;
      next = next.empty() ? together : std::vector{next[which]};
    }
    cudaError_t error = cudaSuccess;
    if (next[0]->cooperative) {
      std::vector<Grid> grids;
      std::vector<cudaStream_t> streams;
      for (const LatePtr& late : next) {
        grids.push_back(*late->cooperative);
        streams.push_back(late->stream);
      }
      error = error_of(Gang::run(grids, streams));
    } else if (next[0]->work) {
      error = next[0]->work();
    }
    if (first_error == cudaSuccess) first_error = error;
    const std::lock_guard lock(h.mutex);
    for (const LatePtr& late : next) {
      late->done = true;
      late->after.clear();
      std::erase(h.late, late);
    }
  }
  forget_last_kernel();
  return first_error;
}

// Whether every one of `nodes` is one of `ends` or comes before one of them.
bool lie_before(const Nodes& graph, std::vector<std::size_t> ends,
                const std::vector<std::size_t>& nodes) {
  std::vector<bool> reached(graph.size(), false);
  while (!ends.empty()) {
    const std::size_t node = ends.back();
    ends.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    ends.insert(ends.end(), graph[node].after.begin(), graph[node].after.end());
  }
  return std::all_of(nodes.begin(), nodes.end(), [&](std::size_t node) { return reached[node]; });
}

}  // namespace

int device_of_stream(cudaStream_t stream) {
  const LockedStreams h;
  const Stream* const found = find(h, stream);
  return found ? found->device : -1;
}

bool is_stream(cudaStream_t stream) {
  return !stream || device_of_stream(stream) >= 0;
}

bool is_deferred(cudaStream_t stream) {
  const LockedStreams h;
  const Stream* const found = find(h, stream);
  return found && (found->position.capture || found->is_late() ||
                   (found->blocking && default_stream(h, found->device).is_late()));
}

cudaError_t refuse_in_capture(InCapture call) {
  const LockedStreams h;
  cudaError_t error = cudaSuccess;
  for (const auto& [handle, stream] : h->streams) {
    Capture* const capture = stream.position.capture.get();
    if (capture && (call == InCapture::kUnsafeCall ? capture->mode == cudaStreamCaptureModeGlobal
                                                   : stream.device == current_device())) {
      error = capture->fail(cudaErrorStreamCaptureUnsupported);
    }
  }
  return error;
}

// What the default stream has to wait for, before it is asked for more.
static cudaError_t finish_before_default() {
  const bool nothing = [] {
    const LockedStreams h;
    return h->late.empty();
  }();
  return nothing ? cudaSuccess : finish_stream(nullptr);
}

cudaError_t enqueue_cooperative(cudaStream_t stream, const Grid& grid, std::shared_ptr<void> kept) {
  const LockedStreams h;
  Stream& s = stream ? *find(h, stream) : default_stream(h, grid.device);
  if (s.position.capture) return s.position.capture->fail(cudaErrorNotSupported);
  s.last = add_late(h, s.device, {}, before_next(h, s));
  s.last->stream = stream;
  s.last->cooperative = {new Grid(grid), [kept](const Grid* g) { delete g; }};
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (!is_deferred(stream)) {
    const cudaError_t error = stream ? cudaSuccess : finish_before_default();
    return error ? error : work();
  }
  const LockedStreams h;
  Stream& s = *find(h, stream);
  if (Capture* const capture = s.position.capture.get()) {
    if (capture->invalid) return set_error(cudaErrorStreamCaptureInvalidated);
    s.position.after = {capture->add({s.device, std::move(work), std::move(s.position.after)})};
  } else {
    s.last = add_late(h, s.device, std::move(work), before_next(h, s));
  }
  return cudaSuccess;
}

cudaError_t finish_stream(cudaStream_t stream) {
  std::vector<LatePtr> last;
  {
    const LockedStreams h;
    if (const Stream* const found = find(h, stream)) last = {found->last};
    // (Where it is not late: its work is done at once, but after what it has to wait for.)
    if (!stream) last = before_next(h, default_stream(h, current_device()));
  }
  return finish(
      [&](const LatePtr& late) { return std::find(last.begin(), last.end(), late) != last.end(); });
}
cudaError_t finish_device(int device) {
  return finish([device](const LatePtr& late) { return late->device == device; });
}
cudaError_t finish_all() {
  return finish([](const LatePtr&) { return true; });
}

}  // namespace simt

using simt::set_error;

// --- Streams ------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (!stream || flags > cudaStreamNonBlocking) return set_error(cudaErrorInvalidValue);
  const simt::LockedStreams h;
  *stream = h->make<cudaStream_t>();
  h->streams[*stream].device = simt::current_device();
  h->streams[*stream].blocking = flags == cudaStreamDefault;
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = 0;  // CUDA's answer where there are no priorities
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const simt::LockedStreams h;
  return h->streams.erase(stream) ? cudaSuccess : set_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream) {
    const simt::LockedStreams h;
    const auto* const found = find(h, stream);
    if (!found) return set_error(cudaErrorInvalidResourceHandle);
    if (const auto& capture = found->position.capture) {
      return capture->fail(cudaErrorStreamCaptureUnsupported);
    }
  }
  if (const cudaError_t error = simt::refuse_in_capture()) return error;
  return set_error(simt::finish_stream(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags != 0) return set_error(cudaErrorInvalidValue);
  if (!simt::is_stream(stream)) return set_error(cudaErrorInvalidResourceHandle);
  const simt::LockedStreams h;
  auto* const s = find(h, stream);
  const auto* const e = find(h, event);
  if (!e) return set_error(cudaErrorInvalidResourceHandle);
  if (!e->position.capture && !(s && s->position.capture)) {
    if (simt::Recorder* const recorder = simt::active_recorder()) {
      recorder->wait_for_event(stream, s ? s->device : simt::current_device(), event);
    }
  }
  if (!s) return e->position.capture ? set_error(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
  if (e->position.capture) {
    if (s->position.capture && s->position.capture != e->position.capture) {
      e->position.capture->invalid = true;
      return s->position.capture->fail(cudaErrorStreamCaptureMerge);
    }
    s->position.capture = e->position.capture;
    simt::merge(s->position.after, e->position.after);
  } else if (s->position.capture) {
    return s->position.capture->fail(cudaErrorStreamCaptureIsolation);
  } else if (e->late && !e->late->done) {
    auto after = before_next(h, *s);
    after.push_back(e->late);
    s->last = add_late(h, s->device, {}, std::move(after));
  }
  return cudaSuccess;
}

// --- Events -------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (!event || flags > 7) return set_error(cudaErrorInvalidValue);
  const simt::LockedStreams h;
  *event = h->make<cudaEvent_t>();
  h->events[*event].device = simt::current_device();
  h->events[*event].timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const simt::LockedStreams h;
  return h->events.erase(event) ? cudaSuccess : set_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags > cudaEventRecordExternal) return set_error(cudaErrorInvalidValue);
  const bool is_external = flags == cudaEventRecordExternal;
  const simt::LockedStreams h;
  auto* const s = find(h, stream);
  auto* const e = find(h, event);
  const int device = s ? s->device : stream ? -1 : simt::current_device();
  if (!e || e->device != device) return set_error(cudaErrorInvalidResourceHandle);
  e->recorded = true;
  e->position = {};
  e->late = nullptr;
  const auto mark = [event] {
    const simt::LockedStreams all;
    if (auto* const marked = find(all, event)) marked->time = std::chrono::steady_clock::now();
    return cudaSuccess;
  };
  if (s && s->position.capture) {
    simt::Capture& capture = *s->position.capture;
    if (capture.invalid) return set_error(cudaErrorStreamCaptureInvalidated);
    if (is_external) {
      s->position.after = {capture.add({s->device, mark, std::move(s->position.after)})};
    } else {
      e->recorded = false;  // it is a place in a graph, and no point in time
      e->position = s->position;
    }
    return cudaSuccess;
  }
  if (simt::Recorder* const recorder = simt::active_recorder()) {
    recorder->record_event(event, stream, device);
  }
  if (s && s->is_late()) {
    s->last = add_late(h, s->device, mark, before_next(h, *s));
    e->late = s->last;
  } else {
    e->time = std::chrono::steady_clock::now();
  }
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  simt::LatePtr wanted;
  {
    const simt::LockedStreams h;
    const auto* const e = find(h, event);
    if (!e) return set_error(cudaErrorInvalidResourceHandle);
    if (e->position.capture) return e->position.capture->fail(cudaErrorCapturedEvent);
    wanted = e->late;
  }
  if (const cudaError_t error = simt::refuse_in_capture()) return error;
  return set_error(simt::finish([&](const simt::LatePtr& late) { return late == wanted; }));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (!milliseconds) return set_error(cudaErrorInvalidValue);
  const simt::LockedStreams h;
  const auto* const from = find(h, start);
  const auto* const to = find(h, stop);
  if (!from || !to || !from->recorded || !to->recorded || !from->timed || !to->timed) {
    return set_error(cudaErrorInvalidResourceHandle);
  }
  const auto is_late = [](const auto* event) { return event->late && !event->late->done; };
  if (is_late(from) || is_late(to)) return set_error(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return cudaSuccess;
}

// --- Graphs -------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
    return set_error(cudaErrorInvalidValue);
  }
  if (!stream) return set_error(cudaErrorStreamCaptureUnsupported);
  const simt::LockedStreams h;
  auto* const s = find(h, stream);
  if (!s) return set_error(cudaErrorInvalidResourceHandle);
  if (s->position.capture) return set_error(cudaErrorInvalidValue);
  s->position.capture = std::make_shared<simt::Capture>();
  s->position.capture->origin = stream;
  s->position.capture->mode = mode;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!graph) return set_error(cudaErrorInvalidValue);
  *graph = nullptr;
  const simt::LockedStreams h;
  auto* const s = find(h, stream);
  if (!s) return set_error(cudaErrorInvalidResourceHandle);
  const auto capture = s->position.capture;
  if (!capture) return set_error(cudaErrorInvalidValue);
  if (capture->origin != stream) return set_error(cudaErrorStreamCaptureUnmatched);
  const auto ends = s->position.after;
  bool joined = true;
  for (auto& [handle, other] : h->streams) {
    if (other.position.capture != capture) continue;
    joined = joined && lie_before(capture->nodes, ends, other.position.after);
    other.position = {};
  }
  for (auto& [handle, event] : h->events) {
    if (event.position.capture == capture) event.position = {};
  }
  if (capture->invalid) return set_error(cudaErrorStreamCaptureInvalidated);
  if (!joined) return set_error(cudaErrorStreamCaptureUnjoined);
  *graph = h->make<cudaGraph_t>();
  h->graphs[*graph] = std::make_shared<simt::Nodes>(std::move(capture->nodes));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  if (!executable || flags != 0) return set_error(cudaErrorInvalidValue);
  const simt::LockedStreams h;
  const auto* const nodes = simt::find(h->graphs, graph);
  if (!nodes) return set_error(cudaErrorInvalidValue);
  *executable = h->make<cudaGraphExec_t>();
  h->executables[*executable] = *nodes;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!simt::is_stream(stream)) return set_error(cudaErrorInvalidResourceHandle);
  std::shared_ptr<simt::Nodes> nodes;
  {
    const simt::LockedStreams h;
    const auto* const found = simt::find(h->executables, executable);
    if (!found) return set_error(cudaErrorInvalidValue);
    nodes = *found;
    auto* const s = find(h, stream);
    if (s && s->position.capture) return s->position.capture->fail(cudaErrorNotSupported);
    if (s && s->is_late()) {
      std::vector<simt::LatePtr> late;
      for (const simt::Node& node : *nodes) {
        std::vector<simt::LatePtr> after = before_next(h, *s);
        for (const std::size_t before : node.after) after.push_back(late[before]);
        late.push_back(add_late(h, node.device, node.work, std::move(after)));
      }
      late.push_back(s->last);
      s->last = add_late(h, s->device, {}, std::move(late));
      return cudaSuccess;
    }
  }
  for (const simt::Node& node : *nodes) {
    if (const cudaError_t error = node.work()) return set_error(error);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const simt::LockedStreams h;
  return h->graphs.erase(graph) ? cudaSuccess : set_error(cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const simt::LockedStreams h;
  return h->executables.erase(executable) ? cudaSuccess : set_error(cudaErrorInvalidValue);
}
