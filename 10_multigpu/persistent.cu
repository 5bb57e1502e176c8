#include "persistent.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "../03_csr_vector/rules.hpp"
#include "../06_pcsr/one_pass/one_pass.cuh"
#include "device/csr.hpp"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "persistent.cuh"
#include "persistent_fast.cuh"

namespace spmv::multigpu {
namespace {

using Word = unsigned long long;

// What step 06 asks of row lengths to choose a path.
template <typename T>
RowsStatistics statistics_of(const device::DeviceCsr<T>& a) {
  const int blocks = std::min(device::divide_up(a.rows, kPrepareThreads), kStatisticsBlocks);
  device::Buffer<RowsStatistics> of_block("statistics", blocks);
  constexpr int kNoShares = 0;
  device::launch(prepare_one_pass_kernel<T>, {dim3(blocks), dim3(kPrepareThreads)}, kNoShares,
                 kNoShares, 0u, a.rows, a.nnz, a.row_offsets.data(), nullptr, nullptr, nullptr,
                 of_block.data());
  RowsStatistics all{};
  for (const RowsStatistics& found : of_block.download()) all.add(found);
  return all;
}

}  // namespace

template <typename T>
struct PersistentMachine<T>::Known {
  int device = 0;
  Index local_cols = 0;
  long long rows = 0, nnz = 0;
  int width = 0;            // what rows_width() wants
  int resident_blocks = 0;  // that its GPU holds
  int boundary_warps = 0;   // warps that have boundary rows
  // What other parts use, at its addresses in this process.
  T* x = nullptr;
  unsigned* arrivals = nullptr;
  Word* norms = nullptr;
  cudaIpcMemHandle_t handles[3] = {};  // of these three, for other processes
};

template <typename T>
struct PersistentMachine<T>::OnGpu {
  Layout layout;
  device::DeviceCsr<T> csr;
  Device* device = nullptr;
  int number_there = 0;               // among the parts on it
  device::Buffer<T> x;                // both buffers
  device::Buffer<unsigned> arrivals;  // of each part
  device::Buffer<Word> norms;
  unsigned tile_items = 0;  // the length of a tile, in rows and nonzeros
  device::Buffer<Tile> tiles;
  device::Buffer<PartialSum<T>> partial_sums;
  device::Buffer<unsigned> unstarted;
  device::Buffer<double> block_sums;
  device::Buffer<Neighbour> neighbours;
  device::Buffer<Run<T>> runs;
};

template <typename T>
struct PersistentMachine<T>::Device {
  int number = 0;
  int parts = 0;
  device::Stream stream;
  device::Buffer<unsigned> stuck{"stuck", 4};
  PartsHere<T> arguments{};
};

// --- Setting up ---------------------------------------------------------------------------------

template <typename T>
PersistentMachine<T>::PersistentMachine(const std::vector<Part<T>>& parts,
                                        const PersistentSetup& setup, const Processes& processes)
    : processes_(processes),
      kernel_(setup.kernel),
      lanes_(setup.lanes_per_row),
      known_(parts.size()),
      on_gpu_(parts.size()) {
  processes_.together([&] { place(parts, setup); });
  gather();
  for (const Known& part : known_) {
    rows_ += static_cast<Index>(part.rows);
    x_distance_ = std::max(x_distance_, static_cast<std::size_t>(part.local_cols + 31) / 32 * 32);
  }
  choose_kernel();
  processes_.together([&] { find_resident_blocks(); });
  gather();
  choose_grid(setup.blocks);
  processes_.together([&] {
    each([&](int p, OnGpu& mine) {
      divide(p, mine);
      allocate(p, mine);
    });
  });
  gather();
  processes_.together([&] {
    open_memory();
    each([&](int p, OnGpu& mine) { describe(p, mine); });
    for (const auto& on : here_) {
      const device::OnDevice current(on->number);
      PartsHere<T>& arguments = on->arguments;
      arguments.blocks = blocks_;
      arguments.parts = this->parts();
      arguments.lanes_per_row = lanes_;
      arguments.most_polls = setup.most_polls;
      arguments.stuck = on->stuck.data();
      std::size_t bytes = 0;
      for (const auto& mine : on_gpu_) {
        if (mine && mine->device == on.get()) bytes += mine->csr.bytes() + mine->x.bytes();
      }
      arguments.read_once =
          !fits_cache(static_cast<long long>(bytes), device::attribute(cudaDevAttrL2CacheSize));
    }
  });
}

template <typename T>
PersistentMachine<T>::~PersistentMachine() {
  for (const auto& on : here_) cudaStreamSynchronize(on->stream.get());  // a run may have failed
  imported_.clear();
  // No process may free what another one has open. (If this one fails, the others may have, too.)
  if (std::uncaught_exceptions() == 0) processes_.together([] {});
}

template <typename T>
template <typename Work>
void PersistentMachine<T>::each(const Work& work) {
  for (int p = 0; p < parts(); ++p) {
    if (!on_gpu_[p]) continue;
    const device::OnDevice on(known_[p].device);
    work(p, *on_gpu_[p]);
  }
}

// Brings the parts of this process to their GPUs.
template <typename T>
void PersistentMachine<T>::place(const std::vector<Part<T>>& parts, const PersistentSetup& setup) {
  const std::vector<int> numbers = processes_.here(parts.size());
  const int here = static_cast<int>(numbers.size());
  devices_ = device::available_devices(setup.devices > 0 ? std::min(setup.devices, here) : here);
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(setup.first_device + d);
    here_.push_back(std::make_unique<Device>());
    here_[d]->number = setup.first_device + d;
  }
  for (int i = 0; i < here; ++i) {
    const int p = numbers[i];
    Device& device = *here_[i % devices_];
    const device::OnDevice on(device.number);
    on_gpu_[p] = std::make_unique<OnGpu>();
    OnGpu& mine = *on_gpu_[p];
    mine.layout = parts[p];
    mine.csr = device::DeviceCsr<T>(parts[p].matrix);
    mine.device = &device;
    mine.number_there = device.parts++;
    Known& known = known_[p];
    known.device = device.number;
    known.local_cols = parts[p].local_cols;
    known.rows = mine.csr.rows;
    known.nnz = mine.csr.nnz;
    if (kernel_ != PersistentKernel::kFast || mine.csr.rows == 0) continue;
    // (Step 06 also asks rows_may_suit_memory(). Here a lane per row is faster for rows of 7
    // nonzeros, too: NOTES.md.)
    const bool fits_l2 = fits_cache(static_cast<long long>(mine.csr.bytes()),
                                    device::attribute(cudaDevAttrL2CacheSize));
    known.width = rows_width(mine.csr.rows, mine.csr.nnz, statistics_of(mine.csr), fits_l2);
  }
}

