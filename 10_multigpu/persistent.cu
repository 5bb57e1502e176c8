#include "persistent.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "../03_csr_vector/rules.hpp"
#include "../06_pcsr/one_pass.cuh"
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
struct PersistentMachine<T>::OnGpu {
  Layout layout;
  int boundary_warps = 0;  // warps that have boundary rows
  device::DeviceCsr<T> csr;
  device::Buffer<T> x;                // both buffers
  device::Buffer<unsigned> arrivals;  // of each part
  device::Buffer<Word> norms;
  device::Buffer<unsigned> stuck;
  unsigned window = 0;  // the length of a share, in rows and nonzeros
  device::Buffer<Share> shares;
  device::Buffer<PartialSum<T>> partial_sums;
  device::Buffer<unsigned> unstarted;
  device::Buffer<double> block_sums;
  device::Buffer<Neighbour> neighbours;
  device::Buffer<Run<T>> runs;
};

// --- Setting up ---------------------------------------------------------------------------------

template <typename T>
PersistentMachine<T>::PersistentMachine(const std::vector<Part<T>>& parts,
                                        const PersistentSetup& setup)
    : kernel_(setup.kernel), lanes_(setup.lanes_per_row), on_gpu_(parts.size()) {
  const int count = static_cast<int>(parts.size());
  devices_ = device::available_devices(setup.devices > 0 ? std::min(setup.devices, count) : count);
  for (int d = 0; d < devices_; ++d) {
    for (int e = 0; e < devices_; ++e) {
      if (d == e || device::enable_peer_access(d, e)) continue;
      throw Unsuitable("GPUs " + std::to_string(d) + " and " + std::to_string(e) +
                       " have no access to each other's memory, which stores need: use "
                       "--exchange packed");
    }
  }
  for (const Part<T>& part : parts) {
    rows_ += part.rows();
    x_distance_ = std::max(x_distance_, static_cast<std::size_t>(part.local_cols + 31) / 32 * 32);
  }
  for (int p = 0; p < count; ++p) {
    const device::OnDevice on(device_of(p));
    on_gpu_[p] = std::make_unique<OnGpu>();
    OnGpu& mine = *on_gpu_[p];
    mine.layout = parts[p];
    mine.csr = device::DeviceCsr<T>(parts[p].matrix);
    mine.x = device::Buffer<T>("x", 2 * x_distance_);
    mine.arrivals = device::Buffer<unsigned>("arrivals", count);
    mine.norms = device::Buffer<Word>("norms", 4 * count);
    mine.stuck = device::Buffer<unsigned>("stuck", 4);
  }
  choose_kernel();
  choose_grid(setup.blocks);
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    streams_.emplace_back();
    PartsHere<T>& here = here_.emplace_back();
    here.blocks = blocks_;
    here.parts = count;
    here.lanes_per_row = lanes_;
    here.most_polls = setup.most_polls;
    here.stuck = on_gpu_[d]->stuck.data();
    std::size_t bytes = 0;
    for (int p = d; p < count; p += devices_) {
      bytes += on_gpu_[p]->csr.bytes() + on_gpu_[p]->x.bytes();
    }
    here.read_once =
        !fits_cache(static_cast<long long>(bytes), device::attribute(cudaDevAttrL2CacheSize));
  }
  each([&](int, OnGpu& mine) { divide(mine); });
  each([&](int p, OnGpu&) { describe(p); });
}

template <typename T>
PersistentMachine<T>::~PersistentMachine() = default;

template <typename T>
template <typename Work>
void PersistentMachine<T>::each(const Work& work) {
  for (int p = 0; p < parts(); ++p) {
    const device::OnDevice on(device_of(p));
    work(p, *on_gpu_[p]);
  }
}

