#include "machine.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "device/devices.hpp"
#include "device/launch.hpp"
#include "step_on_gpu.hpp"

namespace spmv::multigpu {

// --- All machines -------------------------------------------------------------------------------

Machine::Machine(std::vector<Part> parts, const Processes& processes)
    : processes_(processes),
      here_(processes.here(parts.size())),
      parts_(std::move(parts)),
      cuts_(parts_[here_.front()].cuts) {
  processes_.together([&] {
    const int parts_here = static_cast<int>(here_.size());
    devices_ = device::available_devices(std::min(parts_here, processes_.most_devices));
  });
}

int Machine::device_of(int part) const {
  return processes_.first_device + (part - here_.front()) % devices_;
}

void Machine::each(const std::function<void(int part)>& work) const {
  for (const int p : here_) {
    const device::OnDevice on(device_of(p));
    work(p);
  }
}

std::vector<double> Machine::x_of(int k) {
  std::vector<double> whole(cuts_.back());
  processes_.together([&] {
    each([&](int p) {
      const std::vector<double> x = own_x(p, k);
      const Part& part = parts_[p];
      for (Index i = 0; i < part.rows(); ++i) whole[part.first_row + part.order[i]] = x[i];
    });
  });
  processes_.gather(whole, cuts_);
  return whole;
}

// --- Steps for which the host asks ---------------------------------------------------------------

// Packs the entries of x that other GPUs need, so that one copy per GPU moves them. A part of x
// travels whole in the paper (GPUDirect, section 4), but most matrices need few of another part's
// entries. A thread owns one entry.
template <typename T>
__global__ void pack_kernel(int count, const int* __restrict__ places, const T* __restrict__ x,
                            T* __restrict__ packed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) packed[i] = x[places[i]];
}

void StepOnGpu::pack(int k) {
  constexpr int kThreads = 256;
  const int count = static_cast<int>(packed.size());
  device::launch(pack_kernel<double>,
                 {dim3(device::divide_up(count, kThreads)), dim3(kThreads), 0, main.get()}, count,
                 places_.data(), x(k), packed.data());
}

namespace {

constexpr int kGraphSteps = 10;  // even: a graph leaves x where it found it

using Graph = device::Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using AllGpus = std::vector<std::unique_ptr<StepOnGpu>>;  // null where it is another process's

// Within a process: each receiver copies the entries that it needs from their owner's memory.
class Copies final : public Transport {
 public:
  explicit Copies(const AllGpus& gpus) : gpus_(gpus) {}
  void send(StepOnGpu& gpu, int k) override { gpu.pack(k); }
  void receive(StepOnGpu& gpu, int k) override {
    for (const Halo& halo : gpu.part.halos) {
      StepOnGpu& owner = *gpus_[halo.owner];
      owner.ready.hold(gpu.comm);
      copy_entries(gpu.x(k) + halo.ghost_begin, owner.source(owner.part.send_to(gpu.number), k),
                   halo.count(), gpu.comm);
    }
  }
  void meet(StepOnGpu& gpu) override {
    for (const auto& other : gpus_) other->done.hold(gpu.main);
  }