// What follows from known_ alone is the same in every process.
template <typename T>
void PersistentMachine<T>::choose_kernel() {
  std::set<int> devices;
  long long nnz = 0;
  int width = 0;
  bool rows_suit = true;
  for (const Known& part : known_) {
    devices.insert(part.device);
    nnz += part.nnz;
    rows_suit &= part.width >= 0 && part.width <= 5;
    width = std::max(width, part.width);
  }
  // GPUs that have several parts cannot run persistent_rows_kernel.
  const bool parts_share = static_cast<int>(devices.size()) < parts();
  if (kernel_ == PersistentKernel::kFast) {
    kernel_ = rows_suit ? PersistentKernel::kRows : PersistentKernel::kShares;
    if (lanes_ == 0 && rows_suit && !parts_share) lanes_ = 1 << width;
  }
  if (parts_share && kernel_ != PersistentKernel::kSimple) kernel_ = PersistentKernel::kShares;
  if (lanes_ == 0) lanes_ = lanes_for(rows_, nnz);
  if (kernel_ == PersistentKernel::kSimple) {
    function_ = persistent_kernel<T>;
  } else if (kernel_ == PersistentKernel::kRows) {
    const Function by_lanes[] = {persistent_rows_kernel<1, T>,  persistent_rows_kernel<2, T>,
                                 persistent_rows_kernel<4, T>,  persistent_rows_kernel<8, T>,
                                 persistent_rows_kernel<16, T>, persistent_rows_kernel<32, T>};
    function_ = by_lanes[std::countr_zero(static_cast<unsigned>(lanes_))];
  } else {
    function_ =
        parts_share ? persistent_shares_kernel<false, T> : persistent_shares_kernel<true, T>;
    warp_bytes_ = sizeof(OnePassShared<T>);
  }
}

