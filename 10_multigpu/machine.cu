#include "machine.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "device/devices.hpp"
#include "persistent.hpp"
#include "step_on_gpu.cuh"

namespace spmv::multigpu {

// --- All machines -------------------------------------------------------------------------------

template <typename T>
Machine<T>::Machine(const std::vector<Part<T>>& parts, const Setup& setup,
                    const Processes& processes)
    : processes_(processes),
      here_(processes.here(parts.size())),
      layouts_(parts.begin(), parts.end()),
      cuts_(parts.size() + 1) {
  processes_.together([&] {
    const int count = static_cast<int>(here_.size());
    devices_ =
        device::available_devices(setup.devices > 0 ? std::min(setup.devices, count) : count);
  });
  std::vector<Index> rows(parts.size());
  for (const int p : here_) rows[p] = parts[p].rows();
  processes_.gather(rows);
  std::partial_sum(rows.begin(), rows.end(), cuts_.begin() + 1);
}

template <typename T>
int Machine<T>::device_of(int part) const {
  return processes_.first_device() + (part - here_.front()) % devices_;
}

template <typename T>
std::vector<T> Machine<T>::x_of(int k) {
  std::vector<T> whole(cuts_.back());
  processes_.together([&] {
    for (const int p : here_) {
      const device::OnDevice on(device_of(p));
      layouts_[p].put_back(own_x(p, k).data(), whole);
    }
  });
  processes_.gather(whole, cuts_);
  return whole;
}

std::unique_ptr<Transport<float>> Processes::make_transport(const AllGpus<float>&) const {
  return nullptr;
}
std::unique_ptr<Transport<double>> Processes::make_transport(const AllGpus<double>&) const {
  return nullptr;
}

// --- Steps for which the host asks ---------------------------------------------------------------

namespace {

constexpr int kGraphSteps = 10;  // even: a graph leaves x where it found it

using Graph = device::Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

// Within a process: each receiver copies the entries that it needs from their owner's memory or,
// where the two GPUs cannot reach each other, the owner copies them to pinned memory of the host
// first.
template <typename T>
class Copies final : public Transport<T> {
 public:
  // through_host: owners and receivers between which entries go through the host.
  Copies(const AllGpus<T>& gpus, const std::set<std::pair<int, int>>& through_host) : gpus_(gpus) {
    for (const auto& gpu : gpus_) {
      for (const Send& send : gpu->layout.sends) {
        const std::pair key(gpu->number, send.receiver);
        if (through_host.contains(key)) stages_[key] = device::Pinned<T>(send.count());
      }
    }
  }
  void send(StepOnGpu<T>& gpu, int k) override {
    gpu.pack(k);
    for (const Send& send : gpu.layout.sends) {
      const auto stage = stages_.find({gpu.number, send.receiver});
      if (stage == stages_.end()) continue;
      copy_entries(stage->second.data(), gpu.source(send, k), send.count(), gpu.main);
    }
  }
  void receive(StepOnGpu<T>& gpu, int k) override {
    for (const Halo& halo : gpu.layout.halos) {
      StepOnGpu<T>& owner = *gpus_[halo.owner];
      owner.ready.hold(gpu.comm);
      const auto stage = stages_.find({halo.owner, gpu.number});
      copy_entries(gpu.x(k) + halo.ghost_begin,
                   stage != stages_.end() ? stage->second.data()
                                          : owner.source(owner.layout.send_to(gpu.number), k),
                   halo.count(), gpu.comm);
    }
  }
  void meet(StepOnGpu<T>& gpu) override {
    for (const auto& other : gpus_) other->done.hold(gpu.main);
  }

