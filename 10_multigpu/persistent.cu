#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <set>
#include <string>

#include "../06_pcsr/one_pass/spmv/one_pass.cuh"
#include "device/csr.hpp"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "machine.hpp"
#include "persistent.cuh"

namespace spmv::multigpu {
namespace {

// The parts are on GPUs of this process that reach each other's memory.
class PersistentMachine final : public Machine {
  using Function = void (*)(PartsHere<double>, int);

  struct Device {
    int number = 0;
    int parts = 0;
    long long bytes = 0;
    device::Stream stream;
    device::Buffer<unsigned> stuck{"stuck", 4};
    PartsHere<double> arguments{};
  };

  // A part, and what is in its GPU's memory.
  struct OnGpu {
    device::DeviceCsr<double> csr;
    Device* device = nullptr;
    PersistentPart<double>* view = nullptr;  // what the kernel knows of it
    int lanes = 1;                           // per row, as step 06 would have them; 0: tiles
    device::Buffer<double> x;                // both buffers
    device::Buffer<unsigned> arrivals;       // of each part
    device::Buffer<Tile> tiles;
    device::Buffer<PartialSum<double>> partial_sums;
    device::Buffer<unsigned> unstarted;
    device::Buffer<Neighbour> neighbours;
    device::Buffer<Run<double>> runs;
  };

 public:
  PersistentMachine(std::vector<Part> parts, const Processes& processes,
                    const PersistentOptions& options)
      : Machine(std::move(parts), processes), on_gpu_(parts_.size()) {
    const std::string fault = device::connect_devices(devices_);
    if (!fault.empty()) throw InputError(fault + ", which stores need: use --exchange packed");
    place();
    choose_kernel(options);
    choose_grid(options.blocks);
    for (Device& on : devices_here_) {
      on.arguments = {{}, blocks_, options.most_polls, on.stuck.data(), 1, false};
    }
    each([&](int p) { describe(p, on_gpu_[p]); });
    each([&](int p) { connect(p, on_gpu_[p]); });
  }

  ~PersistentMachine() override {
    for (const Device& on : devices_here_)
      cudaStreamSynchronize(on.stream.get());  // a run may fail
  }

  // With its ghost entries, and no arrivals yet. All else is NaN, so that an entry that is missing
  // or late shows.
  void start(const std::vector<double>& x) override {
    each([&](int p) {
      OnGpu& mine = on_gpu_[p];
      std::vector<double> local(2 * x_distance_, std::numeric_limits<double>::quiet_NaN());
      parts_[p].take(x, local);
      for (const Halo& halo : parts_[p].halos) {
        double* ghost = &local[halo.ghost_begin];
        for (const Index column : halo.columns) *ghost++ = x[column];
      }
      mine.x.upload(local);
      mine.arrivals.upload(std::vector<unsigned>(mine.arrivals.size(), 0));
      mine.device->stuck.upload(std::vector<unsigned>(4, 0));
    });
  }

  const char* drive() const override { return "persistent"; }

  double run(int steps) override {
    const auto before = std::chrono::steady_clock::now();
    // All are launched before any is waited for: they wait for each other.
    for (Device& on : devices_here_) {
      const device::OnDevice current(on.number);
      on.arguments.factor = factor_;
      device::launch_cooperative(
          function_,
          {dim3(blocks_ * on.parts), dim3(threads_), threads_ / 32 * warp_bytes_, on.stream.get()},
          on.arguments, steps);
    }
    for (const Device& on : devices_here_) on.stream.synchronize();
    const std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - before;
    report_stuck();
    return time.count();
  }

 private:
  // Brings the parts to their GPUs.
  void place() {
    devices_here_.reserve(devices_);
    for (int d = 0; d < devices_; ++d) {
      const device::OnDevice on(d);
      devices_here_.emplace_back().number = d;
    }
    each([&](int p) {
      OnGpu& mine = on_gpu_[p];
      mine.csr = device::DeviceCsr<double>(parts_[p].matrix);
      parts_[p].matrix = {};
      mine.device = &devices_here_[device_of(p)];
      mine.view = &mine.device->arguments.part[mine.device->parts++];
      x_distance_ =
          std::max(x_distance_, static_cast<std::size_t>(parts_[p].local_cols + 31) / 32 * 32);
      if (mine.csr.rows == 0) return;
      OnePassPlan<double> plan;
      device::check(plan.create({mine.csr.rows, mine.csr.cols, mine.csr.nnz,
                                 mine.csr.row_offsets.data(), mine.csr.column_indices.data()}),
                    "a plan");
      device::check(plan.prepare(mine.device->stream.get()), "a plan");
      mine.lanes = plan.lanes_per_row();
    });
  }