template <typename T>
std::string PersistentMachine<T>::choice() const {
  if (kernel_ == PersistentKernel::kShares) return "equal shares";
  return std::to_string(lanes_) + (lanes_ == 1 ? " lane" : " lanes") + " per row";
}

template <typename T>
int PersistentMachine<T>::most_threads() const {
  return kernel_ == PersistentKernel::kShares ? kPersistentSharesThreads : kPersistentRowsThreads;
}

// Blocks of each part that its GPU holds. Throws where that cannot reach the others.
template <typename T>
void PersistentMachine<T>::find_resident_blocks() {
  const std::size_t bytes = most_threads() / 32 * warp_bytes_;
  for (const auto& on : here_) {
    for (int p = 0; p < parts(); ++p) {
      const int peer = known_[p].device;
      if (peer == on->number || (on_gpu_[p] ? device::enable_peer_access(on->number, peer)
                                            : device::can_access_peer(on->number, peer))) {
        continue;
      }
      throw Unsuitable("GPUs " + std::to_string(on->number) + " and " + std::to_string(peer) +
                       " have no access to each other's memory, which stores need: use "
                       "--exchange packed");
    }
  }
  each([&](int p, OnGpu& mine) {
    if (bytes > 0) {
      device::check(cudaFuncSetAttribute(function_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(bytes)),
                    "shared memory");
      device::limit_shared_memory(function_, 1, bytes);
    }
    known_[p].resident_blocks =
        device::resident_blocks(function_, most_threads(), bytes) / mine.device->parts;
  });
}

// As many warps as can be resident, or as are of use.
template <typename T>
void PersistentMachine<T>::choose_grid(int wanted_blocks) {
  long long useful = 1;  // warps
  int fit = std::numeric_limits<int>::max();
  for (const Known& part : known_) {
    fit = std::min(fit, part.resident_blocks);
    useful =
        std::max(useful, kernel_ == PersistentKernel::kShares
                             ? device::divide_up(part.rows + part.nnz, 1LL * kOnePassLeastItems)
                             : device::divide_up(lanes_ * part.rows, 32LL));
  }
  const int warps = static_cast<int>(std::min(useful, 1LL << 20));
  blocks_ = wanted_blocks > 0 ? wanted_blocks : std::clamp(warps, 1, std::max(fit, 1));
  threads_ = 32 * std::clamp(device::divide_up(warps, blocks_), 1, most_threads() / 32);
}

// Which warps multiply what, and how many have boundary rows, which stand first.
template <typename T>
void PersistentMachine<T>::divide(int p, OnGpu& mine) {
  const Index boundary_rows = mine.layout.boundary_rows;
  const int warps = blocks_ * threads_ / 32;
  int& boundary_warps = known_[p].boundary_warps;
  boundary_warps = std::min(device::divide_up(boundary_rows, 32 / lanes_), warps);
  if (kernel_ != PersistentKernel::kShares) return;
  // As many shares as one pass has on as many warps, in blocks of its own size.
  const OnePassShape shape =
      one_pass_shape<T>(mine.csr.rows, mine.layout.local_cols, mine.csr.nnz,
                        std::max(blocks_ * threads_ / OnePassPolicy<T>::kThreads, 1),
                        device::attribute(cudaDevAttrL2CacheSize));
  const int count = shape.tile_count;
  mine.tile_items = shape.tile_items;
  mine.tiles = device::Buffer<Tile>("tiles", count + 1);
  mine.partial_sums = device::Buffer<PartialSum<T>>("partial_sums", 2 * count);
  mine.unstarted = device::Buffer<unsigned>("unstarted", count);
  if (count == 0) return;
  constexpr int kThreads = 128;
  device::launch(find_tiles_kernel<T>,
                 {dim3(device::divide_up(count + 1, kThreads / 32)), dim3(kThreads)}, count,
                 mine.tile_items, kOnePassOverhang, mine.csr.rows, mine.csr.nnz,
                 mine.csr.row_offsets.data(), mine.tiles.data(), mine.partial_sums.data(),
                 mine.unstarted.data());
  device::check(cudaDeviceSynchronize(), "finding shares");
  const std::vector<Tile> tiles = mine.tiles.download();
  const auto with_boundary = std::count_if(tiles.begin(), tiles.end() - 1, [&](Tile tile) {
    return (tile.row & ~kCutRow) < boundary_rows;
  });
  boundary_warps = std::min(static_cast<int>(with_boundary), warps);
}

