#include "machine.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "device/devices.hpp"
#include "step_on_gpu.cuh"
#include "transports.cuh"

namespace spmv::multigpu {
namespace {

constexpr int kGraphSteps = 10;  // even: a graph leaves x where it found it

}  // namespace

// --- Setting up ---------------------------------------------------------------------------------

template <typename T>
Machine<T>::Machine(std::vector<Part<T>> parts, const Kernel& kernel, const Setup& setup)
    : exchange_(setup.exchange) {
  const int count = static_cast<int>(parts.size());
  devices_ = device::available_devices(setup.devices > 0 ? setup.devices : count);
  if (exchange_ == Exchange::kNccl && devices_ < count) {
    throw Unsuitable("NCCL needs a GPU for each part");
  }
  for (int p = 0; p < count; ++p) {
    cuts_.push_back(parts[p].first_row);
    here_.push_back(p);
    device_of_.push_back(p % devices_);
  }
  cuts_.push_back(cuts_.back() + parts.back().rows());
  Transfers transfers = plan_transfers(parts, exchange_);
  set_up(std::move(parts), transfers, kernel);
  if (exchange_ != Exchange::kNone) {
    transport_ = transport_within(setup.peer_access, std::move(transfers.all));
  }
}

template <typename T>
Machine<T>::Machine(Part<T> part, int p, const std::vector<Index>& cuts, int device,
                    const Transfers& transfers, const Kernel& kernel, const MakeTransport& make)
    : exchange_(Exchange::kPacked), cuts_(cuts), here_{p}, device_of_(cuts.size() - 1) {
  device_of_[p] = device;
  std::vector<Part<T>> parts;
  parts.push_back(std::move(part));
  set_up(std::move(parts), transfers, kernel);
  const device::OnDevice on(device);
  transport_ = make(gpus_);
}

template <typename T>
void Machine<T>::set_up(std::vector<Part<T>> parts_here, const Transfers& transfers,
                        const Kernel& kernel) {
  std::vector<int> devices;
  for (const int p : here_) devices.push_back(device_of_[p]);
  gpus_.resize(device_of_.size());
  crew_ = std::make_unique<Crew>(devices);
  crew_->run([&](int i) {
    const int p = here_[i];
    gpus_[p] = std::make_unique<StepOnGpu<T>>(p, device_of_[p], std::move(parts_here[i]),
                                              transfers.packed[p], kernel, exchange_);
  });
  for (const int device : devices) {
    const device::OnDevice on(device);
    edges_.push_back(device::Event::untimed());
  }
}

// Finds out which GPUs reach each other's memory, and chooses what suits them.
template <typename T>
std::unique_ptr<Transport<T>> Machine<T>::transport_within(bool allow_peers,
                                                           std::vector<Transfer> transfers) {
  using SumsOn = typename Transport<T>::SumsOn;
  std::vector<std::vector<bool>> reaches(size(), std::vector<bool>(size(), true));
  SumsOn where = SumsOn::kDevices;
  for (int p = 0; p < size(); ++p) {
    for (int q = 0; q < size(); ++q) {
      if (p == q) continue;
      const int from = device_of_[p], to = device_of_[q];
      reaches[p][q] = allow_peers && (from == to || device::enable_peer_access(from, to));
      if (reaches[p][q]) continue;
      if (where == SumsOn::kDevices) {
        remark_ = allow_peers ? "GPUs " + std::to_string(p) + " and " + std::to_string(q) +
                                    " have no access to each other's memory"
                              : "peer access is not used";
      }
      where = SumsOn::kHost;
    }
  }
  const bool all_reach_all = where == SumsOn::kDevices;
  if (exchange_ == Exchange::kNccl) {
    return std::make_unique<NcclTransport<T>>(gpus_, where, std::move(transfers),
                                              std::make_unique<Nccl>(device_of_));
  }
  if (exchange_ == Exchange::kLoads || exchange_ == Exchange::kStores) {
    const bool loads = exchange_ == Exchange::kLoads;
    if (!all_reach_all) {
      throw Unsuitable(remark_ + ", and peer " + (loads ? "loads" : "stores") +
                       " need it: use --exchange packed");
    }
    if (loads) return std::make_unique<Loads<T>>(gpus_, cuts_);
    return std::make_unique<Stores<T>>(gpus_, std::move(transfers));
  }
  if (!all_reach_all) remark_ += ": entries of x go through the host";
  return std::make_unique<Copies<T>>(gpus_, where, std::move(transfers), reaches);
}

template <typename T>
Machine<T>::~Machine() {
  graphs_.clear();
  for (const int p : here_) {
    cudaSetDevice(device_of_[p]);
    cudaDeviceSynchronize();
  }
  transport_.reset();
  for (const int p : here_) {
    cudaSetDevice(device_of_[p]);
    gpus_[p].reset();
  }
  cudaSetDevice(0);
}

// --- Steps --------------------------------------------------------------------------------------

template <typename T>
void Machine<T>::do_phase(int phase, int p, int k) {
  StepOnGpu<T>& gpu = *gpus_[p];
  if (exchange_ == Exchange::kNone) {
    if (phase == kMultiply) gpu.multiply_alone();
    return;
  }
  if (phase == kAnnounce) gpu.announce(*transport_, k);
  if (phase == kFetch) gpu.fetch(*transport_, k);
  if (phase == kMultiply) gpu.multiply(*transport_, k, factor_);
  if (phase == kFinish) gpu.finish(*transport_, k, factor_);
}

template <typename T>
void Machine<T>::run_loop(int steps, const std::function<void(int, int)>& mark) {
  for (int k = 0; k < steps; ++k) {
    for (int phase = 0; phase < kPhases; ++phase) {
      if (transport_ && phase == kFetch) transport_->begin_group();
      for (const int p : here_) {
        const device::OnDevice on(device_of_[p]);
        if (mark) mark(phase, p);
        do_phase(phase, p, k);
      }
      if (transport_ && phase == kFetch) transport_->end_group();
    }
  }
}

// An event must have been recorded before another thread asks a stream to wait for it: hence the
// two meetings. (A third, before events are recorded anew, is not needed. Between a GPU's two
// records of one event all threads meet once, after they have asked for their waits for the first.)
template <typename T>
void Machine<T>::run_threads(int steps) {
  crew_->run([&](int p) {
    std::exception_ptr error;
    for (int k = 0; k < steps; ++k) {
      for (int phase = 0; phase < kPhases; ++phase) {
        try {
          if (!error) do_phase(phase, p, k);
        } catch (...) {
          error = std::current_exception();  // the others must not wait for this thread for ever
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
Graph Machine<T>::capture(const std::function<void()>& work) {
  const device::OnDevice on(0);
  const device::Stream& origin = gpus_[0]->main();
  device::check(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeRelaxed),
                "beginning a graph");
  cudaGraph_t graph = nullptr;
  try {
    edges_[0].record(origin);
    for (int p = 1; p < size(); ++p) edges_[0].hold(gpus_[p]->main());
    work();
    for (int p = 1; p < size(); ++p) {
      const device::OnDevice there(device_of_[p]);
      edges_[p].record(gpus_[p]->main());
      edges_[p].hold(origin);
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
  return Graph(executable);
}

template <typename T>
void Machine<T>::prepare(int steps) {
  if (graphs_.empty()) {
    // What a first launch sets up cannot be set up within a graph. (This overwrites what step 0
    // will.)
    run_loop(1);
    wait();
  }
  for (const int length : {steps < kGraphSteps ? 0 : kGraphSteps, steps % kGraphSteps}) {
    if (length == 0 || graphs_.contains(length)) continue;
    graphs_[length] = capture([&] { run_loop(length); });
  }
}

template <typename T>
void Machine<T>::run(int steps, Drive drive) {
  if (drive == Drive::kThreads) return run_threads(steps);
  if (drive == Drive::kLoop) {
    run_loop(steps);
    return wait();
  }
  const device::OnDevice on(0);
  prepare(steps);
  const device::Stream& origin = gpus_[0]->main();
  for (int left = steps; left > 0;) {
    const int length = std::min(left, kGraphSteps);
    device::check(cudaGraphLaunch(graphs_[length].get(), origin.get()), "launching a graph");
    left -= length;
  }
  origin.synchronize();
}

template <typename T>
void Machine<T>::wait() {
  for (const int p : here_) {
    const device::OnDevice on(device_of_[p]);
    gpus_[p]->main().synchronize();
  }
}

// As a graph of one step with two points in time for each GPU: so no thread of the host, busy with
// another GPU, keeps one waiting.
template <typename T>
std::vector<double> Machine<T>::time_each(int steps) {
  std::vector<device::Event> begin, end;
  for (const int device : device_of_) {
    const device::OnDevice on(device);
    begin.emplace_back();
    end.emplace_back();
  }
  run_loop(1);
  wait();
  const Graph graph = capture([&] {
    run_loop(1, [&](int phase, int p) {
      if (phase == kAnnounce) begin[p].record_time(gpus_[p]->main());
      if (phase == kFinish) end[p].record_time(gpus_[p]->main());
    });
  });
  const device::OnDevice on(0);
  const device::Stream& origin = gpus_[0]->main();
  std::vector<double> milliseconds(gpus_.size(), 0);
  for (int step = -1; step < steps; ++step) {  // the first does not count
    device::check(cudaGraphLaunch(graph.get(), origin.get()), "launching a graph");
    origin.synchronize();
    for (int p = 0; p < size() && step >= 0; ++p) {
      milliseconds[p] += end[p].milliseconds_since(begin[p]) / steps;
    }
  }
  return milliseconds;
}

// --- Before and after ---------------------------------------------------------------------------

template <typename T>
void Machine<T>::start(const std::vector<T>& x) {
  crew_->run([&](int i) { gpus_[here_[i]]->set_x(x); });
}

template <typename T>
std::vector<T> Machine<T>::x_of(int k) {
  std::vector<T> x(cuts_.back());
  crew_->run([&](int i) { gpus_[here_[i]]->get_x(k, x); });
  return x;
}

template <typename T>
double Machine<T>::factor_of(int k) {
  if (exchange_ == Exchange::kNone) return 1;
  if (factor_ != 0) return factor_;
  std::vector<double> sums(gpus_.size());
  device::check(cudaMemcpy(sums.data(), transport_->sums(here_[0], k), sums.size() * sizeof(double),
                           cudaMemcpyDefault),
                "copying sums");
  return 1 / power_of_norm(std::accumulate(sums.begin(), sums.end(), 0.0));
}

template <typename T>
void Machine<T>::keep_factor(double factor) {
  factor_ = factor;
  graphs_.clear();  // which have it in them
}

template class Machine<float>;
template class Machine<double>;

}  // namespace spmv::multigpu