template <typename T>
void PersistentMachine<T>::choose_kernel() {
  const bool parts_share = devices_ < parts();  // GPUs, which persistent_rows_kernel cannot
  if (parts_share && kernel_ != PersistentKernel::kSimple) kernel_ = PersistentKernel::kShares;
  if (kernel_ == PersistentKernel::kFast) {
    kernel_ = PersistentKernel::kRows;
    int width = 0;
    // (Step 06 also asks rows_may_suit_memory(). Here a lane per row is faster for rows of 7
    // nonzeros, too: NOTES.md.)
    each([&](int, OnGpu& mine) {
      if (mine.csr.rows == 0) return;
      const bool fits_l2 = fits_cache(static_cast<long long>(mine.csr.bytes()),
                                      device::attribute(cudaDevAttrL2CacheSize));
      const int wanted = rows_width(mine.csr.rows, mine.csr.nnz, statistics_of(mine.csr), fits_l2);
      if (wanted < 0 || wanted > 5) kernel_ = PersistentKernel::kShares;
      width = std::max(width, wanted);
    });
    if (lanes_ == 0 && kernel_ == PersistentKernel::kRows) lanes_ = 1 << width;
  }
  long long nnz = 0;
  for (const auto& mine : on_gpu_) nnz += mine->csr.nnz;
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

// As many warps as can be resident, or as are of use.
template <typename T>
void PersistentMachine<T>::choose_grid(int wanted_blocks) {
  const bool by_rows = kernel_ != PersistentKernel::kShares;
  const int most_threads = by_rows ? kPersistentRowsThreads : kPersistentSharesThreads;
  const std::size_t bytes = most_threads / 32 * warp_bytes_;
  for (int d = 0; d < devices_ && bytes > 0; ++d) {
    const device::OnDevice on(d);
    device::check(cudaFuncSetAttribute(function_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(bytes)),
                  "shared memory");
    device::limit_shared_memory(function_, 1, bytes);
  }
  long long useful = 1;  // warps
  for (const auto& mine : on_gpu_) {
    const long long rows = mine->csr.rows, nnz = mine->csr.nnz;
    useful = std::max(useful, by_rows ? device::divide_up(lanes_ * rows, 32LL)
                                      : device::divide_up(rows + nnz, 1LL * kOnePassLeastWindow));
  }
  const int warps = static_cast<int>(std::min(useful, 1LL << 20));
  const int fit = device::resident_blocks(function_, most_threads, bytes) /
                  device::divide_up(parts(), devices_);
  blocks_ = wanted_blocks > 0 ? wanted_blocks : std::clamp(warps, 1, std::max(fit, 1));
  threads_ = 32 * std::clamp(device::divide_up(warps, blocks_), 1, most_threads / 32);
}

// Which warps multiply what, and how many have boundary rows, which stand first.
template <typename T>
void PersistentMachine<T>::divide(OnGpu& mine) {
  mine.block_sums = device::Buffer<double>("block_sums", blocks_);
  const Index boundary_rows = mine.layout.boundary_rows;
  const int warps = blocks_ * threads_ / 32;
  mine.boundary_warps = std::min(device::divide_up(boundary_rows, 32 / lanes_), warps);
  if (kernel_ != PersistentKernel::kShares) return;
  // As many shares as one pass has on as many warps, in blocks of its own size.
  const OnePassShape shape =
      one_pass_shape<T>(mine.csr.rows, mine.layout.local_cols, mine.csr.nnz,
                        std::max(blocks_ * threads_ / OnePassPolicy<T>::kThreads, 1),
                        device::attribute(cudaDevAttrL2CacheSize));
  const int count = shape.share_count;
  mine.window = shape.window;
  mine.shares = device::Buffer<Share>("shares", count + 1);
  mine.partial_sums = device::Buffer<PartialSum<T>>("partial_sums", 2 * count);
  mine.unstarted = device::Buffer<unsigned>("unstarted", count);
  if (count == 0) return;
  constexpr int kThreads = 128;
  device::launch(find_shares_kernel<T>,
                 {dim3(device::divide_up(count + 1, kThreads / 32)), dim3(kThreads)}, count,
                 mine.window, kOnePassOverhang, mine.csr.rows, mine.csr.nnz,
                 mine.csr.row_offsets.data(), mine.shares.data(), mine.partial_sums.data(),
                 mine.unstarted.data());
  device::check(cudaDeviceSynchronize(), "finding shares");
  const std::vector<Share> shares = mine.shares.download();
  const auto with_boundary = std::count_if(shares.begin(), shares.end() - 1, [&](Share share) {
    return (share.row & ~kCutRow) < boundary_rows;
  });
  mine.boundary_warps = std::min(static_cast<int>(with_boundary), warps);
}

// Fills in here_[].part[] for part p, with its neighbours and what it sends.
template <typename T>
void PersistentMachine<T>::describe(int p) {
  OnGpu& mine = *on_gpu_[p];
  std::set<int> neighbours;
  for (const Halo& halo : mine.layout.halos) neighbours.insert(halo.owner);
  std::vector<Run<T>> runs;
  for (int q = 0; q < parts(); ++q) {
    for (const Halo& halo : on_gpu_[q]->layout.halos) {
      if (halo.owner != p) continue;
      neighbours.insert(q);
      T* ghost = on_gpu_[q]->x.data() + halo.ghost_begin;
      const std::size_t before = runs.size();
      for (const Index row : halo.sources) {
        if (runs.size() == before || row != runs.back().end) runs.push_back({row, row, ghost});
        ++runs.back().end;
        ++ghost;
      }
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run<T>& a, const Run<T>& b) { return a.begin < b.begin; });
  mine.runs = device::Buffer<Run<T>>("runs", runs);
  std::vector<Neighbour> table;
  for (const int q : neighbours) {
    table.push_back(
        {q, on_gpu_[q]->arrivals.data() + p, mine.arrivals.data() + q,
         static_cast<unsigned>(device::divide_up(on_gpu_[q]->boundary_warps, threads_ / 32))});
  }
  mine.neighbours = device::Buffer<Neighbour>("neighbours", table);

  PersistentPart<T>& view = here_[device_of(p)].part[p / devices_];
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
  view.product.share_count = static_cast<int>(mine.unstarted.size());
  view.product.window = mine.window;
  view.product.shares = mine.shares.data();
  view.product.row_offsets = view.row_offsets;
  view.product.column_indices = view.column_indices;
  view.product.values = view.values;
  view.product.beta = 0;
  view.product.partial_sums = mine.partial_sums.data();
  view.product.unstarted = mine.unstarted.data();
  view.boundary_warps = mine.boundary_warps;
  view.arrivals = mine.arrivals.data() + p;
  view.block_sums = mine.block_sums.data();
  for (int q = 0; q < parts(); ++q) view.norms[q] = on_gpu_[q]->norms.data();
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
      const Layout& owner = on_gpu_[halo.owner]->layout;
      T* ghost = &x[halo.ghost_begin];
      for (const Index source : halo.sources) {
        *ghost++ = first_x_[owner.first_row + owner.order[source]];
      }
    }
    mine.x.upload(x);
    const auto clear = [](auto& buffer) {
      device::check(cudaMemset(buffer.data(), 0, buffer.bytes()), "clearing a buffer");
    };
    clear(mine.arrivals), clear(mine.norms), clear(mine.stuck);
    device::check(cudaDeviceSynchronize(), "preparing a run");
  });
}