 private:
  const AllGpus<T>& gpus_;
  std::map<std::pair<int, int>, device::Pinned<T>> stages_;  // by owner and receiver
};

// The host asks for the steps, by kLoop or, in one process, by kGraph.
template <typename T>
class HostMachine final : public Machine<T> {
 public:
  HostMachine(const std::vector<Part<T>>& parts, const Kernel& kernel, const Setup& setup,
              const Processes& processes)
      : Machine<T>(parts, setup, processes),
        exchanges_(setup.exchange != Exchange::kNone),
        gpus_(parts.size()) {
    processes_.together([&] {
      for (const int p : here_) {
        const device::OnDevice on(this->device_of(p));
        gpus_[p] = std::make_unique<StepOnGpu<T>>(p, this->device_of(p), parts[p], layouts_[p],
                                                  kernel, !exchanges_);
      }
      transport_ = processes_.make_transport(gpus_);
      capturable_ = !transport_;
      if (exchanges_ && !transport_) transport_ = transport_within(setup.peer_access);
    });
  }

  ~HostMachine() override {
    for (const auto& gpu : gpus_) {
      if (!gpu) continue;
      // A step that failed may have left work behind.
      cudaStreamSynchronize(gpu->comm.get());
      cudaStreamSynchronize(gpu->main.get());
    }
  }

  void keep_factor(double factor) override {
    factor_ = factor;
    graphs_.clear();  // which have it in them
  }

  void start(const std::vector<T>& x) override {
    processes_.together([&] {
      each([&](StepOnGpu<T>& gpu) {
        // All but the x of step 0 is NaN, so that a transfer that is missing or late shows.
        std::vector<T> local = exchanges_ ? nans<T>(gpu.buffers[0].size()) : x;
        if (exchanges_) layouts_[gpu.number].take(x, local);
        gpu.buffers[0].upload(local);
        gpu.buffers[1].upload(nans<T>(gpu.buffers[1].size()));
      });
    });
  }

  double run(int steps, Drive drive) override {
    std::chrono::duration<double, std::milli> time{};
    processes_.together([&] {
      if (drive == Drive::kGraph) prepare(steps);
      const auto before = std::chrono::steady_clock::now();
      if (drive == Drive::kLoop) {
        for (int k = 0; k < steps; ++k) queue_step(k);
      } else {
        const device::OnDevice on(0);
        for (int left = steps; left > 0; left -= kGraphSteps) {
          const int length = std::min(left, kGraphSteps);
          device::check(cudaGraphLaunch(graphs_[length].get(), gpus_[0]->main.get()),
                        "launching a graph");
        }
      }
      wait();
      time = std::chrono::steady_clock::now() - before;
    });
    return time.count();
  }

  // As a graph of one step with two points in time for each GPU: so no thread of the host, busy
  // with another GPU, keeps one waiting.
  std::vector<double> time_each(int steps) override {
    if (processes_.count() > 1 || !capturable_) return {};
    std::vector<device::Event> begin, end;
    each([&](StepOnGpu<T>&) {
      begin.emplace_back();
      end.emplace_back();
    });
    queue_step(0);
    wait();
    const Graph graph = capture([&] {
      queue_step(
          0, [&](StepOnGpu<T>& gpu) { begin[gpu.number].record_time(gpu.main); },
          [&](StepOnGpu<T>& gpu) { end[gpu.number].record_time(gpu.main); });
    });
    const device::OnDevice on(0);
    const device::Stream& origin = gpus_[0]->main;
    std::vector<double> milliseconds(gpus_.size(), 0);
    for (int step = -1; step < steps; ++step) {  // the first does not count
      device::check(cudaGraphLaunch(graph.get(), origin.get()), "launching a graph");
      origin.synchronize();
      for (std::size_t p = 0; p < gpus_.size() && step >= 0; ++p) {
        milliseconds[p] += end[p].milliseconds_since(begin[p]) / steps;
      }
    }
    return milliseconds;
  }

 private:
  using Machine<T>::processes_, Machine<T>::here_, Machine<T>::layouts_, Machine<T>::remark_,
      Machine<T>::factor_;
  using OnEach = std::function<void(StepOnGpu<T>&)>;

  std::vector<T> own_x(int part, int k) override {
    return gpus_[part]->buffers[exchanges_ ? k % 2 : 1].download();
  }