  void choose_kernel(const PersistentOptions& options) {
    lanes_ = options.lanes_per_row;
    if (lanes_ == PersistentOptions::kBest) {
      bool rows_suit = true;
      for (const OnGpu& part : on_gpu_) {
        rows_suit &= 1 <= part.lanes && part.lanes <= 32;
        lanes_ = std::max(lanes_, part.lanes);
      }
      if (!rows_suit) lanes_ = 0;
    }
    // GPUs that have several parts cannot run persistent_rows_kernel.
    const bool parts_share = devices_ < static_cast<int>(here_.size());
    if (parts_share) lanes_ = 0;
    if (lanes_ == 0) {
      function_ = parts_share ? persistent_tiles_kernel<false, double>
                              : persistent_tiles_kernel<true, double>;
      warp_bytes_ = sizeof(OnePassShared<double>);
      remark_ = "persistent: tiles";
    } else {
      constexpr Function kByLanes[] = {
          persistent_rows_kernel<1, double>,  persistent_rows_kernel<2, double>,
          persistent_rows_kernel<4, double>,  persistent_rows_kernel<8, double>,
          persistent_rows_kernel<16, double>, persistent_rows_kernel<32, double>};
      function_ = kByLanes[std::countr_zero(static_cast<unsigned>(lanes_))];
      remark_ = "persistent: " + std::to_string(lanes_) +
                (lanes_ == 1 ? " lane per row" : " lanes per row");
    }
    if (options.function) function_ = options.function;
  }

  int most_threads() const { return lanes_ ? kPersistentRowsThreads : kPersistentTilesThreads; }

  // Blocks of each part that its GPU holds.
  int resident_blocks(const Device& on) {
    const device::OnDevice current(on.number);
    const std::size_t bytes = most_threads() / 32 * warp_bytes_;
    if (bytes > 0) {
      constexpr auto kMost = cudaFuncAttributeMaxDynamicSharedMemorySize;
      device::check(cudaFuncSetAttribute(function_, kMost, static_cast<int>(bytes)),
                    "shared memory");
      device::limit_shared_memory(function_, 1, bytes);
    }
    return device::resident_blocks(function_, most_threads(), bytes) / on.parts;
  }

  // As many warps as can be resident, or as are of use.
  void choose_grid(int wanted_blocks) {
    long long useful = 1;  // warps
    int fit = std::numeric_limits<int>::max();
    for (const Device& on : devices_here_) fit = std::min(fit, resident_blocks(on));
    for (const OnGpu& part : on_gpu_) {
      const long long rows = part.csr.rows;
      useful = std::max(useful,
                        lanes_ ? device::divide_up(lanes_ * rows, 32LL)
                               : device::divide_up(rows + part.csr.nnz, 1LL * kOnePassLeastItems));
    }
    const int warps = static_cast<int>(std::min(useful, 1LL << 20));
    blocks_ = wanted_blocks > 0 ? wanted_blocks : std::clamp(warps, 1, std::max(fit, 1));
    threads_ = 32 * std::clamp(device::divide_up(warps, blocks_), 1, most_threads() / 32);
  }

  // Tells the kernel of part p all but what it has to do with other parts.
  void describe(int p, OnGpu& mine) {
    mine.x = device::Buffer<double>("x", 2 * x_distance_);
    mine.arrivals = device::Buffer<unsigned>("arrivals", on_gpu_.size());
    mine.device->bytes += static_cast<long long>(mine.csr.bytes() + mine.x.bytes());
    mine.device->arguments.read_once =
        !fits_cache(mine.device->bytes, device::attribute(cudaDevAttrL2CacheSize));
    PersistentPart<double>& view = *mine.view;
    view.rows = mine.csr.rows;
    view.boundary_rows = parts_[p].boundary_rows;
    view.row_offsets = mine.csr.row_offsets.data();
    view.column_indices = mine.csr.column_indices.data();
    view.values = mine.csr.values.data();
    for (int i = 0; i < 2; ++i) view.x[i] = mine.x.data() + i * x_distance_;
    view.x_distance = static_cast<long long>(x_distance_);
    view.own_part = p;
    view.arrivals = mine.arrivals.data() + p;
    const int count = lanes_ ? device::divide_up(view.boundary_rows, 32 / lanes_)
                             : divide_into_tiles(p, mine, view);
    view.boundary_warps = std::min(count, blocks_ * threads_ / 32);
  }