 private:
  const AllGpus& gpus_;
};

class HostMachine final : public Machine {
 public:
  HostMachine(std::vector<Part> parts, const Kernel& kernel, Exchange exchange,
              const Processes& processes, bool as_graph)
      : Machine(std::move(parts), processes),
        exchanges_(exchange != Exchange::kNone),
        as_graph_(as_graph),
        gpus_(parts_.size()) {
    processes_.together([&] {
      each([&](int p) {
        gpus_[p] = std::make_unique<StepOnGpu>(p, device_of(p), parts_[p], kernel, !exchanges_);
        parts_[p].matrix = {};
      });
      transport_ = processes_.make_transport();
      if (transport_) as_graph_ = false;  // the host waits within its steps
      if (exchanges_ && !transport_) {
        // Where two cannot, copies go through the host, as the CUDA runtime does it, and not in a
        // graph.
        remark_ = device::connect_devices(devices_);
        if (!remark_.empty()) remark_ += ": entries of x go through the host", as_graph_ = false;
        transport_ = std::make_shared<Copies>(gpus_);
      }
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

  const char* drive() const override { return as_graph_ ? "graph" : "loop"; }

  void keep_factor(double factor) override {
    factor_ = factor;
    graph_.reset();  // which has it in it
  }

  void start(const std::vector<double>& x) override {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    processes_.together([&] {
      each_gpu([&](StepOnGpu& gpu) {
        // All but the x of step 0 is NaN, so that a transfer that is missing or late shows.
        std::vector<double> local = x;
        if (exchanges_) {
          local.assign(gpu.buffers[0].size(), kNan);
          gpu.part.take(x, local);
        }
        gpu.buffers[0].upload(local);
        gpu.buffers[1].upload(std::vector<double>(gpu.buffers[1].size(), kNan));
      });
    });
  }

  double run(int steps) override {
    std::chrono::duration<double, std::milli> time{};
    processes_.together([&] {
      if (as_graph_ && steps >= kGraphSteps && !graph_) {
        // What a first launch sets up cannot be set up within a graph. (The run does it again.)
        queue_step(0);
        wait();
        graph_ = capture([&] {
          for (int k = 0; k < kGraphSteps; ++k) queue_step(k);
        });
      }
      const auto before = std::chrono::steady_clock::now();
      int k = 0;
      for (; graph_ && k + kGraphSteps <= steps; k += kGraphSteps) launch(graph_);
      if (k > 0 && k < steps) wait();  // the other GPUs' streams do not know of the graph
      for (; k < steps; ++k) queue_step(k);
      wait();
      time = std::chrono::steady_clock::now() - before;
    });
    return time.count();
  }

  // As a graph of one step with two points in time for each GPU: so no thread of the host, busy
  // with another GPU, keeps one waiting.
  std::vector<double> time_each(int steps) override {
    if (!as_graph_) return {};
    queue_step(0);
    wait();
    const Graph graph = capture([&] {
      each_gpu([&](StepOnGpu& gpu) { gpu.began.record_time(gpu.main); });
      queue_products(0);
      each_gpu([&](StepOnGpu& gpu) { gpu.ended.record_time(gpu.main); });
    });
    std::vector<double> milliseconds(gpus_.size(), 0);
    for (int step = -1; step < steps; ++step) {  // the first does not count
      launch(graph);
      wait();
      if (step < 0) continue;
      each_gpu([&](StepOnGpu& gpu) {
        milliseconds[gpu.number] += gpu.ended.milliseconds_since(gpu.began) / steps;
      });
    }
    return milliseconds;
  }

 private:
  std::vector<double> own_x(int part, int k) override {
    return gpus_[part]->buffers[exchanges_ ? k % 2 : 1].download();
  }

  void each_gpu(const std::function<void(StepOnGpu&)>& work) {
    each([&](int p) { work(*gpus_[p]); });
  }

  void queue_step(int k) {
    queue_products(k);
    if (transport_) each_gpu([&](StepOnGpu& gpu) { transport_->meet(gpu); });
  }

  void queue_products(int k) {
    if (!transport_) return each_gpu([](StepOnGpu& gpu) { gpu.multiply_alone(); });
    each_gpu([&](StepOnGpu& gpu) { gpu.announce(*transport_, k); });
    each_gpu([&](StepOnGpu& gpu) { gpu.fetch(*transport_, k); });
    each_gpu([&](StepOnGpu& gpu) { gpu.multiply(*transport_, k, factor_); });
  }

  // What `work` asks of the streams, as one graph. All of them part from GPU 0's main stream, and
  // meet in it again.
  Graph capture(const std::function<void()>& work) {
    const device::OnDevice on(0);
    const device::Stream& origin = gpus_[0]->main;
    std::vector<device::Event> edges;  // from GPU 0 to the others, and back from each
    each_gpu([&](StepOnGpu&) { edges.push_back(device::Event::untimed()); });
    device::check(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeRelaxed),
                  "beginning a graph");
    cudaGraph_t graph = nullptr;
    edges[0].record(origin);
    for (std::size_t p = 1; p < gpus_.size(); ++p) edges[0].hold(gpus_[p]->main);
    work();
    for (std::size_t p = 1; p < gpus_.size(); ++p) {
      const device::OnDevice there(gpus_[p]->device_number);
      edges[p].record(gpus_[p]->main);
      edges[p].hold(origin);
    }
    device::check(cudaStreamEndCapture(origin.get(), &graph), "ending a graph");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    device::check(status, "making a graph");
    return Graph(executable);
  }

  void launch(const Graph& graph) {
    const device::OnDevice on(0);
    device::check(cudaGraphLaunch(graph.get(), gpus_[0]->main.get()), "launching a graph");
  }

  void wait() {
    each_gpu([](StepOnGpu& gpu) { gpu.main.synchronize(); });
  }

  bool exchanges_, as_graph_;
  AllGpus gpus_;
  std::shared_ptr<Transport> transport_;  // null for kNone
  Graph graph_;                           // of kGraphSteps steps
};

}  // namespace

std::unique_ptr<Machine> make_machine(std::vector<Part> parts, const Kernel& kernel,
                                      Exchange exchange, const Processes& processes,
                                      bool as_graph) {
  if (exchange == Exchange::kStores) return make_persistent(std::move(parts), processes);
  return std::make_unique<HostMachine>(std::move(parts), kernel, exchange, processes, as_graph);
}

}  // namespace spmv::multigpu
