#include "machine.hpp"

#include <algorithm>
#include <chrono>
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
Machine<T>::Machine(const std::vector<Part<T>>& parts, const Kernel& kernel, const Setup& setup,
                    const Processes& processes, const MakeTransport& make)
    : exchange_(setup.exchange), gpus_(parts.size()) {
  const std::vector<int> numbers = processes.here(parts.size());
  std::vector<Index> rows(parts.size());
  processes.together([&] {
    const int here = static_cast<int>(numbers.size());
    devices_ = device::available_devices(setup.devices > 0 ? setup.devices : here);
    Transfers transfers = plan_transfers(parts, make || exchange_ == Exchange::kStores, processes);
    int i = 0;
    for (const int p : numbers) {
      const int device = setup.first_device + i++ % devices_;
      const device::OnDevice on(device);
      gpus_[p] = std::make_unique<StepOnGpu<T>>(p, device, parts[p], transfers.packed[p], kernel,
                                                exchange_);
      rows[p] = parts[p].rows();
    }
    const device::OnDevice on(setup.first_device);
    if (make) {
      transport_ = make(gpus_, std::move(transfers.all));
    } else if (exchange_ != Exchange::kNone) {
      transport_ = transport_within(setup.peer_access, std::move(transfers.all));
    }
  });
  processes.gather(rows.data(), sizeof(Index));
  rows_ = std::accumulate(rows.begin(), rows.end(), Index{0});
}

// Finds out which GPUs reach each other's memory, and chooses what suits them.
template <typename T>
std::unique_ptr<Transport<T>> Machine<T>::transport_within(bool allow_peers,
                                                           std::vector<Transfer> transfers) {
  std::vector<std::vector<bool>> reaches(size(), std::vector<bool>(size(), true));
  for (int p = 0; p < size(); ++p) {
    for (int q = 0; q < size(); ++q) {
      const int from = gpus_[p]->device(), to = gpus_[q]->device();
      if (p == q || (allow_peers && (from == to || device::enable_peer_access(from, to)))) continue;
      reaches[p][q] = false;
      if (!remark_.empty()) continue;
      remark_ = allow_peers ? "GPUs " + std::to_string(p) + " and " + std::to_string(q) +
                                  " have no access to each other's memory"
                            : "peer access is not used";
    }
  }
  const bool all_reach_all = remark_.empty();
  if (exchange_ == Exchange::kStores) {
    if (all_reach_all) return std::make_unique<Stores<T>>(gpus_, std::move(transfers));
    throw Unsuitable(remark_ + ", and peer stores need it: use --exchange packed");
  }
  if (!all_reach_all) remark_ += ": entries of x go through the host";
  using SumsOn = typename Transport<T>::SumsOn;
  return std::make_unique<Copies<T>>(gpus_, std::move(transfers),
                                     all_reach_all ? SumsOn::kDevices : SumsOn::kHost, reaches);
}

template <typename T>
Machine<T>::~Machine() {
  for (const auto& gpu : gpus_) {
    if (!gpu) continue;
    // A step that failed may have left work behind.
    cudaStreamSynchronize(gpu->comm().get());
    cudaStreamSynchronize(gpu->main().get());
  }
}

// --- Steps --------------------------------------------------------------------------------------

template <typename T>
void Machine<T>::each(const OnEach& work) {
  for (const auto& gpu : gpus_) {
    if (!gpu) continue;  // another process's
    const device::OnDevice on(gpu->device());
    work(*gpu);
  }
}

template <typename T>
void Machine<T>::queue_step(int k, const OnEach& begin, const OnEach& end) {
  if (begin) each(begin);
  if (transport_) {
    each([&](StepOnGpu<T>& gpu) { gpu.announce(*transport_, k); });
    each([&](StepOnGpu<T>& gpu) { gpu.fetch(*transport_, k); });
    each([&](StepOnGpu<T>& gpu) { gpu.multiply(*transport_, k, factor_); });
  } else {
    each([](StepOnGpu<T>& gpu) { gpu.multiply_alone(); });
  }
  if (end) each(end);
  if (transport_) each([&](StepOnGpu<T>& gpu) { gpu.finish(*transport_, k, factor_); });
}

// What `work` asks of the streams, as one graph. All of them part from GPU 0's main stream, and
// meet in it again.
template <typename T>
Graph Machine<T>::capture(const std::function<void()>& work) {
  const device::OnDevice on(0);
  const device::Stream& origin = gpus_[0]->main();
  std::vector<device::Event> edges;  // from GPU 0 to the others, and back from each
  each([&](StepOnGpu<T>&) { edges.push_back(device::Event::untimed()); });
  device::check(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeRelaxed),
                "beginning a graph");
  cudaGraph_t graph = nullptr;
  try {
    edges[0].record(origin);
    for (int p = 1; p < size(); ++p) edges[0].hold(gpus_[p]->main());
    work();
    for (int p = 1; p < size(); ++p) {
      const device::OnDevice there(gpus_[p]->device());
      edges[p].record(gpus_[p]->main());
      edges[p].hold(origin);
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
    queue_step(0);
    wait();
  }
  for (const int length : {steps < kGraphSteps ? 0 : kGraphSteps, steps % kGraphSteps}) {
    if (length == 0 || graphs_.contains(length)) continue;
    graphs_[length] = capture([&] {
      for (int k = 0; k < length; ++k) queue_step(k);
    });
  }
}

template <typename T>
double Machine<T>::run(int steps, Drive drive) {
  if (drive == Drive::kGraph) prepare(steps);
  const auto before = std::chrono::steady_clock::now();
  if (drive == Drive::kLoop) {
    for (int k = 0; k < steps; ++k) queue_step(k);
  } else {
    const device::OnDevice on(0);
    for (int left = steps; left > 0; left -= kGraphSteps) {
      const int length = std::min(left, kGraphSteps);
      device::check(cudaGraphLaunch(graphs_[length].get(), gpus_[0]->main().get()),
                    "launching a graph");
    }
  }
  wait();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before)
      .count();
}

template <typename T>
void Machine<T>::wait() {
  each([](StepOnGpu<T>& gpu) { gpu.main().synchronize(); });
}

// As a graph of one step with two points in time for each GPU: so no thread of the host, busy with
// another GPU, keeps one waiting.
template <typename T>
std::vector<double> Machine<T>::time_each(int steps) {
  std::vector<device::Event> begin, end;
  each([&](StepOnGpu<T>&) {
    begin.emplace_back();
    end.emplace_back();
  });
  queue_step(0);
  wait();
  const Graph graph = capture([&] {
    queue_step(
        0, [&](StepOnGpu<T>& gpu) { begin[gpu.number()].record_time(gpu.main()); },
        [&](StepOnGpu<T>& gpu) { end[gpu.number()].record_time(gpu.main()); });
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
  each([&](StepOnGpu<T>& gpu) { gpu.set_x(x); });
}

template <typename T>
std::vector<T> Machine<T>::x_of(int k) {
  std::vector<T> x(rows_);
  each([&](StepOnGpu<T>& gpu) { gpu.get_x(k, x); });
  return x;
}

template <typename T>
double Machine<T>::factor_of(int k) {
  if (exchange_ == Exchange::kNone) return 1;
  if (factor_ != 0) return factor_;
  const auto here = std::find_if(gpus_.begin(), gpus_.end(), [](auto& gpu) { return !!gpu; });
  std::vector<double> sums(gpus_.size());
  device::check(cudaMemcpy(sums.data(), transport_->sums((*here)->number(), k),
                           sums.size() * sizeof(double), cudaMemcpyDefault),
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