  // Returns how many tiles have boundary rows, which stand first.
  int divide_into_tiles(int p, OnGpu& mine, PersistentPart<double>& view) {
    // As many tiles as one pass has on as many warps, in blocks of its own size.
    const OnePassShape shape =
        one_pass_shape<double>(mine.csr.rows, parts_[p].local_cols, mine.csr.nnz,
                               std::max(blocks_ * threads_ / OnePassPolicy<double>::kThreads, 1),
                               device::attribute(cudaDevAttrL2CacheSize));
    const int count = shape.tile_count;
    mine.tiles = device::Buffer<Tile>("tiles", count + 1);
    mine.partial_sums = device::Buffer<PartialSum<double>>("partial_sums", 2 * count);
    mine.unstarted = device::Buffer<unsigned>("unstarted", count);
    view.product = {count,
                    shape.tile_items,
                    mine.tiles.data(),
                    view.row_offsets,
                    view.column_indices,
                    view.values,
                    mine.partial_sums.data(),
                    mine.unstarted.data()};
    if (count == 0) return 0;
    constexpr int kThreads = 128;
    device::launch(find_tiles_kernel<double>,
                   {dim3(device::divide_up(count + 1, kThreads / 32)), dim3(kThreads)}, count,
                   shape.tile_items, kOnePassOverhang, mine.csr.rows, mine.csr.nnz,
                   view.row_offsets, mine.tiles.data(), mine.partial_sums.data(),
                   mine.unstarted.data());
    device::check(cudaDeviceSynchronize(), "finding tiles");
    const std::vector<Tile> tiles = mine.tiles.download();
    return static_cast<int>(std::count_if(tiles.begin(), tiles.end() - 1, [&](Tile tile) {
      return (tile.row & ~kCutRow) < view.boundary_rows;
    }));
  }

  // The same: its neighbours, and what it sends.
  void connect(int p, OnGpu& mine) {
    std::set<int> neighbours;
    for (const Halo& halo : parts_[p].halos) neighbours.insert(halo.owner);
    std::vector<Run<double>> runs;
    for (const Send& send : parts_[p].sends) {
      neighbours.insert(send.receiver);
      double* ghost = on_gpu_[send.receiver].x.data() + send.ghost_begin;
      const std::size_t before = runs.size();
      for (const Index row : send.sources) {
        if (runs.size() == before || row != runs.back().end) runs.push_back({row, row, ghost});
        ++runs.back().end;
        ++ghost;
      }
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const Run<double>& a, const Run<double>& b) { return a.begin < b.begin; });
    mine.runs = device::Buffer<Run<double>>("runs", runs);
    std::vector<Neighbour> table;
    for (const int q : neighbours) {
      OnGpu& other = on_gpu_[q];
      table.push_back(
          {q, other.arrivals.data() + p, mine.arrivals.data() + q,
           static_cast<unsigned>(device::divide_up(other.view->boundary_warps, threads_ / 32))});
    }
    mine.neighbours = device::Buffer<Neighbour>("neighbours", table);
    mine.view->neighbours = static_cast<int>(table.size());
    mine.view->neighbour = mine.neighbours.data();
    mine.view->runs = static_cast<int>(runs.size());
    mine.view->run = mine.runs.data();
  }

  // Throws where a wait has timed out.
  void report_stuck() {
    for (const Device& on : devices_here_) {
      const std::vector<unsigned> stuck = on.stuck.download();
      if (!stuck[0]) continue;
      throw device::DeviceError(
          "part " + std::to_string(stuck[1]) + ", in step " + std::to_string(stuck[2]) +
          ", timed out waiting for " +
          (stuck[3] == stuck[1] ? "its own blocks" : "part " + std::to_string(stuck[3])) +
          ": another GPU has failed, or is too slow");
    }
  }

  std::vector<double> own_x(int part, int k) override {
    std::vector<double> both = on_gpu_[part].x.download();
    both.erase(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(k % 2 * x_distance_));
    return both;
  }

  Function function_ = nullptr;
  int lanes_ = 0;  // per row; 0: tiles
  int blocks_ = 0, threads_ = 0;
  std::size_t warp_bytes_ = 0;   // of shared memory
  std::size_t x_distance_ = 32;  // between a part's two buffers of x
  std::vector<OnGpu> on_gpu_;    // of each part
  std::vector<Device> devices_here_;
};

}  // namespace

std::unique_ptr<Machine> make_persistent(std::vector<Part> parts, const Processes& processes,
                                         const PersistentOptions& options) {
  return std::make_unique<PersistentMachine>(std::move(parts), processes, options);
}

}  // namespace spmv::multigpu