  // Finds out which GPUs reach each other's memory.
  std::unique_ptr<Transport<T>> transport_within(bool allow_peers) {
    std::set<std::pair<int, int>> through_host;
    for (const int p : here_) {
      for (const int q : here_) {
        const int from = this->device_of(p), to = this->device_of(q);
        if (p == q || (allow_peers && (from == to || device::enable_peer_access(from, to))))
          continue;
        through_host.insert({q, p});
        remark_ = allow_peers ? "GPUs " + std::to_string(q) + " and " + std::to_string(p) +
                                    " have no access to each other's memory"
                              : "peer access is not used";
        remark_ += ": entries of x go through the host";
        this->uses_host_ = true;
      }
    }
    return std::make_unique<Copies<T>>(gpus_, through_host);
  }

  void each(const OnEach& work) {
    for (const int p : here_) {
      const device::OnDevice on(this->device_of(p));
      work(*gpus_[p]);
    }
  }

  void queue_step(int k, const OnEach& begin = {}, const OnEach& end = {}) {
    if (begin) each(begin);
    if (transport_) {
      each([&](StepOnGpu<T>& gpu) { gpu.announce(*transport_, k); });
      each([&](StepOnGpu<T>& gpu) { gpu.fetch(*transport_, k); });
      each([&](StepOnGpu<T>& gpu) { gpu.multiply(*transport_, k, static_cast<T>(factor_)); });
    } else {
      each([](StepOnGpu<T>& gpu) { gpu.multiply_alone(); });
    }
    if (end) each(end);
    if (transport_) each([&](StepOnGpu<T>& gpu) { transport_->meet(gpu); });
  }

  // What `work` asks of the streams, as one graph. All of them part from GPU 0's main stream, and
  // meet in it again.
  Graph capture(const std::function<void()>& work) {
    const device::OnDevice on(0);
    const device::Stream& origin = gpus_[0]->main;
    std::vector<device::Event> edges;  // from GPU 0 to the others, and back from each
    each([&](StepOnGpu<T>&) { edges.push_back(device::Event::untimed()); });
    device::check(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeRelaxed),
                  "beginning a graph");
    cudaGraph_t graph = nullptr;
    try {
      edges[0].record(origin);
      for (std::size_t p = 1; p < gpus_.size(); ++p) edges[0].hold(gpus_[p]->main);
      work();
      for (std::size_t p = 1; p < gpus_.size(); ++p) {
        const device::OnDevice there(gpus_[p]->device_number);
        edges[p].record(gpus_[p]->main);
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

  void prepare(int steps) {
    if (graphs_.empty()) {
      // What a first launch sets up cannot be set up within a graph. (This does what step 0 will do
      // again.)
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

  void wait() {
    each([](StepOnGpu<T>& gpu) { gpu.main.synchronize(); });
  }

  bool exchanges_;
  bool capturable_ = true;  // not what processes exchange: the host waits within it
  AllGpus<T> gpus_;
  std::unique_ptr<Transport<T>> transport_;  // null for kNone
  std::map<int, Graph> graphs_;              // by their number of steps
};

}  // namespace

template <typename T>
std::unique_ptr<Machine<T>> make_machine(const std::vector<Part<T>>& parts, const Kernel& kernel,
                                         const Setup& setup, const Processes& processes) {
  if (setup.exchange != Exchange::kStores) {
    return std::make_unique<HostMachine<T>>(parts, kernel, setup, processes);
  }
  if (!setup.peer_access && parts.size() > 1) {
    throw Unsuitable("peer access is not used, and stores need it: use --exchange packed");
  }
  return make_persistent(parts, setup, processes);
}

template class Machine<float>;
template class Machine<double>;
template std::unique_ptr<Machine<float>> make_machine(const std::vector<Part<float>>&,
                                                      const Kernel&, const Setup&,
                                                      const Processes&);
template std::unique_ptr<Machine<double>> make_machine(const std::vector<Part<double>>&,
                                                       const Kernel&, const Setup&,
                                                       const Processes&);

}  // namespace spmv::multigpu