// What a run reads and writes. Other processes learn of it by handles.
template <typename T>
void PersistentMachine<T>::allocate(int p, OnGpu& mine) {
  mine.x = device::Buffer<T>("x", 2 * x_distance_);
  mine.arrivals = device::Buffer<unsigned>("arrivals", parts());
  mine.norms = device::Buffer<Word>("norms", 4 * parts());
  mine.block_sums = device::Buffer<double>("block_sums", 2 * blocks_);
  Known& known = known_[p];
  known.x = mine.x.data();
  known.arrivals = mine.arrivals.data();
  known.norms = mine.norms.data();
  if (std::all_of(on_gpu_.begin(), on_gpu_.end(), [](auto& part) { return !!part; })) return;
  known.handles[0] = device::handle_of(mine.x);
  known.handles[1] = device::handle_of(mine.arrivals);
  known.handles[2] = device::handle_of(mine.norms);
}

template <typename T>
void PersistentMachine<T>::open_memory() {
  for (int p = 0; p < parts(); ++p) {
    if (on_gpu_[p]) continue;
    const device::OnDevice on(here_[0]->number);
    const auto open = [&](int i) { return imported_.emplace_back(known_[p].handles[i]).data(); };
    known_[p].x = static_cast<T*>(open(0));
    known_[p].arrivals = static_cast<unsigned*>(open(1));
    known_[p].norms = static_cast<Word*>(open(2));
  }
}

// Tells the kernel of part p: its neighbours, and what it sends.
template <typename T>
void PersistentMachine<T>::describe(int p, OnGpu& mine) {
  std::set<int> neighbours;
  for (const Halo& halo : mine.layout.halos) neighbours.insert(halo.owner);
  std::vector<Run<T>> runs;
  for (const Send& send : mine.layout.sends) {
    neighbours.insert(send.receiver);
    T* ghost = known_[send.receiver].x + send.ghost_begin;
    const std::size_t before = runs.size();
    for (const Index row : send.sources) {
      if (runs.size() == before || row != runs.back().end) runs.push_back({row, row, ghost});
      ++runs.back().end;
      ++ghost;
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run<T>& a, const Run<T>& b) { return a.begin < b.begin; });
  mine.runs = device::Buffer<Run<T>>("runs", runs);
  std::vector<Neighbour> table;
  for (const int q : neighbours) {
    table.push_back(
        {q, known_[q].arrivals + p, known_[p].arrivals + q,
         static_cast<unsigned>(device::divide_up(known_[q].boundary_warps, threads_ / 32))});
  }
  mine.neighbours = device::Buffer<Neighbour>("neighbours", table);

  PersistentPart<T>& view = mine.device->arguments.part[mine.number_there];
  view.rows = mine.csr.rows;
  view.boundary_rows = mine.layout.boundary_rows;
  view.row_offsets = mine.csr.row_offsets.data();
  view.column_indices = mine.csr.column_indices.data();
  view.values = mine.csr.values.data();
  for (int i = 0; i < 2; ++i) view.x[i] = mine.x.data() + i * x_distance_;
  view.x_distance = static_cast<long long>(x_distance_);
  view.own_part = p;
  view.neighbours = static_cast<int>(table.size());
  view.neighbour = mine.neighbours.data();
  view.runs = static_cast<int>(runs.size());
  view.run = mine.runs.data();
  view.product.tile_count = static_cast<int>(mine.unstarted.size());
  view.product.tile_items = mine.tile_items;
  view.product.tiles = mine.tiles.data();
  view.product.row_offsets = view.row_offsets;
  view.product.column_indices = view.column_indices;
  view.product.values = view.values;
  view.product.partial_sums = mine.partial_sums.data();
  view.product.unstarted = mine.unstarted.data();
  view.boundary_warps = known_[p].boundary_warps;
  view.arrivals = mine.arrivals.data() + p;
  view.block_sums = mine.block_sums.data();
  for (int q = 0; q < parts(); ++q) view.norms[q] = known_[q].norms;
}

