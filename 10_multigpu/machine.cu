#include "machine.hpp"

#include <exception>
#include <utility>

#include "device/devices.hpp"
#include "gpu.cuh"

namespace spmv::multigpu {
namespace {

constexpr int kGraphSteps = 10;  // even: a graph leaves x where it found it

std::vector<int> devices_of_parts(int parts, int devices) {
  std::vector<int> of_parts;
  for (int p = 0; p < parts; ++p) of_parts.push_back(p % devices);
  return of_parts;
}

}  // namespace

// --- Threads ------------------------------------------------------------------------------------

Crew::Crew(const std::vector<int>& devices)
    : start_(static_cast<std::ptrdiff_t>(devices.size()) + 1),
      end_(static_cast<std::ptrdiff_t>(devices.size()) + 1),
      meeting_(static_cast<std::ptrdiff_t>(devices.size())),
      errors_(devices.size()) {
  for (std::size_t p = 0; p < devices.size(); ++p) {
    threads_.emplace_back([this, p, device = devices[p]] {
      cudaSetDevice(device);
      while (true) {
        start_.arrive_and_wait();
        if (!work_) return;
        try {
          work_(static_cast<int>(p));
        } catch (...) {
          errors_[p] = std::current_exception();
        }
        end_.arrive_and_wait();
      }
    });
  }
}

Crew::~Crew() {
  work_ = nullptr;
  start_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(const std::function<void(int)>& work) {
  work_ = work;
  start_.arrive_and_wait();
  end_.arrive_and_wait();
  for (std::exception_ptr& error : errors_) {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
}

// --- Setting up ---------------------------------------------------------------------------------

template <typename T>
Machine<T>::Machine(std::vector<Part<T>> parts, const Kernel& kernel, const Setup& setup)
    : exchange_(setup.exchange),
      devices_(device::available_devices(setup.devices > 0 ? setup.devices
                                                           : static_cast<int>(parts.size()))),
      gpus_(parts.size()) {
  const int count = static_cast<int>(parts.size());
  const std::vector<int> of_parts = devices_of_parts(count, devices_);
  if (exchange_ == Exchange::kNccl && devices_ < count) {
    throw Unsuitable("NCCL needs a GPU for each part");
  }
  for (const Part<T>& part : parts) {
    cuts_.push_back(part.first_row);
    rows_ += part.rows();
  }
  cuts_.push_back(rows_);

  // What each GPU packs, in the order of the GPUs that want it.
  std::vector<std::vector<Index>> packed(count);
  pushed_.resize(count);
  for (int receiver = 0; receiver < count; ++receiver) {
    for (const Need& need : parts[receiver].needs) {
      std::vector<Index>& of_owner = packed[need.owner];
      for (Index i = 0; i < need.count && exchange_ == Exchange::kStores; ++i) {
        pushed_[need.owner].emplace_back(receiver, need.ghost + i);
      }
      const bool is_packed = !need.places.empty();
      const Index offset = is_packed ? static_cast<Index>(of_owner.size()) : need.first;
      transfers_.push_back({need.owner, receiver, need.count, need.ghost, is_packed, offset, {}});
      of_owner.insert(of_owner.end(), need.places.begin(), need.places.end());
    }
  }

  crew_ = std::make_unique<Crew>(of_parts);
  crew_->run([&](int p) {
    gpus_[p] = std::make_unique<Gpu<T>>(of_parts[p], std::move(parts[p]), packed[p], kernel,
                                        setup.exchange);
  });
  for (int p = 0; p < count; ++p) {
    const device::OnDevice on(device_of(p));
    for (auto* events : {&ready_, &fetched_, &summed_, &fork_, &join_}) {
      events->push_back(device::Event::untimed());
    }
  }
  if (exchange_ != Exchange::kNone) connect(setup.peer_access);
  if (exchange_ == Exchange::kStores) connect_stores();
  if (exchange_ == Exchange::kNccl) nccl_ = std::make_unique<Nccl>(of_parts);
}

// Finds out who reaches whom, and makes places for what has to go through the host.
template <typename T>
void Machine<T>::connect(bool allow_peers) {
  const int count = size();
  bool all_reach_all = true;
  std::string apart;
  reaches_.assign(count, std::vector<bool>(count, true));
  for (int p = 0; p < count; ++p) {
    for (int q = 0; q < count; ++q) {
      if (p == q) continue;
      const bool same = device_of(p) == device_of(q);
      reaches_[p][q] =
          allow_peers && (same || device::enable_peer_access(device_of(p), device_of(q)));
      all_reach_all = all_reach_all && reaches_[p][q];
      if (!reaches_[p][q] && apart.empty()) {
        apart = std::to_string(p) + " and " + std::to_string(q);
      }
    }
  }
  if (!all_reach_all) {
    remark_ = allow_peers ? "GPUs " + apart + " have no access to each other's memory"
                          : "peer access is not used";
    if (exchange_ == Exchange::kLoads || exchange_ == Exchange::kStores) {
      throw Unsuitable(remark_ + ", and peer " +
                       (exchange_ == Exchange::kLoads ? "loads" : "stores") +
                       " need it: use --exchange packed");
    }
    if (exchange_ != Exchange::kNccl) remark_ += ": entries of x go through the host";
    for (Transfer& transfer : transfers_) {
      if (exchange_ == Exchange::kNccl || reaches_[transfer.receiver][transfer.owner]) continue;
      transfer.stage = device::Pinned<T>(transfer.count);
    }
    sums_on_host_ = device::Pinned<double>(2 * static_cast<std::size_t>(count));
    std::fill_n(sums_on_host_.data(), sums_on_host_.size(), 0.0);
    sums_of_.assign(count, sums_on_host_.data());
    return;
  }
  for (int p = 0; p < count; ++p) {
    const device::OnDevice on(device_of(p));
    sums_.emplace_back("sums", std::vector<double>(2 * static_cast<std::size_t>(count), 0));
    sums_of_.push_back(sums_.back().data());
  }
}

template <typename T>
void Machine<T>::connect_stores() {
  for (int p = 0; p < size(); ++p) {
    const device::OnDevice on(device_of(p));
    std::vector<T*> ghosts[2];
    for (int k = 0; k < 2; ++k) {
      for (const auto& [receiver, place] : pushed_[p]) {
        ghosts[k].push_back(gpus_[receiver]->x(k) + place);
      }
    }
    gpus_[p]->set_ghosts(ghosts[0], ghosts[1]);
  }
}

template <typename T>
Machine<T>::~Machine() {
  for (cudaGraphExec_t graph : {graph_, rest_}) {
    if (graph) cudaGraphExecDestroy(graph);
  }
  nccl_.reset();
  for (int p = 0; p < size(); ++p) {
    if (!gpus_[p]) continue;
    cudaSetDevice(device_of(p));
    cudaDeviceSynchronize();
    gpus_[p].reset();
    if (!sums_.empty()) sums_[p] = {};
  }
  cudaSetDevice(0);
}

// --- One step -----------------------------------------------------------------------------------

template <typename T>
const T* Machine<T>::source(const Transfer& transfer, int k) {
  Gpu<T>& owner = *gpus_[transfer.owner];
  return (transfer.packed ? owner.packed() : owner.x(k)) + transfer.offset;
}

// GPU p's x may be read by others from here on.
template <typename T>
void Machine<T>::announce(int p, int k) {
  Gpu<T>& gpu = *gpus_[p];
  if (exchange_ == Exchange::kStores) {
    gpu.push(k);
    ready_[p].record(gpu.main());
    return;
  }
  gpu.pack(k);
  for (Transfer& transfer : transfers_) {
    if (transfer.owner != p || transfer.stage.size() == 0) continue;
    device::check(
        cudaMemcpyAsync(transfer.stage.data(), source(transfer, k), transfer.count * sizeof(T),
                        cudaMemcpyDeviceToHost, gpu.main().get()),
        "copying entries of x to the host");
  }
  ready_[p].record(gpu.main());
}

// What GPU p needs comes into its own memory. It overwrites what came two steps ago, for which
// nobody looks any more: main() has waited since then for all of the step before.
template <typename T>
void Machine<T>::fetch(int p, int k) {
  Gpu<T>& gpu = *gpus_[p];
  ready_[p].hold(gpu.comm());
  if (exchange_ == Exchange::kLoads) {
    for (const device::Event& ready : ready_) ready.hold(gpu.comm());
  }
  if (exchange_ == Exchange::kNccl) Nccl::begin();
  for (Transfer& transfer : transfers_) {
    T* const to = gpus_[transfer.receiver]->x(k) + transfer.ghost;
    const T* const from = source(transfer, k);
    if (exchange_ == Exchange::kNccl) {
      if (transfer.owner == p) {
        nccl_->send(p, transfer.receiver, from, transfer.count, gpu.comm().get());
      } else if (transfer.receiver == p) {
        nccl_->receive(p, transfer.owner, to, transfer.count, gpu.comm().get());
      }
    } else if (transfer.receiver == p) {
      ready_[transfer.owner].hold(gpu.comm());
      if (exchange_ == Exchange::kStores) continue;  // they are there
      const bool staged = transfer.stage.size() > 0;
      // Between two devices' memories when the addresses say so: cudaMemcpyDefault.
      device::check(
          cudaMemcpyAsync(to, staged ? transfer.stage.data() : from, transfer.count * sizeof(T),
                          cudaMemcpyDefault, gpu.comm().get()),
          "copying entries of x");
    }
  }
  if (exchange_ == Exchange::kNccl) Nccl::end();
}

template <typename T>
void Machine<T>::multiply(int p, int k) {
  Gpu<T>& gpu = *gpus_[p];
  const T alpha = static_cast<T>(factor_ != 0 ? factor_ : 1);
  gpu.multiply_interior(alpha, k);
  if (exchange_ == Exchange::kNone) return;
  if (exchange_ == Exchange::kLoads) {
    XInParts<T> x{};
    x.parts = size();
    for (int q = 0; q < size(); ++q) {
      x.cuts[q] = cuts_[q];
      x.x[q] = gpus_[q]->x(k);
    }
    gpu.multiply_boundary(alpha, k, x);
  } else {
    gpu.multiply_boundary(alpha, k);
  }
  fetched_[p].record(gpu.comm());
  fetched_[p].hold(gpu.main());
  if (factor_ != 0) {
    summed_[p].record(gpu.main());
    return;
  }
  SumPlaces places{};
  places.count = sums_.empty() ? 1 : size();
  for (int q = 0; q < places.count; ++q) places.place[q] = sums(q, k) + p;
  gpu.sum_squares(k, places);
  summed_[p].record(gpu.main());
}

// From here on all of step k is done, on all GPUs: what it has read may be overwritten.
template <typename T>
void Machine<T>::finish(int p, int k) {
  for (const device::Event& summed : summed_) summed.hold(gpus_[p]->main());
  if (factor_ == 0) gpus_[p]->scale(k, size(), sums(p, k));
}

template <typename T>
void Machine<T>::do_phase(int phase, int p, int k) {
  if (exchange_ == Exchange::kNone) {
    if (phase == kMultiply) multiply(p, 0);  // every step is the same
    return;
  }
  if (phase == kAnnounce) announce(p, k);
  if (phase == kFetch) fetch(p, k);
  if (phase == kMultiply) multiply(p, k);
  if (phase == kFinish) finish(p, k);
}

// --- Many steps ---------------------------------------------------------------------------------

template <typename T>
void Machine<T>::run_loop(int first, int steps) {
  for (int k = first; k < first + steps; ++k) {
    for (int phase = 0; phase < kPhases; ++phase) {
      // Sends and receives that meet each other are asked for as one.
      if (nccl_ && phase == kFetch) Nccl::begin();
      for (int p = 0; p < size(); ++p) {
        const device::OnDevice on(device_of(p));
        do_phase(phase, p, k);
      }
      if (nccl_ && phase == kFetch) Nccl::end();
    }
  }
}

// An event must have been recorded before another thread asks a stream to wait for it: hence the
// two meetings. (A third, before events are recorded anew, is not needed. Between a GPU's two
// records of one event all threads meet once, behind their waits for the first.)
template <typename T>
void Machine<T>::run_threads(int steps) {
  crew_->run([&](int p) {
    std::exception_ptr error;
    for (int k = 0; k < steps; ++k) {
      for (int phase = 0; phase < kPhases; ++phase) {
        try {
          if (!error) do_phase(phase, p, k);
        } catch (...) {
          error = std::current_exception();  // the others must not wait for this thread in vain
        }
        const bool others_wait = phase == kAnnounce || phase == kMultiply;
        if (others_wait && exchange_ != Exchange::kNone) crew_->meet();
      }
    }
    if (error) std::rethrow_exception(error);
    gpus_[p]->main().synchronize();
  });
}

// What `work` asks of the streams, as one graph. All of them part from GPU 0's main stream, and
// meet in it again.
template <typename T>
cudaGraphExec_t Machine<T>::capture(const std::function<void()>& work) {
  const device::OnDevice on(0);
  const device::Stream& origin = gpus_[0]->main();
  device::check(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeRelaxed),
                "beginning a graph");
  cudaGraph_t graph = nullptr;
  try {
    fork_[0].record(origin);
    for (int p = 1; p < size(); ++p) fork_[0].hold(gpus_[p]->main());
    work();
    for (int p = 1; p < size(); ++p) {
      const device::OnDevice there(device_of(p));
      join_[p].record(gpus_[p]->main());
      join_[p].hold(origin);
    }
  } catch (...) {
    cudaStreamEndCapture(origin.get(), &graph);  // the streams can be used again
    cudaGetLastError();
    throw;
  }
  device::check(cudaStreamEndCapture(origin.get(), &graph), "ending a graph");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  device::check(status, "making a graph");
  return executable;
}

template <typename T>
void Machine<T>::prepare(int steps) {
  const auto renew = [this](cudaGraphExec_t& graph, int& has, int wants) {
    if (has == wants) return;
    if (graph) cudaGraphExecDestroy(std::exchange(graph, nullptr));
    graph = capture([&] { run_loop(0, wants); });
    has = wants;
  };
  if (!graph_ && !rest_) {
    // What a first launch sets up cannot be set up within a graph. (This overwrites what step 0
    // will.)
    run_loop(0, 1);
    wait();
  }
  if (steps >= kGraphSteps) renew(graph_, graph_steps_, kGraphSteps);
  if (steps % kGraphSteps != 0) renew(rest_, rest_steps_, steps % kGraphSteps);
}

template <typename T>
void Machine<T>::run(int steps, Drive drive) {
  if (drive == Drive::kThreads) return run_threads(steps);
  const device::OnDevice on(0);
  if (drive == Drive::kLoop) {
    run_loop(0, steps);
    return wait();
  }
  prepare(steps);
  const device::Stream& origin = gpus_[0]->main();
  for (int k = 0; k + kGraphSteps <= steps; k += kGraphSteps) {
    device::check(cudaGraphLaunch(graph_, origin.get()), "launching a graph");
  }
  if (steps % kGraphSteps != 0) {
    device::check(cudaGraphLaunch(rest_, origin.get()), "launching a graph");
  }
  origin.synchronize();
}

template <typename T>
void Machine<T>::wait() {
  for (const auto& gpu : gpus_) {
    const device::OnDevice on(gpu->device());
    gpu->main().synchronize();
  }
}

// As a graph of one step with two points in time for each GPU: so no thread of the host, busy with
// another GPU, keeps one waiting.
template <typename T>
std::vector<double> Machine<T>::time_each(int steps) {
  std::vector<device::Event> begin, end;
  for (int p = 0; p < size(); ++p) {
    const device::OnDevice on(device_of(p));
    begin.emplace_back();
    end.emplace_back();
  }
  run_loop(0, 1);
  wait();
  const cudaGraphExec_t graph = capture([&] {
    for (int phase = 0; phase < kPhases; ++phase) {
      if (nccl_ && phase == kFetch) Nccl::begin();
      for (int p = 0; p < size(); ++p) {
        const device::OnDevice on(device_of(p));
        if (phase == kAnnounce) begin[p].record_time(gpus_[p]->main());
        do_phase(phase, p, 0);
        if (phase == kMultiply) end[p].record_time(gpus_[p]->main());
      }
      if (nccl_ && phase == kFetch) Nccl::end();
    }
  });
  const device::OnDevice on(0);
  const device::Stream& origin = gpus_[0]->main();
  std::vector<double> milliseconds(gpus_.size(), 0);
  for (int step = -1; step < steps; ++step) {  // the first does not count
    device::check(cudaGraphLaunch(graph, origin.get()), "launching a graph");
    origin.synchronize();
    for (int p = 0; p < size() && step >= 0; ++p) {
      milliseconds[p] += end[p].milliseconds_since(begin[p]) / steps;
    }
  }
  cudaGraphExecDestroy(graph);
  return milliseconds;
}

// --- Before and after ---------------------------------------------------------------------------

template <typename T>
void Machine<T>::start(const std::vector<T>& x) {
  crew_->run([&](int p) { gpus_[p]->set_x(x, exchange_ == Exchange::kNone); });
}

template <typename T>
std::vector<T> Machine<T>::x_of(int k) {
  std::vector<T> x(rows_);
  crew_->run([&](int p) { gpus_[p]->get_x(exchange_ == Exchange::kNone ? 1 : k, x); });
  return x;
}

template <typename T>
double Machine<T>::squares_of(int k) {
  const device::OnDevice on(0);
  std::vector<double> sums_of_parts(gpus_.size());
  device::check(cudaMemcpy(sums_of_parts.data(), sums(0, k), gpus_.size() * sizeof(double),
                           cudaMemcpyDefault),
                "copying sums");
  double squares = 0;
  for (const double sum : sums_of_parts) squares += sum;
  return squares;
}

template <typename T>
double Machine<T>::factor_of(int k) {
  if (exchange_ == Exchange::kNone) return 1;
  return factor_ != 0 ? factor_ : 1 / power_of_norm(squares_of(k));
}

template <typename T>
void Machine<T>::keep_factor(double factor) {
  factor_ = factor;
  for (cudaGraphExec_t* graph : {&graph_, &rest_}) {
    if (*graph) cudaGraphExecDestroy(std::exchange(*graph, nullptr));
  }
  graph_steps_ = rest_steps_ = 0;
}

template class Machine<float>;
template class Machine<double>;

}  // namespace spmv::multigpu