template <typename T>
double PersistentMachine<T>::run(int steps, Function function) {
  if (kernel_ == PersistentKernel::kSimple && factor_ == 0) {
    throw Unsuitable("the simple persistent kernel has no norm");
  }
  reset();
  const auto before = std::chrono::steady_clock::now();
  // All are launched before any is waited for: they wait for each other.
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    const int parts_here = device::divide_up(parts() - d, devices_);
    here_[d].factor = factor_;
    device::launch_cooperative(function,
                               {dim3(blocks_ * parts_here), dim3(threads_),
                                threads_ / 32 * warp_bytes_, streams_[d].get()},
                               here_[d], steps);
  }
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    streams_[d].synchronize();
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - before;
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    const std::vector<unsigned> stuck = on_gpu_[d]->stuck.download();
    if (!stuck[0]) continue;
    const std::string awaited = stuck[3] == kAnyPart   ? "entries of other parts"
                                : stuck[3] == stuck[1] ? "its own blocks"
                                                       : "part " + std::to_string(stuck[3]);
    throw device::DeviceError("part " + std::to_string(stuck[1]) + ", in step " +
                              std::to_string(stuck[2]) + ", timed out waiting for " + awaited +
                              ": another GPU has failed, or is too slow");
  }
  return time.count();
}

// --- Results ------------------------------------------------------------------------------------

// What the entries of step k's x, as they are in memory, are multiplied by.
template <typename T>
double PersistentMachine<T>::factor_before(int k) {
  if (factor_ != 0) return factor_;
  if (k == 0) return 1;
  const device::OnDevice on(device_of(0));
  const std::vector<Word> words = on_gpu_[0]->norms.download();
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