// --- Running ------------------------------------------------------------------------------------

// Step 0's x with its ghost entries, and no arrivals yet. All else is NaN, so that an entry that is
// missing or late shows.
template <typename T>
void PersistentMachine<T>::reset() {
  each([&](int, OnGpu& mine) {
    std::vector<T> x(2 * x_distance_, std::numeric_limits<T>::quiet_NaN());
    mine.layout.take(first_x_, x);
    for (const Halo& halo : mine.layout.halos) {
      T* ghost = &x[halo.ghost_begin];
      for (const Index column : halo.columns) *ghost++ = first_x_[column];
    }
    mine.x.upload(x);
    const auto clear = [](auto& buffer) {
      device::check(cudaMemset(buffer.data(), 0, buffer.bytes()), "clearing a buffer");
    };
    clear(mine.arrivals), clear(mine.norms), clear(mine.device->stuck);
    device::check(cudaDeviceSynchronize(), "preparing a run");
  });
}

template <typename T>
double PersistentMachine<T>::run(int steps, Function function) {
  processes_.together([&] {
    if (kernel_ == PersistentKernel::kSimple && factor_ == 0) {
      throw Unsuitable("the simple persistent kernel has no norm");
    }
    reset();
  });
  const auto before = std::chrono::steady_clock::now();
  // All are launched before any is waited for: they wait for each other.
  processes_.together([&] {
    for (const auto& on : here_) {
      const device::OnDevice current(on->number);
      on->arguments.factor = factor_;
      device::launch_cooperative(function,
                                 {dim3(blocks_ * on->parts), dim3(threads_),
                                  threads_ / 32 * warp_bytes_, on->stream.get()},
                                 on->arguments, steps);
    }
  });
  std::chrono::duration<double, std::milli> time{};
  processes_.together([&] {
    for (const auto& on : here_) {
      const device::OnDevice current(on->number);
      on->stream.synchronize();
    }
    time = std::chrono::steady_clock::now() - before;
    for (const auto& on : here_) {
      const device::OnDevice current(on->number);
      const std::vector<unsigned> stuck = on->stuck.download();
      if (!stuck[0]) continue;
      const std::string awaited = stuck[3] == kAnyPart   ? "entries of other parts"
                                  : stuck[3] == stuck[1] ? "its own blocks"
                                                         : "part " + std::to_string(stuck[3]);
      throw device::DeviceError("part " + std::to_string(stuck[1]) + ", in step " +
                                std::to_string(stuck[2]) + ", timed out waiting for " + awaited +
                                ": another GPU has failed, or is too slow");
    }
  });
  return time.count();
}

// --- Results ------------------------------------------------------------------------------------

// What the entries of step k's x, as they are in memory, are multiplied by.
template <typename T>
double PersistentMachine<T>::factor_before(int k) {
  if (factor_ != 0) return factor_;
  if (k == 0) return 1;
  const auto here = std::find_if(on_gpu_.begin(), on_gpu_.end(), [](auto& part) { return !!part; });
  const device::OnDevice on((*here)->device->number);
  const std::vector<Word> words = (*here)->norms.download();
  double squares = 0;
  for (int p = 0; p < parts(); ++p) {
    const Word* const of_part = &words[(k % 2 * parts() + p) * 2];
    squares += std::bit_cast<double>((of_part[0] & 0xffffffffu) | of_part[1] << 32);
  }
  return 1 / power_of_norm(squares);
}

template <typename T>
std::vector<T> PersistentMachine<T>::x_of(int k) {
  std::vector<T> whole(rows_);
  each([&](int, OnGpu& mine) {
    mine.layout.put_back(mine.x.download().data() + k % 2 * x_distance_, whole);
  });
  if (factor_ != 0) return whole;
  const T scale = static_cast<T>(factor_before(k));
  for (T& entry : whole) entry *= scale;
  return whole;
}

template class PersistentMachine<float>;
template class PersistentMachine<double>;

}  // namespace spmv::multigpu
